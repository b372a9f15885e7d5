"""Dates, times and time zones as JSON data, and back: payloads for the markers of ``codec``.

A zone is ``[kind, *arguments]``, e.g. ``["pytz", "Europe/Berlin", 7200, 3600, "CEST"]``.  The arguments of a
pytz zone are those pytz itself pickles: the pytz zone of a datetime is one fixed period of it, which
has to come back as it was even where it is not the right one for the date.

The dump functions raise ValueError for a zone without a JSON form, the load functions whatever the
payload makes them raise.
"""

from collections.abc import Callable
from DateTime import DateTime
from datetime import datetime
from datetime import time
from datetime import timedelta
from datetime import timezone
from datetime import tzinfo
from datetime import UTC
from dateutil.tz import tzoffset
from dateutil.tz import tzutc
from pytz.tzinfo import BaseTzInfo
from pytz.tzinfo import unpickler as pytz_zone
from typing import Any
from zoneinfo import ZoneInfo

import pytz


#: The class of ``pytz.FixedOffset(minutes)``, which has no public name.
PytzOffset = type(pytz.FixedOffset(1))

#: Exact for JSON readers that know only doubles.
SAFE_INT = 2**53


def dump_datetime(value: datetime | time) -> Any:
    """Return ISO text, or ``[text, zone, fold]`` where the text does not say everything."""
    if value.tzinfo is None and not value.fold:
        return value.isoformat()
    return [value.isoformat(), dump_zone(value.tzinfo), value.fold]


def load_datetime[T: (datetime, time)](kind: type[T]) -> Callable[[Any], T]:
    """Return the function that makes a *kind* of what ``dump_datetime`` returned."""

    def load(payload: Any) -> T:
        text, zone, fold = (payload, None, 0) if isinstance(payload, str) else payload
        return kind.fromisoformat(text).replace(tzinfo=load_zone(zone), fold=fold)

    return load


def dump_zope_date(value: DateTime) -> list[Any]:
    """Return ``[ISO text for readers, microseconds since 1970, is naive, zone name]``."""
    micros, naive, zone = value.__getstate__()
    return [
        value.ISO8601(),
        micros if abs(micros) <= SAFE_INT else str(micros),
        naive,
        zone,
    ]


def load_zope_date(payload: Any) -> DateTime:
    """Return the DateTime of a ``dump_zope_date`` payload."""
    _text, micros, naive, zone = payload
    value = DateTime.__new__(DateTime)
    value.__setstate__((int(micros), naive, zone))
    return value


def dump_zone(zone: tzinfo | None) -> list[Any] | None:
    """Return *zone* as JSON data, None for None."""
    if zone is None:
        return None
    for kind, (matches, dump, _load) in ZONES.items():
        if matches(zone):
            return [kind, *dump(zone)]
    raise ValueError(f"no JSON form for time zone {type(zone).__module__}.{type(zone).__qualname__}")


def load_zone(payload: Any) -> tzinfo | None:
    """Return the zone of a ``dump_zone`` payload."""
    if payload is None:
        return None
    kind, *arguments = payload
    return ZONES[kind][2](*arguments)


def _reduced(zone: Any) -> Any:
    return zone.__reduce__()[1]


def _nothing(zone: Any) -> tuple[()]:
    return ()


def _dump_offset(zone: Any) -> list[Any]:
    offset, *name = zone.__getinitargs__()
    return [offset.total_seconds(), *name]


def _dump_dateutil_offset(zone: Any) -> list[Any]:
    name, offset = _reduced(zone)
    return [name, offset.total_seconds()]


#: kind -> (is the zone of that kind?, its arguments as JSON, arguments -> zone); the first match counts
ZONES: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any], Callable[..., tzinfo]]] = {
    "utc": (lambda z: z is UTC, _nothing, lambda: UTC),
    "pytz.utc": (lambda z: z is pytz.utc, _nothing, lambda: pytz.utc),
    "pytz.offset": (lambda z: type(z) is PytzOffset, _reduced, pytz.FixedOffset),
    "pytz": (lambda z: isinstance(z, BaseTzInfo), _reduced, pytz_zone),
    "zoneinfo": (
        lambda z: type(z) is ZoneInfo and bool(z.key),
        lambda z: [z.key],
        ZoneInfo,
    ),
    "offset": (
        lambda z: type(z) is timezone,
        _dump_offset,
        lambda seconds, *name: timezone(timedelta(seconds=seconds), *name),
    ),
    "dateutil.utc": (lambda z: type(z) is tzutc, _nothing, tzutc),
    "dateutil.offset": (
        lambda z: type(z) is tzoffset,
        _dump_dateutil_offset,
        lambda name, seconds: tzoffset(name, timedelta(seconds=seconds)),
    ),
}
