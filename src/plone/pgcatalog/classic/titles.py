"""What indexes and their values are called for a reader."""

from collections.abc import Iterable
from functools import cached_property
from plone.base.i18nl10n import monthname_msgid
from plone.pgcatalog.i18n import _
from plone.registry.interfaces import IRegistry
from Products.CMFCore.utils import getToolByName
from typing import Any
from zope.component import getUtility
from zope.i18n import translate


#: What the facets of an index are called, if not as Plone's collections call the index.
FACETS = {
    "portal_type": _("Type"),
    "Subject": _("Tags"),
    "Date": _("Date"),
    "Creator": _("Author"),
    "path": _("Place"),
}


class Titles:
    """Titles on *context*, translated for *request*."""

    def __init__(self, context: Any, request: Any) -> None:
        self._context = context
        self._request = request
        self._authors: dict[str, str] = {}
        self._types: dict[str, str] = {}

    @cached_property
    def _registry(self) -> Any:
        return getUtility(IRegistry)

    def translated(self, message: Any) -> str:
        """Return *message* in the language of the request."""
        text: str = translate(message, context=self._request)
        return text

    def facet(self, index: str) -> str:
        """Return what the facet of *index* is called."""
        title = FACETS.get(index) or self._registry.get(f"plone.app.querystring.field.{index}.title") or index
        return self.translated(title)

    def values(self, index: str, tokens: Iterable[str]) -> dict[str, str]:
        """Return what *tokens*, values of *index*, are called; those of paths, whose titles are content, are left out."""
        if index == "path":
            return {}
        kind = {
            "portal_type": self.type,
            "Creator": self.author,
            "review_state": self._state,
            "is_folderish": self._flag,
        }.get(index, self._period)
        return {token: kind(token) for token in tokens}

    def type(self, token: str) -> str:
        """Return the title of a content type."""
        if token not in self._types:
            info = getToolByName(self._context, "portal_types").getTypeInfo(token)
            self._types[token] = token if info is None else self.translated(info.Title())
        return self._types[token]

    def author(self, token: str) -> str:
        """Return the full name of a user."""
        if token not in self._authors:
            info = getToolByName(self._context, "portal_membership").getMemberInfo(token)
            self._authors[token] = (info and info["fullname"]) or token
        return self._authors[token]

    def _state(self, token: str) -> str:
        return self.translated(
            getToolByName(self._context, "portal_workflow").getTitleForStateOnType(token, "Document")
        )

    def _flag(self, token: str) -> str:
        return self.translated(_("Yes") if token == "True" else _("No"))

    def _period(self, token: str) -> str:
        """Return the name of a month of a year for ``2026-11``, anything else as it is."""
        year, _dash, month = token.partition("-")
        if not (len(year) == 4 and year.isdigit() and month.isdigit() and 1 <= int(month) <= 12):
            return token
        return f"{translate(monthname_msgid(int(month)), 'plonelocales', context=self._request)} {year}"
