"""Reads a catalog's rows page by page, in the order of their paths: as fast at its end as at its beginning.

A page begins behind (or ends before) a path, so the unique index of the paths gives it by a short scan.  How many rows
there are is counted only so far; beyond that it is PostgreSQL's estimate.
"""

from dataclasses import dataclass
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexing.codec import decode
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.query import bind
from plone.pgcatalog.results.view import Asked
from plone.pgcatalog.results.view import CatalogView
from typing import Any


SIZE = 50
#: Rows that are counted exactly, which takes about a millisecond.
COUNTED = 1_000


@dataclass(frozen=True, slots=True)
class Row:
    """A row as the list shows it."""

    rid: int
    path: str
    type: str
    title: str


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, and the paths its neighbours begin from: ``before`` and ``after``, empty when there is none."""

    rows: list[Row]
    before: str
    after: str


class Browser:
    """The rows of *view* at and below the path *folder*, all of them for an empty one."""

    def __init__(self, view: CatalogView, folder: str = "", size: int = SIZE) -> None:
        self.view = view
        self.folder = normal_path(folder)
        self.size = size
        #: exclusive ends of the paths below the folder: "0" is the character that follows "/"
        self.low = f"{self.folder}/" if self.folder else ""
        self.high = f"{self.folder}0" if self.folder else None

    def page(self, after: str = "", before: str = "") -> Page:
        """Return the rows that follow the path *after*, or those in front of the path *before*; else the first ones."""
        if before:
            found = self._select(self.low, clean_path(before), descending=True)
            if len(found) > self.size:
                found = found[: self.size][::-1]
                return self._page(found, found[0][1], found[-1][1])
            after = ""
        own = [] if after or not self.folder else self.view.select("rid, path", Condition("path = %s", (self.folder,)))
        found = own + self._select(max(self.low, clean_path(after)), self.high)
        shown = found[: self.size]
        has_more = len(found) > self.size
        return self._page(shown, shown[0][1] if after and shown else "", shown[-1][1] if has_more else "")

    def count(self) -> int | None:
        """Return how many rows there are, None when they are more than ``COUNTED``."""
        where = between(self.low, self.high)
        if self.folder:
            where = where | Condition("path = %s", (self.folder,))
        statement = self.statement("1", where, f"LIMIT {COUNTED + 1:d}")
        if statement is None:
            return 0
        [(count,)] = self.view.session.execute(f"SELECT count(*) FROM ({statement.sql}) counted", statement.params)
        return count if count <= COUNTED else None

    def total(self) -> str:
        """Return how many rows there are, for people to read; exactly, if they are few."""
        count = self.count()
        if count is not None:
            return f"{count:,}"
        return _("about ${number}", {"number": f"{max(self.estimate(), COUNTED):,}"})

    def estimate(self) -> int:
        """Return about how many rows there are, as PostgreSQL's planner guesses from its statistics."""
        statement = self.statement("path", between(self.low, self.high))
        if statement is None:
            return 0
        [(plan,)] = self.view.session.execute(f"EXPLAIN (FORMAT JSON) {statement.sql}", statement.params)
        return int(plan[0]["Plan"]["Plan Rows"])

    def statement(self, expressions: str, where: Condition, tail: str = "") -> Asked:
        """Return the statement for the rows that match *where*, a condition on paths."""
        return self.view.bound(lambda stored: bind.select(expressions, where, stored, tail))

    def _select(self, low: str, high: str | None, descending: bool = False) -> list[tuple[Any, ...]]:
        """Return (rid, path) of the nearest rows between *low* and *high*, one more than a page has."""
        order = "DESC" if descending else "ASC"
        return self.view.select("rid, path", between(low, high), f"ORDER BY path {order} LIMIT {self.size + 1:d}")

    def _page(self, found: list[tuple[Any, ...]], before: str, after: str) -> Page:
        idx = self.view.idx([rid for rid, _path in found]) if found else {}
        rows = [Row(rid, path, *describe(idx.get(rid, {}))) for rid, path in found]
        return Page(rows, before, after)


def between(low: str, high: str | None) -> Condition:
    """Return the condition for paths between *low* and *high*, both excluded; without *high* there is no upper end."""
    condition = Condition("path > %s", (low,))
    return condition if high is None else condition & Condition("path < %s", (high,))


def normal_path(text: str) -> str:
    """Return what somebody typed as a path: with a slash in front, and none behind."""
    path = clean_path(text.strip()).strip("/")
    return f"/{path}" if path else ""


def describe(idx: dict[str, Any]) -> tuple[str, str]:
    """Return the type and the title in *idx*."""
    kind, title = (decode(idx.get(name)) for name in ("portal_type", "Title"))
    return str(kind or decode(idx.get("meta_type")) or ""), str(title or "")
