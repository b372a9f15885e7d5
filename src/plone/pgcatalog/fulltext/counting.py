"""Has words counted when a search has used counts that are too old: by a thread and a connection of its own.

A ranked search says which generation of its catalog it has seen, which costs a look into a dictionary.  How old the
counts are is asked, and they are taken, off the requests' time; never more often than every ``PAUSE`` seconds.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.fulltext.term_statistics import generation_of
from plone.pgcatalog.fulltext.term_statistics import is_stale
from plone.pgcatalog.fulltext.term_statistics import last_count
from time import monotonic
from typing import Any

import atexit
import logging
import os
import psycopg
import threading


logger = logging.getLogger(__name__)

#: Least number of seconds between two counts of a catalog by one process; 0: searches cause none.
PAUSE = 60.0


class Counting:
    """The catalogs of the database *dsn* that wait for a count, and the thread that counts them."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        #: catalog -> generation and documents of its last known count
        self._known: dict[int, tuple[int, int]] = {}
        self._looked_at: dict[int, float] = {}
        self._waiting: set[int] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._connection: psycopg.Connection[Any] | None = None

    def heed(self, catalog: int, generation: int, seconds: float) -> None:
        """Note that a search has ranked *catalog* at *generation*; counts are at least *seconds* apart.

        Never waits, never fails.
        """
        known = self._known.get(catalog)
        if known is not None and not is_stale(generation, *known):
            return
        now = monotonic()
        with self._changed:
            if now - self._looked_at.get(catalog, -seconds) < seconds:
                return
            self._looked_at[catalog] = now
            self._waiting.add(catalog)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pgcatalog-words", daemon=True)
                self._thread.start()

    def flush(self, timeout: float) -> bool:
        """Wait until nothing is left to count, so many seconds at most; return whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, timeout)

    def stop(self) -> None:
        """Give up the count that is running; what it has found is lost."""
        with self._changed:
            self._waiting.clear()
        connection = self._connection
        if connection is not None:
            connection.cancel()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._thread = None
                    self._changed.notify_all()
                    return
                catalogs, self._waiting = self._waiting, set()
            try:
                with self._connected() as connection:
                    for catalog in catalogs:
                        self._look(connection, catalog)
            except psycopg.Error as error:
                logger.warning("the words of a catalog could not be counted: %s", error)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(
            self.dsn, autocommit=True, connect_timeout=5, application_name="pgcatalog: words"
        ) as connection:
            connection.execute("SET lock_timeout = '5s'; SET synchronous_commit = off")
            self._connection = connection
            try:
                yield connection
            finally:
                self._connection = None

    def _look(self, connection: psycopg.Connection[Any], catalog: int) -> None:
        """Count the words of *catalog* if that has not been done, by whichever process, since enough has changed."""
        generation = generation_of(connection, catalog)
        last = last_count(connection, catalog)
        if generation is not None and (last is None or is_stale(generation, *last)):
            count_words(connection, catalog)
            last = last_count(connection, catalog)
        if last is not None:
            self._known[catalog] = last


_countings: dict[str, Counting] = {}
_lock = threading.Lock()


def heed(dsn: str, catalog: int, generation: int) -> None:
    """Have the words of *catalog* in the database *dsn* counted soon, if what a search has seen, *generation*, asks it."""
    if PAUSE:
        counting_of(dsn).heed(catalog, generation, PAUSE)


def counting_of(dsn: str) -> Counting:
    """Return the process's one for the database *dsn*."""
    with _lock:
        if dsn not in _countings:
            _countings[dsn] = Counting(dsn)
        return _countings[dsn]


def _end() -> None:
    """The process ends: nobody waits for a count."""
    for counting in list(_countings.values()):
        counting.stop()
        counting.flush(2)


def _forget() -> None:
    """In a forked child: the threads are the parent's."""
    global _lock
    _lock = threading.Lock()
    _countings.clear()


os.register_at_fork(after_in_child=_forget)
atexit.register(_end)
