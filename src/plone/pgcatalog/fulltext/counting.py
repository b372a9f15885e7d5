"""Refreshes word statistics in the background once they are stale.

A ranked search reports which generation of its catalog it has seen, which costs a look into a dictionary.  The
background thread then asks how old the counts are, and counts; never more often than every ``PAUSE`` seconds.
"""

from plone.pgcatalog.database.background import BatchWorker
from plone.pgcatalog.database.background import EXIT_SECONDS
from plone.pgcatalog.database.background import PerDatabase
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.fulltext.term_statistics import generation_of
from plone.pgcatalog.fulltext.term_statistics import is_stale
from plone.pgcatalog.fulltext.term_statistics import last_count
from time import monotonic
from typing import Any

import atexit
import logging
import psycopg
import threading


logger = logging.getLogger(__name__)

#: Least number of seconds between two counts of a catalog by one process; 0: searches cause none.
PAUSE = 60.0


class Counting:
    """The catalogs of the database *dsn* that wait for a count."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        #: catalog -> generation and documents of its last known count
        self._known: dict[int, tuple[int, int]] = {}
        self._looked_at: dict[int, float] = {}
        self._lock = threading.Lock()
        self._worker = BatchWorker("words", self._count_words)
        self._connection: psycopg.Connection[Any] | None = None

    def request_count(self, catalog: int, generation: int, seconds: float) -> None:
        """Have *catalog*, which a search has ranked at *generation*, counted if that is due; at least *seconds* apart.

        Never waits, never fails.
        """
        known = self._known.get(catalog)
        if known is not None and not is_stale(generation, *known):
            return
        now = monotonic()
        with self._lock:
            if now - self._looked_at.get(catalog, -seconds) < seconds:
                return
            self._looked_at[catalog] = now
        self._worker.put(catalog)

    def flush(self, timeout: float) -> bool:
        """Wait until nothing is left to count, *timeout* seconds at most; return whether that is so."""
        return self._worker.flush(timeout)

    def stop(self) -> None:
        """Give up the count that is running; what it has found is lost."""
        self._worker.clear()
        connection = self._connection
        if connection is not None:
            connection.cancel()

    def _count_words(self, catalogs: list[int]) -> None:
        try:
            with connect_directly(self.dsn, "words", 0, lock_seconds=5, durable=False) as connection:
                self._connection = connection
                for catalog in catalogs:
                    self._look(connection, catalog)
        except psycopg.Error as error:
            logger.warning("the words of a catalog could not be counted: %s", error)
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


countings = PerDatabase(Counting)


def request_count(dsn: str, catalog: int, generation: int) -> None:
    """Have the words of *catalog* in the database *dsn* counted soon if a search that has seen *generation* finds them stale."""
    if PAUSE:
        countings[dsn].request_count(catalog, generation, PAUSE)


def _end() -> None:
    """The process ends: nobody waits for a count."""
    for counting in countings.all():
        counting.stop()
        counting.flush(EXIT_SECONDS)


atexit.register(_end)
