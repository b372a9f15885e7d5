"""Hits of the search page, made from brains without loading objects, and titles of indexes and of their values."""

from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from plone.base.i18nl10n import monthname_msgid
from plone.pgcatalog.discovery.file_pages import Snippet
from plone.pgcatalog.discovery.passages import folders_above
from plone.pgcatalog.files.file_kinds import INDEX as KIND_OF_FILE
from plone.pgcatalog.files.file_kinds import TITLES as KINDS_OF_FILES
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexes.base import HIGHEST_SCORE
from plone.pgcatalog.searchpage.sites import SITES
from plone.registry.interfaces import IRegistry
from Products.CMFCore.utils import getToolByName
from typing import Any
from zope.component import getMultiAdapter
from zope.component import getUtility
from zope.i18n import translate


#: Titles of facets whose title is not the one of the index in Plone's collections.
FACET_TITLES = {
    "portal_type": _("Type"),
    "Subject": _("Tags"),
    "Date": _("Date"),
    "Creator": _("Author"),
    "path": _("Place"),
    KIND_OF_FILE: _("Kind of file"),
    SITES: _("Site"),
}


class Titles:
    """Titles in *context*, translated for *request*."""

    def __init__(self, context: Any, request: Any) -> None:
        self._context = context
        self._request = request
        self._authors: dict[str, str] = {}
        self._types: dict[str, str] = {}

    def translated(self, message: Any) -> str:
        """Return *message* in the language of the request."""
        text: str = translate(message, context=self._request)
        return text

    def facet(self, index: str) -> str:
        """Return the title of the facet of *index*."""
        title = (
            FACET_TITLES.get(index) or getUtility(IRegistry).get(f"plone.app.querystring.field.{index}.title") or index
        )
        return self.translated(title)

    def values(self, index: str, tokens: Iterable[str], are_periods: bool = False) -> dict[str, str]:
        """Return value -> title for *tokens*, values of *index*; {} for paths, whose titles are read from the content.

        *are_periods*: the values are years and months; a tag such as ``2026-11`` is no month.
        """
        if index == "path":
            return {}
        kind = {
            "portal_type": self.type,
            "Creator": self.author,
            "review_state": self._state,
            "is_folderish": self._flag,
            KIND_OF_FILE: self._kind_of_file,
        }.get(index, self._period if are_periods else str)
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

    def _kind_of_file(self, token: str) -> str:
        return self.translated(KINDS_OF_FILES.get(token, token))

    def _period(self, token: str) -> str:
        """Return the name of the month and the year for ``2026-11``; a year unchanged."""
        year, _dash, month = token.partition("-")
        if not month:
            return token
        return f"{translate(monthname_msgid(int(month)), 'plonelocales', context=self._request)} {year}"


#: Maximum number of folders in the breadcrumbs of a hit; those in the middle are left out.
MOST_CRUMBS = 3
#: Number of tags of a hit that are shown at first.
MOST_TAGS = 6


@dataclass(frozen=True)
class Hit:
    """A hit; ``title`` and ``text`` are HTML, ``crumbs`` (title, URL or None), ``uid`` identifies it for similar pages.

    ``file_page`` is the title of the page of a file that the text is from, or "", and ``file_page_url`` the URL that opens it.
    ``is_pinned`` is True if an editor has pinned the page to the text of the search.
    """

    brain: Any
    url: str
    title: str
    text: str
    kind: str
    author: str
    author_id: str
    published: str
    modified: str
    crumbs: tuple[tuple[str, str | None], ...]
    uid: str
    file_page: str
    file_page_url: str | None
    is_pinned: bool

    @property
    def state(self) -> str:
        return _text(self.brain, "review_state")

    @property
    def tags(self) -> tuple[str, ...]:
        tags = getattr(self.brain, "Subject", ())
        return tuple(dict.fromkeys(tags)) if isinstance(tags, tuple | list) else ()

    @property
    def shown_tags(self) -> tuple[str, ...]:
        return self.tags[:MOST_TAGS]

    @property
    def more_tags(self) -> tuple[str, ...]:
        return self.tags[MOST_TAGS:]


def hits(
    page: Any, brains: Iterable[Any], snippets: Mapping[int, Snippet], folders: Mapping[str, Any], highlighter: Any
) -> list[Hit]:
    """Return *brains* as hits of the search *page*; *folders* maps the paths of their folders to brains.

    *highlighter* marks words in their titles; it may be false.
    """
    titles, show_about = page.titles, page.show_about
    registry = getUtility(IRegistry)
    plone = getMultiAdapter((page.context, page.request), name="plone")
    viewed = registry.get("plone.types_use_view_action_in_listings", [])
    length = registry.get("plone.search_results_description_length")

    def day(brain: Any, name: str) -> str:
        date = _text(brain, name) if show_about else ""
        return (plone.toLocalizedTime(date) or "") if date and date != "None" else ""

    def hit(brain: Any) -> Hit:
        title = _text(brain, "Title") or _text(brain, "getId")
        description = escape(plone.cropText(_text(brain, "Description"), length))
        author = _text(brain, "Creator") if show_about else ""
        published, modified = day(brain, "EffectiveDate"), day(brain, "ModificationDate")
        snippet = snippets.get(brain.getRID())
        file_page = snippet.page if snippet else None
        return Hit(
            brain=brain,
            url=brain.getURL() + ("/view" if _text(brain, "portal_type") in viewed else ""),
            title=highlighter.mark(title) if highlighter else escape(title),
            text=snippet or description,
            kind=titles.type(_text(brain, "portal_type")),
            author=titles.author(author) if author else "",
            author_id=author,
            published=published,
            modified=modified if modified != published else "",
            crumbs=_crumbs(folders_above(brain.getPath(), page.root), folders),
            uid=_text(brain, "UID"),
            file_page="" if file_page is None else titles.translated(file_page.title),
            file_page_url=None if file_page is None else file_page.url(brain.getURL()),
            is_pinned=brain.data_record_score_ > 1000 * HIGHEST_SCORE,
        )

    return [hit(brain) for brain in brains]


def _crumbs(paths: list[str], folders: Mapping[str, Any]) -> tuple[tuple[str, str | None], ...]:
    """Return (title, URL) of the *paths* in *folders*; the visitor may not see the other ones."""
    crumbs = [(_text(folders[p], "Title") or folders[p].getId, folders[p].getURL()) for p in paths if p in folders]
    return (crumbs[0], ("…", None), *crumbs[-2:]) if len(crumbs) > MOST_CRUMBS else tuple(crumbs)


def _text(brain: Any, name: str) -> str:
    """Return the column *name* of *brain*; "" if there is no such column, or its value is not a string."""
    value = getattr(brain, name, "")
    return value if isinstance(value, str) else ""
