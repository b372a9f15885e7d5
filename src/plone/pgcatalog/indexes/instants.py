"""Points in time as PostgreSQL holds them, and as the integers of ZCatalog's date indexes.

A date index of ZCatalog counts minutes in a calendar where every month has 31 days, in UTC
(``DateIndex._convert``, ``plone.event.utils.dt2int``).  The integers are in order, but some stand for no
point in time (31 February).
"""

from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import UTC
from DateTime.DateTime import DateTime
from DateTime.interfaces import DateTimeError
from Products.PluginIndexes.DateIndex.DateIndex import Local
from typing import Any

import math


#: A day off Python's own limits, so that psycopg can load them in every time zone.
FLOOR = datetime(1, 1, 2, tzinfo=UTC)
CEILING = datetime(9999, 12, 30, tzinfo=UTC)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: What ``DateTime`` raises for text and numbers that are no date.
PARSE_ERRORS = (DateTimeError, ValueError, TypeError, LookupError, ArithmeticError)


def to_instant(value: Any, naive_as_local: bool) -> datetime | None:
    """Return the point in time *value* stands for, in UTC and within FLOOR and CEILING.

    The types and their time zones are those of ``DateIndex._convert``, but in full resolution; None for
    anything else.  Raises one of PARSE_ERRORS for text that is no date.
    """
    if isinstance(value, str):
        value = DateTime(value) if value else None
    if isinstance(value, DateTime):
        return _since_epoch(value.micros())
    if isinstance(value, float) and math.isinf(value):
        return CEILING if value > 0 else FLOOR
    if isinstance(value, float | int):
        seconds = math.floor(value)
        # A float just below a whole second may round up to it, out of ZCatalog's minute.
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
    """Return the integer of the minute *instant* (in UTC) lies in; it may exceed 32 bits."""
    months = instant.year * 12 + instant.month
    return ((months * 31 + instant.day) * 24 + instant.hour) * 60 + instant.minute


def from_minutes(minutes: int) -> datetime:
    """Return the first point in time whose integer is *minutes* or more, as far as datetime goes."""
    days, minute = divmod(minutes, 24 * 60)
    months, day = divmod(days - 1, 31)
    year, month = divmod(months - 1, 12)
    if not 1 <= year <= 9999:
        return (datetime.min if year < 1 else datetime.max).replace(tzinfo=UTC)
    try:
        return datetime(year, month + 1, day + 1, minute // 60, minute % 60, tzinfo=UTC)
    except ValueError:  # the 31st of a shorter month, which is not December
        return datetime(year, month + 2, 1, tzinfo=UTC)
