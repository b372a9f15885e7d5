"""Predicates: comparisons of one column, as structure."""

from collections.abc import Iterable
from collections.abc import Sequence
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.expression import Structure
from typing import Any


EQUALS = "="
ANY = "= ANY"
OVERLAPS = "&&"
CONTAINS = "@>"
MATCHES = "@@"
BETWEEN = "BETWEEN"
#: A path and all paths below it; values: the path, and the lower and upper bound of the paths below.
BELOW = "BELOW"
#: Operators of ranges; "<", "<=", ">" and ">=" compare with one end.
RANGES = ("<", "<=", ">", ">=", BETWEEN, BELOW)
#: An element of an array is in a range; see ``ElementBetween``.
HAS_ELEMENT = "HAS ELEMENT"
NOT_NULL = "IS NOT NULL"
TRUE, FALSE = "IS", "NOT"

#: The SQL of operators other than ``{column} {operator} {value}``.
TEMPLATES = {
    ANY: "{column} = ANY({value})",
    BETWEEN: "{column} BETWEEN {value} AND {value}",
    BELOW: "{column} = {value} OR ({column} >= {value} AND {column} < {value})",
    NOT_NULL: "{column} IS NOT NULL",
    TRUE: "{column}",
    FALSE: "NOT {column}",
}


class Predicate(Structure):
    """A comparison of *column* with *values*, one for most operators; *cast* is the SQL type of each value, if needed.

    With *is_hidden* the SQL is written so that PostgreSQL cannot use an index of the column, and compares row by row.
    """

    __slots__ = ("cast", "column", "is_hidden", "operator", "values")

    def __init__(
        self, column: Column, operator: str, values: tuple[Any, ...] = (), cast: str = "", is_hidden: bool = False
    ) -> None:
        self.column = column
        self.operator = operator
        self.values = values
        self.cast = cast
        self.is_hidden = is_hidden
        self.columns = (column,)
        self.is_costly = column.is_long and operator != NOT_NULL

    def _render(self) -> tuple[str, tuple[Any, ...]]:
        column = self.column.quoted
        if self.is_hidden and self.can_be_hidden:
            column = f"({column} || {f'NULL::{self.column.type}' if self.column.is_array else "''"})"
        value = f"%s::{self.cast}" if self.cast else "%s"
        template = TEMPLATES.get(self.operator, "{column} {operator} {value}")
        sql = template.format(column=column, operator=self.operator, value=value)
        return f"({sql}) IS TRUE" if self.is_hidden and not self.can_be_hidden else sql, self.values

    @property
    def can_be_hidden(self) -> bool:
        """True for a search for single values in texts or an array: to hide it, only the column is rewritten."""
        if self.operator == OVERLAPS:
            return self.column.is_array
        return self.operator in (EQUALS, ANY) and self.column.type == "text"

    def of(self, column: Column) -> "Predicate":
        """Return the same predicate on another *column* of the same type."""
        return Predicate(column, self.operator, self.values, self.cast, self.is_hidden)

    def hidden(self) -> "Predicate":
        """Return the same predicate, for which PostgreSQL uses no index; its estimate of rows stays the same."""
        return Predicate(self.column, self.operator, self.values, self.cast, is_hidden=True)


def equals(column: Column, value: Any) -> Condition:
    """Return the condition for rows with *value*."""
    return Predicate(column, EQUALS, (value,))


def any_value(column: Column, values: Sequence[Any]) -> Condition:
    """Return the condition for rows with one of *values*."""
    return Predicate(column, ANY, (list(values),), f"{column.type}[]")


def equal_to_any(column: Column, values: Iterable[Any]) -> Condition:
    """Return the simplest condition for rows with one of *values*, any number of them."""
    unique = list(dict.fromkeys(values))
    if not unique:
        return NOTHING
    return equals(column, unique[0]) if len(unique) == 1 else any_value(column, unique)


def compared(column: Column, operator: str, value: Any) -> Condition:
    """Return the condition for rows with a value "<", "<=", ">" or ">=" *value*."""
    return Predicate(column, operator, (value,))


def between(column: Column, low: Any, high: Any) -> Condition:
    """Return the condition for rows with a value from *low* to *high*, both included."""
    return Predicate(column, BETWEEN, (low, high))


def below(column: Column, path: str) -> Predicate:
    """Return the condition for *path* and the paths below, one index range: "0" follows "/" in the "C" collation."""
    return Predicate(column, BELOW, (path, path + "/", path + "0"))


def overlaps(column: Column, values: Sequence[Any]) -> Condition:
    """Return the condition for rows whose array has one of *values*."""
    return Predicate(column, OVERLAPS, (list(values),), column.type)


def contains(column: Column, values: Sequence[Any]) -> Condition:
    """Return the condition for rows whose array has all of *values*."""
    return Predicate(column, CONTAINS, (list(values),), column.type)


def matches(column: Column, tsquery: str) -> Condition:
    """Return the condition for rows whose tsvector matches *tsquery*."""
    return Predicate(column, MATCHES, (tsquery,), "tsquery")


class ElementBetween(Predicate):
    """Matches rows whose array has an element that fulfils all *ends*, pairs of an operator and a text."""

    __slots__ = ("ends",)

    def __init__(self, column: Column, ends: Sequence[tuple[str, str]]) -> None:
        super().__init__(column, HAS_ELEMENT, tuple(end for _, end in ends))
        self.ends = ends

    def of(self, column: Column) -> "ElementBetween":
        return ElementBetween(column, self.ends)

    def _render(self) -> tuple[str, tuple[Any, ...]]:
        inside = " AND ".join([f'element COLLATE "C" {operator} %s' for operator, _ in self.ends])
        return f"EXISTS (SELECT FROM unnest({self.column.quoted}) AS element WHERE {inside})", self.values


def has_value(column: Column) -> Predicate:
    """Return the condition for rows with any value."""
    return Predicate(column, NOT_NULL)


def is_flag(column: Column, value: bool) -> Condition:
    """Return the condition for rows whose boolean is *value*."""
    return Predicate(column, TRUE if value else FALSE)
