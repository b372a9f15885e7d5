"""Reads the log of slow queries of one catalog."""

from bisect import bisect_right
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from datetime import datetime
from datetime import UTC
from functools import cache
from importlib.resources import files
from plone.pgcatalog.database.background import EXIT_SECONDS
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.statistics import LONG_MS
from plone.pgcatalog.database.statistics import TIMES_MEDIAN
from typing import Any
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


#: When this process began.
STARTED = datetime.now(UTC)
#: Pages that a filter offers.
PAGES = 50
#: Lower ends of the buckets but the first, in milliseconds; the last one is open.
BOUNDS = (1, 2, 5, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 10_000, 30_000)

#: Runs a statement with named values and returns its rows as tuples.
Execute = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]


@cache
def log_sql(name: str) -> str:
    """Return the text of ``observe/sql/<name>.sql``."""
    return (files(__package__) / "sql" / f"{name}.sql").read_text("utf-8")


def histogram(times: Iterable[float]) -> list[int]:
    """Return how many of *times*, in milliseconds, are in each bucket."""
    counts = [0] * (len(BOUNDS) + 1)
    for ms in times:
        counts[bisect_right(BOUNDS, ms)] += 1
    return counts


def quantile(counts: Sequence[int], part: float) -> float:
    """Return about the time that *part* (0 to 1) of the queries in *counts* did not exceed; 0.0 when there are none."""
    wanted = part * sum(counts)
    for number, count in enumerate(counts):
        if count and wanted <= count:
            low = BOUNDS[number - 1] if number else 0
            high = BOUNDS[number] if number < len(BOUNDS) else 2 * low
            return low + (high - low) * wanted / count
        wanted -= count
    return 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """Which slow queries are looked at: of the last *hours*, of the group with this *key*, of this *page*; None for any."""

    hours: int | None = None
    key: str | None = None
    page: str | None = None

    @property
    def values(self) -> dict[str, Any]:
        return {"hours": self.hours, "key": self.key, "page": self.page}


EVERYTHING = Choice()


@dataclass(frozen=True, slots=True)
class Group:
    """All slow queries of one shape and operation; times in milliseconds, share of all time from 0 to 1.

    *long* are slow for this site, the group *is_new* since the last start of a process: the catalog was there before, and
    the shape was not slow; *embed_ms* to *server_ms* are
    sums of what the times consist of, *server_ms* None without a plan.  *cold* counts what statements were the first of.
    """

    shape: str
    operation: str
    count: int
    mean_ms: float
    p95_ms: float
    max_ms: float
    total_ms: float
    last: datetime
    share: float
    newest: int
    key: str
    median_ms: float
    long: int
    is_new: bool
    embed_ms: float
    compile_ms: float
    execute_ms: float
    decode_ms: float
    server_ms: float | None
    cold: dict[str, int]
    plan: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Example:
    """One recorded query; ``query`` is what ``record.recall`` takes, ``plan`` the newest of its shape if it has none."""

    id: int
    recorded_at: datetime
    path: str
    operation: str
    shape: str
    query: dict[str, Any]
    left_out: list[str]
    total_ms: float
    embed_ms: float
    compile_ms: float
    execute_ms: float
    decode_ms: float
    result_rows: int
    statement: str
    page: str = ""
    cold: str = ""
    plan: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """How many slow queries there were, and about how long they took."""

    count: int = 0
    p50_ms: float = 0.0
    p95_ms: float = 0.0

    @classmethod
    def of(cls, counts: Mapping[str, int] | None) -> "Figures":
        """Return those of *counts*, numbers of buckets (as JSON has them) and how many queries are there."""
        buckets = [0] * (len(BOUNDS) + 1)
        for number, count in (counts or {}).items():
            buckets[int(number)] += count
        return cls(sum(buckets), quantile(buckets, 0.5), quantile(buckets, 0.95))


@dataclass(frozen=True, slots=True)
class History:
    """Figures of a period: of its hours, of each group by its key, and of each group a week before.

    *is_compared* is False as long as the history does not reach back a week.
    """

    hours: dict[datetime, Figures] = field(default_factory=dict)
    now: dict[str, Figures] = field(default_factory=dict)
    before: dict[str, Figures] = field(default_factory=dict)
    is_compared: bool = False


class SlowQueryLog:
    """The log of the catalog with tool oid *zoid*, read with *execute*."""

    def __init__(self, execute: Execute, zoid: int) -> None:
        self._execute = execute
        self.zoid = zoid

    def groups(self, limit: int = 50, choice: Choice = EVERYTHING) -> list[Group]:
        """Return the groups: those first that are slow for this site, then those that cost most time."""
        values = {"limit": limit, "long": LONG_MS, "times": TIMES_MEDIAN, "started": STARTED}
        return [Group(*row) for row in self._read("groups", choice, values)]

    def examples(self, choice: Choice = EVERYTHING, limit: int = 20) -> list[Example]:
        return [Example(*row) for row in self._read("examples", choice, {"id": None, "limit": limit})]

    def example(self, id: int) -> Example | None:
        """Return the query number *id* if it is in this catalog's log."""
        rows = self._read("examples", EVERYTHING, {"id": id, "limit": 1}) if 0 <= id < 2**63 else []
        return Example(*rows[0]) if rows else None

    def pages(self, choice: Choice) -> list[str]:
        """Return the pages that have asked slow queries, those first that waited longest."""
        return [page for (page,) in self._read("pages", choice, {"limit": PAGES})]

    def history(self, choice: Choice) -> History:
        """Return the figures of the hours of *choice*, which must name how many."""
        rows = self._read("history", choice, {"bounds": list(BOUNDS)})
        history = History(is_compared=any(hour is key is None for hour, key, *_ in rows))
        for hour, key, is_before, counts in rows:
            figures = Figures.of(counts)
            if key is not None:
                (history.before if is_before else history.now)[key] = figures
            elif not is_before:
                history.hours[hour] = figures
        return history

    def _read(self, name: str, choice: Choice, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self._execute(log_sql(name), {"catalog": self.zoid, **choice.values, **values})


def log_of(catalog: "Catalog") -> SlowQueryLog:
    """Return the log of *catalog*, as its snapshot sees it."""
    return SlowQueryLog(catalog.session.execute, catalog.zoid)


def clear(dsn: str, zoid: int) -> int:
    """Delete the log of the catalog with tool oid *zoid*, and its history; return how many queries it had."""
    # The recorder knows indexes and objects; who only reads the log need not load them.
    from plone.pgcatalog.observe import recorder

    recorder.recorders[dsn].flush(EXIT_SECONDS)
    with connect(dsn, "clear slow queries") as connection:
        connection.execute("DELETE FROM pgcatalog_history WHERE catalog = %s AND operation <> ''", (zoid,))
        return connection.execute("DELETE FROM pgcatalog_slow_queries WHERE catalog = %s", (zoid,)).rowcount
