"""The log of slow queries of one catalog, read from the database."""

from bisect import bisect_right
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from datetime import datetime
from datetime import UTC
from plone.pgcatalog.database.background import EXIT_SECONDS
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.expected import Execute
from plone.pgcatalog.database.statistics import LONG_MS
from plone.pgcatalog.database.statistics import TIMES_MEDIAN
from plone.pgcatalog.sql.files import read_sql
from typing import Any
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


#: Start time of this process.
STARTED = datetime.now(UTC)
#: Maximum number of pages in the filter.
PAGES = 50
#: Lower bounds of the buckets after the first, in milliseconds; the last bucket has no upper bound.
BOUNDS = (1, 2, 5, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 10_000, 30_000)


def log_sql(name: str) -> str:
    """Return the text of ``observe/sql/<name>.sql``."""
    return read_sql("observe", name)


def histogram(times: Iterable[float]) -> list[int]:
    """Return how many of *times*, in milliseconds, are in each bucket; BOUNDS separates the buckets."""
    counts = [0] * (len(BOUNDS) + 1)
    for ms in times:
        counts[bisect_right(BOUNDS, ms)] += 1
    return counts


def quantile(counts: Sequence[int], part: float) -> float:
    """Return an estimate of the *part* quantile (0 to 1), in milliseconds, of a ``histogram``; 0.0 if it is empty."""
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
    """A filter of slow queries: the last *hours*, the key of a group, the page of the request; None for all."""

    hours: int | None = None
    key: str | None = None
    page: str | None = None

    @property
    def values(self) -> dict[str, Any]:
        return {"hours": self.hours, "key": self.key, "page": self.page}


NO_FILTER = Choice()


@dataclass(frozen=True, slots=True)
class Group:
    """All slow queries of one shape and operation; times in milliseconds.

    - *share*: share of the time of all groups, 0 to 1
    - *long*: queries that are slow for this site
    - *is_new*: True if the shape was not slow before the last start of a process, although the catalog was in use
    - *embed_ms* to *server_ms*: sums over the queries; *server_ms* is None without a plan
    - *cold*: number of cold statements by reason, "process" or "connection"
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
    """A recorded query; ``query`` is an argument for ``record.recall``, ``plan`` by default the newest one of its shape."""

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
    """The number of slow queries, and estimates of their median and their 95th percentile."""

    count: int = 0
    p50_ms: float = 0.0
    p95_ms: float = 0.0

    @classmethod
    def of(cls, counts: Mapping[str, int] | None) -> "Figures":
        """Return the figures of *counts*: number of the bucket (a string, as in JSON) -> number of queries."""
        buckets = [0] * (len(BOUNDS) + 1)
        for number, count in (counts or {}).items():
            buckets[int(number)] += count
        return cls(sum(buckets), quantile(buckets, 0.5), quantile(buckets, 0.95))


@dataclass(frozen=True, slots=True)
class History:
    """Figures of a period: by hour, by key of a group, and by key of a group one week before.

    *is_compared* is False while the history is shorter than a week.
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

    def groups(self, limit: int = 50, choice: Choice = NO_FILTER) -> list[Group]:
        """Return the groups, ordered by the time of queries that are slow for this site, then by total time."""
        values = {"limit": limit, "long": LONG_MS, "times": TIMES_MEDIAN, "started": STARTED}
        return [Group(*row) for row in self._read("groups", choice, values)]

    def examples(self, choice: Choice = NO_FILTER, limit: int = 20) -> list[Example]:
        return [Example(*row) for row in self._read("examples", choice, {"id": None, "limit": limit})]

    def example(self, id: int) -> Example | None:
        """Return the query with this *id*; None if it is not in the log of this catalog."""
        rows = self._read("examples", NO_FILTER, {"id": id, "limit": 1}) if 0 <= id < 2**63 else []
        return Example(*rows[0]) if rows else None

    def pages(self, choice: Choice) -> list[str]:
        """Return the pages that ran slow queries, those with the longest total time first."""
        return [page for (page,) in self._read("pages", choice, {"limit": PAGES})]

    def history(self, choice: Choice) -> History:
        """Return the figures for *choice*; its ``hours`` are required."""
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
    """Return the log of *catalog*, read in its snapshot."""
    return SlowQueryLog(catalog.session.execute, catalog.zoid)


def clear(dsn: str, zoid: int) -> int:
    """Delete the log and the history of the catalog with tool oid *zoid*; return the number of deleted queries."""
    # Imported late: the recorder imports indexes and objects, which a reader of the log does not need.
    from plone.pgcatalog.observe import recorder

    recorder.recorders[dsn].flush(EXIT_SECONDS)
    with connect(dsn, "clear slow queries") as connection:
        connection.execute("DELETE FROM pgcatalog_history WHERE catalog = %s AND operation <> ''", (zoid,))
        return connection.execute("DELETE FROM pgcatalog_slow_queries WHERE catalog = %s", (zoid,)).rowcount
