"""Columns of the catalog's table and their names, SQL indexes on it, and terms of ORDER BY."""

from collections.abc import Iterable
from dataclasses import dataclass
from dataclasses import replace

import re


#: Of a GIN index.  What is written waits in a list, in pages that each search reads: 1 MB at most, and not 4.
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

    The flags tell how PostgreSQL should use it:

    * ``is_long``: values are long and kept compressed, so that a comparison with each row takes several times as long as
      an SQL index of the column, which knows the answer without them;
    * ``is_last``: rarely read, so it stands behind all others in a row;
    * ``can_be_interned``: lists of texts, which a relation may intern (see ``values``); ``interned_at_first``: it does
      from the beginning, because the same few lists come again and again;
    * ``is_interned``: this is the column of such a relation; its type is that of the numbers;
    * ``is_unique``: rows hardly ever share a value.
    """

    name: str
    type: str
    is_long: bool = False
    is_last: bool = False
    can_be_interned: bool = False
    interned_at_first: bool = False
    is_interned: bool = False
    is_unique: bool = False

    @property
    def quoted(self) -> str:
        return quote(self.name)

    @property
    def is_array(self) -> bool:
        return self.type.endswith("[]")

    def interned(self) -> "Column":
        """Return the column of a relation that keeps its lists by number."""
        return Column(self.name, "bigint", is_interned=True)

    @property
    def ddl(self) -> str:
        collation = ' COLLATE "C"' if self.type in ("text", "text[]") else ""
        return f"{self.quoted} {self.type}{collation}"

    @property
    def stays_in_row(self) -> bool:
        """True for values to keep out of TOAST as long as possible; a tsvector goes there gladly."""
        return self.type == "text" or self.is_array


@dataclass(frozen=True, slots=True)
class SQLIndex:
    """An SQL index on the catalog table.

    ``name`` is unique within the catalog (it gets the table's name as prefix), ``definition`` what comes
    behind ``ON table``, e.g. ``USING gin ("subject")`` or ``("modified") WHERE "modified" IS NOT NULL``.
    ``finds_few`` ones, of conditions that find single rows, also serve what a transaction has pending.  ``column`` names the
    one that it is on, and ``lists`` the one whose lists it takes apart: it holds numbers where those are interned.
    """

    name: str
    definition: str
    finds_few: bool = False
    lists: str = ""
    column: str = ""

    def without_nulls(self) -> "SQLIndex":
        """Return the index that leaves out the rows without a value in its column.

        It answers the same: a comparison finds no such row, and a sort asks for a value where some row has none.
        """
        return replace(self, definition=f"{self.definition} WHERE {quote(self.column)} IS NOT NULL")


@dataclass(frozen=True, slots=True)
class Order:
    """A term of ORDER BY: *expression*, an SQL expression, which is that of *column* if it is one.

    ``nulls``: it may be NULL in a row that is found.  PostgreSQL takes NULL for higher than every value, with ``nulls_lowest``
    for lower.
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
        """The SQL type of the values; None if nobody says."""
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
    """Return the base name of the SQL columns of index *name*: readable, a valid identifier, not *taken*."""
    taken = set(taken) | (RESERVED if name != "path" else frozenset())
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    base = WELL_KNOWN.get(name) or re.sub(r"[^a-z0-9_]+", "_", words)[:40].strip("_") or "index"
    candidate, number = base, 1
    while candidate in taken:
        number += 1
        candidate = f"{base}_{number}"
    return candidate
