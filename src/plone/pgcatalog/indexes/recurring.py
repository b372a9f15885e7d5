"""DateRecurringIndex: all occurrences of an event."""

from collections.abc import Iterable
from datetime import datetime
from datetime import timedelta
from plone.event.recurrence import recurrence_sequence_ical
from plone.event.utils import dt2int
from plone.event.utils import pydt
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.unindex import called
from plone.pgcatalog.indexes.unindex import UnIndexTranslator
from plone.pgcatalog.sql.predicate import contains
from plone.pgcatalog.sql.predicate import overlaps
from typing import Any

import pytz


#: The highest number from ``dt2int``, in October 4008: no occurrence is later.
LATEST = 2**31 - 1
#: Exceptions that dateutil raises for a broken recurrence rule.
RULE_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)


class DateRecurringIndexTranslator(UnIndexTranslator):
    """An integer[] column with the ``dt2int`` of every occurrence, sorted and distinct."""

    meta_type = "DateRecurringIndex"

    def columns(self) -> tuple[Column, ...]:
        return (Column(self.base, "integer[]"),)

    @property
    def first(self) -> str:
        """SQL expression for the first occurrence."""
        return f"({self.column.quoted}[1])"

    @property
    def last(self) -> str:
        """SQL expression for the last occurrence."""
        return f"({self.column.quoted}[cardinality({self.column.quoted})])"

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        # Not on the array itself: a thousand occurrences exceed the size of a btree entry.
        return tuple(
            SQLIndex(f"{self.base}_{name}", f"({end}) WHERE {end} IS NOT NULL")
            for name, end in (("first", self.first), ("last", self.last))
        )

    def extract(self, obj: Any, report: Report) -> Values | None:
        """Return the occurrences, from the same three attributes as ``DateRecurringIndex.index_object``."""
        try:
            value = called(getattr(obj, self.index.id))
        except AttributeError:
            return None
        if value is None:
            return None
        try:
            start = pydt(value)
        except (ValueError, OverflowError):  # a DateTime outside of the years 1 to 9999
            start = None
        if start is None:
            report(f"a value of type {type(value).__name__} is not a date and is ignored")
            return None
        rule = called(getattr(obj, self.index.attr_recurdef, None))
        until = called(getattr(obj, self.index.getUntilField(), None)) if rule else None
        numbers = _numbers(_occurrences(value, start, rule, until, report), report)
        return (numbers,) if numbers else None

    def convert_key(self, key: Any) -> int | None:
        """Return ``dt2int`` of a date in a query; raises AttributeError for a key that is no date."""
        try:
            minutes = self.index._convert(key)
        except OverflowError:
            return LATEST
        return None if minutes is None else int(minutes)

    def match_any(self, keys: list[Any]) -> Condition:
        return overlaps(self.column, keys)

    def match_all(self, keys: list[Any]) -> Condition:
        return contains(self.column, keys)

    def match_range(self, low: Any, high: Any) -> Condition:
        conditions = []
        if low is not None:
            conditions.append(Condition(f"{self.last} >= %s", (low,), self.columns()))
        if high is not None:
            conditions.append(Condition(f"{self.first} <= %s", (high,), self.columns()))
        if len(conditions) == 2:
            # Both conditions hold for an event that pauses throughout the range, too.
            occurrences = f"SELECT FROM unnest({self.column.quoted}) AS occurrence"
            inside = "occurrence BETWEEN %s AND %s"
            conditions.append(Condition(f"EXISTS ({occurrences} WHERE {inside})", (low, high), self.columns()))
        return all_of(conditions)

    def order_by(self) -> tuple[str, ...]:
        """Return the first occurrence, which has an SQL index, and the array with all of them to break ties."""
        return (self.first, self.column.quoted)

    def entry(self, values: Values) -> tuple[int, ...]:
        return tuple(values[0])

    def key_expression(self) -> str:
        return f"unnest({self.column.quoted})"


def _occurrences(value: Any, start: datetime, rule: Any, until: Any, report: Report) -> list[datetime]:
    """Return the occurrences that the real index computes, only *start* if *rule* is empty or broken."""
    if not rule:
        return [start]
    value = value if hasattr(start.tzinfo, "localize") else with_pytz(start)
    try:
        return list(recurrence_sequence_ical(value, recrule=rule, until=until))
    except RULE_ERRORS as error:
        report(f"the recurrence rule is invalid ({error}), so only the start is indexed")
        return [start]


def with_pytz(start: datetime) -> datetime:
    """Return *start* in a time zone of pytz: plone.event calls its ``localize``, which other zones lack.

    A zone without a name in pytz is replaced by its offset at the time of *start*.
    """
    try:
        zone = pytz.timezone(getattr(start.tzinfo, "key", ""))
    except pytz.UnknownTimeZoneError:
        offset = start.utcoffset() or timedelta(0)
        zone = pytz.FixedOffset(int(offset.total_seconds() // 60))
    return start.astimezone(zone)


def _numbers(occurrences: Iterable[datetime], report: Report) -> list[int]:
    """Return the sorted, distinct integers of *occurrences*."""
    numbers = set()
    for occurrence in occurrences:
        try:
            numbers.add(dt2int(occurrence))
        except OverflowError:
            report(f"{occurrence} is out of range and is ignored")
            break
    return sorted(numbers)
