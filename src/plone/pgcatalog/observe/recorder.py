"""Writes slow queries, their plans and an hourly history into the database, in a thread outside of requests.

The queue is bounded: queries beyond it are dropped and counted.  A connection is open only during a write, so a restart of
the server does no harm.
"""

from collections import defaultdict
from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Hashable
from itertools import islice
from plone.pgcatalog.database.background import BatchWorker
from plone.pgcatalog.database.background import EXIT_SECONDS
from plone.pgcatalog.database.background import PerDatabase
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.observe.log import histogram
from plone.pgcatalog.observe.log import log_sql
from plone.pgcatalog.observe.log import STARTED
from plone.pgcatalog.observe.plan import explain_json
from plone.pgcatalog.observe.plan import summary
from plone.pgcatalog.observe.record import SlowQuery
from psycopg import Connection
from psycopg.types.json import Jsonb
from time import monotonic
from typing import Any

import atexit
import logging
import psycopg
import threading


#: Seconds between two lines of the log about the same kind of query.
PAUSE = 60.0
#: Maximum number of kinds in memory; beyond it the kind with the oldest line is removed.
MOST_KEYS = 1000


class Throttle:
    """Lets through one line per *pause* seconds for each thing, and counts the others; thread-safe.

    *clock* returns seconds from a monotonic clock.
    """

    def __init__(self, pause: float = PAUSE, size: int = MOST_KEYS, clock: Callable[[], float] = monotonic) -> None:
        self._pause = pause
        self._size = size
        self._clock = clock
        self._lock = threading.Lock()
        #: thing -> (time of its last line, number of lines left out since)
        self._lines: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()

    def left_out(self, key: Hashable) -> int | None:
        """Return the number of lines about *key* left out since its last one; None if this one is left out, too."""
        now = self._clock()
        with self._lock:
            written, count = self._lines.get(key, (None, 0))
            if written is not None and now - written < self._pause:
                self._lines[key] = written, count + 1
                return None
            self._lines[key] = now, 0
            self._lines.move_to_end(key)
            if len(self._lines) > self._size:
                self._lines.popitem(last=False)
            return count

    def clear(self) -> None:
        with self._lock:
            self._lines.clear()


logger = logging.getLogger(__name__)

QUEUE_SIZE = 1000
#: Number of slow queries that a database stores, and days for which they are stored.
SLOW_QUERY_ROWS = 5000
SLOW_QUERY_DAYS = 30.0
#: Days and rows of the history that are stored: a view of a month, and the week before it.
HISTORY_DAYS = 38.0
HISTORY_LINES = 20_000
#: Seconds to collect further queries before a connection is opened.
LINGER = 0.3
#: Time limit of a statement, in seconds.
SECONDS = 5
#: Seconds between two plans of the same kind of query, and maximum number of plans per write.
PLAN_SECONDS = 3600.0
PLANS = 5
#: Seconds between two records of the sizes of catalogs, and before the first: short-lived processes write none.
SIZES_SECONDS = 3600.0
FIRST_SIZES = 300.0


class Recorder:
    """Writes slow queries into the database *dsn*, with a queue of *size*; counts recorded, dropped and failed ones."""

    def __init__(self, dsn: str, size: int = QUEUE_SIZE) -> None:
        self.dsn = dsn
        self.size = size
        self.recorded = self.dropped = self.failed = 0
        #: time, on the ``monotonic`` clock, of the next record of the sizes of catalogs
        self.sizes_due = monotonic() + FIRST_SIZES
        self._plans = Throttle(PLAN_SECONDS)
        self._worker: BatchWorker[SlowQuery | None] = BatchWorker("slow-queries", self._write, LINGER)

    def put(self, entry: SlowQuery) -> None:
        """Queue *entry* to be written soon; never waits, never fails."""
        if not self._worker.put(entry, self.size):
            self.dropped += 1

    def tick(self) -> None:
        if monotonic() >= self.sizes_due:
            self.sizes_due = monotonic() + SIZES_SECONDS
            self._worker.put(None)

    def flush(self, timeout: float) -> bool:
        """Wait until everything is written, *timeout* seconds at most; return whether it is."""
        return self._worker.flush(timeout)

    def _write(self, items: list[SlowQuery | None]) -> None:
        entries = [entry for entry in items if entry is not None]
        try:
            with connect(self.dsn, "slow queries", seconds=SECONDS) as connection:
                if entries:
                    self._store(connection, entries)
                if len(entries) < len(items):
                    connection.execute(log_sql("store_sizes"))
                connection.execute(log_sql("prune_history"), {"lines": HISTORY_LINES, "days": HISTORY_DAYS})
                # Last, because it may take seconds, and the end of the process may cut it off.
                self._store_plans(connection, entries)
        except psycopg.Error as error:
            self.failed += len(entries)
            logger.warning("recording %d slow queries failed: %s", len(entries), error)
        else:
            self.recorded += len(entries)

    def _store(self, connection: Connection[Any], entries: list[SlowQuery]) -> None:
        times: defaultdict[tuple[int, str, str], list[float]] = defaultdict(list)
        for entry in entries:
            times[entry.kind].append(entry.total_ms)
        # Sorted by key, against deadlocks: other processes write the same rows.
        hours = [(*kind, histogram(durations)) for kind, durations in sorted(times.items())]
        with connection.cursor() as cursor:
            cursor.executemany(log_sql("record"), [(*entry.row(), STARTED) for entry in entries])
            cursor.executemany(log_sql("count_hour"), hours)
        connection.execute(log_sql("prune"), {"rows": SLOW_QUERY_ROWS, "days": SLOW_QUERY_DAYS})

    def _store_plans(self, connection: Connection[Any], entries: list[SlowQuery]) -> None:
        """Store the plan of one query for each kind without a recent plan, for PLANS kinds at most."""
        newest = {entry.kind: entry for entry in entries}
        wanted = (entry for kind, entry in newest.items() if self._plans.left_out(kind) is not None)
        for entry in islice(wanted, PLANS):
            plan = plan_of(connection, entry)
            if plan is not None:
                names = ("catalog", "operation", "shape")
                values = dict(zip(names, entry.kind, strict=True)) | {"plan": Jsonb(plan), "started": STARTED}
                connection.execute(log_sql("store_plan"), values)


def plan_of(connection: Connection[Any], entry: SlowQuery) -> dict[str, Any] | None:
    """Execute the statement of *entry* again, and return the ``summary`` of its plan; None if there is no plan.

    If that exceeds the time limit, the plan is read without executing.  There is no plan, for example, of a query of a table
    of an uncommitted transaction.  Raises psycopg.OperationalError if the connection fails.
    """
    for run in (True, False):
        try:
            return summary(explain_json(connection, entry.statement, run))
        except psycopg.errors.QueryCanceled:
            continue
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            logger.debug("no plan of %s: %s", entry.shape, error)
            break
    return None


recorders = PerDatabase(Recorder)


def record(dsn: str, entry: SlowQuery) -> None:
    recorders[dsn].put(entry)


def tick(dsn: str) -> None:
    recorders[dsn].tick()


def flush(timeout: float = EXIT_SECONDS) -> bool:
    """Wait until all recorders have written everything, *timeout* seconds each at most; return whether they have."""
    return False not in [recorder.flush(timeout) for recorder in recorders.all()]


def totals() -> dict[str, int]:
    """Return how many slow queries this process has recorded, dropped (queue full) and failed to write."""
    return {name: sum(getattr(r, name) for r in recorders.all()) for name in ("recorded", "dropped", "failed")}


atexit.register(flush)
