"""Lists of keywords kept once: a row holds the number of its list.

The interfaces of an object, and who may see it, are the same few lists in all rows of a catalog.  They stand in the table
``pgcatalog_sets``, and a column that is *interned* holds numbers of them.  The number is made of the list itself, so every
process knows it without asking, and it is the same in each catalog, copy and standby.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.condition import any_of
from plone.pgcatalog.sql.condition import Condition
from plone.pgcatalog.sql.condition import NOTHING
from plone.pgcatalog.sql.predicate import any_value
from plone.pgcatalog.sql.predicate import CONTAINS
from plone.pgcatalog.sql.predicate import ElementBetween
from plone.pgcatalog.sql.predicate import OVERLAPS
from plone.pgcatalog.sql.predicate import Predicate
from typing import Any
from typing import Protocol

import hashlib
import orjson


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
