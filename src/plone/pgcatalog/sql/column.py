"""Columns of the catalog table and their names, SQL indexes on it, and terms of ORDER BY."""

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import replace

import re


#: Options of a GIN index: limits its pending list, which each search reads, to 1 MB instead of 4 MB.
GIN_OPTIONS = "WITH (fastupdate = on, gin_pending_list_limit = 1024)"


def quote(name: str) -> str:
    """Return *name* as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Column:
    """A typed column of the catalog table.

    ``name`` is a plain identifier (unquoted); ``type`` an SQL type that is also valid in a cast
    (``text``, ``text[]``, ``timestamptz``, ``integer[]``, ``tsvector`` ...).  ``text`` and ``text[]``
    columns are created with COLLATE "C", so that SQL compares as Python does: by code point.

    Flags:

    * ``is_long``: values are long and stored compressed, so that comparing each row takes several times as long as using
      an SQL index of the column, which does not need the values;
    * ``is_last``: rarely read, so it is placed behind all other columns;
    * ``can_be_interned``: lists of texts, which a relation may intern (see ``values``); ``interned_at_first``: interned
      from the beginning, because rows share the same few lists;
    * ``is_interned``: the column of a relation that interns its lists, with the numbers as values;
    * ``is_unique``: rows rarely share a value;
    * ``is_period``: an end of a period in which nearly every row is.
    """

    name: str
    type: str
    is_long: bool = False
    is_last: bool = False
    can_be_interned: bool = False
    interned_at_first: bool = False
    is_interned: bool = False
    is_unique: bool = False
    is_period: bool = False

    @property
    def quoted(self) -> str:
        return quote(self.name)

    @property
    def is_array(self) -> bool:
        return self.type.endswith("[]")

    def interned(self) -> "Column":
        """Return the column of a relation that stores the numbers of its lists."""
        return Column(self.name, "bigint", is_interned=True)

    @property
    def ddl(self) -> str:
        collation = ' COLLATE "C"' if self.type in ("text", "text[]") else ""
        return f"{self.quoted} {self.type}{collation}"

    @property
    def stays_in_row(self) -> bool:
        """True for values that should stay out of TOAST as long as possible (STORAGE MAIN); not for a tsvector."""
        return self.type == "text" or self.is_array


@dataclass(frozen=True, slots=True)
class SQLIndex:
    """An SQL index on the catalog table.

    - ``name``: unique within the catalog; the name in the database has the table's name as prefix
    - ``definition``: the SQL behind ``ON table``, such as ``USING gin ("subject")``
    - ``finds_few``: for conditions that find single rows; the overlay has this index, too
    - ``lists``: the name of the column whose lists it indexes by element; numbers instead, if that column is interned
    - ``column``: the name of the column it is on
    """

    name: str
    definition: str
    finds_few: bool = False
    lists: str = ""
    column: str = ""

    def without_nulls(self) -> "SQLIndex":
        """Return the index without the rows that have no value in its column.

        It serves the same queries: a comparison finds no such row, and a sort has a condition that excludes them.
        """
        return replace(self, definition=f"{self.definition} WHERE {quote(self.column)} IS NOT NULL")


@dataclass(frozen=True, slots=True)
class Order:
    """A term of ORDER BY: *expression* is SQL, *column* the column that it names, if any.

    ``nulls``: it may be NULL in rows that are found.  NULL sorts above all values, with ``nulls_lowest`` below them.
    """

    expression: str
    descending: bool = False
    column: Column | None = None
    nulls: bool = True
    nulls_lowest: bool = False

    @property
    def sql(self) -> str:
        text = f"{self.expression} DESC" if self.descending else self.expression
        if self.nulls_lowest:
            text += " NULLS LAST" if self.descending else " NULLS FIRST"
        return text

    @property
    def has_nulls_last(self) -> bool:
        """True if rows with NULL come behind the others."""
        return self.descending == self.nulls_lowest

    @property
    def type(self) -> str | None:
        """The SQL type of the values; None if it is unknown."""
        return None if self.column is None else self.column.type


#: Columns of every catalog relation.
RID = Column("rid", "bigint")
PATH = Column("path", "text")

#: Columns of every catalog relation; no index may use their names.
RESERVED = frozenset(
    {"rid", "path", "zoid", "idx", "pkey", "zoid_fk", "score", "catalog", "ctid", "oid", "tableoid", "xmin", "xmax"}
)
WELL_KNOWN = {"allowedRolesAndUsers": "allowed_roles", "SearchableText": "searchable_text"}


def columns_of(name: str, taken: Iterable[str]) -> str:
    """Return the base name for the SQL columns of the index *name*: a readable, valid identifier, not in *taken*."""
    taken = set(taken) | (RESERVED if name != "path" else frozenset())
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    base = WELL_KNOWN.get(name) or re.sub(r"[^a-z0-9_]+", "_", words)[:40].strip("_") or "index"
    candidate, number = base, 1
    while candidate in taken:
        number += 1
        candidate = f"{base}_{number}"
    return candidate
