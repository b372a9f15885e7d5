"""Writes slow queries into the database, off the requests' time.

The queue is bounded, and what does not fit is dropped and counted.  A connection is open only while there is something to
write, so a restarted server is no event.
"""

from dataclasses import astuple
from plone.pgcatalog.database.background import BatchWorker
from plone.pgcatalog.database.background import EXIT_SECONDS
from plone.pgcatalog.database.background import PerDatabase
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.observe.record import SlowQuery
from plone.pgcatalog.observe.sql import log_sql

import atexit
import logging
import psycopg


logger = logging.getLogger(__name__)

QUEUE_SIZE = 1000
#: How many slow queries a database keeps, and for how many days.
KEPT_ROWS = 5000
KEPT_DAYS = 30.0
#: Seconds to wait for more before a connection is opened.
LINGER = 0.3


class Recorder:
    """Writes into the database *dsn*; at most *size* queries wait.  Counts what it has done."""

    def __init__(self, dsn: str, size: int = QUEUE_SIZE) -> None:
        self.dsn = dsn
        self.size = size
        self.recorded = self.dropped = self.failed = 0
        self._worker = BatchWorker("slow-queries", self._write, LINGER)

    def put(self, entry: SlowQuery) -> None:
        """Let *entry* be written soon; never waits, never fails."""
        if not self._worker.put(entry, self.size):
            self.dropped += 1

    def flush(self, timeout: float) -> bool:
        """Wait until everything is written, *timeout* seconds at most; return whether it is."""
        return self._worker.flush(timeout)

    def _write(self, entries: list[SlowQuery]) -> None:
        try:
            with connect(self.dsn, "slow queries", seconds=5) as connection:
                with connection.cursor() as cursor:
                    cursor.executemany(log_sql("record"), [astuple(entry) for entry in entries])
                connection.execute(log_sql("prune"), {"rows": KEPT_ROWS, "days": KEPT_DAYS})
        except psycopg.Error as error:
            self.failed += len(entries)
            logger.warning("%d slow queries could not be recorded: %s", len(entries), error)
        else:
            self.recorded += len(entries)


recorders = PerDatabase(Recorder)


def record(dsn: str, entry: SlowQuery) -> None:
    """Let *entry* be written into the database *dsn* soon."""
    recorders[dsn].put(entry)


def flush(timeout: float = EXIT_SECONDS) -> bool:
    """Wait until all recorders have written everything, *timeout* seconds each at most; return whether they have."""
    return False not in [recorder.flush(timeout) for recorder in recorders.all()]


def totals() -> dict[str, int]:
    """Return how many slow queries this process has recorded, dropped (queue full) and failed to write."""
    return {name: sum(getattr(r, name) for r in recorders.all()) for name in ("recorded", "dropped", "failed")}


atexit.register(flush)
