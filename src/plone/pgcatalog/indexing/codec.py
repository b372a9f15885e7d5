"""Codec of catalog metadata values: to JSON that PostgreSQL's ``jsonb`` stores without loss, and back.

Plain JSON stays plain, so that ``idx`` can be read with psql.  A value that JSON cannot represent becomes a *marker*:
an object with one key that begins with ``@``, e.g. ``{"@date": "2026-01-31"}``.  Only the markers registered at the end
of this module exist: decoding looks up a marker in that table and never imports or unpickles anything.

Not restored exactly are:

- an instance of a *subclass* of str, int, float, date, datetime, time or timedelta: decoded to the plain type
- an acquisition wrapper: removed
- the order of the keys of a dict: decoded in the order of jsonb (an OrderedDict preserves its own)

A time zone is ``[kind, *arguments]``, e.g. ``["pytz", "Europe/Berlin", 7200, 3600, "CEST"]``.  The arguments of a pytz
zone are the ones that pytz pickles: the pytz zone of a datetime is one fixed period of a zone, and is restored as it
was even where it is not the right period for the date.  The dump functions raise ValueError for a zone without a JSON
form, the load functions any exception that a damaged payload causes.
"""

from Acquisition import aq_base
from base64 import b64decode
from base64 import b64encode
from collections import Counter
from collections import OrderedDict
from collections.abc import Callable
from DateTime import DateTime
from datetime import date
from datetime import datetime
from datetime import time
from datetime import timedelta
from datetime import timezone
from datetime import tzinfo
from datetime import UTC
from dateutil.tz import tzoffset
from dateutil.tz import tzutc
from decimal import Decimal
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping
from pytz.tzinfo import BaseTzInfo
from pytz.tzinfo import unpickler as pytz_zone
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo
from zope.i18nmessageid import Message

import Missing
import pytz


#: The class of ``pytz.FixedOffset(minutes)``, which has no public name.
PytzOffset = type(pytz.FixedOffset(1))

#: Largest integer that is exact for JSON readers with doubles only.
SAFE_INT = 2**53


def dump_datetime(value: datetime | time) -> Any:
    """Return ISO text, or ``[text, zone, fold]`` if *value* has a time zone or a fold."""
    if value.tzinfo is None and not value.fold:
        return value.isoformat()
    return [value.isoformat(), dump_zone(value.tzinfo), value.fold]


def load_datetime[T: (datetime, time)](kind: type[T]) -> Callable[[Any], T]:
    """Return a function that decodes a payload of ``dump_datetime`` to a *kind*, datetime or time."""

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
    """Return *zone* as JSON data, None if *zone* is None."""
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


#: kind -> (zone -> whether it is of that kind, zone -> its arguments as JSON, arguments -> zone); the first match
#: counts
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

#: Maximum nesting; a structure that contains itself exceeds it.  A level can become four in JSON, and orjson writes 254
#: at most.
MAX_DEPTH = 50

#: Types whose subclasses are encoded as the plain type; datetime precedes its base, date.
SCALARS = (str, int, float, datetime, date, time, timedelta)

#: Exceptions that decoders raise for a payload that no encoder wrote.
BAD_PAYLOAD = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)

#: (value, number of levels that may be nested in it) -> JSON data
Encoder = Callable[[Any, int], Any]

_encoders: dict[type, Encoder] = {}
_decoders: dict[str, Callable[[Any], Any]] = {}


class CodecError(ValueError):
    """A value has no form in ``idx``, or ``idx`` contains data that this codec did not write."""


def encode(value: Any) -> Any:
    """Return *value* as JSON data for ``json``, ``orjson`` and jsonb.

    Raises CodecError for a type without a marker and for nesting deeper than MAX_DEPTH.
    """
    try:
        return _encode(value, MAX_DEPTH)
    except RecursionError as exc:  # the caller's stack was deep already
        raise CodecError(f"{type(value).__name__} is nested too deeply") from exc


def decode(obj: Any) -> Any:
    """Return the value that ``encode`` returned *obj* for.

    Raises CodecError for an unknown marker and for a payload that does not fit its marker.
    """
    kind = type(obj)
    if kind is list:
        return [decode(item) for item in obj]
    if kind is not dict:
        return obj
    for key in obj:
        if key[:1] == "@":
            return _decode_marker(obj)
    return {key: decode(item) for key, item in obj.items()}


def _decode_marker(obj: dict[str, Any]) -> Any:
    name = next(iter(obj))
    if len(obj) != 1 or name not in _decoders:
        raise CodecError(f"unknown marker {sorted(obj)!r:.100}")
    try:
        return _decoders[name](obj[name])
    except CodecError:
        raise
    except (*BAD_PAYLOAD, SystemError) as exc:  # zope.i18nmessageid raises SystemError for a message that is no text
        raise CodecError(f"payload of {name} is damaged: {exc!r:.200}") from exc


def _encode(value: Any, room: int) -> Any:
    if room < 0:
        raise CodecError(f"{type(value).__name__} is nested deeper than {MAX_DEPTH} levels")
    encoder = _encoders.get(type(value))
    if encoder is not None:
        return encoder(value, room - 1)
    return _encode_other(value, room)


def _encode_other(value: Any, room: int) -> Any:
    """Encode an acquisition-wrapped value, or an instance of a subclass of a scalar type."""
    base = aq_base(value)
    if base is not value:
        return _encode(base, room)
    for scalar in SCALARS:
        if isinstance(value, scalar):
            return _encoders[scalar](value, room)
    raise CodecError(f"no JSON form for {type(value).__module__}.{type(value).__qualname__}")


def _encode_str(value: str, room: int) -> Any:
    if _is_clean(value):
        return str.__str__(value)
    return {"@str": value.encode("unicode_escape").decode("ascii")}


def _is_clean(text: str) -> bool:
    """Return True if jsonb accepts *text*: it has no NUL and no lone surrogates."""
    if "\0" in text:
        return False
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _encode_int(value: int, room: int) -> Any:
    if abs(value) <= SAFE_INT:
        return int(value)
    try:
        return {"@int": int.__repr__(value)}
    except ValueError as exc:  # Python's limit on the digits of an int
        raise CodecError(f"int too long: {exc}") from exc


def _encode_float(value: float, room: int) -> Any:
    # jsonb stores numbers as numeric: it prints 1e16 as an integer, and has no -0.0, NaN or infinity
    text = float.__repr__(value)
    if text.strip("-0123456789") == "." and text != "-0.0":
        return float(text)
    return {"@float": text}


def _encode_list(value: Any, room: int) -> Any:
    return [_encode(item, room) for item in value]


def _encode_set(value: Any, room: int) -> Any:
    return sorted(_encode_list(value, room), key=repr)  # sorted, so that every process writes the same JSON


def _encode_dict(value: dict[Any, Any], room: int) -> Any:
    if all(type(key) is str and key[:1] != "@" and _is_clean(key) for key in value):
        return {key: _encode(item, room) for key, item in value.items()}
    return {"@dict": _encode_pairs(value, room)}


def _encode_pairs(value: Any, room: int) -> Any:
    return [[_encode(key, room), _encode(item, room)] for key, item in value.items()]


def _decode_pairs(payload: Any) -> list[tuple[Any, Any]]:
    return [(decode(key), decode(item)) for key, item in payload]


def _encode_date(value: Any, room: int) -> Any:
    try:
        return dump_datetime(value)
    except ValueError as exc:
        raise CodecError(str(exc)) from exc


def _encode_message(value: Any, room: int) -> Any:
    _class, state = value.__reduce__()
    return _encode_list(state, room)


def _register(marker: str, kind: type, dump: Encoder, load: Callable[[Any], Any]) -> None:
    _encoders[kind] = lambda value, room: {marker: dump(value, room)}
    _decoders[marker] = load


_encoders[type(None)] = _encoders[bool] = lambda value, room: value
_encoders.update({str: _encode_str, int: _encode_int, float: _encode_float})
_encoders.update({list: _encode_list, dict: _encode_dict})
_decoders["@str"] = lambda text: text.encode("ascii").decode("unicode_escape")
_decoders.update({"@int": int, "@float": float, "@dict": lambda p: dict(_decode_pairs(p))})

_register("@tuple", tuple, _encode_list, lambda p: tuple(decode(p)))
_register("@set", set, _encode_set, lambda p: set(decode(p)))
_register("@frozenset", frozenset, _encode_set, lambda p: frozenset(decode(p)))
_register(
    "@bytes",
    bytes,
    lambda v, _: b64encode(v).decode(),
    lambda p: b64decode(p, validate=True),
)
_register("@decimal", Decimal, lambda v, _: str(v), Decimal)
_register("@uuid", UUID, lambda v, _: str(v), UUID)
_register("@date", date, lambda v, _: v.isoformat(), date.fromisoformat)
_register("@time", time, _encode_date, load_datetime(time))
_register("@datetime", datetime, _encode_date, load_datetime(datetime))
_register("@timedelta", timedelta, lambda v, _: [v.days, v.seconds, v.microseconds], lambda p: timedelta(*p))
_register("@DateTime", DateTime, lambda v, _: dump_zope_date(v), load_zope_date)
_register("@missing", type(Missing.Value), lambda v, _: True, lambda _: Missing.Value)
_register("@message", Message, _encode_message, lambda p: Message(*decode(p)))
_register("@odict", OrderedDict, _encode_pairs, lambda p: OrderedDict(_decode_pairs(p)))
_register("@counter", Counter, _encode_dict, lambda p: Counter(decode(p)))
_register("@plist", PersistentList, _encode_list, lambda p: PersistentList(decode(p)))
_register("@pmapping", PersistentMapping, _encode_dict, lambda p: PersistentMapping(decode(p)))
