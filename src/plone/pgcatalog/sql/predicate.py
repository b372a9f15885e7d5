"""Predicates: what is compared in one column, as structure."""

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
#: A path and all below it: one value for that, and two between which the paths below are.
BELOW = "BELOW"
#: "<", "<=", ">" and ">=" compare with an end of a range.
RANGES = ("<", "<=", ">", ">=", BETWEEN, BELOW)
#: An element of an array is in a range; see ``ElementBetween``.
HAS_ELEMENT = "HAS ELEMENT"
NOT_NULL = "IS NOT NULL"
TRUE, FALSE = "IS", "NOT"

#: The SQL of operators that do not stand between the column and the only value.
TEMPLATES = {
    ANY: "{column} = ANY({value})",
    BETWEEN: "{column} BETWEEN {value} AND {value}",
    BELOW: "{column} = {value} OR ({column} >= {value} AND {column} < {value})",
    NOT_NULL: "{column} IS NOT NULL",
    TRUE: "{column}",
    FALSE: "NOT {column}",
}


class Predicate(Structure):
    """Compares *column* by *operator* with *values*, one for most operators; *cast* is the SQL type of each, if need be.

    With *is_hidden* PostgreSQL does not see that an index of the column could answer, and compares row by row.
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
        """True when it looks for single values, in a column of texts or an array: only the column is hidden then."""
        if self.operator == OVERLAPS:
            return self.column.is_array
        return self.operator in (EQUALS, ANY) and self.column.type == "text"

    def of(self, column: Column) -> "Predicate":
        """Return the same predicate of another *column* of the same type."""
        return Predicate(column, self.operator, self.values, self.cast, self.is_hidden)

    def hidden(self) -> "Predicate":
        """Return the same predicate, for which PostgreSQL uses no index; how many rows it finds is estimated as before."""
        return Predicate(self.column, self.operator, self.values, self.cast, is_hidden=True)


def equals(column: Column, value: Any) -> Condition:
    """Rows with *value*."""
    return Predicate(column, EQUALS, (value,))


def any_value(column: Column, values: Sequence[Any]) -> Condition:
    """Rows with one of *values*."""
    return Predicate(column, ANY, (list(values),), f"{column.type}[]")


def equal_to_any(column: Column, values: Iterable[Any]) -> Condition:
    """Rows with one of *values*, of which there may be none or only one."""
    unique = list(dict.fromkeys(values))
    if not unique:
        return NOTHING
    return equals(column, unique[0]) if len(unique) == 1 else any_value(column, unique)


def compared(column: Column, operator: str, value: Any) -> Condition:
    """Rows with a value that is "<", "<=", ">" or ">=" *value*."""
    return Predicate(column, operator, (value,))


def between(column: Column, low: Any, high: Any) -> Condition:
    """Rows with a value from *low* to *high*, both included."""
    return Predicate(column, BETWEEN, (low, high))


def below(column: Column, path: str) -> Predicate:
    """Rows with *path* and everything in it: "0" follows "/" in the "C" collation, so this is one index range."""
    return Predicate(column, BELOW, (path, path + "/", path + "0"))


def overlaps(column: Column, values: Sequence[Any]) -> Condition:
    """Rows whose array has one of *values*."""
    return Predicate(column, OVERLAPS, (list(values),), column.type)


def contains(column: Column, values: Sequence[Any]) -> Condition:
    """Rows whose array has all of *values*."""
    return Predicate(column, CONTAINS, (list(values),), column.type)


def matches(column: Column, tsquery: str) -> Condition:
    """Rows whose tsvector matches *tsquery*."""
    return Predicate(column, MATCHES, (tsquery,), "tsquery")


class ElementBetween(Predicate):
    """Rows whose array has an element that all *ends*, pairs of an operator and a text, are true of."""

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
    """Rows that have any value."""
    return Predicate(column, NOT_NULL)


def is_flag(column: Column, value: bool) -> Condition:
    """Rows whose boolean is *value*."""
    return Predicate(column, TRUE if value else FALSE)
