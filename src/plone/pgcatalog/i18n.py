"""Messages for users: marked in the code, translated where a request shows them, English elsewhere."""

from collections.abc import Mapping
from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from string import Template
from typing import Any
from zope.i18nmessageid import Message
from zope.i18nmessageid import MessageFactory

import json


_factory = MessageFactory("plone.pgcatalog")


def _(message: str, mapping: Mapping[str, str] | None = None) -> str:
    """Return *message*, marked for translation, with values for its ``${names}``; these may be messages themselves.

    ``scripts/messages.py`` finds the calls by this name.
    """
    marked: str = _factory(message, mapping=mapping)
    return marked


def joined(messages: Sequence[str]) -> str:
    """Return one message with all *messages*, at least one, separated by semicolons."""
    return reduce(lambda texts, text: _("${texts}; ${text}", {"texts": texts, "text": text}), messages)


def translated(message: str, request: Any) -> str:
    """Return *message*, if it is marked, in the language of *request*, English without one; any other text unchanged.

    Messages among the values are translated first: zope.i18n mistakes two of them with the same text for a cycle.
    """
    # The import takes long, and commands do not need it.
    from zope.i18n import translate

    if isinstance(message, Message) and message.mapping:
        values = {name: translated(value, request) for name, value in message.mapping.items()}
        message = Message(str(message), message.domain, message.default, values)
    text: str = translate(message, context=request)
    return text


def english(message: str) -> str:
    """Return *message* in English with its values inserted, for logs and commands."""
    values = getattr(message, "mapping", None) or {}
    return Template(message).safe_substitute({name: english(value) for name, value in values.items()})


def stored(message: str) -> str:
    """Return *message* as a text from which ``restored`` recreates the message; a text that is not marked unchanged."""
    if not isinstance(message, Message):
        return message
    values = {name: stored(value) for name, value in (message.mapping or {}).items()}
    return json.dumps([str(message), values], ensure_ascii=False)


def restored(text: str) -> str:
    """Return the message that ``stored`` returned *text* for; any other text unchanged."""
    try:
        message, values = json.loads(text)
        return _factory(message, mapping={name: restored(value) for name, value in values.items()})  # type: ignore[no-any-return]
    except (ValueError, TypeError, AttributeError):
        return text


def when(value: datetime) -> str:
    """Return a time for users to read, in the named time zone of this process."""
    return value.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def ms(value: float | None) -> str:
    """Return milliseconds with up to three significant digits, a dash for None."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def percent(share: float) -> str:
    """Return a *share* from 0 to 1 as a percentage."""
    return f"{100 * share:.0f} %"


class MessageError(Exception):
    """An error with a *message* for users: translated on pages, English elsewhere."""

    @property
    def message(self) -> str:
        """The message that was raised, marked for translation."""
        text: str = self.args[0] if self.args else ""
        return text

    def __str__(self) -> str:
        return english(self.message)
