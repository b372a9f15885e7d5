"""DateIndex: one point in time per object."""

from datetime import datetime
from datetime import UTC
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.instants import CEILING
from plone.pgcatalog.indexes.instants import FLOOR
from plone.pgcatalog.indexes.instants import from_minutes
from plone.pgcatalog.indexes.instants import PARSE_ERRORS
from plone.pgcatalog.indexes.instants import to_instant
from plone.pgcatalog.indexes.instants import to_minutes
from plone.pgcatalog.indexes.unindex import MISSING
from plone.pgcatalog.indexes.unindex import UnIndexTranslator
from plone.pgcatalog.sql.predicate import compared
from typing import Any


#: Dates from here on are converted without the real index.
FAR = to_minutes(datetime(4007, 12, 31, tzinfo=UTC))


class DateIndexTranslator(UnIndexTranslator):
    """A timestamptz column in full resolution, to sort by; it is matched in the index's own resolution."""

    meta_type = "DateIndex"

    def columns(self) -> tuple[Column, ...]:
        return (Column(self.base, "timestamptz"),)

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        return (SQLIndex(self.base, f"({self.column.quoted})", column=self.base),)

    @property
    def precision(self) -> int:
        """The index's resolution in minutes, as ``_convert`` reads it."""
        precision: int = self.index.precision
        return max(precision, 1)

    def extract(self, obj: Any, report: Report) -> Values | None:
        value = self.datum(obj)
        if value is MISSING or value == "":
            return None
        try:
            instant = to_instant(value, self.index.index_naive_time_as_local)
        except PARSE_ERRORS:
            instant = None
        if instant is None:
            report(f"a value of type {type(value).__name__} is no date and is left out")
            return None
        if instant in (FLOOR, CEILING):
            report(f"a date is indexed as {instant.isoformat()}, which is as far as it goes")
        return (instant,)

    def convert_datum(self, datum: Any) -> Any:
        # The integer the real index makes of it would have lost its seconds.
        return datum

    def convert_key(self, key: Any) -> int | None:
        """Return the integer of a date in a query; raises what ``DateTime`` raises for text that is none."""
        try:
            minutes = self.index._convert(key)
        except OverflowError:
            minutes = FAR
        if minutes is not None and minutes >= FAR:
            # From October 4008 on ZCatalog's integers leave their 32 bits: an OverflowError, which CMFPlone turns
            # into the year 4008.  Ours need not fit anywhere.
            instant = to_instant(key, self.index.index_naive_time_as_local)
            minutes = None if instant is None else self._to_key(instant)
        return None if minutes is None else int(minutes)

    def _to_key(self, instant: datetime) -> int:
        minutes = to_minutes(instant)
        return minutes - minutes % self.precision

    def match_any(self, keys: list[Any]) -> Condition:
        return any_of(self.match_range(key, key) for key in dict.fromkeys(keys))

    def match_range(self, low: Any, high: Any) -> Condition:
        conditions = []
        if low is not None:
            conditions.append(compared(self.column, ">=", from_minutes(low)))
        if high is not None:
            conditions.append(compared(self.column, "<", from_minutes(high + self.precision)))
        return all_of(conditions)

    def entry(self, values: Values) -> int:
        return self._to_key(values[0].astimezone(UTC))

    def key_expression(self) -> str:
        """Return the integers: times in full resolution would be almost as many as there are objects."""
        utc = f"{self.column.quoted} AT TIME ZONE 'UTC'"
        months = f"extract(year FROM {utc}) * 12 + extract(month FROM {utc})"
        days = f"({months}) * 31 + extract(day FROM {utc})"
        hours = f"({days}) * 24 + extract(hour FROM {utc})"
        minutes = f"(({hours}) * 60 + extract(minute FROM {utc}))::bigint"
        if self.precision == 1:
            return minutes
        return f"{minutes} - {minutes} %% {self.precision}"

    def key(self, value: Any) -> int:
        return int(value)
