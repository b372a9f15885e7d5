"""Values for SQL: texts, keys of caches, literals of arrays, and interned sets."""

from collections.abc import Collection
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from DateTime import DateTime
from datetime import date
from datetime import datetime
from decimal import Decimal
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.expression import any_of
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.predicate import any_value
from plone.pgcatalog.sql.predicate import CONTAINS
from plone.pgcatalog.sql.predicate import ElementBetween
from plone.pgcatalog.sql.predicate import OVERLAPS
from plone.pgcatalog.sql.predicate import Predicate
from typing import Any
from typing import Protocol

import hashlib
import orjson
import re


# -- texts


#: NUL and lone surrogates, which PostgreSQL's UTF-8 does not allow.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Return True if *text* has no NUL and no lone surrogate, which PostgreSQL cannot store."""
    return _UNSTORABLE.search(text) is None


def storable(text: str) -> str:
    """Return *text* with U+FFFD in place of characters that PostgreSQL cannot store."""
    return _UNSTORABLE.sub("\ufffd", text)


# -- keys of caches


#: Types whose equal values of one type are interchangeable, and have the same repr.
HASHABLE_TYPES = (int, float, bool, bytes, type(None))


def whole(name: str, number: Any, most: int) -> int:
    """Return *number*, the value of the option *name*, as an int limited to -*most* … *most*.

    Raises TypeError for a value that is no whole number, and InvalidOperation for an infinite or very large Decimal.
    """
    if isinstance(number, int | float | Decimal) and number % 1 == 0:
        return int(min(max(number, -most), most))
    raise TypeError(f"{name} must be an integer, not a value of type {type(number).__name__}")


def frozen(value: Any) -> Hashable:
    """Return a hashable form of *value*, of a query or a parameter of SQL, for the key of a cache.

    Raises TypeError for a value of another type, such as a set.
    """
    kind = type(value)
    if kind is str:
        return kind.__str__(value)
    if kind is list or kind is tuple:
        return (kind, *map(frozen, value))
    if kind in HASHABLE_TYPES:
        return (kind, value)
    if kind is dict:
        return (kind, *((frozen(key), frozen(each)) for key, each in value.items()))
    if kind is datetime or kind is date:
        # Datetimes of different zones are equal, and so are the two at the end of summer time that a clock shows alike.
        return (kind, value.isoformat())
    if kind is DateTime:
        return (kind, value.micros(), value.timezone(), value.timezoneNaive())
    raise TypeError(f"no key for a value of type {kind.__name__}")


def key_digest(*values: Any) -> bytes:
    """Return 16 bytes that identify *values*: a key of a cache that takes no memory for texts of SQL and parameters.

    Two of a billion different keys are the same with a probability of 1.5e-21 (birthday bound, n²/2¹²⁹).  Raises TypeError
    as ``frozen``, and ValueError for an integer of more digits than Python writes.
    """
    return hashlib.blake2b(repr(frozen(values)).encode(errors="surrogatepass"), digest_size=16).digest()


# -- arrays


#: Oids of array types in pg_type.
INT8_ARRAY, FLOAT8_ARRAY, TEXT_ARRAY = 1016, 1022, 1009
INT8_LIMIT = 2**63


def array_of(values: Sequence[Any]) -> tuple[bytes, int] | None:
    """Return the literal of an array of *values*, all texts, all integers or all floats, and the oid of its type.

    None for other or mixed types, integers beyond 64 bits, an empty sequence, and a text that PostgreSQL cannot store.
    Each text is quoted, with a backslash before quotes and backslashes (PostgreSQL: "Array Input and Output Syntax").
    """
    kinds = set(map(type, values))
    if kinds == {int} and min(values) >= -INT8_LIMIT and max(values) < INT8_LIMIT:
        return f"{{{','.join(map(str, values))}}}".encode(), INT8_ARRAY
    if kinds == {float}:
        return f"{{{','.join(map(repr, values))}}}".encode(), FLOAT8_ARRAY
    if kinds != {str}:
        return None
    joined = "\0".join(values)
    if joined.count("\0") != len(values) - 1:
        return None
    escaped = joined.replace("\\", "\\\\").replace('"', '\\"').replace("\0", '","')
    try:
        return f'{{"{escaped}"}}'.encode(), TEXT_ARRAY
    except UnicodeEncodeError:
        return None


# -- interned sets: lists of keywords, stored once in the table ``pgcatalog_sets``; a row holds the number of its list
#
# The rows of a catalog share a few lists of interfaces, and of roles and users that may see them.  Such a column is
# interned from the beginning (``Column.interned_at_first``), another one (``can_be_interned``) if a rebuild finds few
# different lists.  ``Layout.interned_columns`` are the interned columns of a relation, by name.  The number is a hash of
# the list: each process computes it without a look-up, and it is the same in each catalog, copy and standby.

#: SQL of the list whose number a column holds.
LIST_SQL = "(SELECT vals FROM pgcatalog_sets WHERE number = {column})"


def set_number(name: str, values: Sequence[str]) -> int:
    """Return the number, a signed 64-bit integer, of the list *values* in the column *name*.

    Two of a million different lists share a number with a probability of 3e-8 (birthday bound, n²/2⁶⁵).
    """
    digest = hashlib.blake2b(orjson.dumps([name, *values]), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def as_stored(column: Column, value: Any) -> Any:
    """Return the value that *column* of a relation stores for *value*, which an index translator has extracted."""
    return set_number(column.name, value) if column.is_interned and value is not None else value


def as_list_sql(column: Column, pending: str = "") -> str:
    """Return the SQL of the value that an index translator has extracted for *column* of a relation: a list, if interned.

    *pending* is a table with sets that are not committed yet, "" if there is none.
    """
    if not column.is_interned:
        return column.quoted
    saved = LIST_SQL.format(column=column.quoted)
    if not pending:
        return saved
    return f"coalesce({saved}, (SELECT vals FROM {pending} AS pending WHERE pending.number = {column.quoted}))"


class InternedSets(Protocol):
    """Interned sets in memory, with their numbers, by column; see ``database.sets.CachedSets``."""

    @property
    def partly_cached(self) -> Collection[str]:
        """Columns with too many sets to cache all of them."""

    def numbers_by_element(self, part: Predicate) -> set[int] | None:
        """Return the numbers of the sets that fulfil *part*, on a column in ``partly_cached``; None if not looked up."""

    def numbers_of(self, part: Predicate) -> set[int]:
        """Return the numbers of the cached sets that fulfil *part*."""


def as_interned(
    part: Condition, interned_columns: Mapping[str, Column], cached_sets: Iterable[InternedSets]
) -> Condition:
    """Return *part* of a condition for a relation in which *interned_columns*, by name, hold numbers.

    *cached_sets* are the committed sets, as far as the process has cached them, and the pending sets.
    """
    if not isinstance(part, Predicate) or part.column.name not in interned_columns or not part.column.is_array:
        return part
    column = interned_columns[part.column.name]
    if not names_elements(part) and not isinstance(part, ElementBetween):
        return Predicate(column, part.operator, part.values)
    numbers: set[int] = set()
    has_unknown = False
    for sets in cached_sets:
        is_partly_cached = column.name in sets.partly_cached
        of_elements = sets.numbers_by_element(part) if is_partly_cached else None
        has_unknown |= is_partly_cached and of_elements is None
        numbers |= sets.numbers_of(part) if of_elements is None else of_elements
    by_number = any_value(column, sorted(numbers)) if numbers else NOTHING
    return any_of((looked_up(part, column), by_number)) if has_unknown else by_number


def names_elements(part: Predicate) -> bool:
    """Return True if *part* names whole elements of a list, so that each can be looked up separately."""
    return part.operator in (OVERLAPS, CONTAINS) and not isinstance(part, ElementBetween)


def looked_up(part: Predicate, column: Column) -> Condition:
    """Return the condition that *column* has the number of a committed set that fulfils *part*."""
    of_list = part.of(Column("vals", "text[]"))
    # "+ 0" hides the index of the column: many sets cover most rows, and PostgreSQL would look them up one by one.
    text = f"{column.quoted} + 0 IN (SELECT number FROM pgcatalog_sets WHERE name = %s AND {of_list.sql})"
    return Condition(text, (column.name, *of_list.params), (column,))


#: Columns that group the counts: the number of the list of roles and users that may see a row, and its type.
ROLES, TYPE = Column("allowed_roles", "bigint", is_interned=True), Column("portal_type", "text")
#: The effective range of a row; most rows have been published and do not expire.
EFFECTIVE = ("effective_range_since", "effective_range_until")
#: The end of the effective range of a row that does not expire.
NO_END = 2**31 - 1
#: The field whose count is the number of rows.
ROWS = ""


def values_sql(columns: Sequence[Column], rows: str) -> str:
    """Return the SELECT of (allowed_roles, portal_type, field, value, n) for each value of *columns* in *rows*.

    *rows* is a FROM item with these columns and n.
    """
    single = [f"('{c.name}', {c.quoted}::text)" for c in columns if not (c.is_array or c.is_interned)]
    lists = [f"SELECT '{c.name}', unnest({as_list_sql(c)})" for c in columns if c.is_array or c.is_interned]
    values = " UNION ALL ".join([f"VALUES {', '.join([f"('{ROWS}', '')", *single])}", *lists])
    return (
        f"SELECT {ROLES.quoted}, {TYPE.quoted}, field, value, n FROM {rows}"
        f" CROSS JOIN LATERAL ({values}) AS v (field, value) WHERE value IS NOT NULL"
    )
