"""Writes slow queries, their plans and a history by hours into the database, off the requests' time.

The queue is bounded, and what does not fit is dropped and counted.  A connection is open only while there is something to
write, so a restarted server is no event.
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


#: Seconds between two lines about the same thing.
PAUSE = 60.0
#: Things that are remembered; of more, those are forgotten whose last line is longest ago.
SIZE = 1000


class Throttle:
    """Lets one line for each thing through in *pause* seconds, and counts the others; safe for threads.

    *clock* returns seconds, which only grow.
    """

    def __init__(self, pause: float = PAUSE, size: int = SIZE, clock: Callable[[], float] = monotonic) -> None:
        self._pause = pause
        self._size = size
        self._clock = clock
        self._lock = threading.Lock()
        #: thing -> when it had its last line, and how many have been left out since
        self._lines: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()

    def left_out(self, thing: Hashable) -> int | None:
        """Return how many lines about *thing* were left out since its last one, None if this one is to be left out, too."""
        now = self._clock()
        with self._lock:
            written, count = self._lines.get(thing, (None, 0))
            if written is not None and now - written < self._pause:
                self._lines[thing] = written, count + 1
                return None
            self._lines[thing] = now, 0
            self._lines.move_to_end(thing)
            if len(self._lines) > self._size:
                self._lines.popitem(last=False)
            return count

    def clear(self) -> None:
        with self._lock:
            self._lines.clear()


logger = logging.getLogger(__name__)

QUEUE_SIZE = 1000
#: How many slow queries a database keeps, and for how many days.
KEPT_ROWS = 5000
KEPT_DAYS = 30.0
#: How many days and lines of slow queries the history keeps: a month's view, and the week before it.
HISTORY_DAYS = 38.0
KEPT_LINES = 20_000
#: Seconds to wait for more before a connection is opened.
LINGER = 0.3
#: Longest time of a statement, in seconds.
SECONDS = 5
#: Seconds between two plans of a kind of queries, and how many plans are made at once.
PLAN_SECONDS = 3600.0
PLANS = 5
#: Seconds between two notes of the catalogs' sizes, and until the first: a process that ends soon makes none.
SIZES_SECONDS = 3600.0
FIRST_SIZES = 300.0


class Recorder:
    """Writes into the database *dsn*; at most *size* queries wait.  Counts what it has done."""

    def __init__(self, dsn: str, size: int = QUEUE_SIZE) -> None:
        self.dsn = dsn
        self.size = size
        self.recorded = self.dropped = self.failed = 0
        #: when the sizes of the catalogs are kept next, as ``monotonic`` tells
        self.sizes_due = monotonic() + FIRST_SIZES
        self._plans = Throttle(PLAN_SECONDS)
        self._worker: BatchWorker[SlowQuery | None] = BatchWorker("slow-queries", self._write, LINGER)

    def put(self, entry: SlowQuery) -> None:
        """Let *entry* be written soon; never waits, never fails."""
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
                    self._keep(connection, entries)
                if len(entries) < len(items):
                    connection.execute(log_sql("keep_sizes"))
                connection.execute(log_sql("prune_history"), {"lines": KEPT_LINES, "days": HISTORY_DAYS})
                # What comes last may take seconds, and be lost at the process's end.
                self._keep_plans(connection, entries)
        except psycopg.Error as error:
            self.failed += len(entries)
            logger.warning("%d slow queries could not be recorded: %s", len(entries), error)
        else:
            self.recorded += len(entries)

    def _keep(self, connection: Connection[Any], entries: list[SlowQuery]) -> None:
        times: defaultdict[tuple[int, str, str], list[float]] = defaultdict(list)
        for entry in entries:
            times[entry.kind].append(entry.total_ms)
        # In the order of their keys: other processes write the same lines.
        hours = [(*kind, histogram(durations)) for kind, durations in sorted(times.items())]
        with connection.cursor() as cursor:
            cursor.executemany(log_sql("record"), [(*entry.row(), STARTED) for entry in entries])
            cursor.executemany(log_sql("count_hour"), hours)
        connection.execute(log_sql("prune"), {"rows": KEPT_ROWS, "days": KEPT_DAYS})

    def _keep_plans(self, connection: Connection[Any], entries: list[SlowQuery]) -> None:
        """Explain one query of each kind that was not explained for long, a few at most."""
        newest = {entry.kind: entry for entry in entries}
        wanted = (entry for kind, entry in newest.items() if self._plans.left_out(kind) is not None)
        for entry in islice(wanted, PLANS):
            kept = plan_of(connection, entry)
            if kept is not None:
                names = ("catalog", "operation", "shape")
                values = dict(zip(names, entry.kind, strict=True)) | {"plan": Jsonb(kept), "started": STARTED}
                connection.execute(log_sql("keep_plan"), values)


def plan_of(connection: Connection[Any], entry: SlowQuery) -> dict[str, Any] | None:
    """Return what is kept of the plan of *entry*, which is run again for that; None if that is not possible.

    A query that takes too long is only planned, and one of rows that were not committed cannot be run by anybody else.
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
