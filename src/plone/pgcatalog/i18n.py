"""Messages for people: marked where they are written, translated where a request shows them."""

from collections.abc import Mapping
from typing import Any
from zope.i18n import translate
from zope.i18nmessageid import MessageFactory


_factory = MessageFactory("plone.pgcatalog")


def _(message: str, mapping: Mapping[str, str] | None = None) -> str:
    """Return *message*, marked for translation, with values for its ``${names}``.

    ``scripts/messages.py`` finds the calls by this name.
    """
    marked: str = _factory(message, mapping=mapping)
    return marked


def translated(message: str, request: Any) -> str:
    """Return *message*, if it is marked, in the language of *request*; any other text as it is."""
    text: str = translate(message, context=request)
    return text
