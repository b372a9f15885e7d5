"""Document frequency of each word, for ranking and suggestions.

The counts may be a little old, so commits do not maintain them.  They are made on a connection of their own, in portions,
and written in one short transaction that touches no table that a commit writes.

A ranked search passes on the generation of the catalog that it has seen, which costs one look-up in a dict.  A background
thread then compares it with the generation of the counts and recounts if needed, at most every ``PAUSE`` seconds.
"""

from plone.pgcatalog.database.background import BatchWorker
from plone.pgcatalog.database.background import EXIT_SECONDS
from plone.pgcatalog.database.background import PerDatabase
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.sql import locks
from plone.pgcatalog.sql.files import read_statement
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


#: Rows that are counted in one transaction, so that no statement waits long for a lock on the relation.
PORTION = 10_000
#: Share of the documents that has to change before words are counted again.
CHANGED_PART = 0.1

READ_STATE = "SELECT relation, generation FROM pgcatalog_state WHERE catalog = %s"
#: The oldest transaction that is still open: rows of older ones are visible to all later statements.
OLDEST_OPEN = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text"
NEXT_PORTION = "SELECT max(rid) FROM (SELECT rid FROM {} WHERE rid > %s ORDER BY rid LIMIT %s) AS portion"
COUNT = "INSERT INTO pg_temp.pgcatalog_counted SELECT word, ndoc FROM ts_stat(%s)"
MEASURE = "SELECT count({column}), coalesce(sum({length}), 0) FROM {relation} WHERE rid > %s AND rid <= %s"
FORGET = (
    "DELETE FROM pgcatalog_words WHERE catalog = %s AND text_column <> ALL(%s)",
    "DELETE FROM pgcatalog_texts WHERE catalog = %s AND text_column <> ALL(%s)",
)
#: Autovacuum analyzes the tables a minute later, or never; without statistics a suggestion reads many times as many words.
ANALYZE = "ANALYZE (SKIP_LOCKED) pgcatalog_words, pgcatalog_texts"


def is_stale(generation: int, counted: int | None, documents: int) -> bool:
    """Return whether the words of a catalog at *generation* should be counted again.

    *counted* is the generation of the last count (None if there was none), *documents* the number of documents then.
    """
    return counted is None or generation < counted or generation - counted > documents * CHANGED_PART


def last_count(connection: Connection[Any], catalog: int) -> tuple[int, int] | None:
    """Return (generation, most documents of a text index) of the last count of *catalog*; None if there was none."""
    row = _rows(connection, "SELECT min(generation), max(documents) FROM pgcatalog_texts WHERE catalog = %s", [catalog])
    return row[0] if row[0][0] is not None else None


def generation_of(connection: Connection[Any], catalog: int) -> int | None:
    """Return the generation of *catalog*; None if there is no such catalog."""
    rows = _rows(connection, READ_STATE, [catalog])
    return rows[0][1] if rows else None


def count_words(connection: Connection[Any], catalog: int) -> bool:
    """Count the words of the catalog with the zoid *catalog*, on *connection*: autocommit, without an open transaction.

    Returns False if another process is counting, or there is no such catalog.  Raises psycopg.Error; the old counts remain.
    """
    lock = locks.of_catalog(locks.COUNT_WORDS, catalog)
    if not _rows(connection, "SELECT pg_try_advisory_lock(%s, %s)", lock)[0][0]:
        return False
    try:
        rows = _rows(connection, READ_STATE, [catalog])
        if not rows:
            return False
        relation, generation = rows[0]
        columns = _rows(connection, read_statement("fulltext", "words_columns"), [relation])
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
        # Only a commit that drops the catalog waits for this lock; without the row, the catalog has been dropped already.
        if _rows(connection, "SELECT FROM pgcatalog_state WHERE catalog = %s FOR KEY SHARE", [catalog]):
            connection.execute(read_statement("fulltext", "words_save"), values)
            connection.execute(read_statement("fulltext", "words_texts"), values)
    connection.execute("DROP TABLE pg_temp.pgcatalog_counted")


def _count_portions(connection: Connection[Any], relation: str, name: str, has_length: bool) -> tuple[int, float]:
    """Count into the table pgcatalog_counted; return the numbers of documents and of words in them."""
    table, column = sql.Identifier(relation), sql.Identifier(name)
    # Without a second column: the number of distinct words.
    length = sql.Identifier(f"{name}_words") if has_length else sql.SQL("length({})").format(column)
    measure = sql.SQL(MEASURE).format(column=column, length=length, relation=table)
    documents, words, last = 0, 0.0, -1
    while True:
        [(end,)] = _rows(connection, sql.SQL(NEXT_PORTION).format(table), [last, PORTION])
        if end is None:
            return documents, words
        [(more_documents, more_words)] = _rows(connection, measure, [last, end])
        documents, words = documents + more_documents, words + float(more_words)
        # ts_stat takes a query as a string, without placeholders.
        portion = sql.SQL("SELECT {} FROM {} WHERE rid > {} AND rid <= {}").format(column, table, last, end)
        connection.execute(COUNT, [portion.as_string(connection)])
        last = end


def _rows(connection: Connection[Any], statement: Any, params: Any) -> list[tuple[Any, ...]]:
    with connection.cursor(row_factory=tuple_row) as cursor:
        rows: list[tuple[Any, ...]] = cursor.execute(statement, params).fetchall()
        return rows


# -- the extension pg_trgm


def create_trigram_index(connection: Connection[Any]) -> bool:
    """Create the trigram index of all words if it is missing and pg_trgm is installed; return whether it was created.

    While it is built, the table of words is locked, which no commit writes.
    """
    with connection.cursor(row_factory=tuple_row) as cursor:
        row = cursor.execute(load_sql("trigram_schema")).fetchone()
        if row is None or row[1]:
            return False
        cursor.execute(sql.SQL(read_statement("fulltext", "trigram_index")).format(schema=sql.Identifier(row[0])))
        return True


# -- in the background


logger = logging.getLogger(__name__)

#: Fewest seconds between two counts of a catalog by one process; 0: searches request no counts.
PAUSE = 60.0


class WordCounter:
    """The queue of catalogs in the database *dsn* whose words are to be counted, and its background worker."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        #: catalog -> generation and documents of its last count
        self._counts: dict[int, tuple[int, int]] = {}
        self._checked: dict[int, float] = {}
        self._lock = threading.Lock()
        self._worker = BatchWorker("words", self._count_words)
        self._connection: psycopg.Connection[Any] | None = None

    def request_count(self, catalog: int, generation: int, seconds: float) -> None:
        """Queue *catalog*, which a search has ranked at *generation*, if its counts are stale; at most every *seconds*.

        Does not wait for the count.
        """
        last = self._counts.get(catalog)
        if last is not None and not is_stale(generation, *last):
            return
        now = monotonic()
        with self._lock:
            if now - self._checked.get(catalog, -seconds) < seconds:
                return
            self._checked[catalog] = now
        self._worker.put(catalog)

    def flush(self, timeout: float) -> bool:
        """Wait until the queue is empty, *timeout* seconds at most; return whether it is."""
        return self._worker.flush(timeout)

    def stop(self) -> None:
        """Empty the queue and cancel the running count, whose results are lost."""
        self._worker.clear()
        connection = self._connection
        if connection is not None:
            connection.cancel()

    def _count_words(self, catalogs: list[int]) -> None:
        try:
            with connect_directly(self.dsn, "words", 0, lock_seconds=5, durable=False) as connection:
                self._connection = connection
                for catalog in catalogs:
                    self._recount(connection, catalog)
        except psycopg.Error as error:
            logger.warning("counting the words of a catalog failed: %s", error)
        finally:
            self._connection = None

    def _recount(self, connection: psycopg.Connection[Any], catalog: int) -> None:
        """Count the words of *catalog* if the counts in the database are stale, and cache the state of the last count."""
        generation = generation_of(connection, catalog)
        last = last_count(connection, catalog)
        if generation is not None and (last is None or is_stale(generation, *last)):
            count_words(connection, catalog)
            last = last_count(connection, catalog)
        if last is not None:
            self._counts[catalog] = last


word_counters = PerDatabase(WordCounter)


def request_count(dsn: str, catalog: int, generation: int) -> None:
    """Request a count of the words of *catalog* in the database *dsn* if the counts are stale at *generation*."""
    if PAUSE:
        word_counters[dsn].request_count(catalog, generation, PAUSE)


def _end() -> None:
    """Cancel all counts: the process ends, and should not wait for them."""
    for counter in word_counters.all():
        counter.stop()
        counter.flush(EXIT_SECONDS)


atexit.register(_end)
