"""Counts in how many documents each word stands: what ranking and suggestions go by.

The counts are a little old at most times, and that does no harm.  So they are no part of commits: they are taken on
a connection of their own, in portions, and written in one short transaction that touches no table a commit writes.

A ranked search reports which generation of its catalog it has seen, which costs a look into a dictionary.  A
background thread then asks how old the counts are, and counts; never more often than every ``PAUSE`` seconds.
"""

from plone.pgcatalog.database.background import BatchWorker
from plone.pgcatalog.database.background import EXIT_SECONDS
from plone.pgcatalog.database.background import PerDatabase
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.sql import locks
from psycopg import Connection
from psycopg import sql
from psycopg.rows import tuple_row
from time import monotonic
from typing import Any

import atexit
import logging
import psycopg
import threading


# -- counting


#: Rows that are counted in one transaction, so that nothing waits long for the relation.
PORTION = 10_000
#: The part of the documents that has to change before words are counted again.
CHANGED_PART = 0.1

READ_STATE = "SELECT relation, generation FROM pgcatalog_state WHERE catalog = %s"
#: What a transaction before this one has written is seen from now on.
OLDEST_OPEN = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text"
NEXT_PORTION = "SELECT max(rid) FROM (SELECT rid FROM {} WHERE rid > %s ORDER BY rid LIMIT %s) AS portion"
COUNT = "INSERT INTO pg_temp.pgcatalog_counted SELECT word, ndoc FROM ts_stat(%s)"
MEASURE = "SELECT count({column}), coalesce(sum({length}), 0) FROM {relation} WHERE rid > %s AND rid <= %s"
FORGET = (
    "DELETE FROM pgcatalog_words WHERE catalog = %s AND text_column <> ALL(%s)",
    "DELETE FROM pgcatalog_texts WHERE catalog = %s AND text_column <> ALL(%s)",
)
#: Autovacuum comes a minute later, or not at all: until then a suggestion reads many times as many words.
ANALYZE = "ANALYZE (SKIP_LOCKED) pgcatalog_words, pgcatalog_texts"


def is_stale(generation: int, counted: int | None, documents: int) -> bool:
    """Return whether the words should be counted again.

    The catalog is at *generation*; they were counted in *documents* at the generation *counted* (None for never).
    """
    return counted is None or generation < counted or generation - counted > documents * CHANGED_PART


def last_count(connection: Connection[Any], catalog: int) -> tuple[int, int] | None:
    """Return the generation at which *catalog* was counted, and the most documents of a text index; None for never."""
    row = _rows(connection, "SELECT min(generation), max(documents) FROM pgcatalog_texts WHERE catalog = %s", [catalog])
    return row[0] if row[0][0] is not None else None


def generation_of(connection: Connection[Any], catalog: int) -> int | None:
    """Return the generation of *catalog*, None when there is no such catalog."""
    rows = _rows(connection, READ_STATE, [catalog])
    return rows[0][1] if rows else None


def count_words(connection: Connection[Any], catalog: int) -> bool:
    """Count the words of *catalog*, the zoid of its tool, on *connection*, an autocommit one with nothing open.

    False when another process is counting, or there is no such catalog.  Raises psycopg.Error; the old counts stay then.
    """
    lock = locks.of_catalog(locks.COUNT_WORDS, catalog)
    if not _rows(connection, "SELECT pg_try_advisory_lock(%s, %s)", lock)[0][0]:
        return False
    try:
        rows = _rows(connection, READ_STATE, [catalog])
        if not rows:
            return False
        relation, generation = rows[0]
        columns = _rows(connection, load_sql("words_columns"), [relation])
        for name, has_length in columns:
            _count_column(connection, catalog, relation, generation, name, has_length)
        names = [name for name, _ in columns]
        for statement in FORGET:
            connection.execute(statement, [catalog, names])
        create_trigram_index(connection)
        connection.execute(ANALYZE)
        return True
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", lock)


def _count_column(
    connection: Connection[Any], catalog: int, relation: str, generation: int, name: str, has_length: bool
) -> None:
    connection.execute("DROP TABLE IF EXISTS pg_temp.pgcatalog_counted")
    connection.execute('CREATE TEMP TABLE pgcatalog_counted (word text COLLATE "C", documents integer)')
    [(since,)] = _rows(connection, OLDEST_OPEN, [])
    documents, words = _count_portions(connection, relation, name, has_length)
    values = {
        "relation": relation,
        "since": since,
        "catalog": catalog,
        "column": name,
        "documents": documents,
        "average": words / documents if documents else 0.0,
        "generation": generation,
    }
    with connection.transaction():
        # A commit that drops the catalog waits for this, or it is gone already; no other commit does.
        if _rows(connection, "SELECT FROM pgcatalog_state WHERE catalog = %s FOR KEY SHARE", [catalog]):
            connection.execute(load_sql("words_save"), values)
            connection.execute(load_sql("words_texts"), values)
    connection.execute("DROP TABLE pg_temp.pgcatalog_counted")


def _count_portions(connection: Connection[Any], relation: str, name: str, has_length: bool) -> tuple[int, float]:
    """Count into pgcatalog_counted; return the number of documents, and of words in them."""
    table, column = sql.Identifier(relation), sql.Identifier(name)
    length = sql.SQL("length({})").format(column)
    if has_length:
        # Rows from before there was such a column: their different words.
        length = sql.SQL("coalesce({}, {})").format(sql.Identifier(f"{name}_words"), length)
    measure = sql.SQL(MEASURE).format(column=column, length=length, relation=table)
    documents, words, last = 0, 0.0, -1
    while True:
        [(end,)] = _rows(connection, sql.SQL(NEXT_PORTION).format(table), [last, PORTION])
        if end is None:
            return documents, words
        [(more_documents, more_words)] = _rows(connection, measure, [last, end])
        documents, words = documents + more_documents, words + float(more_words)
        # ts_stat takes the text of a query, without parameters.
        portion = sql.SQL("SELECT {} FROM {} WHERE rid > {} AND rid <= {}").format(column, table, last, end)
        connection.execute(COUNT, [portion.as_string(connection)])
        last = end


def _rows(connection: Connection[Any], query: Any, params: Any) -> list[tuple[Any, ...]]:
    with connection.cursor(row_factory=tuple_row) as cursor:
        rows: list[tuple[Any, ...]] = cursor.execute(query, params).fetchall()
        return rows


# -- the extension pg_trgm


def create_trigram_index(connection: Connection[Any]) -> bool:
    """Create the index of all words on *connection* if it is missing and pg_trgm is there; return whether it was created.

    Locks the table of words, which no commit writes, while it builds.
    """
    with connection.cursor(row_factory=tuple_row) as cursor:
        row = cursor.execute(load_sql("trigram_schema")).fetchone()
        if row is None or row[1]:
            return False
        cursor.execute(sql.SQL(load_sql("trigram_index")).format(schema=sql.Identifier(row[0])))
        return True


# -- in the background


logger = logging.getLogger(__name__)

#: Least number of seconds between two counts of a catalog by one process; 0: searches cause none.
PAUSE = 60.0


class Counting:
    """The catalogs of the database *dsn* that wait for a count."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        #: catalog -> generation and documents of its last count
        self._counts: dict[int, tuple[int, int]] = {}
        self._looked_at: dict[int, float] = {}
        self._lock = threading.Lock()
        self._worker = BatchWorker("words", self._count_words)
        self._connection: psycopg.Connection[Any] | None = None

    def request_count(self, catalog: int, generation: int, seconds: float) -> None:
        """Have *catalog*, which a search has ranked at *generation*, counted if that is due; at least *seconds* apart.

        Never waits, never fails.
        """
        last = self._counts.get(catalog)
        if last is not None and not is_stale(generation, *last):
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
            self._counts[catalog] = last


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
