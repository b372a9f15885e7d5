"""Shows the rows of a catalog page by page, ordered by path.

A page starts after (or ends before) a path, so the unique index on paths returns it by a short scan, at any position.  Rows
are counted up to ``COUNT_LIMIT``; larger numbers are PostgreSQL's estimates.
"""

from dataclasses import dataclass
from plone.pgcatalog.database.prepared import Rows
from plone.pgcatalog.files import texts
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import restored
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexing.codec import decode
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.indexing.objects import is_rid
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.queue import table
from plone.pgcatalog.request import number_in
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.zmi.page import ManagePage
from plone.pgcatalog.zmi.page import readable
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from Products.ZCTextIndex.ZCTextIndex import ZCTextIndex
from typing import Any
from urllib.parse import urlencode
from zExceptions import NotFound

import json


PAGE_ROWS = 50
#: Limit up to which rows are counted exactly, which takes about a millisecond.
COUNT_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class ListRow:
    """A row of the list."""

    rid: int
    path: str
    type: str
    title: str


@dataclass(frozen=True, slots=True)
class ListPage:
    """Rows, and the paths at which the neighbouring pages start: ``before`` and ``after``, "" if there is no such page."""

    rows: list[ListRow]
    before: str
    after: str


class Browser:
    """The rows of *view* at and below the path *folder*, or all rows if it is empty."""

    def __init__(self, view: CatalogView, folder: str = "", size: int = PAGE_ROWS) -> None:
        self.view = view
        self.folder = normal_path(folder)
        self.size = size
        #: exclusive bounds of the paths below the folder: "0" is the character after "/"
        self.low = f"{self.folder}/" if self.folder else ""
        self.high = f"{self.folder}0" if self.folder else None

    def page(self, after: str = "", before: str = "") -> ListPage:
        """Return the page of rows after the path *after*, or before the path *before*; by default the first page."""
        if before:
            rows = self._select(self.low, clean_path(before), descending=True)
            if len(rows) > self.size:
                rows = rows[: self.size][::-1]
                return self._page(rows, rows[0][1], rows[-1][1])
            after = ""
        folder_row = (
            []
            if after or not self.folder
            else self.view.select("rid, path", Condition("path = %s", (self.folder,))).value()
        )
        rows = folder_row + self._select(max(self.low, clean_path(after)), self.high)
        shown = rows[: self.size]
        has_more = len(rows) > self.size
        return self._page(shown, shown[0][1] if after and shown else "", shown[-1][1] if has_more else "")

    def count(self) -> int | None:
        """Return the number of rows, None if there are more than ``COUNT_LIMIT``."""
        statement = self.count_statement()
        return 0 if statement is None else self.count_in(self.view.session.query(statement))

    def count_statement(self) -> Statement | None:
        """Return the statement of ``count``, None for a catalog without a table."""
        where = between(self.low, self.high)
        if self.folder:
            where = where | Condition("path = %s", (self.folder,))
        statement = self.statement("1", where, f"LIMIT {COUNT_LIMIT + 1:d}")
        return statement and Statement(f"SELECT count(*) FROM ({statement.sql}) counted", statement.params)

    def count_in(self, rows: Rows) -> int | None:
        """Return ``count`` for the *rows* of ``count_statement``."""
        [(count,)] = rows
        return count if count <= COUNT_LIMIT else None

    def total(self) -> str:
        """Return ``count`` as text."""
        return self.shown(self.count())

    def shown(self, count: int | None) -> str:
        """Return *count* as text; for None an estimate of the number of rows."""
        if count is not None:
            return f"{count:,}"
        return _("about ${number}", {"number": f"{max(self.estimate(), COUNT_LIMIT):,}"})

    def estimate(self) -> int:
        """Return the number of rows that PostgreSQL's planner estimates from its statistics."""
        statement = self.statement("path", between(self.low, self.high))
        if statement is None:
            return 0
        [(plan,)] = self.view.session.execute(f"EXPLAIN (FORMAT JSON) {statement.sql}", statement.params)
        return int(plan[0]["Plan"]["Plan Rows"])

    def statement(self, expressions: str, where: Condition, tail: str = "") -> Statement | None:
        """Return the statement for the rows that match *where*, a condition on paths."""
        return self.view.statement(lambda stored: bind.select(expressions, where, stored, tail))

    def _select(self, low: str, high: str | None, descending: bool = False) -> list[tuple[Any, ...]]:
        """Return (rid, path) of the nearest rows between *low* and *high*: one more than a page has."""
        order = "DESC" if descending else "ASC"
        return self.view.select(
            "rid, path", between(low, high), f"ORDER BY path {order} LIMIT {self.size + 1:d}"
        ).value()

    def _page(self, shown: list[tuple[Any, ...]], before: str, after: str) -> ListPage:
        idx = self.view.idx([rid for rid, _path in shown]).value() if shown else {}
        rows = [ListRow(rid, path, *describe(idx.get(rid, {}))) for rid, path in shown]
        return ListPage(rows, before, after)


def between(low: str, high: str | None) -> Condition:
    """Return the condition for paths between *low* and *high*, both excluded; without *high* there is no upper bound."""
    condition = Condition("path > %s", (low,))
    return condition if high is None else condition & Condition("path < %s", (high,))


def normal_path(text: str) -> str:
    """Return *text*, typed by a user, as a path: with a slash at its start, and none at its end."""
    path = clean_path(text.strip()).strip("/")
    return f"/{path}" if path else ""


def describe(idx: dict[str, Any]) -> tuple[str, str]:
    kind, title = (decode(idx.get(name)) for name in ("portal_type", "Title"))
    return str(kind or decode(idx.get("meta_type")) or ""), str(title or "")


class CatalogPage(ManagePage):
    """Shows a page of rows.

    The fields ``filterpath``, ``after`` and ``before`` select it; the form calls the tool's own actions.
    """

    template = ViewPageTemplateFile("templates/catalog.pt")
    name = "manage_catalogView"

    # -- for the template

    def browser(self) -> Browser:
        return Browser(self.catalog.view(), self.field("filterpath"))

    def page(self, browser: Browser) -> ListPage:
        return browser.page(self.field("after"), self.field("before"))

    def total(self, browser: Browser, page: ListPage) -> str:
        """Return the number of rows as text."""
        return f"{len(page.rows):,}" if not page.before and not page.after else browser.total()

    def link(self, browser: Browser, **start: str) -> str:
        return f"{self.url()}?{urlencode({'filterpath': browser.folder, **start}, errors='replace')}"


#: Number of characters from which values are cut.
LONGEST = 2000


class InformationPage(ManagePage):
    """Shows the row with the rid in the field ``rid``; raises NotFound if there is none."""

    template = ViewPageTemplateFile("templates/information.pt")
    name = "manage_objectInformation"

    rid = 0
    path = ""
    #: index name -> indexed value of the row
    values: dict[str, Any] = {}

    @property
    def inside(self) -> Any:
        return self.context._catalog

    def __call__(self) -> Any:
        text = self.field("rid")
        rid = number_in(text)
        path = self.inside.paths.get(rid) if is_rid(rid) else None
        if rid is None or path is None:
            raise NotFound(f"no row {text!r:.50} in this catalog")
        self.rid, self.path = rid, path
        values = self.inside.getIndexDataForRID(rid)
        self.values = {name: values[name] for name in sorted(values, key=str.lower)}
        self.request.set("management_view", self.translated(_("Catalog")))  # the selected tab
        return super().__call__()

    def index(self, name: str) -> Any:
        return self.inside.indexes[name]

    def is_text(self, name: str) -> bool:
        return isinstance(self.index(name), ZCTextIndex)

    # -- for the template

    def object_url(self) -> str:
        """Return the URL of the object's management page; empty if the object does not exist."""
        obj = self.context.unrestrictedTraverse(self.path, None)
        return "" if obj is None else f"{obj.absolute_url()}/manage_workspace"

    def failure(self) -> str:
        """Return the reason why the object's file has no text; empty if it has one, or is not a file."""
        zoid = self.row["zoid"]
        if not zoid:
            return ""
        reason = table.failure(self.catalog.session.execute, self.catalog.zoid, int(zoid), *texts.KINDS)
        return str(self.translated(restored(reason)))

    def metadata(self) -> list[tuple[str, str]]:
        values = self.inside.getMetadataForRID(self.rid)
        return [(name, shown(values[name])) for name in sorted(values, key=str.lower)]

    def indexes(self) -> list[tuple[str, str, str]]:
        """Return (name, type, value) of each index, except texts, which have their own section."""
        return [(n, self.index(n).meta_type, shown(v)) for n, v in self.values.items() if not self.is_text(n)]

    def texts(self) -> list[tuple[str, str]]:
        return [(name, cut(" ".join(words))) for name, words in self.values.items() if self.is_text(name)]

    def columns(self) -> list[tuple[str, str]]:
        """Return (name, value) of the columns of the row in PostgreSQL."""
        return [(name, shown(value)) for name, value in self.row.items() if name != "idx"]

    def idx(self) -> str:
        idx = self.catalog.view().idx([self.rid]).value().get(self.rid, {})
        return cut(json.dumps(idx, ensure_ascii=False, indent=1, sort_keys=True), 10 * LONGEST)

    @property
    def row(self) -> dict[str, Any]:
        view = self.catalog.view()
        names = ["rid", "path", "zoid", *view.layout.names]

        def statement(stored: Stored) -> Statement:
            lists = bind.lists_sql(stored)
            columns = ", ".join(f"{lists.get(name, quote(name))}::text" for name in names)
            return bind.select(columns, Condition("rid = %s", (self.rid,)), stored)

        [values] = view.fetch(statement).value()
        return dict(zip(names, values, strict=True))


def shown(value: Any) -> str:
    """Return *value* as text for the page."""
    return cut(readable(value) if isinstance(value, str) else "" if value is None else repr(value))


def cut(text: str, longest: int = LONGEST) -> str:
    if len(text) <= longest:
        return text
    return _("${text} … (${number} characters)", {"text": text[:longest], "number": f"{len(text):,}"})
