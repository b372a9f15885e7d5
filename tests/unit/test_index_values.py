"""Values that the index types read from objects, and that ZCatalog cannot store or stores in another way.

The others are compared over the same objects in ``tests/integration/test_index_values_oracle.py``.
"""

from Acquisition import Explicit
from Acquisition import Implicit
from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import timezone
from datetime import UTC
from DateTime.DateTime import DateTime
from hypothesis import given
from hypothesis import strategies as st
from plone.event.utils import dt2int
from plone.pgcatalog.indexes.date import CEILING
from plone.pgcatalog.indexes.date import DateIndexTranslator
from plone.pgcatalog.indexes.date import FLOOR
from plone.pgcatalog.indexes.date import from_minutes
from plone.pgcatalog.indexes.date import to_instant
from plone.pgcatalog.indexes.date import to_minutes
from plone.pgcatalog.indexes.daterange import ALWAYS_UNTIL
from plone.pgcatalog.indexes.daterange import DateRangeIndexTranslator
from plone.pgcatalog.indexes.path import ExtendedPathIndexTranslator
from plone.pgcatalog.indexes.path import MAX_BYTES
from plone.pgcatalog.indexes.path import storable_path
from Products.ExtendedPathIndex.ExtendedPathIndex import ExtendedPathIndex
from Products.PluginIndexes.DateIndex.DateIndex import DateIndex
from Products.PluginIndexes.DateRangeIndex.DateRangeIndex import DateRangeIndex
from tests.unit.translators import TRANSLATORS
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytz


def extracted(translator: str, value: Any, **more: Any) -> tuple[Any, list[str]]:
    """Return the values of an object with *value* as ``x``, and the sentences that are reported."""
    reports: list[str] = []
    return TRANSLATORS[translator].extract(SimpleNamespace(x=value, **more), reports.append), reports


@pytest.mark.parametrize(
    ("translator", "value"),
    [("date", value) for value in ("garbage", "2020/13/45", float("nan"), object(), b"2020", {})]
    + [("recurring", value) for value in ("2020-01-01", 5, {})],
)
def test_value_that_is_no_date_is_reported(translator: str, value: Any) -> None:
    report = f"a value of type {type(value).__name__} is not a date and is ignored"
    assert extracted(translator, value) == (None, [report])


@pytest.mark.parametrize(
    ("translator", "value", "expected", "reports"),
    [
        ("field", {}, None, ["a value of type dict has no order and is ignored"]),
        ("keyword", [float("nan"), "a"], (["a"],), ["a value of type float has no order and is ignored"]),
        ("keyword", ("b", "a", "b"), (["a", "b"],), []),
        ("keyword", b"news", (["\x02bnews"],), []),
        ("keyword", [7, "7", 7.0], (["\x02n>a17", "7"],), []),
        ("keyword", [None, "a"], (["\x020", "a"],), []),
        ("keyword", False, None, []),
        ("gopip", 1, None, []),
    ],
)
def test_keys_are_sorted_and_other_values_reported(translator: str, value: Any, expected: Any, reports: Any) -> None:
    assert extracted(translator, value) == (expected, reports)


def test_uuid_is_not_acquired() -> None:
    class Parent(Implicit):
        x = "parent's"

    class Child(Implicit):
        pass

    class Stranger(Explicit):
        x = "own"

    for translator, cls, values in (
        ("field", Child, ("parent's",)),
        ("uuid", Child, None),
        ("uuid", Stranger, ("own",)),
    ):
        assert TRANSLATORS[translator].extract(cls().__of__(Parent()), pytest.fail) == values


@pytest.mark.parametrize("translator", ["field", "range"])
def test_an_error_of_the_object_propagates(translator: str) -> None:
    def method() -> None:
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        extracted(translator, method, since=method)


# -- dates

NOON = datetime(2020, 2, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (DateTime("2020/02/29 12:00:00.25 UTC"), NOON.replace(microsecond=250_000)),
        (DateTime("2020/02/29 13:00:00 Europe/Berlin"), NOON),
        (NOON.replace(microsecond=7), NOON.replace(microsecond=7)),
        (datetime(2020, 2, 29, 7, tzinfo=timezone(timedelta(hours=-5))), NOON),
        (date(2020, 2, 29), NOON.replace(hour=0)),
        ("2020-02-29T12:00:00Z", NOON),
        (1_582_977_600, NOON),
        (1_582_977_600.5, NOON.replace(microsecond=500_000)),
    ],
)
def test_date_is_an_instant(value: Any, expected: datetime) -> None:
    assert extracted("date", value) == ((expected,), [])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (DateTime("9999/12/31 23:59:59 GMT-7"), CEILING),
        (datetime.max, CEILING),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-3))), CEILING),
        (date.max, CEILING),
        (10**30, CEILING),
        (date.min, FLOOR),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=3))), FLOOR),
        (-(10**30), FLOOR),
    ],
)
def test_earliest_and_latest_dates_are_stored(value: Any, expected: datetime) -> None:
    """Saved, reported, found again: ZCatalog has an OverflowError for each."""
    index = DateIndex("x")
    index.index_naive_time_as_local = False
    translator = DateIndexTranslator(index, "x")
    reports: list[str] = []
    assert translator.extract(SimpleNamespace(x=value), reports.append) == (expected,)
    assert len(reports) == 1
    assert isinstance(translator.entry((expected,)), int)


moments = st.one_of(
    st.datetimes(datetime(1900, 1, 1), datetime(4008, 1, 1)),
    st.builds(
        lambda moment, minutes: moment.replace(tzinfo=timezone(timedelta(minutes=minutes))),
        st.datetimes(datetime(100, 1, 1), datetime(4008, 1, 1)),
        st.integers(-1439, 1439),
    ),
    st.dates(date(1, 1, 3), date(4008, 1, 1)),
    st.floats(-(2**33), 2**35),
    st.integers(-(2**33), 2**35),
    st.builds(
        DateTime,
        st.floats(-(2**33), 2**35),
        st.sampled_from(["UTC", "GMT+1", "US/Eastern", "Europe/Berlin", "GMT-0330"]),
    ),
)


@given(moments, st.booleans())
def test_minute_is_that_of_zcatalog(value: Any, local: bool) -> None:
    index = DateIndex("x")
    index.index_naive_time_as_local = local
    instant = to_instant(value, local)
    assert instant is not None
    assert to_minutes(instant) == index._convert(value)


@given(st.integers(0, 2**32 - 1))
def test_from_minutes_is_the_first_instant(minutes: int) -> None:
    instant = from_minutes(minutes)
    if FLOOR < instant < CEILING:
        assert to_minutes(instant) >= minutes > to_minutes(instant - timedelta(microseconds=1))


# -- ranges of dates, and recurring dates


@pytest.mark.parametrize("value", [DateTime("9999/12/31"), "garbage", float("nan"), [], object()])
def test_far_or_invalid_end_of_a_range_is_open(value: Any) -> None:
    """A far date is an OverflowError of ZCatalog, which CMFPlone, if loaded, turns into a date beyond the ceiling."""
    values, reports = extracted("range", None, since=DateTime(3600, "UTC"), until=value)
    assert values == (60, ALWAYS_UNTIL)
    if not isinstance(value, DateTime):
        assert reports == ["until is not a date or out of range, and counts as an open end"]


def test_range_without_fields_has_no_values() -> None:
    assert DateRangeIndexTranslator(DateRangeIndex("x"), "x").extract(SimpleNamespace(), pytest.fail) is None


SPRING_NOON = datetime(2020, 3, 28, 12, tzinfo=UTC)
DAILY = "RRULE:FREQ=DAILY;COUNT=3"
BERLIN = [pytz.timezone("Europe/Berlin"), ZoneInfo("Europe/Berlin")]


def days(*instants: datetime) -> list[int]:
    return [dt2int(instant) for instant in instants]


@pytest.mark.parametrize("zone", [*BERLIN, pytz.utc, UTC, timezone(timedelta(hours=5)), ZoneInfo("UTC")])
def test_event_stays_at_its_hour_over_daylight_saving(zone: Any) -> None:
    """Even in a zone that is not from pytz, where plone.event finds no ``localize``."""
    hour = 11 if zone in BERLIN else 12
    expected = days(SPRING_NOON, SPRING_NOON.replace(day=29, hour=hour), SPRING_NOON.replace(day=30, hour=hour))
    start = SPRING_NOON.astimezone(zone)
    assert extracted("recurring", start, recurrence=DAILY) == ((expected,), [])
    assert extracted("recurring", lambda: start, recurrence=lambda: DAILY) == ((expected,), [])


@pytest.mark.parametrize("thing", [SimpleNamespace(), SimpleNamespace(x=None), SimpleNamespace(x=lambda: None)])
def test_missing_start_has_no_recurring_value(thing: Any) -> None:
    """None too: a deviation from ZCatalog, which indexes it as the number 0."""
    assert TRANSLATORS["recurring"].extract(thing, pytest.fail) is None


def test_a_far_occurrence_is_left_out() -> None:
    far = SPRING_NOON.replace(year=4008)
    values, reports = extracted("recurring", far, recurrence="RRULE:FREQ=YEARLY;COUNT=5")
    assert (values, len(reports)) == ((days(far),), 1)
    values, reports = extracted("recurring", datetime.max)
    assert (values, len(reports)) == (None, 1)


# -- paths

PATHS = ("path", "plain path")
PLACE = {"getPhysicalPath": lambda: ("", "plone", "a", "b")}


@pytest.mark.parametrize("translator", PATHS)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/x/y", ("/x/y", "/x", 2)),
        (("", "x", "y"), ("/x/y", "/x", 2)),
        (lambda: "/x/y", ("/x/y", "/x", 2)),
        ("x", ("/x", "/", 1)),
        ("x//y/", ("/x/y", "/x", 2)),
        (None, ("/plone/a/b", "/plone/a", 3)),
    ],
)
def test_path_is_that_of_the_attribute_or_the_object(translator: str, value: Any, expected: Any) -> None:
    assert extracted(translator, value, **PLACE) == (expected, [])
    assert extracted(translator, None, getPhysicalPath=lambda: ("",)) == (("/", "/", 0), [])
    assert TRANSLATORS[translator].extract(object(), pytest.fail) is None


@pytest.mark.parametrize("translator", PATHS)
@pytest.mark.parametrize("value", [3, b"/x", ["", "x"], lambda: None])
def test_path_of_a_wrong_type_is_an_error(translator: str, value: Any) -> None:
    with pytest.raises(TypeError, match="path value must be string or tuple"):
        extracted(translator, value)


def test_indexed_attribute_of_a_path_comes_first() -> None:
    index = ExtendedPathIndex("path", extra={"indexed_attrs": "target, other"})
    content = SimpleNamespace(target="/x", path="/y")
    assert ExtendedPathIndexTranslator(index, "path").extract(content, pytest.fail) == ("/x", "/", 1)


def test_broken_method_is_a_missing_path_or_an_error() -> None:
    """The two index types differ here, and so do their translators."""

    def broken() -> str:
        raise AttributeError("title")

    assert extracted("plain path", broken) == (None, [])
    with pytest.raises(AttributeError):
        extracted("path", broken)


@pytest.mark.parametrize(
    ("path", "message", "value"),
    [
        ("/a/\0b", "does not support", "/a/\ufffdb"),
        ("/a/\udc80", "does not support", "/a/\ufffd"),
        ("/" + "ä" * MAX_BYTES, "too long", "/" + "ä" * (MAX_BYTES // 2 - 1)),
    ],
)
def test_unstorable_paths_are_changed_and_reported(path: str, message: str, value: str) -> None:
    values, [report] = extracted("path", path)
    assert (values[0], message in report) == (value, True)


def test_storable_is_idempotent() -> None:
    for path in ("/a", "/a\0\ud800", "/" + "aä日😀" * 1000):
        once = storable_path(path)
        assert storable_path(once) == once
        assert len(once.encode()) <= MAX_BYTES
