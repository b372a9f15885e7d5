"""Transactional DDL that creates and alters the tables of catalogs according to their layouts.

Everything here runs on the cursor of a commit (the storage's ``finalize`` hook), so that a table is created, altered or
dropped together with the ZODB change that causes it, or not at all.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from plone.pgcatalog.database import counts
from plone.pgcatalog.database.expected import values_of
from plone.pgcatalog.database.layout import emptied
from plone.pgcatalog.database.layout import idx_table
from plone.pgcatalog.database.layout import in_row_order
from plone.pgcatalog.database.layout import index_name
from plone.pgcatalog.database.layout import is_unfilled
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.layout import relation_name
from plone.pgcatalog.database.layout import view_name
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import SQLIndex
from plone.pgcatalog.sql.values import LIST_SQL
from psycopg import Cursor
from psycopg import InternalError
from psycopg import NotSupportedError
from psycopg import ProgrammingError
from psycopg import sql
from typing import Any

import logging


#: Longest wait of a commit's catalog changes for a lock; after it the commit fails with a retryable error.
LOCK_TIMEOUT = "10s"

#: A column is rarely used if less than this share of the rows has a value there.
RARE = 0.1

#: Whether a relation with one of some names exists.
NAME_EXISTS = "SELECT bool_or(to_regclass(quote_ident(name)) IS NOT NULL) FROM unnest(%s::text[]) AS name"

logger = logging.getLogger(__name__)


def free_relation(cursor: Cursor[Any], zoid: int, version: int) -> tuple[int, str]:
    """Return version and name of the first free relation, from *version* on, for the catalog tool with oid *zoid*.

    Earlier names may belong to tables without a state, as after a partial restore of a dump.  The SQL indexes of an emptied
    relation still have its earlier name.
    """
    relation = relation_name(zoid, version)
    while cursor.execute(NAME_EXISTS, [[relation, idx_table(relation), emptied(relation)]]).fetchone() == (True,):
        if is_unfilled(relation):
            relation += "_0"
        else:
            version += 1
            relation = relation_name(zoid, version)
    return version, relation


def create_relation(cursor: Cursor[Any], relation: str, layout: Layout) -> None:
    """Create an empty *relation* with all columns and indexes of *layout*.

    A relation without indexes gets no counts yet, because it is filled first.
    """
    columns = "".join(f",\n    {c.ddl}" for c in in_row_order(layout.columns))
    cursor.execute(
        sql.SQL(load_sql("relation")).format(
            relation=sql.Identifier(relation),
            columns=sql.SQL(columns),
            path_key=sql.Identifier(f"{relation}_path"),
            zoid_fk=sql.Identifier(f"{relation}_zoid_fk"),
        )
    )
    cursor.execute(sql.SQL(load_sql("relation_settings")).format(relation=sql.Identifier(relation)))
    store_in_row(cursor, relation, ["path", *(c.name for c in layout.columns if c.stays_in_row)])
    create_indexes(cursor, relation, (SQLIndex("zoid", "(zoid)"), *layout.indexes))
    create_view(cursor, relation, layout)
    create_chunks_trigger(cursor, relation)
    if layout.indexes:
        counts.create(cursor, relation)


def index_names(relation: str, layout: Layout) -> list[str]:
    """Return the names of the SQL indexes of *relation* with *layout*."""
    return [index_name(relation, name) for name in ("zoid", *(index.name for index in layout.indexes))]


def create_chunks_trigger(cursor: Cursor[Any], relation: str) -> None:
    """Create the trigger that deletes an object's chunks with its last row in *relation*, if the catalog has chunks."""
    catalog = "_".join(relation.split("_")[:2])
    values = {
        "relation": sql.Identifier(relation),
        "name": sql.Literal(f'"{relation}"'),
        "prefix": sql.Literal(f"{catalog}_chunks_"),
    }
    cursor.execute(sql.SQL(load_sql("chunks_trigger")).format(**values))


def create_view(cursor: Cursor[Any], relation: str, layout: Layout) -> None:
    """Create or replace the view of *relation*: rows with their lists, and with idx from the row or from the object."""
    columns = [
        sql.SQL("{} AS {}").format(
            sql.SQL(LIST_SQL).format(column=name) if c.is_interned else name, sql.Identifier(c.name)
        )
        for c in in_row_order(layout.columns)
        for name in [sql.SQL("c.{}").format(sql.Identifier(c.name))]
    ]
    names = {"view": sql.Identifier(view_name(relation)), "relation": sql.Identifier(relation)}
    cursor.execute(sql.SQL("DROP VIEW IF EXISTS {view}").format(**names))
    cursor.execute(
        sql.SQL(load_sql("view")).format(columns=sql.SQL("").join(sql.SQL(", {}").format(c) for c in columns), **names)
    )


def store_in_row(cursor: Cursor[Any], relation: str, names: Iterable[str]) -> None:
    """Set STORAGE MAIN for the new columns *names* of *relation*."""
    clauses = [sql.SQL("ALTER COLUMN {} SET STORAGE MAIN").format(sql.Identifier(name)) for name in names]
    if clauses:
        cursor.execute(sql.SQL("ALTER TABLE {} {}").format(sql.Identifier(relation), sql.SQL(", ").join(clauses)))


def add_columns(cursor: Cursor[Any], relation: str, columns: Sequence[Column]) -> None:
    """Add *columns* to *relation*.

    Raises psycopg.errors.LockNotAvailable if readers hold the table for longer than LOCK_TIMEOUT.
    """
    clauses = sql.SQL(", ").join(sql.SQL(f"ADD COLUMN IF NOT EXISTS {c.ddl}") for c in columns)
    cursor.execute(sql.SQL("ALTER TABLE {} {}").format(sql.Identifier(relation), clauses))
    store_in_row(cursor, relation, [c.name for c in columns if c.stays_in_row])


def complete_columns(cursor: Cursor[Any], relation: str, names: Sequence[str]) -> frozenset[str]:
    """Return the columns of *names* that have a value in every row of *relation*, which is read whole."""
    found = sql.SQL(", ").join(sql.SQL("count(*) = count({})").format(sql.Identifier(name)) for name in names)
    cursor.execute(sql.SQL("SELECT {} FROM {}").format(found, sql.Identifier(relation)))
    [row] = cursor.fetchall()
    return frozenset(name for name, is_complete in zip(names, row, strict=True) if is_complete)


def fitting_indexes(cursor: Cursor[Any], relation: str, indexes: Iterable[SQLIndex]) -> list[SQLIndex]:
    """Return *indexes* adapted to the rows of *relation*, which are read: without NULLs for columns that are rarely used.

    An index entry for NULL takes as much write-ahead log as any other, and hardly any search uses it.
    """
    indexes = list(indexes)
    names = sorted({index.column for index in indexes if index.column and not index.lists})
    counts = sql.SQL("").join(sql.SQL(", count({})").format(sql.Identifier(name)) for name in names)
    cursor.execute(sql.SQL("SELECT count(*){} FROM {}").format(counts, sql.Identifier(relation)))
    [(rows, *found)] = cursor.fetchall()
    rare = {name for name, count in zip(names, found, strict=True) if count < RARE * rows}
    return [index.without_nulls() if index.column in rare else index for index in indexes]


def create_indexes(cursor: Cursor[Any], relation: str, indexes: Iterable[SQLIndex]) -> None:
    """Create the *indexes* that *relation* does not have yet."""
    for index in indexes:
        cursor.execute(
            sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} {}").format(
                sql.Identifier(index_name(relation, index.name)),
                sql.Identifier(relation),
                sql.SQL(index.definition),
            )
        )


def advised_indexes(cursor: Cursor[Any], zoid: int, columns: Iterable[str]) -> list[SQLIndex]:
    """Return the indexes created on advice for the catalog tool with oid *zoid* that fit a relation with *columns*."""
    cursor.execute(
        "SELECT name, definition FROM pgcatalog_indexes WHERE catalog = %s AND columns <@ %s::text[] ORDER BY name",
        (zoid, ["rid", "path", "zoid", *columns]),
    )
    return [SQLIndex(*values_of(row)) for row in cursor.fetchall()]


def create_advised_indexes(cursor: Cursor[Any], zoid: int, relation: str, columns: Iterable[str]) -> None:
    """Create the advised indexes of the catalog tool with oid *zoid* on *relation*, which has *columns*.

    An index that fails is left out and logged, because neither a commit nor a rebuild may fail for it: the server may have
    lost an extension, or a column may hold numbers of lists now.
    """
    for index in advised_indexes(cursor, zoid, columns):
        cursor.execute("SAVEPOINT pgcatalog_index")
        try:
            create_indexes(cursor, relation, [index])
        except (ProgrammingError, InternalError, NotSupportedError) as error:
            cursor.execute("ROLLBACK TO SAVEPOINT pgcatalog_index")
            logger.warning("%s has no index %s: %s", relation, index.name, error)
        cursor.execute("RELEASE SAVEPOINT pgcatalog_index")
