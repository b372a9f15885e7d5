"""Document frequency of each word, for ranking and suggestions.

The counts may be a little old, so commits do not maintain them.  They are made by a job, on a connection of its own, in
portions, and written in one short transaction that touches no table that a commit writes.
"""

from collections.abc import Callable
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.i18n import _
from plone.pgcatalog.sql import locks
from plone.pgcatalog.sql.files import read_statement
from psycopg import Connection
from psycopg import sql
from psycopg.rows import tuple_row
from typing import Any


# -- counting


#: Rows that are counted in one transaction, so that no statement waits long for a lock on the relation.
PORTION = 10_000
#: Share of the documents that has to change before words are counted again; in ``words_needed.sql``.
CHANGED_PART = 0.1

#: Takes numbers of documents, done and in all, and the current step.
Report = Callable[[int, int, str], None]


def _report_nothing(done: int, total: int, step: str) -> None:
    """The report without a job."""


READ_STATE = "SELECT relation, generation FROM pgcatalog_state WHERE catalog = %s"
#: The oldest transaction that is still open: rows of older ones are visible to all later statements.
OLDEST_OPEN = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text"
NEXT_PORTION = "SELECT max(rid) FROM (SELECT rid FROM {} WHERE rid > %s ORDER BY rid LIMIT %s) AS portion"
#: Lexemes that begin like ``lexicon.SIGNED`` and ``lexicon.BESIDE`` are not counted, since no ranking needs their frequency;
#: importing the names would load Plone into each command.
COUNT = (
    "INSERT INTO pg_temp.pgcatalog_counted SELECT word, ndoc FROM ts_stat(%s)"
    " WHERE left(word, 2) <> ALL (ARRAY[chr(2) || '+', chr(2) || '='])"
)
MEASURE = "SELECT count({column}), coalesce(sum({length}), 0) FROM {relation} WHERE rid > %s AND rid <= %s"
#: Deletes the words of text indexes that a catalog no longer has.  Values: zoid of the catalog, columns of its text indexes.
FORGET = read_statement("fulltext", "words_forget")
#: Autovacuum cleans the tables a minute later, or never; without statistics a suggestion reads many times as many words, and
#: rows of former counts would be left to each next count.
VACUUM = "VACUUM (ANALYZE, SKIP_LOCKED) pgcatalog_words, pgcatalog_spellings, pgcatalog_texts"


def count_words(connection: Connection[Any], catalog: int, report: Report = _report_nothing) -> bool:
    """Count the words of the catalog with the zoid *catalog*, on *connection*: autocommit, without an open transaction.

    *report* gets the number of counted documents, twice, and the step, and may raise an exception.  Returns False if another
    process is counting, or there is no such catalog.  Raises psycopg.Error; the old counts remain.
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
            _count_column(connection, catalog, relation, generation, name, has_length, report)
        names = [name for name, _ in columns]
        connection.execute(FORGET, [catalog, names])
        create_trigram_index(connection)
        connection.execute(VACUUM)
        return True
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", lock)


def _count_column(
    connection: Connection[Any],
    catalog: int,
    relation: str,
    generation: int,
    name: str,
    has_length: bool,
    report: Report,
) -> None:
    connection.execute("DROP TABLE IF EXISTS pg_temp.pgcatalog_counted")
    connection.execute('CREATE TEMP TABLE pgcatalog_counted (word text COLLATE "C", documents integer)')
    [(since,)] = _rows(connection, OLDEST_OPEN, [])
    documents, words = _count_portions(connection, relation, name, has_length, report)
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
            [(number,)] = _rows(connection, read_statement("fulltext", "words_texts"), values)
            connection.execute(read_statement("fulltext", "words_save"), {"number": number})
    connection.execute("DROP TABLE pg_temp.pgcatalog_counted")


def _count_portions(
    connection: Connection[Any], relation: str, name: str, has_length: bool, report: Report
) -> tuple[int, float]:
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
        report(documents, documents, _("Counting the words of texts"))


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
