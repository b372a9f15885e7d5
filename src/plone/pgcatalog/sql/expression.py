"""SQL as values: fragments, statements, and conditions, with AND, OR and NOT as structure.

A condition is rendered when its SQL is first read.  Planner hints, index advice and streams inspect the structure; no code
parses SQL.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from dataclasses import dataclass
from plone.pgcatalog.sql.column import Column
from typing import Any
from typing import ClassVar


@dataclass(slots=True, eq=False)
class Fragment:
    """A part of a statement, such as an expression; ``%%`` in it is a percent sign.

    Equal fragments have the same text and the same values.
    """

    sql: str
    params: tuple[Any, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fragment):
            return NotImplemented
        return self is other or (self.sql == other.sql and self.params == other.params)

    def __hash__(self) -> int:
        return hash(self.sql)


@dataclass(slots=True, eq=False)
class Statement(Fragment):
    """A whole statement.  It unpacks as (sql, params), the arguments of ``cursor.execute``.

    - ``is_costly``: its condition compares long values, see ``Condition``
    - ``window``: (start, size) of the page of a sorted result that it reads, with size None for all rows from start on;
      None if it reads no page
    - ``plans_once``: the same plan is good for any values
    - ``is_prepared``: it may be prepared when it is repeated
    """

    is_costly: bool = False
    window: tuple[int, int | None] | None = None
    plans_once: bool = False
    is_prepared: bool = True

    def __iter__(self) -> Iterator[Any]:
        yield self.sql
        yield self.params


#: Returns the replacement of a part of a condition: the part itself, or another condition.
Change = Callable[["Condition"], "Condition"]


@dataclass(slots=True, eq=False)
class Condition(Fragment):
    """An SQL boolean expression over the catalog's columns, and the values of its ``%s`` placeholders.

    A condition created from a text has no structure; the functions of ``predicate`` create conditions with structure.

    ``columns`` are the columns it reads, None if unknown.  ``is_costly``: it compares long values; an SQL index is then
    several times as fast as a scan that compares each row (see ``Column.is_long``).
    """

    columns: tuple[Column, ...] | None = None
    is_costly: bool = False

    def __and__(self, other: "Condition") -> "Condition":
        return all_of((self, other))

    def __or__(self, other: "Condition") -> "Condition":
        return any_of((self, other))

    def __invert__(self) -> "Condition":
        if self is NOTHING:
            return EVERYTHING
        return NOTHING if self is EVERYTHING else Not(self)

    def conjuncts(self) -> Iterator["Condition"]:
        """Yield the conditions whose conjunction this one is."""
        yield self

    def changed(self, change: Change) -> "Condition":
        """Return this condition with ``change(part)`` in place of each part that is no AND, OR or NOT."""
        return change(self)

    def leaves[Leaf: Condition](self, kind: type[Leaf]) -> list[Leaf]:
        """Return the parts of the class *kind* that are no AND, OR or NOT."""
        every: list[Leaf] = []

        def visited(part: Condition) -> Condition:
            if isinstance(part, kind):
                every.append(part)
            return part

        self.changed(visited)
        return every


class Structure(Condition):
    """A condition with parts; its attributes, such as the SQL, are computed when they are first read."""

    __slots__ = ()

    def __init__(self) -> None:
        """Leave the attributes of Condition unset."""

    def __getattr__(self, name: str) -> Any:
        """Compute the attribute *name*, which is unset, and store it."""
        if name in ("sql", "params"):
            self.sql, self.params = self._render()
        elif name == "columns":
            self.columns = self._read_columns()
        elif name == "is_costly":
            self.is_costly = any(part.is_costly for part in self._parts())
        else:
            raise AttributeError(name)
        return getattr(self, name)

    def _render(self) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL and its values; implemented by subclasses."""
        raise NotImplementedError

    def _parts(self) -> tuple[Condition, ...]:
        """Return the conditions that this one consists of."""
        return ()

    def _read_columns(self) -> tuple[Column, ...] | None:
        columns: dict[Column, None] = {}
        for part in self._parts():
            if part.columns is None:
                return None
            columns.update(dict.fromkeys(part.columns))
        return tuple(columns)


class Combination(Structure):
    """At least two *parts*, joined by ``word``."""

    __slots__ = ("parts",)
    word: ClassVar[str]

    def __init__(self, parts: Iterable[Condition]) -> None:
        self.parts = tuple(parts)

    def _render(self) -> tuple[str, tuple[Any, ...]]:
        sql = self.word.join([f"({part.sql})" for part in self.parts])
        return sql, tuple([value for part in self.parts for value in part.params])

    def _parts(self) -> tuple[Condition, ...]:
        return self.parts

    def changed(self, change: Change) -> Condition:
        parts = [part.changed(change) for part in self.parts]
        is_same = all(new is old for new, old in zip(parts, self.parts, strict=True))
        return self if is_same else self.joined(parts)

    def joined(self, parts: Iterable[Condition]) -> Condition:
        """Return *parts* joined by the same word; implemented by subclasses."""
        raise NotImplementedError


class And(Combination):
    """True for the rows that fulfil all parts."""

    __slots__ = ()
    word = " AND "

    def conjuncts(self) -> Iterator[Condition]:
        for part in self.parts:
            yield from part.conjuncts()

    def joined(self, parts: Iterable[Condition]) -> Condition:
        return all_of(parts)


class Or(Combination):
    """True for the rows that fulfil at least one part."""

    __slots__ = ()
    word = " OR "

    def joined(self, parts: Iterable[Condition]) -> Condition:
        return any_of(parts)


class Not(Structure):
    """True for the rows that do not fulfil *part*, including rows for which it is NULL."""

    __slots__ = ("part",)

    def __init__(self, part: Condition) -> None:
        self.part = part

    def _render(self) -> tuple[str, tuple[Any, ...]]:
        return f"({self.part.sql}) IS NOT TRUE", self.part.params

    def _parts(self) -> tuple[Condition, ...]:
        return (self.part,)

    def changed(self, change: Change) -> Condition:
        return ~self.part.changed(change)


#: Matches no row; a query with this condition needs no round trip.
NOTHING = Condition("FALSE", columns=())
#: Matches every row; left out of the SQL.
EVERYTHING = Condition("TRUE", columns=())


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Return the conjunction of *conditions*, with NOTHING and EVERYTHING folded away."""
    return _folded(conditions, EVERYTHING, NOTHING, And)


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Return the disjunction of *conditions*, with NOTHING and EVERYTHING folded away."""
    return _folded(conditions, NOTHING, EVERYTHING, Or)


def _folded(
    conditions: Iterable[Condition], neutral: Condition, absorbing: Condition, join: type[Combination]
) -> Condition:
    """Return *conditions* joined by *join*, without *neutral* ones; an *absorbing* one replaces all others."""
    parts = [c for c in conditions if c is not neutral]
    if any(c is absorbing for c in parts):
        return absorbing
    if len(parts) < 2:
        return parts[0] if parts else neutral
    return join(parts)
