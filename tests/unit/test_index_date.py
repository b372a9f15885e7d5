"""DateIndex, DateRangeIndex and DateRecurringIndex: columns, and values and queries that ZCatalog cannot answer.

The others are compared over the same objects in ``tests/integration/test_index_values_oracle.py``.
"""

from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import timezone
from datetime import UTC
from DateTime.DateTime import DateTime
from DateTime.interfaces import DateTimeError
from hypothesis import given
from hypothesis import strategies as st
from plone.event.utils import dt2int
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.date import CEILING
from plone.pgcatalog.indexes.date import DateIndexTranslator
from plone.pgcatalog.indexes.date import FLOOR
from plone.pgcatalog.indexes.date import from_minutes
from plone.pgcatalog.indexes.date import to_instant
from plone.pgcatalog.indexes.date import to_minutes
from plone.pgcatalog.indexes.daterange import ALWAYS_UNTIL
from plone.pgcatalog.indexes.daterange import DateRangeIndexTranslator
from plone.pgcatalog.indexes.recurring import DateRecurringIndexTranslator
from plone.pgcatalog.indexes.recurring import LATEST
from Products.DateRecurringIndex.index import DateRecurringIndex
from Products.PluginIndexes.DateIndex.DateIndex import DateIndex
from Products.PluginIndexes.DateRangeIndex.DateRangeIndex import DateRangeIndex
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytz


def make(**settings: Any) -> DateIndexTranslator:
    index = DateIndex("x")
    index.__dict__.update(settings)
    return DateIndexTranslator(index, "x")


dates = make()
NOON = datetime(2020, 2, 29, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def refused(sentence: str) -> None:
    raise AssertionError(sentence)


def value_of(translator: DateIndexTranslator, value: Any) -> datetime:
    values = translator.extract(SimpleNamespace(x=value), refused)
    assert values is not None
    instant: datetime = values[0]
    return instant


def matches(translator: DateIndexTranslator, query: Any, instant: datetime) -> bool:
    """Return whether *query* finds *instant*; its SQL is simple enough to be interpreted here."""
    condition = translator.where({"x": query})
    assert condition is not None
    parts = condition.sql.split(" AND ")
    assert len(parts) == len(condition.params)
    return all(
        instant >= end if ">=" in part else instant < end for part, end in zip(parts, condition.params, strict=True)
    )


def test_schema() -> None:
    assert dates.columns() == (Column("x", "timestamptz"),)
    assert dates.sql_indexes() == (SQLIndex("x", '("x")', column="x"),)
    assert dates.order_by() == ('"x"',)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (DateTime("2020/02/29 12:00:00.25 UTC"), NOON.replace(microsecond=250_000)),
        (DateTime("2020/02/29 13:00:00 Europe/Berlin"), NOON),
        (datetime(2020, 2, 29, 12, 0, 0, 7, tzinfo=UTC), NOON.replace(microsecond=7)),
        (datetime(2020, 2, 29, 7, tzinfo=timezone(timedelta(hours=-5))), NOON),
        (date(2020, 2, 29), datetime(2020, 2, 29, tzinfo=UTC)),
        ("2020-02-29T12:00:00Z", NOON),
        (1_582_977_600, NOON),
        (1_582_977_600.5, NOON.replace(microsecond=500_000)),
    ],
)
def test_value(value: Any, expected: datetime) -> None:
    assert value_of(dates, value) == expected


@pytest.mark.parametrize("value", ["garbage", "2020/13/45", float("nan"), object(), b"2020", {}])
def test_value_that_is_no_date_is_reported(value: Any) -> None:
    reports: list[str] = []
    assert dates.extract(SimpleNamespace(x=value), reports.append) is None
    assert reports == [f"a value of type {type(value).__name__} is not a date and is ignored"]


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
    reports: list[str] = []
    translator = make(index_naive_time_as_local=False)
    assert translator.extract(SimpleNamespace(x=value), reports.append) == (expected,)
    assert len(reports) == 1
    assert isinstance(translator.entry((expected,)), int)


@pytest.mark.parametrize("value", [DateTime("9999/12/31"), DateTime("5000/01/01 12:00 UTC"), date.max])
def test_a_far_date_is_found(value: Any) -> None:
    reports: list[str] = []
    values = dates.extract(SimpleNamespace(x=value), reports.append)
    assert values is not None
    for query in (value, {"query": value, "range": "min"}, {"query": value, "range": "max"}):
        assert matches(dates, query, values[0])
    assert not matches(dates, {"query": value, "range": "min"}, NOON)


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


@pytest.mark.parametrize("query", [[], None, "", b"2020", [None]])
def test_impossible_query_finds_nothing(query: Any) -> None:
    assert dates.where({"x": query}) is NOTHING
    assert start.where({"x": None}) is NOTHING


def test_deviation_not_with_a_query_is_converted_too() -> None:
    """ZCatalog looks up the unconverted date, and excludes nothing."""
    condition = dates.where({"x": {"query": NOON, "not": NOON}})
    assert condition is not None
    assert condition.params == (NOON, NOON + MINUTE) * 2


effective = DateRangeIndexTranslator(DateRangeIndex("x", "since", "until"), "x")
HOUR = DateTime(3600, "UTC")


def test_range_schema() -> None:
    assert effective.columns() == (Column("x_since", "integer"), Column("x_until", "integer"))
    assert effective.sql_indexes() == ()
    assert effective.order_by() == ('"x_since"', '"x_until"')
    assert effective.key_expression() is None


def test_an_index_without_fields_has_no_values() -> None:
    assert DateRangeIndexTranslator(DateRangeIndex("x"), "x").extract(SimpleNamespace(), refused) is None


def test_a_far_date_is_an_open_end() -> None:
    """An OverflowError of ZCatalog, which CMFPlone, where it is loaded, turns into a date beyond the ceiling."""
    values = effective.extract(SimpleNamespace(since=HOUR, until=DateTime("9999/12/31")), lambda _: None)
    assert values == (60, ALWAYS_UNTIL)


@pytest.mark.parametrize("value", ["garbage", float("nan"), [], object()])
def test_value_that_is_no_date_is_an_open_end(value: Any) -> None:
    reports: list[str] = []
    values = effective.extract(SimpleNamespace(since=HOUR, until=value), reports.append)
    assert values == (60, ALWAYS_UNTIL)
    assert reports == ["until is not a date or out of range, and counts as an open end"]


def test_an_error_of_the_object_propagates() -> None:
    def method() -> None:
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        effective.extract(SimpleNamespace(since=method), refused)


@pytest.mark.parametrize(
    ("translator", "query", "error"),
    [
        ("dates", "garbage", DateTimeError),
        ("effective", [], IndexError),
        ("effective", "garbage", DateTimeError),
        ("effective", {"query": HOUR, "range": "min"}, ValueError),
        ("start", "2020-01-01", AttributeError),
    ],
)
def test_wrong_query_is_refused(translator: str, query: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        globals()[translator].where({"x": query})


start = DateRecurringIndexTranslator(
    DateRecurringIndex("x", extra=SimpleNamespace(recurdef="recurrence", until="until")), "x"
)
BERLIN = pytz.timezone("Europe/Berlin")
SPRING_NOON = datetime(2020, 3, 28, 12, tzinfo=UTC)
DAILY = "RRULE:FREQ=DAILY;COUNT=3"


def occurrences(value: Any, rule: Any) -> list[int]:
    values = start.extract(SimpleNamespace(x=value, recurrence=rule), refused)
    assert values is not None
    numbers: list[int] = values[0]
    return numbers


def days(*instants: datetime) -> list[int]:
    return [dt2int(instant) for instant in instants]


def test_recurring_schema() -> None:
    assert start.columns() == (Column("x", "integer[]"),)
    assert [index.name for index in start.sql_indexes()] == ["x_first", "x_last"]
    assert [index.definition for index in start.sql_indexes()] == [
        '(("x"[1])) WHERE ("x"[1]) IS NOT NULL',
        '(("x"[cardinality("x")])) WHERE ("x"[cardinality("x")]) IS NOT NULL',
    ]
    assert start.order_by() == ('("x"[1])', '"x"')
    assert start.key_expression() == 'unnest("x")'


@pytest.mark.parametrize("zone", [BERLIN, ZoneInfo("Europe/Berlin")])
def test_an_event_stays_at_its_hour_over_daylight_saving(zone: Any) -> None:
    """Even in a zone that is not from pytz, where plone.event finds no ``localize``."""
    expected = days(SPRING_NOON, SPRING_NOON.replace(day=29, hour=11), SPRING_NOON.replace(day=30, hour=11))
    assert occurrences(SPRING_NOON.astimezone(zone), DAILY) == expected


@pytest.mark.parametrize("zone", [pytz.utc, UTC, timezone(timedelta(hours=5)), ZoneInfo("UTC")])
def test_event_in_a_zone_without_daylight_saving_stays_at_its_hour(zone: Any) -> None:
    expected = days(SPRING_NOON, SPRING_NOON.replace(day=29), SPRING_NOON.replace(day=30))
    assert occurrences(SPRING_NOON.astimezone(zone), DAILY) == expected
    assert occurrences(lambda: SPRING_NOON.astimezone(zone), lambda: DAILY) == expected


@pytest.mark.parametrize("thing", [SimpleNamespace(), SimpleNamespace(x=None), SimpleNamespace(x=lambda: None)])
def test_invalid_start_has_no_recurring_value(thing: Any) -> None:
    """None too: a deviation from ZCatalog, which indexes it as the number 0."""
    assert start.extract(thing, refused) is None


@pytest.mark.parametrize("rule", ["RRULE:FREQ=SOMETIMES", "nonsense", "RRULE:COUNT=x", 7, ["RRULE"]])
def test_a_broken_rule_is_reported(rule: Any) -> None:
    reports: list[str] = []
    thing = SimpleNamespace(x=SPRING_NOON, recurrence=rule)
    assert start.extract(thing, reports.append) == (days(SPRING_NOON),)
    assert len(reports) == 1
    assert reports[0].startswith("the recurrence rule is invalid (")


@pytest.mark.parametrize("value", ["2020-01-01", 5, {}])
def test_a_start_that_is_no_date_is_reported(value: Any) -> None:
    reports: list[str] = []
    assert start.extract(SimpleNamespace(x=value), reports.append) is None
    assert reports == [f"a value of type {type(value).__name__} is not a date and is ignored"]


def test_a_far_occurrence_is_left_out() -> None:
    reports: list[str] = []
    thing = SimpleNamespace(x=SPRING_NOON.replace(year=4008), recurrence="RRULE:FREQ=YEARLY;COUNT=5")
    assert start.extract(thing, reports.append) == (days(SPRING_NOON.replace(year=4008)),)
    assert start.extract(SimpleNamespace(x=datetime.max), reports.append) is None
    assert len(reports) == 2


def test_time_beyond_all_occurrences_is_after_each() -> None:
    condition = start.where({"x": {"query": datetime.max, "range": "max"}})
    assert condition is not None
    assert (condition.sql, condition.params) == ('("x"[1]) <= %s', (LATEST,))
