"""The layout of a catalog's relation: its columns and SQL indexes, its names, and its row of pgcatalog_state."""

from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.column import SQLIndex
from plone.pgcatalog.sql.files import read_sql
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.sql.values import EFFECTIVE
from plone.pgcatalog.sql.values import NO_END
from plone.pgcatalog.sql.values import ROLES

import hashlib


#: Columns that most searches filter by.
MOST_QUERIED = (
    "allowed_roles",
    *EFFECTIVE,
    "portal_type",
    "review_state",
    "path_value",
    "parent_path",
    "depth",
)
#: Covering indexes for the most frequent counts, so that a count reads no table row: name of the SQL index -> its columns.
#: The roles come first, because every search of a user who may not see everything filters by them.
COVERING = {
    "seen_by_type": ("allowed_roles", "portal_type", "review_state", *EFFECTIVE),
    "seen_by_interface": ("allowed_roles", "object_provides", *EFFECTIVE),
}


def load_sql(name: str) -> str:
    """Return the text of ``database/sql/<name>.sql``."""
    return read_sql("database", name)


def load_statement(name: str) -> str:
    """Return the statement of ``database/sql/<name>.sql`` in one line, without its comment lines."""
    return read_statement("database", name)


@dataclass(frozen=True)
class Layout:
    """The typed columns of a catalog besides rid, path, zoid and idx, and its SQL indexes."""

    columns: tuple[Column, ...]
    indexes: tuple[SQLIndex, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @cached_property
    def interned_at_first(self) -> frozenset[str]:
        """The names of the columns that a new relation interns."""
        return frozenset(c.name for c in self.columns if c.interned_at_first)

    def interned(self, state: "CatalogState | None") -> frozenset[str]:
        """Return the names of the columns that are interned in *state*, including columns still to be added to it."""
        if state is None:
            return self.interned_at_first
        return state.interned | (self.interned_at_first - state.columns)

    @cached_property
    def lists(self) -> frozenset[str]:
        """The names of the columns with lists of keywords, interned or not."""
        return frozenset(c.name for c in self.columns if c.can_be_interned)

    @cached_property
    def _with_interned(self) -> "dict[frozenset[str], Layout]":
        return {}

    def with_interned(self, interned: frozenset[str]) -> "Layout":
        """Return the layout of a relation that interns the columns *interned*."""
        found = self._with_interned.get(interned)
        if found is None:
            columns = tuple(c.interned() if c.name in interned else c for c in self.columns)
            found = self._with_interned[interned] = Layout(columns, indexes_with_interned(self, interned))
        return found

    @cached_property
    def interned_columns(self) -> Mapping[str, Column]:
        """The columns that hold numbers of lists, by name; empty for a layout without ``with_interned``."""
        return {c.name: c for c in self.columns if c.is_interned}

    @property
    def signature(self) -> str:
        """A short hash of the names and types of the columns."""
        text = ",".join(f"{c.name}:{c.type}" for c in self.columns)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class CatalogState:
    """A row of pgcatalog_state, as one snapshot sees it; the fields are the columns of ``generations.READ_STATES``.

    - *tid*: the transaction that wrote the row
    - *rows*: the planner's estimate; -1 if there is none yet
    - *complete*: columns with a value in every row
    - *interned*: columns that hold numbers of lists
    - *newest_set*: ``added`` of the newest list (see ``sets``)
    - *counted*: columns whose values are counted (see ``counts``)
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
    counted: frozenset[str] = frozenset()


def indexes_with_interned(layout: Layout, interned: frozenset[str]) -> tuple[SQLIndex, ...]:
    """Return the SQL indexes of a relation with *layout* that interns the columns *interned*."""
    lists = {c.name for c in layout.columns if c.is_array} - interned
    names = set(layout.names) - lists
    covering = {name: columns for name, columns in COVERING.items() if names.issuperset(columns)}
    first = {columns[0] for columns in covering.values()}
    unchanged = [
        SQLIndex(index.name, f"({quote(index.lists)})", column=index.lists) if index.lists in interned else index
        for index in layout.indexes
        if index.lists not in interned or index.lists not in first
    ]
    more = [SQLIndex(name, f"({', '.join(map(quote, columns))})") for name, columns in covering.items()]
    if names.issuperset(EFFECTIVE) and ROLES.name in interned:
        since, until = map(quote, EFFECTIVE)
        more += [SQLIndex("not_yet", f"({since})"), SQLIndex("expired", f"({until}) WHERE {until} < {NO_END}")]
    return (*unchanged, *more)


def relation_name(zoid: int, version: int) -> str:
    """Return the name of the relation number *version* of the catalog tool with oid *zoid*."""
    return f"pgcatalog_{zoid:x}" if version == 1 else f"pgcatalog_{zoid:x}_{version}"


def is_unfilled(relation: str) -> bool:
    """Return whether *relation* has number 0: created for a catalog that arrived without one, and not filled since."""
    return relation.endswith("_0")


def view_name(relation: str) -> str:
    """Return the name of the view that shows the rows of *relation* to people."""
    return f"{relation}_rows"


def in_row_order(columns: Iterable[Column]) -> list[Column]:
    """Return *columns* in their order in a row: the ones filtered by most, then short ones, are first.

    To read a column, PostgreSQL walks over all columns in front of it.
    """

    def place(column: Column) -> tuple[int, int]:
        if column.name in MOST_QUERIED:
            return 0, MOST_QUERIED.index(column.name)
        if column.is_last:
            return 4, 0
        return 3 if column.is_array else 2 if column.type == "text" else 1, 0

    return sorted(columns, key=place)


def index_name(relation: str, name: str) -> str:
    """Return *name* with the prefix *relation*; *name* is hashed if the result exceeds PostgreSQL's 63 bytes."""
    full = f"{relation}_{name}"
    if len(full.encode()) <= 63:
        return full
    return f"{relation}_{hashlib.sha256(name.encode()).hexdigest()[:12]}"


#: Chunks of a table from which on an index for nearest neighbours pays; below, all are compared.
HNSW_FROM = 10_000
#: The most dimensions that an HNSW index on halfvec can have.
HNSW_DIMENSIONS = 4000


def chunks_prefix(zoid: int) -> str:
    """Return the prefix of the names of the tables with text chunks of the catalog tool with oid *zoid*."""
    return f"{relation_name(zoid, 1)}_chunks_"


def emptied(relation: str) -> str:
    """Return the name of the retired table *relation* from when it is emptied until it is dropped."""
    return f"{relation}_empty"


def idx_table(relation: str) -> str:
    """Return the name of the table with the idx values that *relation*, while it is being built, holds for object_state."""
    return f"{relation}_idx"
