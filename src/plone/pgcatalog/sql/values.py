"""Values as SQL has them: stand-ins in keys of caches, literals of arrays, and interned lists, kept once by number."""

from collections.abc import Collection
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from DateTime import DateTime
from datetime import date
from datetime import datetime
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


# -- keys of caches


#: Types of values that say all about themselves by equality, within one type.
PLAIN = (int, float, bool, bytes, datetime, date, type(None))


def frozen(value: Any) -> Hashable:
    """Return *value*, of a query or a parameter of SQL, as part of a key.

    Raises TypeError if it says too little about itself.
    """
    kind = type(value)
    if kind is str:
        return kind.__str__(value)
    if kind is list or kind is tuple:
        return (kind, *map(frozen, value))
    if kind in PLAIN:
        return (kind, value)
    if kind is dict:
        return (kind, *((frozen(key), frozen(each)) for key, each in value.items()))
    if kind is DateTime:
        return (kind, value.micros(), value.timezone(), value.timezoneNaive())
    raise TypeError(f"no key for a value of type {kind.__name__}")


# -- arrays


#: The types of arrays, as in pg_type.
INT8_ARRAY, TEXT_ARRAY = 1016, 1009
LARGEST = 2**63


def array_of(values: Sequence[Any]) -> tuple[bytes, int] | None:
    """Return the literal of an array of *values*, all of them texts or all integers, and the oid of its type.

    None for others, larger integers, no values, and a text that PostgreSQL cannot hold.  See "Array Input and Output Syntax" in
    PostgreSQL's manual: each text in quotes, with a backslash before a quote and a backslash.
    """
    kinds = set(map(type, values))
    if kinds == {int} and min(values) >= -LARGEST and max(values) < LARGEST:
        return f"{{{','.join(map(str, values))}}}".encode(), INT8_ARRAY
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


# -- interned lists


#: The list that a column has the number of.
LISTED = "(SELECT vals FROM pgcatalog_sets WHERE number = {column})"


def set_number(name: str, values: Sequence[str]) -> int:
    """Return the number, a signed integer of 64 bits, of the list *values* in the column *name*.

    Among a million different lists two have the same number with a probability of 3e-8 (birthday bound, n²/2⁶⁵).
    """
    digest = hashlib.blake2b(orjson.dumps([name, *values]), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def stored(column: Column, value: Any) -> Any:
    """Return what *column* of a relation holds for *value*, which an index translator has extracted."""
    return set_number(column.name, value) if column.is_interned and value is not None else value


def listed(column: Column, pending: str = "") -> str:
    """Return the SQL of the value that an index translator knows, of *column* of a relation.

    *pending* is a table with lists that nobody has saved yet.
    """
    if not column.is_interned:
        return column.quoted
    saved = LISTED.format(column=column.quoted)
    if not pending:
        return saved
    return f"coalesce({saved}, (SELECT vals FROM {pending} AS pending WHERE pending.number = {column.quoted}))"


class Lists(Protocol):
    """Lists that are known, by column; see ``database.sets.KnownSets``."""

    @property
    def many(self) -> Collection[str]:
        """Columns with too many lists to know all."""

    def numbers_of(self, part: Predicate) -> set[int] | None:
        """Return the numbers of the lists that *part* is true of, a predicate on such a column; None if unknown."""

    def find(self, part: Predicate) -> set[int]:
        """Return the numbers of the lists that *part* is true of, a predicate on another column."""


def in_numbers(part: Condition, interned: Mapping[str, Column], known: Iterable[Lists]) -> Condition:
    """Return *part* of a condition as it is asked of the columns *interned*, by name.

    *known* are the lists that there are: those in the database, as far as the process keeps them, and those to come.
    """
    if not isinstance(part, Predicate) or part.column.name not in interned or not part.column.is_array:
        return part
    column = interned[part.column.name]
    if part.operator not in (OVERLAPS, CONTAINS) and not isinstance(part, ElementBetween):
        return Predicate(column, part.operator, part.values)
    numbers: set[int] = set()
    is_long = False
    for sets in known:
        found_by_element = sets.numbers_of(part) if column.name in sets.many else None
        is_long = is_long or (column.name in sets.many and found_by_element is None)
        numbers |= sets.find(part) if found_by_element is None else found_by_element
    found = any_value(column, sorted(numbers)) if numbers else NOTHING
    return any_of((looked_up(part, column), found)) if is_long else found


def asks_elements(part: Predicate) -> bool:
    """True if *part* is about whole elements of a list, each of which can be asked for by itself."""
    return part.operator in (OVERLAPS, CONTAINS) and not isinstance(part, ElementBetween)


def looked_up(part: Predicate, column: Column) -> Condition:
    """Return the condition that *column* has the number of a list that *part* is true of, whoever knows it."""
    asked = part.of(Column("vals", "text[]"))
    # Many lists are most rows: an index of the column would find them one by one, and have each row's text compared.
    text = f"{column.quoted} + 0 IN (SELECT number FROM pgcatalog_sets WHERE name = %s AND {asked.sql})"
    return Condition(text, (column.name, *asked.params), (column,))
