"""DateIndex: one point in time per object.

A date index of ZCatalog counts minutes in a calendar where every month has 31 days, in UTC (``DateIndex._convert``,
``plone.event.utils.dt2int``).  The integers are ordered, but some represent no point in time (31 February).
"""

from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import UTC
from DateTime.DateTime import DateTime
from DateTime.interfaces import DateTimeError
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.unindex import MISSING
from plone.pgcatalog.indexes.unindex import UnIndexTranslator
from plone.pgcatalog.sql.predicate import compared
from Products.PluginIndexes.DateIndex.DateIndex import Local
from typing import Any

import math


# -- points in time


#: One day inside of Python's own limits, so that psycopg can load the values in every time zone.
FLOOR = datetime(1, 1, 2, tzinfo=UTC)
CEILING = datetime(9999, 12, 30, tzinfo=UTC)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: Exceptions that ``DateTime`` raises for text and numbers that are no date.
PARSE_ERRORS = (DateTimeError, ValueError, TypeError, LookupError, ArithmeticError)


def to_instant(value: Any, naive_as_local: bool) -> datetime | None:
    """Return the point in time of *value*, in UTC and within FLOOR and CEILING; None for an unsupported type.

    The types and their time zones are those of ``DateIndex._convert``, but in full resolution.  Raises one of
    PARSE_ERRORS for text that is no date.
    """
    if isinstance(value, str):
        value = DateTime(value) if value else None
    if isinstance(value, DateTime):
        return _since_epoch(value.micros())
    if isinstance(value, float) and math.isinf(value):
        return CEILING if value > 0 else FLOOR
    if isinstance(value, float | int):
        seconds = math.floor(value)
        # A float just below a whole second may be rounded up to it, and so to the next minute of ZCatalog.
        micros = min(int((value - seconds) * 10**6), 999_999)
        return _since_epoch(seconds * 10**6 + micros)
    if isinstance(value, datetime):
        return _in_utc(value, naive_as_local)
    if isinstance(value, date):
        return _limit(datetime(value.year, value.month, value.day, tzinfo=UTC))
    return None


def _since_epoch(micros: int) -> datetime:
    try:
        return _limit(EPOCH + timedelta(microseconds=micros))
    except OverflowError:
        return CEILING if micros > 0 else FLOOR


def _in_utc(value: datetime, naive_as_local: bool) -> datetime:
    if value.tzinfo is None and naive_as_local:
        value = value.replace(tzinfo=Local)
    if value.utcoffset() is None:
        return _limit(value.replace(tzinfo=UTC))
    try:
        return _limit(value.astimezone(UTC))
    except OverflowError:
        return CEILING if value.year > 5000 else FLOOR


def _limit(instant: datetime) -> datetime:
    return min(max(instant, FLOOR), CEILING)


def to_minutes(instant: datetime) -> int:
    """Return ZCatalog's integer for the minute of *instant* (in UTC); it may exceed 32 bits."""
    months = instant.year * 12 + instant.month
    return ((months * 31 + instant.day) * 24 + instant.hour) * 60 + instant.minute


def from_minutes(minutes: int) -> datetime:
    """Return the first point in time whose integer is *minutes* or more, within the limits of datetime."""
    days, minute = divmod(minutes, 24 * 60)
    months, day = divmod(days - 1, 31)
    year, month = divmod(months - 1, 12)
    if not 1 <= year <= 9999:
        return (datetime.min if year < 1 else datetime.max).replace(tzinfo=UTC)
    try:
        return datetime(year, month + 1, day + 1, minute // 60, minute % 60, tzinfo=UTC)
    except ValueError:  # the 31st of a shorter month, which is not December
        return datetime(year, month + 2, 1, tzinfo=UTC)


# -- the index


#: Modules whose ``DateIndex._convert`` needs no call: CMFPlone's patch concerns dates that our column can hold.
RELEASED = ("Products.PluginIndexes.DateIndex.DateIndex", "Products.CMFPlone.patches.dateIndexPatch")
#: Dates from here on are converted without the real index.
FAR = to_minutes(datetime(4007, 12, 31, tzinfo=UTC))


class DateIndexTranslator(UnIndexTranslator):
    """A timestamptz column in full resolution, for sorting; queries are matched in the index's own resolution."""

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
            instant = self._instant(value)
        except PARSE_ERRORS:
            instant = None
        if instant is None:
            report(f"a value of type {type(value).__name__} is not a date and is ignored")
            return None
        if instant in (FLOOR, CEILING):
            report(f"a date is out of range and indexed as {instant.isoformat()}")
        return (instant,)

    def _instant(self, value: Any) -> datetime | None:
        """Return the point in time of an object's *value*, by the real index's ``_convert`` if an add-on has patched it."""
        if getattr(self.index._convert, "__module__", "") in RELEASED:
            return to_instant(value, self.index.index_naive_time_as_local)
        minutes = self.index._convert(value)
        return None if minutes is None else _limit(from_minutes(int(minutes)))

    def convert_datum(self, datum: Any) -> Any:
        # Not converted, because the integer of the real index has no seconds.
        return datum

    def convert_key(self, key: Any) -> int | None:
        """Return the integer of a date in a query; raises the exceptions of ``DateTime`` for text that is no date."""
        try:
            minutes = self.index._convert(key)
        except OverflowError:
            minutes = FAR
        if minutes is not None and minutes >= FAR:
            # From October 4008 on, ZCatalog's integers exceed 32 bits: an OverflowError, which CMFPlone replaces by the
            # year 4008.  Ours may exceed them.
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
        """Return an SQL expression for the integers: there would be almost as many times in full resolution as objects."""
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
