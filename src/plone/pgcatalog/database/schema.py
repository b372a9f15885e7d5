"""The catalog's tables: names, layouts, and the transactional DDL that makes them so.

Everything here runs on the cursor of a commit (the storage's ``finalize`` hook), so that a table appears,
grows or goes together with the ZODB change that wanted it, or not at all.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import SQLIndex
from psycopg import sql
from psycopg.errors import LockNotAvailable
from transaction.interfaces import TransientError
from typing import Any

import hashlib


class CatalogLocked(TransientError):
    """A table of the catalog is in use and cannot be changed now; the transaction may be tried again."""


#: Longest wait for a lock of our own DDL; the commit then fails with a retryable error.
LOCK_TIMEOUT = "10s"
#: Longest wait for the readers of a relation that is to go.
DROP_TIMEOUT = "1s"


@cache
def load_sql(name: str) -> str:
    """Return the text of ``database/sql/<name>.sql``."""
    return (files(__package__) / "sql" / f"{name}.sql").read_text("utf-8")


@dataclass(frozen=True)
class Layout:
    """The typed columns a catalog needs besides rid, path, zoid and idx, and its SQL indexes."""

    columns: tuple[Column, ...]
    indexes: tuple[SQLIndex, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @property
    def signature(self) -> str:
        """A short hash that differs when the columns differ."""
        text = ",".join(f"{c.name}:{c.type}" for c in self.columns)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class CatalogState:
    """A row of pgcatalog_state, as one snapshot sees it."""

    relation: str
    version: int
    columns: frozenset[str]
    generation: int


def relation_name(zoid: int, version: int) -> str:
    """Return the name of the *version*-th relation of the catalog tool with oid *zoid*."""
    return f"pgcatalog_{zoid:x}" if version == 1 else f"pgcatalog_{zoid:x}_{version}"


def create_relation(cursor: Any, relation: str, layout: Layout) -> None:
    """Create an empty *relation* with all columns and indexes of *layout*."""
    columns = "".join(f",\n    {c.ddl}" for c in layout.columns)
    cursor.execute(
        sql.SQL(load_sql("relation")).format(
            relation=sql.Identifier(relation),
            columns=sql.SQL(columns),
            path_key=sql.Identifier(f"{relation}_path"),
            zoid_fk=sql.Identifier(f"{relation}_zoid_fk"),
        )
    )
    keep_in_row(cursor, relation, ["path", *(c.name for c in layout.columns if c.stays_in_row)])
    create_indexes(cursor, relation, (SQLIndex("zoid", "(zoid)"), *layout.indexes))


def keep_in_row(cursor: Any, relation: str, names: Iterable[str]) -> None:
    """Give the columns *names* of a new *relation* STORAGE MAIN."""
    clauses = [sql.SQL("ALTER COLUMN {} SET STORAGE MAIN").format(sql.Identifier(name)) for name in names]
    if clauses:
        cursor.execute(sql.SQL("ALTER TABLE {} {}").format(sql.Identifier(relation), sql.SQL(", ").join(clauses)))


def add_columns(cursor: Any, relation: str, columns: Sequence[Column]) -> None:
    """Add *columns* to *relation*.

    Raises CatalogLocked, which Zope answers with a retry, when readers hold the table for longer than LOCK_TIMEOUT.
    """
    clauses = sql.SQL(", ").join(sql.SQL(f"ADD COLUMN IF NOT EXISTS {c.ddl}") for c in columns)
    cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    try:
        cursor.execute(sql.SQL("ALTER TABLE {} {}").format(sql.Identifier(relation), clauses))
    except LockNotAvailable as error:
        raise CatalogLocked(f"{relation} is in use: no column can be added now") from error
    cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
    keep_in_row(cursor, relation, [c.name for c in columns if c.stays_in_row])


def create_indexes(cursor: Any, relation: str, indexes: Iterable[SQLIndex]) -> None:
    """Create those of *indexes* that *relation* does not have yet."""
    for index in indexes:
        cursor.execute(
            sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} {}").format(
                sql.Identifier(index_name(relation, index.name)),
                sql.Identifier(relation),
                sql.SQL(index.definition),
            )
        )


def index_name(relation: str, name: str) -> str:
    """Return a name within PostgreSQL's 63 bytes."""
    full = f"{relation}_{name}"
    if len(full.encode()) <= 63:
        return full
    return f"{relation}_{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def retire_relation(cursor: Any, relation: str) -> None:
    """Mark *relation* for dropping: a snapshot older than this commit may still read it."""
    cursor.execute("INSERT INTO pgcatalog_retired (relation) VALUES (%s) ON CONFLICT DO NOTHING", (relation,))


def drop_retired(cursor: Any) -> list[str]:
    """Drop retired relations that no snapshot can need any more; return their names."""
    cursor.execute(load_sql("forget_retired"))
    names = [row["relation"] if isinstance(row, dict) else row[0] for row in cursor.fetchall()]
    for name in names:
        drop_relation(cursor, name)
    return names


def drop_relation(cursor: Any, relation: str) -> None:
    """Drop *relation* now, or later when readers hold it for longer than DROP_TIMEOUT."""
    table = sql.Identifier(relation)
    cursor.execute("SAVEPOINT pgcatalog_drop")
    try:
        cursor.execute(f"SET LOCAL lock_timeout = '{DROP_TIMEOUT}'")
        cursor.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
        cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
    except LockNotAvailable:
        cursor.execute("ROLLBACK TO SAVEPOINT pgcatalog_drop")
        retire_relation(cursor, relation)
