"""The codec of metadata values: values are unchanged by ``idx``."""

from Acquisition import aq_base
from Acquisition import Implicit
from collections import Counter
from collections import namedtuple
from collections import OrderedDict
from collections.abc import Callable
from DateTime import DateTime
from datetime import date
from datetime import datetime
from datetime import time
from datetime import timedelta
from datetime import timezone
from datetime import UTC
from dateutil.tz import tzlocal
from dateutil.tz import tzoffset
from dateutil.tz import tzutc
from enum import IntEnum
from freezegun import freeze_time
from hypothesis import given
from hypothesis import HealthCheck
from hypothesis import settings
from hypothesis import strategies as st
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping
from plone.pgcatalog.indexing import codec
from psycopg.types.json import set_json_loads
from typing import Any
from zoneinfo import ZoneInfo
from zope.i18nmessageid import Message

import contextlib
import json
import Missing
import orjson
import psycopg
import pytest
import pytz


Trip = Callable[[Any], Any]

BERLIN = pytz.timezone("Europe/Berlin")

ZONES = st.sampled_from(
    [
        None,
        UTC,
        timezone(timedelta(hours=-3, minutes=-30)),
        timezone(timedelta(seconds=1, microseconds=5), "odd"),
        timezone(timedelta(0), "GMT"),
        ZoneInfo("Europe/Berlin"),
        ZoneInfo("UTC"),
        pytz.utc,
        pytz.timezone("Etc/GMT+5"),
        pytz.FixedOffset(90),
        BERLIN,  # its local mean time, which careless code puts into a datetime
        *BERLIN._tzinfos.values(),
        tzutc(),
        tzoffset("X", 3600),
        tzoffset(None, -90),
    ]
)
TEXT = st.text(st.characters(codec=None)) | st.sampled_from(["", "@", "@tuple", "\0", "\ud83d\ude00", "ä\\u00e4"])
ZOPE_DATES = st.builds(
    lambda micros, naive, zone: zope_date(micros, naive, zone),
    st.integers(-(10**17), 10**18),
    st.booleans(),
    st.sampled_from(["UTC", "GMT+0", "Europe/Berlin", "US/Eastern", "GMT-0330"]),
)
HASHABLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    TEXT,
    st.binary(),
    st.decimals(),
    st.uuids(),
    st.dates(),
    st.times(timezones=ZONES),
    st.builds(
        lambda when, zone, fold: when.replace(tzinfo=zone, fold=fold), st.datetimes(), ZONES, st.sampled_from([0, 1])
    ),
    st.timedeltas(),
    st.builds(
        Message,
        TEXT,
        domain=st.none() | TEXT,
        default=st.none() | TEXT,
        mapping=st.none() | st.dictionaries(TEXT, TEXT),
    ),
)


def equals_itself(key: Any) -> bool:
    """Return whether *key* can be a key; a signalling NaN cannot even be compared."""
    try:
        return bool(key == key)
    except ArithmeticError:
        return False


KEYS = HASHABLE.filter(equals_itself)


def zope_date(micros: int, naive: bool, zone: str) -> DateTime:
    value = DateTime.__new__(DateTime)
    value.__setstate__((micros, naive, zone))
    return value


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = KEYS | st.tuples(KEYS, KEYS)
    lists = st.lists(inner, max_size=4)
    dicts = st.dictionaries(TEXT, inner, max_size=4) | st.dictionaries(keys, inner, max_size=3)
    return st.one_of(
        lists,
        lists.map(tuple),
        lists.map(PersistentList),
        dicts,
        dicts.map(OrderedDict),
        dicts.map(Counter),
        dicts.map(PersistentMapping),
        st.sets(keys, max_size=3),
        st.frozensets(keys, max_size=3),
    )


VALUES = st.recursive(HASHABLE | ZOPE_DATES | st.just(Missing.Value), containers, max_leaves=12)


def portrait(value: Any) -> Any:
    """Return everything about a value that must survive, in a form that ``==`` compares fully."""
    kind = type(value)
    if kind in (list, tuple, PersistentList):
        return kind, [portrait(item) for item in value]
    if kind in (set, frozenset):
        return kind, sorted((portrait(item) for item in value), key=repr)
    if kind is OrderedDict:
        return kind, [(portrait(key), portrait(item)) for key, item in value.items()]
    if kind in (dict, Counter, PersistentMapping):
        return kind, sorted(((portrait(key), portrait(item)) for key, item in value.items()), key=repr)
    if kind is Message:
        return kind, portrait(value.__reduce__()[1])
    if kind is DateTime:
        return kind, value.__getstate__(), str(value), value.timeTime(), value.second()
    if kind in (datetime, time):
        zone = value.tzinfo
        return (kind, value.isoformat(), value.fold, type(zone), repr(zone), value.utcoffset(), value.tzname())
    return kind, repr(value)


@pytest.fixture
def through_jsonb(connection: psycopg.Connection[Any]) -> Trip:
    """Send JSON data through a real jsonb column type."""
    set_json_loads(orjson.loads, context=connection)

    def trip(obj: Any) -> Any:
        row = connection.execute("SELECT %s::text::jsonb", [json.dumps(obj)]).fetchone()
        assert row is not None
        return row[0]

    return trip


@given(value=VALUES)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_value_survives_json_and_jsonb(through_jsonb: Trip, value: Any) -> None:
    encoded, expected = codec.encode(value), portrait(value)
    for text in (json.dumps(encoded, allow_nan=False), orjson.dumps(encoded)):
        assert portrait(codec.decode(json.loads(text))) == portrait(codec.decode(orjson.loads(text))) == expected
    assert portrait(codec.decode(through_jsonb(encoded))) == expected


@given(
    obj=st.recursive(
        st.none() | st.booleans() | st.integers() | TEXT,
        lambda inner: st.lists(inner) | st.dictionaries(TEXT | st.sampled_from(sorted(codec._decoders)), inner),
        max_leaves=8,
    )
)
@settings(max_examples=300)
def test_decoding_any_json_returns_a_value_or_raises_a_codec_error(obj: Any) -> None:
    with contextlib.suppress(codec.CodecError):
        codec.decode(obj)


@pytest.mark.parametrize(
    "obj",
    [
        *({"@unknown": 1}, {"@tuple": [], "other": 1}, {"other": 1, "@tuple": []}, {"@class": ["os", "system"]}),
        *({"@decimal": "no number"}, {"@date": "2026-02-31"}),
        {"@datetime": ["2026-01-01T00:00:00", ["os.system", "true"], 0]},
        {"@datetime": ["2026-01-01T00:00:00", ["pytz", "../../etc/passwd"], 0]},
        {"@uuid": 5},
        {"@message": [None, None, None, False]},
        {"@set": [[]]},
        {"@DateTime": ["", "x", False, "UTC"]},
    ],
)
def test_json_that_no_encoder_has_written_is_refused(obj: Any) -> None:
    with pytest.raises(codec.CodecError, match=r"marker|payload"):
        codec.decode(obj)


class Level(IntEnum):
    HIGH = 3


class Title(str):
    def __str__(self) -> str:
        return "not the text"


class Wrapped(Implicit):
    pass


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # Plain values stay readable.
        *((v, v) for v in (None, True, 0, -5, 2**53, 2.5, "", "Übersicht 🎈", [1, ["x"]], {"a": {"b": [None]}}, {})),
        (("a", "b"), {"@tuple": ["a", "b"]}),
        (date(2026, 1, 31), {"@date": "2026-01-31"}),
        (datetime(2026, 1, 31, 12, 30), {"@datetime": "2026-01-31T12:30:00"}),
        (
            BERLIN.localize(datetime(2026, 7, 1)),
            {"@datetime": ["2026-07-01T00:00:00+02:00", ["pytz", "Europe/Berlin", 7200, 3600, "CEST"], 0]},
        ),
        (
            DateTime("2026/01/31 12:30 Europe/Berlin"),
            {"@DateTime": ["2026-01-31T12:30:00+01:00", 1769859000000000, False, "Europe/Berlin"]},
        ),
        (Missing.Value, {"@missing": True}),
        (PersistentMapping({"w": 1}), {"@pmapping": {"w": 1}}),
        (Counter({"w": 1}), {"@counter": {"w": 1}}),
        ({"@tuple": 1}, {"@dict": [["@tuple", 1]]}),
        (2**60, {"@int": "1152921504606846976"}),
        ("a\0b", {"@str": "a\\x00b"}),
        ({3, 1, 2}, {"@set": [1, 2, 3]}),
        # Scalars of subclasses become plain.
        (Title("x"), "x"),
        (Level.HIGH, 3),
    ],
)
def test_json_form_is_stable(value: Any, expected: Any) -> None:
    assert codec.encode(value) == expected
    assert type(codec.encode(value)) is type(expected)


def test_a_datetime_made_under_freezegun_is_a_datetime() -> None:
    with freeze_time("2026-01-31 12:00"):
        value = codec.encode(datetime.now(UTC))
        decoded = codec.decode(value)
    assert value == {"@datetime": ["2026-01-31T12:00:00+00:00", ["utc"], 0]}
    assert type(decoded).__mro__[-2:] == (date, object)


@pytest.mark.parametrize(
    "value",
    [object(), Wrapped(), Point(1, 2), 1j, bytearray(b"x"), len, Level, datetime.now(tzlocal()), {"a": [object()]}],
)
def test_unlisted_type_is_refused_by_name(value: Any) -> None:
    with pytest.raises(codec.CodecError, match="no JSON form for"):
        codec.encode(value)


def test_acquisition_wrapper_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(codec._encoders, Wrapped, lambda value, room: [value is aq_base(value)])
    parent = Wrapped()
    parent.child = Wrapped()
    assert type(parent.child) is not Wrapped
    assert codec.encode([parent.child]) == [[True]]


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: {5: x}, lambda x: PersistentMapping({5: x})])
def test_nesting_has_a_limit_that_every_json_library_supports(wrap: Callable[[Any], Any]) -> None:
    value: Any = 1
    for _ in range(codec.MAX_DEPTH):
        value = wrap(value)
    assert portrait(codec.decode(orjson.loads(orjson.dumps(codec.encode(value))))) == portrait(value)
    with pytest.raises(codec.CodecError, match="nested"):
        codec.encode(wrap(value))


def test_endless_structure_and_nearly_full_stack_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    loop: list[Any] = []
    loop += [loop, loop]
    with pytest.raises(codec.CodecError, match="nested"):
        codec.encode(loop)

    def out_of_stack(value: Any, room: int) -> Any:
        raise RecursionError

    monkeypatch.setitem(codec._encoders, list, out_of_stack)
    with pytest.raises(codec.CodecError, match="nested"):
        codec.encode([])
