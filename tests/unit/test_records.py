"""Records converted by zodb-json-codec: each value survives, values stored earlier are repaired, and copies are compared."""

from collections.abc import Callable
from datetime import datetime
from datetime import time
from datetime import timedelta
from datetime import timezone
from datetime import UTC
from decimal import Decimal
from hypothesis import given
from hypothesis import strategies as st
from pathlib import Path
from persistent.mapping import PersistentMapping
from plone.pgcatalog.migration.values import change
from plone.pgcatalog.migration.values import Sample
from plone.pgcatalog.storage import records
from typing import Any
from zoneinfo import ZoneInfo

import io
import json
import math
import pickle
import pytest
import pytz
import sys
import zodb_json_codec


records.preserve_values()
#: The codec of the storage without this package.
DECODE = zodb_json_codec.decode_zodb_record_for_pg_json.__wrapped__
ENCODE = zodb_json_codec.encode_zodb_record.__wrapped__
PROTOCOL = 3
NOON = datetime(2026, 6, 1, 12, 30, 0, 5)
MOMENTS = st.sampled_from([NOON.replace(tzinfo=zone) for zone in (None, pytz.utc, UTC, timezone(timedelta(hours=3)))])
NUMBERS = (
    st.floats()
    | st.floats(1e70)
    | st.integers(-(2**70), 2**70)
    | st.integers(2**250)
    | st.sampled_from(
        [math.nan, math.inf, -math.inf, -0.0, 1e16, 5e-324, 1e77, -1e100, 1e307, 10**100, 2**256, -(2**300)]
    )
)
TEXTS = st.text(st.characters(exclude_categories=())) | st.sampled_from(["@dt", "@cls", "@ns:YQ==", "@", "a\ud800"])
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS | st.binary(max_size=9) | MOMENTS
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=12,
)


def record(value: Any) -> bytes:
    """Return the record of an object with *value*, as written by the ZODB."""
    return pickle.dumps(PersistentMapping, PROTOCOL) + pickle.dumps({"data": {"value": value}}, PROTOCOL)


def value_in(data: bytes) -> Any:
    """Return the value in the record *data*, in the second of its two pickles."""
    unpickler = pickle.Unpickler(io.BytesIO(data))
    unpickler.load()
    return unpickler.load()["data"]["value"]


def number(text: str) -> float | int:
    """Return a number as JSONB stores it: exact, without an exponent, and without a sign if it is 0."""
    plain = f"{Decimal(text):f}"
    return (float(plain) or 0.0) if "." in plain else int(plain)


def stored(decode: Any, data: bytes) -> Any:
    """Return the JSON stored by PostgreSQL for the record *data*, converted by the codec's function *decode*."""
    module, name, state, _ = decode(data)
    return {"@cls": [module, name], "@s": json.loads(state, parse_float=number)}


def stored_earlier(value: Any) -> bytes:
    """Return the record with *value* after its way through JSONB without this package, as it is loaded now."""
    return records.loadable(ENCODE(stored(DECODE, record(value))))


def parts(value: Any) -> Any:
    """Return *value* in a form whose equality distinguishes types, zones, NaN and -0.0."""
    if isinstance(value, dict):
        return dict, sorted(((repr(key), parts(item)) for key, item in value.items()), key=repr)
    if isinstance(value, list | tuple):
        return type(value), [parts(item) for item in value]
    return type(value), repr(value), getattr(value, "tzinfo", None) is pytz.utc


@given(VALUES)
def test_record_in_its_stored_form_is_the_same_value_to_pickle(value: Any) -> None:
    assert parts(value_in(records.storable(record(value)))) == parts(value)


@given(VALUES)
def test_value_survives_the_codec(value: Any) -> None:
    state = stored(zodb_json_codec.decode_zodb_record_for_pg_json, record(value))
    assert parts(value_in(zodb_json_codec.encode_zodb_record(state))) == parts(value)


@pytest.mark.parametrize("value", ["text", {"a": [1, 2.5, None]}, NOON, {"@type": "slate"}, "GC\x08"])
def test_record_without_odd_values_stays_as_it_is(value: Any) -> None:
    data = record(value)
    assert records.storable(data) == data


TIMES = (
    time(8, tzinfo=pytz.timezone("Europe/Berlin")),
    time(23, 59, 59, 999999, pytz.timezone("Asia/Kolkata")),
    time(8, 30, tzinfo=ZoneInfo("Europe/Berlin")),
    [time(8, 30, tzinfo=ZoneInfo("America/Sao_Paulo")), {"a": (time(8, tzinfo=pytz.timezone("GMT")),)}],
)


@pytest.mark.parametrize("value", TIMES, ids=str)
def test_time_in_a_named_zone_stored_earlier_is_loaded_unchanged(value: Any) -> None:
    state = stored(DECODE, record(value))
    assert parts(value_in(ENCODE(state))) != parts(value)
    assert parts(value_in(zodb_json_codec.encode_zodb_record(state))) == parts(value)
    # The keys in the order of JSONB.
    reordered = json.loads(json.dumps(state, sort_keys=True))
    assert parts(value_in(zodb_json_codec.encode_zodb_record(reordered))) == parts(value)


@pytest.mark.parametrize("value", [{"@time": "08:00:00", "@tz": {"zoneinfo": "Europe/Berlin"}}, {"@time": 1, "@tz": 2}])
def test_dict_that_looks_like_a_time_in_a_zone_stays_a_dict(value: Any) -> None:
    state = stored(zodb_json_codec.decode_zodb_record_for_pg_json, record(value))
    assert value_in(zodb_json_codec.encode_zodb_record(state)) == value


@pytest.mark.parametrize(
    "value",
    [
        {"@time": "noon", "@tz": {"zoneinfo": "Europe/Berlin"}},
        {"@time": "08:00:00", "@tz": {"zoneinfo": "Europe/Nowhere"}},
        {"@time": "08:00:00", "@tz": {"zoneinfo": "../etc/passwd"}},
        {"@time": "08:00:00", "@tz": {"pytz": ["Europe/Nowhere", 1, 2, "X"]}},
        {"@time": "08:00:00", "@tz": {"pytz": [[], {}]}},
        {"@time": "08:00:00", "@tz": {"pytz": ["Europe/Berlin"]}, "more": 1},
    ],
    ids=str,
)
def test_dict_without_a_known_zone_and_a_time_stored_earlier_is_loaded_as_by_the_codec(value: Any) -> None:
    state = {"@cls": ["builtins", "dict"], "@s": {"data": {"value": value}}}
    assert zodb_json_codec.encode_zodb_record(state) == ENCODE(state)


@pytest.mark.parametrize("value", [NOON.replace(tzinfo=pytz.utc), [time(8, tzinfo=pytz.utc), NOON.replace(tzinfo=UTC)]])
def test_zone_of_a_value_stored_earlier_is_repaired(value: Any) -> None:
    found = value_in(stored_earlier(value))
    assert all(each.tzinfo is pytz.utc for each in (found if isinstance(found, list) else [found]))


def test_large_float_stored_earlier_is_a_float() -> None:
    for value in (1e16, 1e76):
        assert type(value_in(stored_earlier(value))) is int
    for value in (1.2e77, -1e100, sys.float_info.max):
        assert repr(value_in(stored_earlier(value))) == repr(value)


#: Bytes that are a value only as an operation of a pickle; an uploaded file may contain them in another value.
NEEDLES = (
    *(b"cpytz\n_UTC\nq\x01)R", b"cdatetime\ntimezone\n", b"cdatetime\ntime\n", b"G\x7f\xf8\x00\x00\x00\x00\x00\x00"),
    *(b"X\x04\x00\x00\x00@cls", b"\xed\xa0\x80", b"C\x0a0123456789" + records.STORED_UTC, b"."),
)
HOSTILE = st.lists(st.sampled_from(NEEDLES) | st.binary(max_size=4), max_size=6).map(b"".join)


@given(HOSTILE)
def test_bytes_inside_of_a_value_are_never_rewritten(value: bytes) -> None:
    for each in (value, value.decode("latin-1")):
        data = record([each, NOON.replace(tzinfo=pytz.utc), each])
        assert value_in(records.loadable(records.storable(data)))[::2] == [each, each]
        assert value_in(records.loadable(data))[::2] == [each, each]


def test_text_like_a_stored_zone_is_no_zone() -> None:
    data = record("a" + records.STORED_UTC.decode("latin-1"))
    assert records.loadable(data) == data


def test_record_of_a_later_protocol_stays_as_it_is() -> None:
    data = pickle.dumps(PersistentMapping, 4) + pickle.dumps({"value": math.nan}, 4)
    assert records.storable(data) == data


# -- records of a copy are compared by value, not by bytes


def page(value: Any) -> bytes:
    return pickle.dumps(("app", "Page"), PROTOCOL) + pickle.dumps({"value": value}, PROTOCOL)


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (NOON.replace(tzinfo=pytz.utc), "<UTC>", "datetime.timezone.utc"),
        (math.nan, "float nan", "NoneType None"),
        (1e16, "float 1e+16", "int 10000000000000000"),
        ({"@t": [1]}, "dict", "tuple"),
    ],
)
def test_value_that_the_codec_changes_is_named(value: Any, source: str, target: str) -> None:
    found = change(7, page(value), ENCODE(stored(DECODE, page(value))))
    assert found is not None
    assert str(found).startswith("0x7 (app.Page) value")
    assert source in found.source
    assert target in found.target or found.target == "nothing"


class Call:
    """A value whose pickle calls a function."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        return self.call


class Other:
    """A class named in a record."""


def test_class_of_a_record_is_not_loaded_and_its_functions_are_not_called(tmp_path: Path) -> None:
    call = Call(Path.mkdir, tmp_path / "made")
    assert change(1, page([call, Other()]), page([call])) is not None
    assert not (tmp_path / "made").exists()


def test_record_that_contains_itself_or_cannot_be_read_is_a_change() -> None:
    value: list[Any] = [1]
    value.append(value)
    assert change(1, page(value), page([1])) is not None
    found = change(1, page(1), b"\x80\x03X")
    assert found is not None
    assert "unreadable record" in found.target


def test_values_differ_by_their_zone_and_type_not_only_by_equality() -> None:
    assert change(1, page(NOON.replace(tzinfo=pytz.utc)), page(NOON.replace(tzinfo=UTC))) is not None
    assert change(1, page(1), page(True)) is not None
    assert change(1, page({"a": 1, "b": 2}), page({"b": 2, "a": 1})) is None


def test_sample_has_objects_of_each_class() -> None:
    sample = Sample(3)
    for oid in range(101):
        name = "Event" if oid == 100 else "Page"
        sample.add(oid, pickle.dumps(("app", name), PROTOCOL) + pickle.dumps({}, PROTOCOL))
    chosen = sample.oids()
    assert len(chosen) == 4
    assert 100 in chosen
