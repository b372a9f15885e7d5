"""Interned sets: lists of keywords that rows refer to by number, written once and cached in each process.

``pgcatalog_sets`` only grows, except that a rebuild removes unused lists.  ``added`` ascends in the order of commits, so the
newest value in a snapshot shows whether a process has cached all lists of the snapshot.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.sql import locks
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import CONTAINS
from plone.pgcatalog.sql.predicate import ElementBetween
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.sql.values import names_elements
from psycopg import Cursor
from psycopg import sql
from typing import Any

import math
import operator
import orjson
import threading


#: A process caches no more lists of a column than this.  For a column with more, as when each user has a list, it reads only
#: the numbers of the lists that contain single elements.
MANY_LISTS = 500
#: Numbers of lists that a process caches for single elements; it empties this cache when there are more.
MOST_NUMBERS = 50_000

NEWEST_SET = "coalesce((SELECT max(added) FROM pgcatalog_sets), 0)"
#: The lists behind the newest cached one; of columns with many lists, only those that contain a cached element.
READ = (
    "SELECT number, name, vals FROM ("
    " SELECT number, name, vals, row_number() OVER (PARTITION BY name ORDER BY added) AS place"
    " FROM pgcatalog_sets WHERE added > %s AND (name <> ALL(%s::text[]) OR vals && %s::text[])"
    ") AS lists WHERE place <= %s"
)
#: For each of some elements, the lists of a column that contain it.
READ_ELEMENTS = (
    "SELECT element, ARRAY(SELECT number FROM pgcatalog_sets WHERE name = %s AND vals @> ARRAY[element] LIMIT %s)"
    " FROM unnest(%s::text[]) AS requested (element)"
)
#: Only one transaction at a time adds lists, so that ``added`` ascends in the order in which others see them.
SAVE = (
    "INSERT INTO pgcatalog_sets (number, name, vals)"
    " SELECT number, name, ARRAY(SELECT jsonb_array_elements_text(vals)) FROM"
    " unnest(%s::bigint[], %s::text[], %s::text[]::jsonb[]) AS lists (number, name, vals) ON CONFLICT DO NOTHING"
)
#: The numbers of lists that are not saved.
UNSAVED = (
    "SELECT number FROM unnest({numbers}::bigint[]) AS requested (number)"
    " WHERE NOT EXISTS (SELECT FROM pgcatalog_sets s WHERE s.number = requested.number)"
)
#: Lists of the column {name} that no row of any catalog's relation uses.
FORGET = "DELETE FROM pgcatalog_sets s WHERE s.name = {name} AND {unused}"
UNUSED = "NOT EXISTS (SELECT FROM {relation} c WHERE c.{column} = s.number)"
#: Lists of columns for which no catalog uses lists.
FORGET_OTHERS = "DELETE FROM pgcatalog_sets WHERE name <> ALL(%s::text[])"

OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

#: number -> (column, list)
Sets = Mapping[int, tuple[str, Any]]


class CachedSets:
    """The cached lists of a process, by column, safe for threads; or the lists of a transaction, which are not bounded.

    It may contain more lists than a snapshot: no row of the snapshot has their numbers.
    """

    def __init__(self, is_bounded: bool = True) -> None:
        self._is_bounded = is_bounded
        self._lock = threading.Lock()
        #: ``added`` of the newest list that was read
        self.newest = 0
        #: columns with more than MANY_LISTS lists
        self.partly_cached: frozenset[str] = frozenset()
        #: column -> element -> numbers of the lists that contain it
        self._numbers: dict[str, dict[str, set[int]]] = {}
        #: column -> numbers of its lists
        self._all: dict[str, set[int]] = {}
        #: column with many lists -> cached element -> numbers of the lists that contain it, None for too many
        self._by_element: dict[str, dict[str, set[int] | None]] = {}

    def unread(self) -> Statement:
        """Return the statement for the lists that are not cached yet; ``store`` stores its rows."""
        elements_read = {element for elements in list(self._by_element.values()) for element in list(elements)}
        return Statement(READ, (self.newest, sorted(self.partly_cached), sorted(elements_read), MANY_LISTS + 1))

    def store(
        self, rows: Iterable[tuple[int, str, Iterable[str]]], newest: int = 0, read: Statement | None = None
    ) -> None:
        """Cache *rows* of (number, column, elements), one per list; *newest* is ``added`` of the newest one.

        *read* is the statement that has read them, None for lists that are not committed.
        """
        rows = list(rows)
        with self._lock:
            self._store_by_element([row for row in rows if row[1] in self.partly_cached], read)
            for number, name, values in rows:
                if name in self.partly_cached:
                    continue
                self._all.setdefault(name, set()).add(number)
                numbers = self._numbers.setdefault(name, {})
                for value in values:
                    # Another thread may be reading the set, so it only grows.
                    numbers.setdefault(value, set()).add(number)
            most = MANY_LISTS if self._is_bounded else math.inf
            for name in [name for name, numbers in self._all.items() if len(numbers) > most]:
                self.partly_cached |= {name}
                del self._all[name], self._numbers[name]
            self.newest = max(self.newest, newest)

    def _store_by_element(self, rows: Sequence[tuple[int, str, Iterable[str]]], read: Statement | None) -> None:
        """Add the numbers of *rows*, lists of columns with many lists, to the cached elements that they contain."""
        if read is not None:
            # Elements cached by other threads since then may be in lists that the statement has not read.
            for elements in self._by_element.values():
                for element in elements.keys() - set(read.params[2]):
                    del elements[element]
        for name in {name for _, name, _ in rows if sum(name == other for _, other, _ in rows) > MANY_LISTS}:
            self._by_element.pop(name, None)
        for number, name, values in rows:
            elements = self._by_element.get(name, {})
            for value in values:
                numbers = elements.get(value)
                if numbers is not None:
                    numbers.add(number)

    def unread_elements(self, part: Predicate) -> list[str]:
        """Return the elements in *part* that are not cached, if its column has many lists."""
        if part.column.name not in self.partly_cached or not names_elements(part):
            return []
        numbers_of = self._by_element.get(part.column.name, {})
        return sorted({value for value in part.values[0] if value not in numbers_of})

    def read_elements(self, name: str, elements: Sequence[str]) -> Statement:
        """Return the statement for the lists of column *name* that contain each of *elements*; see ``store_elements``."""
        return Statement(READ_ELEMENTS, (name, MANY_LISTS + 1, list(elements)))

    def store_elements(self, name: str, rows: Iterable[tuple[str, list[int]]], newest: int) -> None:
        """Cache *rows* of (element, numbers of the lists that contain it) for the column *name*.

        *newest* is ``added`` of the newest list in the snapshot that they were read from.
        """
        with self._lock:
            # Another thread may have read a newer list with such an element meanwhile.
            if newest != self.newest or name not in self.partly_cached:
                return
            if (
                sum(len(numbers or ()) + 1 for each in self._by_element.values() for numbers in each.values())
                > MOST_NUMBERS
            ):
                self._by_element.clear()
            elements = self._by_element.setdefault(name, {})
            for element, numbers in rows:
                elements[element] = set(numbers) if len(numbers) <= MANY_LISTS else None

    def numbers_by_element(self, part: Predicate) -> set[int] | None:
        """Return the numbers of the lists that satisfy *part*, on a column with many lists; None if they are not cached."""
        if not names_elements(part):
            return None
        numbers_of = self._by_element.get(part.column.name, {})
        found = [numbers for numbers in (numbers_of.get(value) for value in part.values[0]) if numbers is not None]
        if len(found) < len(part.values[0]) or (part.operator == CONTAINS and not found):
            return None
        return set.intersection(*found) if part.operator == CONTAINS else set().union(*found)

    def __contains__(self, number: int) -> bool:
        return any(number in numbers for numbers in list(self._all.values()))

    def elements(self, name: str) -> list[str] | None:
        """Return the elements in the lists of the column *name*, unsorted; None if there are too many lists to cache."""
        return None if name in self.partly_cached else list(self._numbers.get(name, ()))

    def numbers_of(self, part: Predicate) -> set[int]:
        """Return the numbers of the lists that satisfy *part*, a predicate on an array."""
        numbers = self._numbers.get(part.column.name, {})
        if isinstance(part, ElementBetween):
            ends = [(OPERATORS[name], end) for name, end in part.ends]
            return set().union(
                *(numbers[v] for v in list(numbers) if all(is_inside(v, end) for is_inside, end in ends))
            )
        found = [numbers.get(value, set()) for value in part.values[0]]
        if part.operator == CONTAINS:
            return set.intersection(*found) if found else set(self._all.get(part.column.name, ()))
        return set().union(*found)


def save(cursor: Cursor[Any], sets: Sets) -> None:
    """Save the lists *sets*, except lists that exist already."""
    if sets:
        names = [name for name, _ in sets.values()]
        cursor.execute(locks.ADD_SETS)
        cursor.execute(SAVE, [list(sets), names, [orjson.dumps(values).decode() for _, values in sets.values()]])


def forget_unused(cursor: Cursor[Any]) -> None:
    """Delete the lists that no row of any catalog uses, in a commit; not while a rebuild fills a relation."""
    cursor.execute("SELECT EXISTS (SELECT FROM pgcatalog_rebuild)")
    [(is_filling,)] = cursor.fetchall()
    if is_filling:
        return
    cursor.execute("SELECT relation, interned FROM pgcatalog_state")
    relations: dict[str, list[str]] = {}
    for relation, interned in cursor.fetchall():
        for name in interned:
            relations.setdefault(name, []).append(relation)
    cursor.execute(FORGET_OTHERS, [list(relations)])
    for name, users in relations.items():
        unused = [sql.SQL(UNUSED).format(relation=sql.Identifier(user), column=sql.Identifier(name)) for user in users]
        cursor.execute(sql.SQL(FORGET).format(name=sql.Literal(name), unused=sql.SQL(" AND ").join(unused)))
