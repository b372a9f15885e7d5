"""The catalog's tables: names, layouts, and the transactional DDL that makes them so.

Everything here runs on the cursor of a commit (the storage's ``finalize`` hook), so that a table appears,
grows or goes together with the ZODB change that wanted it, or not at all.
"""

from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from functools import cached_property
from importlib.resources import files
from plone.pgcatalog.protocols import Cursor
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.column import SQLIndex
from plone.pgcatalog.sql.sets import LISTED
from psycopg import InternalError
from psycopg import NotSupportedError
from psycopg import ProgrammingError
from psycopg import sql
from psycopg.errors import LockNotAvailable

import hashlib
import logging


#: Longest wait of a commit's catalog changes for a lock; the commit then fails with a retryable error.
LOCK_TIMEOUT = "10s"
EFFECTIVE = ("effective_range_since", "effective_range_until")
#: Columns that most searches filter by.
ASKED_MOST = (
    "allowed_roles",
    *EFFECTIVE,
    "portal_type",
    "review_state",
    "path_value",
    "parent_path",
    "depth",
)
#: What searches count by most, so that a count reads an index and no row: name of the SQL index -> its columns.  Who may see an
#: object comes first: every search by somebody who may not see everything asks for that.
COVERING = {
    "seen_by_type": ("allowed_roles", "portal_type", "review_state", *EFFECTIVE),
    "seen_by_interface": ("allowed_roles", "object_provides", *EFFECTIVE),
}

#: A column is rarely used when fewer of the rows have a value there, by this share.
RARE = 0.1

#: Whether one of two names is taken.
IS_TAKEN = "SELECT coalesce(to_regclass(quote_ident(%s)), to_regclass(quote_ident(%s))) IS NOT NULL"
RETIRE_LEFT_OVER = (
    "INSERT INTO pgcatalog_retired (relation) SELECT relname FROM pg_class"
    " WHERE relkind = 'r' AND pg_table_is_visible(oid) AND relname ~ %s"
    " AND NOT EXISTS (SELECT FROM pgcatalog_state WHERE relation = relname)"
    " AND NOT EXISTS (SELECT FROM pgcatalog_rebuild WHERE relname IN (relation, relation || '_idx')) ON CONFLICT DO NOTHING"
)

logger = logging.getLogger(__name__)


@cache
def load_sql(name: str) -> str:
    """Return the text of ``database/sql/<name>.sql``."""
    return (files(__package__) / "sql" / f"{name}.sql").read_text("utf-8")


@dataclass(frozen=True)
class Layout:
    """The typed columns a catalog needs besides rid, path, zoid and idx, and its SQL indexes."""

    columns: tuple[Column, ...]
    indexes: tuple[SQLIndex, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @cached_property
    def few_lists(self) -> frozenset[str]:
        """The names of the columns that a new relation keeps by number."""
        return frozenset(c.name for c in self.columns if c.has_few_lists)

    def interned(self, state: "CatalogState | None") -> frozenset[str]:
        """Return the names of the columns that are kept by number in *state*, columns to be added to it included."""
        if state is None:
            return self.few_lists
        return state.interned | (self.few_lists - state.columns)

    @cached_property
    def lists(self) -> frozenset[str]:
        """The names of the columns with lists of keywords, by number or not."""
        return frozenset(c.name for c in self.columns if c.can_be_interned)

    @cached_property
    def _stored(self) -> "dict[frozenset[str], Layout]":
        return {}

    def stored(self, interned: frozenset[str]) -> "Layout":
        """Return the layout of a relation that keeps the columns *interned* by number."""
        found = self._stored.get(interned)
        if found is None:
            columns = tuple(c.interned() if c.name in interned else c for c in self.columns)
            found = self._stored[interned] = Layout(columns, stored_indexes(self, interned))
        return found

    @cached_property
    def numbered(self) -> Mapping[str, Column]:
        """The columns that hold numbers, by name: those of a stored layout."""
        return {c.name: c for c in self.columns if c.is_interned}

    @property
    def signature(self) -> str:
        """A short hash that differs when the columns differ."""
        text = ",".join(f"{c.name}:{c.type}" for c in self.columns)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class CatalogState:
    """A row of pgcatalog_state, as one snapshot sees it.

    *tid* is the transaction that wrote it, *rows* the planner's estimate, -1 for none yet.
    *complete* are columns with a value in every row, maybe not all such; *interned* those that hold numbers of lists, and
    *newest_set* tells which lists there are (see ``sets``); *collected* those whose keywords are known (see ``keywords``).
    """

    relation: str
    version: int
    columns: frozenset[str]
    generation: int
    tid: int = 0
    rows: int = -1
    complete: frozenset[str] = frozenset()
    interned: frozenset[str] = frozenset()
    newest_set: int = 0
    collected: frozenset[str] = frozenset()

    @property
    def form(self) -> tuple[Hashable, ...]:
        """What a statement takes for granted of the relation."""
        return self.relation, self.columns, self.complete, self.interned, self.newest_set, self.collected


def stored_indexes(layout: Layout, interned: frozenset[str]) -> tuple[SQLIndex, ...]:
    """Return the SQL indexes of a relation with *layout* that keeps the columns *interned* by number."""
    lists = {c.name for c in layout.columns if c.is_array} - interned
    names = set(layout.names) - lists
    covering = {name: columns for name, columns in COVERING.items() if names.issuperset(columns)}
    first = {columns[0] for columns in covering.values()}
    kept = [
        SQLIndex(index.name, f"({quote(index.lists)})", column=index.lists) if index.lists in interned else index
        for index in layout.indexes
        if index.lists not in interned or index.lists not in first
    ]
    more = [SQLIndex(name, f"({', '.join(map(quote, columns))})") for name, columns in covering.items()]
    return (*kept, *more)


def relation_name(zoid: int, version: int) -> str:
    """Return the name of the *version*-th relation of the catalog tool with oid *zoid*."""
    return f"pgcatalog_{zoid:x}" if version == 1 else f"pgcatalog_{zoid:x}_{version}"


def is_unfilled(relation: str) -> bool:
    """Return whether *relation* has number 0: a catalog got it that came without one, and was not filled since."""
    return relation.endswith("_0")


def free_relation(cursor: Cursor, zoid: int, version: int) -> tuple[int, str]:
    """Return number and name of the first relation from *version* on that the catalog tool with oid *zoid* can get.

    Tables whose state is lost may have the names of earlier ones, as in a dump that was restored in part.
    """
    relation = relation_name(zoid, version)
    while cursor.execute(IS_TAKEN, [relation, idx_table(relation)]).fetchone()[0]:
        if is_unfilled(relation):
            relation += "_0"
        else:
            version += 1
            relation = relation_name(zoid, version)
    return version, relation


def retire_left_over(cursor: Cursor, zoid: int) -> None:
    """Retire what is left over of relations of the catalog tool with oid *zoid*: none that it has, or is being rebuilt into."""
    cursor.execute(RETIRE_LEFT_OVER, [f"^pgcatalog_{zoid:x}(_[0-9]+)*(_idx)?$"])


def create_relation(cursor: Cursor, relation: str, layout: Layout) -> None:
    """Create an empty *relation* with all columns and indexes of *layout*."""
    columns = "".join(f",\n    {c.ddl}" for c in in_row_order(layout.columns))
    cursor.execute(
        sql.SQL(load_sql("relation")).format(
            relation=sql.Identifier(relation),
            columns=sql.SQL(columns),
            path_key=sql.Identifier(f"{relation}_path"),
            zoid_fk=sql.Identifier(f"{relation}_zoid_fk"),
        )
    )
    set_parameters(cursor, relation)
    keep_in_row(cursor, relation, ["path", *(c.name for c in layout.columns if c.stays_in_row)])
    create_indexes(cursor, relation, (SQLIndex("zoid", "(zoid)"), *layout.indexes))
    create_view(cursor, relation, layout)


def renew_settings(cursor: Cursor, relation: str) -> None:
    """Give *relation*, which an older version may have made, the settings that a new one gets.

    Nobody who reads or writes waits for that; it waits for VACUUM and whoever makes SQL indexes.  Raises
    psycopg.errors.LockNotAvailable after LOCK_TIMEOUT.
    """
    cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    set_parameters(cursor, relation)


def set_parameters(cursor: Cursor, relation: str) -> None:
    cursor.execute(sql.SQL(load_sql("relation_settings")).format(relation=sql.Identifier(relation)))


def view_name(relation: str) -> str:
    """Return the name of the view that shows the rows of *relation* to people."""
    return f"{relation}_rows"


def create_view(cursor: Cursor, relation: str, layout: Layout) -> None:
    """Create the view of *relation*, or replace it: rows with their lists, and with their idx wherever that is kept."""
    columns = [
        sql.SQL("{} AS {}").format(
            sql.SQL(LISTED).format(column=name) if c.is_interned else name, sql.Identifier(c.name)
        )
        for c in in_row_order(layout.columns)
        for name in [sql.SQL("c.{}").format(sql.Identifier(c.name))]
    ]
    names = {"view": sql.Identifier(view_name(relation)), "relation": sql.Identifier(relation)}
    cursor.execute(sql.SQL("DROP VIEW IF EXISTS {view}").format(**names))
    cursor.execute(
        sql.SQL(load_sql("view")).format(columns=sql.SQL("").join(sql.SQL(", {}").format(c) for c in columns), **names)
    )


def in_row_order(columns: Iterable[Column]) -> list[Column]:
    """Return *columns* as they follow each other in a row: those that are asked most and the short ones in front.

    PostgreSQL walks over all that is in front of a column to read it.
    """

    def place(column: Column) -> tuple[int, int]:
        if column.name in ASKED_MOST:
            return 0, ASKED_MOST.index(column.name)
        if column.is_last:
            return 4, 0
        return 3 if column.is_array else 2 if column.type == "text" else 1, 0

    return sorted(columns, key=place)


def keep_in_row(cursor: Cursor, relation: str, names: Iterable[str]) -> None:
    """Give the columns *names* of a new *relation* STORAGE MAIN."""
    clauses = [sql.SQL("ALTER COLUMN {} SET STORAGE MAIN").format(sql.Identifier(name)) for name in names]
    if clauses:
        cursor.execute(sql.SQL("ALTER TABLE {} {}").format(sql.Identifier(relation), sql.SQL(", ").join(clauses)))


def add_columns(cursor: Cursor, relation: str, columns: Sequence[Column]) -> None:
    """Add *columns* to *relation*.

    Raises psycopg.errors.LockNotAvailable when readers hold the table for longer than LOCK_TIMEOUT.
    """
    clauses = sql.SQL(", ").join(sql.SQL(f"ADD COLUMN IF NOT EXISTS {c.ddl}") for c in columns)
    cursor.execute(sql.SQL("ALTER TABLE {} {}").format(sql.Identifier(relation), clauses))
    keep_in_row(cursor, relation, [c.name for c in columns if c.stays_in_row])


def complete_columns(cursor: Cursor, relation: str, names: Sequence[str]) -> frozenset[str]:
    """Return those of the columns *names* that have a value in every row of *relation*; reads it whole."""
    found = sql.SQL(", ").join(sql.SQL("count(*) = count({})").format(sql.Identifier(name)) for name in names)
    cursor.execute(sql.SQL("SELECT {} FROM {}").format(found, sql.Identifier(relation)))
    return frozenset(name for name, is_complete in zip(names, cursor.fetchone(), strict=True) if is_complete)


def fitting_indexes(cursor: Cursor, relation: str, indexes: Iterable[SQLIndex]) -> list[SQLIndex]:
    """Return *indexes* as they pay for the rows that *relation* has, which are read: without NULLs where most are.

    An entry for a row without a value takes as much write-ahead log as another one, and hardly any search asks for it.
    """
    indexes = list(indexes)
    names = sorted({index.column for index in indexes if index.column and not index.lists})
    counts = sql.SQL("").join(sql.SQL(", count({})").format(sql.Identifier(name)) for name in names)
    cursor.execute(sql.SQL("SELECT count(*){} FROM {}").format(counts, sql.Identifier(relation)))
    rows, *found = cursor.fetchone()
    rare = {name for name, count in zip(names, found, strict=True) if count < RARE * rows}
    return [index.without_nulls() if index.column in rare else index for index in indexes]


def create_indexes(cursor: Cursor, relation: str, indexes: Iterable[SQLIndex]) -> None:
    """Create those of *indexes* that *relation* does not have yet."""
    for index in indexes:
        cursor.execute(
            sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} {}").format(
                sql.Identifier(index_name(relation, index.name)),
                sql.Identifier(relation),
                sql.SQL(index.definition),
            )
        )


def advised_indexes(cursor: Cursor, zoid: int, columns: Iterable[str]) -> list[SQLIndex]:
    """Return the indexes made on advice for the catalog tool with oid *zoid*, which a relation with *columns* can have."""
    cursor.execute(
        "SELECT name, definition FROM pgcatalog_indexes WHERE catalog = %s AND columns <@ %s::text[] ORDER BY name",
        (zoid, ["rid", "path", "zoid", *columns]),
    )
    return [SQLIndex(*(row.values() if isinstance(row, dict) else row)) for row in cursor.fetchall()]


def create_advised_indexes(cursor: Cursor, zoid: int, relation: str, columns: Iterable[str]) -> None:
    """Create the advised indexes of the catalog tool with oid *zoid* on *relation*, which has *columns*.

    One that the relation cannot have is left out, with a line in the log: neither a commit nor a rebuild may fail for it.
    The server may have an extension no more, and a column may hold numbers of lists now.
    """
    for index in advised_indexes(cursor, zoid, columns):
        cursor.execute("SAVEPOINT pgcatalog_index")
        try:
            create_indexes(cursor, relation, [index])
        except (ProgrammingError, InternalError, NotSupportedError) as error:
            cursor.execute("ROLLBACK TO SAVEPOINT pgcatalog_index")
            logger.warning("%s has no index %s: %s", relation, index.name, error)
        cursor.execute("RELEASE SAVEPOINT pgcatalog_index")


def index_name(relation: str, name: str) -> str:
    """Return a name within PostgreSQL's 63 bytes."""
    full = f"{relation}_{name}"
    if len(full.encode()) <= 63:
        return full
    return f"{relation}_{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def retire_relation(cursor: Cursor, relation: str) -> None:
    """Mark *relation* for dropping: a snapshot older than this commit may still read it."""
    cursor.execute("INSERT INTO pgcatalog_retired (relation) VALUES (%s) ON CONFLICT DO NOTHING", (relation,))


def drop_retired(cursor: Cursor) -> list[str]:
    """Drop retired relations that no snapshot can need any more, and return their names; none when that had to wait.

    Their foreign key makes a DROP lock object_state, against every reader of every site.  So this is no part of a
    commit, which would hold that lock until its end, and nobody ever queues behind a request for it.
    """
    try:
        with cursor.connection.transaction():
            cursor.execute(load_sql("forget_retired"))
            found = [row["relation"] if isinstance(row, dict) else row[0] for row in cursor.fetchall()]
            names = [name for name in found if name is not None]
            if names:
                tables = sql.SQL(", ").join(map(sql.Identifier, names))
                cursor.execute(sql.SQL("LOCK TABLE {}, object_state IN ACCESS EXCLUSIVE MODE NOWAIT").format(tables))
                views = sql.SQL(", ").join(sql.Identifier(view_name(name)) for name in names)
                cursor.execute(sql.SQL("DROP VIEW IF EXISTS {}").format(views))
                cursor.execute(sql.SQL("DROP TABLE {}").format(tables))
            return names
    except LockNotAvailable:
        return []


def idx_table(relation: str) -> str:
    """Return the name of the table with the idx that *relation*, while it is being built, has got for object_state."""
    return f"{relation}_idx"


def forget_rebuild(cursor: Cursor, zoid: int) -> None:
    """End the rebuild of the catalog tool with oid *zoid*, if there is one, and retire what it has made."""
    cursor.execute("DELETE FROM pgcatalog_rebuild WHERE catalog = %s RETURNING relation", (zoid,))
    for row in cursor.fetchall():
        relation = row["relation"] if isinstance(row, dict) else row[0]
        retire_relation(cursor, idx_table(relation))
        retire_relation(cursor, relation)
