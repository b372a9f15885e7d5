"""Lists of the counted searches, for people who tune the search: read from the table of ``searches``."""

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from datetime import timedelta
from plone.pgcatalog.database.prepared import positional
from plone.pgcatalog.observe.log import log_sql
from plone.pgcatalog.observe.searches import days_of
from plone.pgcatalog.observe.searches import PEOPLE
from plone.pgcatalog.observe.searches import SEARCH_DAYS
from plone.pgcatalog.settings import record_member_searches
from plone.pgcatalog.settings import record_searches
from plone.pgcatalog.sql.expression import Statement
from typing import Any
from typing import NamedTuple
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from plone.pgcatalog.results.view import RowsFetch


#: Maximum number of rows of a file.
MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class SearchCount:
    """The numbers of searches for *words*: all, those without results, and those that were replaced by *correction*.

    For a week, *words* is the date of its first day.
    """

    words: str
    searches: int
    without_results: int
    corrected: int = 0
    correction: str = ""


class SearchLists(NamedTuple):
    """The most frequent searches, and others; and the weeks, the newest first.

    *missed* are mostly without results, *corrected* have a correction, and of the hits of *unopened* none was opened.
    """

    top: list[SearchCount]
    missed: list[SearchCount]
    corrected: list[SearchCount]
    unopened: list[SearchCount]
    weeks: list[SearchCount]


def top_searches_statement(
    catalog: int, limit: int = 10, days: int = SEARCH_DAYS, week: date | None = None
) -> Statement:
    """Return the statement for ``top_searches``: up to *limit* searches of each kind in the last *days*.

    With *week*, a Monday, the lists are those of this week.
    """
    return _statement("top_searches", {"catalog": catalog, "limit": limit, "days": days, "week": week})


def by_week_statement(catalog: int, days: int) -> Statement:
    """Return the statement whose rows are the searches of each week: week and the fields of SearchCount."""
    return _statement("searches_by_week", {"catalog": catalog, "limit": MOST_ROWS, "days": days})


def read_searches(tool: Any, limit: int = 10, week: date | None = None) -> "RowsFetch | None":
    """Return a fetch of the rows for ``top_searches`` in the catalog *tool*; None if its site counts no searches."""
    if not record_searches(tool) and not record_member_searches(tool):
        return None
    catalog = tool._core
    statement = top_searches_statement(catalog.zoid, limit, days_of(tool), week)
    rows: RowsFetch = catalog.view().fetch(lambda _: statement)
    return rows


def week_of(text: Any) -> date | None:
    """Return the Monday of the week with the date *text*, as ISO 8601; None for other values."""
    try:
        day = date.fromisoformat(text) if isinstance(text, str) and len(text) == len("2026-12-31") else None
    except ValueError:
        return None
    return None if day is None else day - timedelta(day.weekday())


def _statement(name: str, values: dict[str, Any]) -> Statement:
    statement, params = positional(log_sql(name), values | {"people": PEOPLE})
    return Statement(statement, tuple(params))


def top_searches(rows: Iterable[Sequence[Any]]) -> SearchLists:
    """Return the lists in *rows* of ``top_searches_statement``."""
    lists = SearchLists([], [], [], [], [])
    for kind, *values in rows:
        lists[kind].append(SearchCount(*values))
    return lists
