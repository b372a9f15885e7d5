"""Writes slow queries into the database: by a thread and a connection of its own, off the requests' time.

The queue is bounded, and what does not fit is dropped and counted.  A connection is open only while there is something to
write, so a restarted server is no event.
"""

from dataclasses import astuple
from plone.pgcatalog.advice.connection import connect
from plone.pgcatalog.observe.record import SlowQuery
from plone.pgcatalog.observe.sql import load_sql

import atexit
import logging
import os
import psycopg
import threading


logger = logging.getLogger(__name__)

QUEUE_SIZE = 1000
#: How many slow queries a database keeps, and for how many days.
KEPT_ROWS = 5000
KEPT_DAYS = 30.0
#: Seconds to wait for more before a connection is opened.
LINGER = 0.3
#: Longest time a process that ends waits for its last entries.
EXIT_SECONDS = 2


class Recorder:
    """The queue and the thread for the database *dsn*."""

    def __init__(self, dsn: str, size: int = QUEUE_SIZE) -> None:
        self.dsn = dsn
        self.size = size
        self.recorded = self.dropped = self.failed = 0
        self._entries: list[SlowQuery] = []
        self._changed = threading.Condition()
        self._hurry = False
        self._thread: threading.Thread | None = None

    def put(self, entry: SlowQuery) -> None:
        """Let *entry* be written soon; never waits, never fails."""
        with self._changed:
            if len(self._entries) >= self.size:
                self.dropped += 1
                return
            self._entries.append(entry)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="pgcatalog-slow-queries", daemon=True)
                self._thread.start()

    def flush(self, timeout: float) -> bool:
        """Wait until everything is written, so many seconds at most; return whether it is."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: self._thread is None, timeout)
            self._hurry = False
        return done

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._hurry, LINGER)
                entries, self._entries = self._entries, []
                if not entries:
                    self._thread = None
                    self._changed.notify_all()
                    return
            self._write(entries)

    def _write(self, entries: list[SlowQuery]) -> None:
        try:
            with connect(self.dsn, "slow queries", seconds=5) as connection:
                with connection.cursor() as cursor:
                    cursor.executemany(load_sql("record"), [astuple(entry) for entry in entries])
                connection.execute(load_sql("prune"), {"rows": KEPT_ROWS, "days": KEPT_DAYS})
        except psycopg.Error as error:
            self.failed += len(entries)
            logger.warning("%d slow queries could not be recorded: %s", len(entries), error)
        else:
            self.recorded += len(entries)


_recorders: dict[str, Recorder] = {}
_lock = threading.Lock()


def recorder_for(dsn: str) -> Recorder:
    """Return the process's recorder for the database *dsn*."""
    with _lock:
        if dsn not in _recorders:
            _recorders[dsn] = Recorder(dsn)
        return _recorders[dsn]


def record(dsn: str, entry: SlowQuery) -> None:
    """Let *entry* be written into the database *dsn* soon."""
    recorder_for(dsn).put(entry)


def flush(timeout: float = EXIT_SECONDS) -> bool:
    """Wait until all recorders have written everything, so many seconds each at most; return whether they have."""
    done = {recorder.flush(timeout) for recorder in list(_recorders.values())}
    return False not in done


def totals() -> dict[str, int]:
    """Return how many slow queries this process has recorded, dropped (queue full) and failed to write."""
    recorders = list(_recorders.values())
    return {name: sum(getattr(r, name) for r in recorders) for name in ("recorded", "dropped", "failed")}


def _forget() -> None:
    """In a forked child: the entries are the parent's to write, its thread is not here."""
    global _lock
    _lock = threading.Lock()
    _recorders.clear()


os.register_at_fork(after_in_child=_forget)
atexit.register(flush)
