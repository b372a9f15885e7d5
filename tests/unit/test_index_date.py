"""DateIndex, DateRangeIndex and DateRecurringIndex: columns, values, occurrences and queries."""

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
from plone.pgcatalog.indexes.daterange import ALWAYS_SINCE
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
    """Whether *query* finds *instant*; its SQL is simple enough to be read here."""
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


def test_a_naive_time_is_in_utc_if_the_index_says_so() -> None:
    translator = make(index_naive_time_as_local=False)
    assert value_of(translator, NOON.replace(tzinfo=None)) == NOON


@pytest.mark.parametrize("value", [None, ""])
def test_no_value(value: Any) -> None:
    assert dates.extract(SimpleNamespace(x=value), refused) is None


@pytest.mark.parametrize("value", ["garbage", "2020/13/45", float("nan"), object(), b"2020", {}])
def test_what_is_no_date_is_reported(value: Any) -> None:
    reports: list[str] = []
    assert dates.extract(SimpleNamespace(x=value), reports.append) is None
    assert reports == [f"a value of type {type(value).__name__} is no date and is left out"]


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
def test_the_ends_of_time(value: Any, expected: datetime) -> None:
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
def test_the_minute_is_the_one_of_zcatalog(value: Any, local: bool) -> None:
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


@given(moments, moments, st.sampled_from([1, 7, 60, 1440]), st.sampled_from(["", "min", "max"]))
def test_matching_is_in_the_resolution_of_the_index(stored: Any, asked: Any, precision: int, range_word: str) -> None:
    translator = make(precision=precision)
    a, b = translator.index._convert(stored), translator.index._convert(asked)
    expected = {"": a == b, "min": a >= b, "max": a <= b}[range_word]
    instant = to_instant(stored, True)
    assert instant is not None
    assert matches(translator, {"query": asked, "range": range_word}, instant) is expected


@pytest.mark.parametrize(
    ("query", "sql", "params"),
    [
        (NOON, '("x" >= %s) AND ("x" < %s)', (NOON, NOON + MINUTE)),
        (NOON.replace(second=59), '("x" >= %s) AND ("x" < %s)', (NOON, NOON + MINUTE)),
        ({"query": NOON, "range": "min"}, '"x" >= %s', (NOON,)),
        ({"query": NOON, "range": "max"}, '"x" < %s', (NOON + MINUTE,)),
        ({"query": [NOON + MINUTE, NOON], "range": "min:max"}, '("x" >= %s) AND ("x" < %s)', (NOON, NOON + 2 * MINUTE)),
        (
            [NOON, NOON + 5 * MINUTE, NOON],
            '(("x" >= %s) AND ("x" < %s)) OR (("x" >= %s) AND ("x" < %s))',
            (NOON, NOON + MINUTE, NOON + 5 * MINUTE, NOON + 6 * MINUTE),
        ),
        ({"not": NOON}, '(("x" >= %s) AND ("x" < %s)) IS NOT TRUE', (NOON, NOON + MINUTE)),
        ({"query": None, "range": "min"}, '"x" IS NOT NULL', ()),
    ],
)
def test_query(query: Any, sql: str, params: tuple[Any, ...]) -> None:
    condition = dates.where({"x": query})
    assert condition is not None
    assert (condition.sql, condition.params) == (sql, params)


@pytest.mark.parametrize("query", [[], None, "", b"2020", [None]])
def test_finds_nothing(query: Any) -> None:
    assert dates.where({"x": query}) is NOTHING


def test_a_query_that_is_no_date() -> None:
    with pytest.raises(DateTimeError):
        dates.where({"x": "garbage"})


def test_deviation_not_with_a_query_is_converted_too() -> None:
    """ZCatalog looks the unconverted date up, and excludes nothing."""
    condition = dates.where({"x": {"query": NOON, "not": NOON}})
    assert condition is not None
    assert condition.params == (NOON, NOON + MINUTE) * 2


def test_entry_in_any_time_zone() -> None:
    entry = dates.index._convert(NOON)
    assert dates.entry((NOON.astimezone(timezone(timedelta(hours=13))),)) == entry
    assert make(precision=1440).entry((NOON,)) == entry - entry % 1440


effective = DateRangeIndexTranslator(DateRangeIndex("x", "since", "until"), "x")
HOUR = DateTime(3600, "UTC")


def test_range_schema() -> None:
    assert effective.columns() == (Column("x_since", "integer"), Column("x_until", "integer"))
    assert effective.sql_indexes() == ()
    assert effective.order_by() == ('"x_since"', '"x_until"')
    assert effective.key_expression() is None


@pytest.mark.parametrize(
    ("attributes", "values", "entry"),
    [
        ({"since": HOUR, "until": lambda: HOUR + 1}, (60, 1500), (60, 1500)),
        ({"since": HOUR}, (60, ALWAYS_UNTIL), (60, None)),
        ({"since": None, "until": 7}, (ALWAYS_SINCE, 7), (None, 7)),
        ({}, (ALWAYS_SINCE, ALWAYS_UNTIL), (None, None)),
        # beyond floor and ceiling of the index
        ({"since": -510162481}, (ALWAYS_SINCE, ALWAYS_UNTIL), (None, None)),
        ({"until": DateTime("2600/01/01")}, (ALWAYS_SINCE, ALWAYS_UNTIL), (None, None)),
    ],
)
def test_range_value(attributes: dict[str, Any], values: tuple[int, int], entry: Any) -> None:
    assert effective.extract(SimpleNamespace(**attributes), refused) == values
    assert effective.entry(values) == entry


def test_an_index_without_fields_has_no_values() -> None:
    assert DateRangeIndexTranslator(DateRangeIndex("x"), "x").extract(SimpleNamespace(), refused) is None


def test_a_far_date_is_an_open_end() -> None:
    """An OverflowError of ZCatalog, which CMFPlone turns into a date beyond the ceiling."""
    values = effective.extract(SimpleNamespace(since=HOUR, until=DateTime("9999/12/31")), lambda _: None)
    assert values == (60, ALWAYS_UNTIL)


@pytest.mark.parametrize("value", ["garbage", float("nan"), [], object()])
def test_what_is_no_date_is_an_open_end(value: Any) -> None:
    reports: list[str] = []
    values = effective.extract(SimpleNamespace(since=HOUR, until=value), reports.append)
    assert values == (60, ALWAYS_UNTIL)
    assert reports == ["until is no date or too far away and counts as an open end"]


def test_an_error_of_the_object_propagates() -> None:
    def method() -> None:
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        effective.extract(SimpleNamespace(since=method), refused)


@pytest.mark.parametrize("query", [HOUR, [HOUR, "ignored"], {"query": HOUR}, 60, "1970/01/01 01:00 UTC"])
def test_range_query(query: Any) -> None:
    condition = effective.where({"x": query})
    assert condition is not None
    assert condition.sql == '("x_since" <= %s) AND ("x_until" >= %s)'
    assert condition.params == (60, 60)


@pytest.mark.parametrize("query", [None, DateTime("2600/01/01")])
def test_a_time_the_index_does_not_know_finds_every_object(query: Any) -> None:
    condition = effective.where({"x": query})
    assert condition is not None
    assert (condition.sql, condition.params) == ('"x_since" IS NOT NULL', ())


@pytest.mark.parametrize(
    ("query", "error"), [([], IndexError), ("garbage", DateTimeError), ({"query": HOUR, "range": "min"}, ValueError)]
)
def test_a_wrong_query(query: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        effective.where({"x": query})


def test_precision_and_limits_of_the_index() -> None:
    index = DateRangeIndex("x", "since", "until", floor_value=0, ceiling_value=100, precision_value=30)
    translator = DateRangeIndexTranslator(index, "x")
    assert translator.extract(SimpleNamespace(since=45, until=145), refused) == (30, ALWAYS_UNTIL)
    condition = translator.where({"x": 59})
    assert condition is not None
    assert condition.params == (30, 30)


start = DateRecurringIndexTranslator(
    DateRecurringIndex("x", extra=SimpleNamespace(recurdef="recurrence", until="until")), "x"
)
BERLIN = pytz.timezone("Europe/Berlin")
SPRING_NOON = datetime(2020, 3, 28, 12, tzinfo=UTC)
DAILY = "RRULE:FREQ=DAILY;COUNT=3"


def occurrences(value: Any, rule: Any = None, **others: Any) -> list[int]:
    thing = SimpleNamespace(x=value, recurrence=rule, **others)
    values = start.extract(thing, refused)
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


@pytest.mark.parametrize(
    "value",
    [
        SPRING_NOON,
        SPRING_NOON.replace(tzinfo=None),
        SPRING_NOON.astimezone(BERLIN),
        SPRING_NOON.astimezone(ZoneInfo("Europe/Berlin")),
        DateTime("2020/03/28 12:00 UTC"),
        lambda: SPRING_NOON,
    ],
)
def test_a_single_date(value: Any) -> None:
    assert occurrences(value) == days(SPRING_NOON)


def test_a_plain_date_is_midnight_in_utc() -> None:
    assert occurrences(date(2020, 3, 28)) == days(SPRING_NOON.replace(hour=0))


@pytest.mark.parametrize("zone", [BERLIN, ZoneInfo("Europe/Berlin")])
def test_an_event_stays_at_its_hour_over_daylight_saving(zone: Any) -> None:
    """Also in a zone that is not of pytz, where plone.event finds no ``localize``."""
    expected = days(SPRING_NOON, SPRING_NOON.replace(day=29, hour=11), SPRING_NOON.replace(day=30, hour=11))
    assert occurrences(SPRING_NOON.astimezone(zone), DAILY) == expected


@pytest.mark.parametrize("zone", [pytz.utc, UTC, timezone(timedelta(hours=5)), ZoneInfo("UTC")])
def test_an_event_in_a_zone_without_daylight_saving(zone: Any) -> None:
    expected = days(SPRING_NOON, SPRING_NOON.replace(day=29), SPRING_NOON.replace(day=30))
    assert occurrences(SPRING_NOON.astimezone(zone), DAILY) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (f"{DAILY}\nEXDATE:20200329T000000", [28, 30]),
        (f"{DAILY}\nEXDATE:20200328T000000", [29, 30]),
        ("RRULE:FREQ=DAILY;COUNT=1\nRDATE:20200331T000000", [28, 31]),
        ("RRULE:FREQ=DAILY;UNTIL=20200329T000000", [28, 29]),
        (lambda: DAILY, [28, 29, 30]),
    ],
)
def test_rules(rule: Any, expected: list[int]) -> None:
    assert occurrences(SPRING_NOON, rule) == days(*(SPRING_NOON.replace(day=day) for day in expected))


def test_until() -> None:
    assert len(occurrences(SPRING_NOON, DAILY, until=SPRING_NOON + timedelta(days=1))) == 2


def test_an_endless_event_ends() -> None:
    assert len(occurrences(SPRING_NOON, "RRULE:FREQ=DAILY")) == 1000


@pytest.mark.parametrize("thing", [SimpleNamespace(), SimpleNamespace(x=None), SimpleNamespace(x=lambda: None)])
def test_no_recurring_value(thing: Any) -> None:
    """None too: a deviation from ZCatalog, which indexes it as the number 0."""
    assert start.extract(thing, refused) is None


def test_an_event_whose_only_occurrence_is_excluded() -> None:
    thing = SimpleNamespace(x=SPRING_NOON, recurrence="RRULE:FREQ=DAILY;COUNT=1\nEXDATE:20200328T000000")
    assert start.extract(thing, refused) is None


@pytest.mark.parametrize("rule", ["RRULE:FREQ=SOMETIMES", "nonsense", "RRULE:COUNT=x", 7, ["RRULE"]])
def test_a_broken_rule_is_reported(rule: Any) -> None:
    reports: list[str] = []
    thing = SimpleNamespace(x=SPRING_NOON, recurrence=rule)
    assert start.extract(thing, reports.append) == (days(SPRING_NOON),)
    assert len(reports) == 1
    assert reports[0].startswith("the recurrence rule is broken (")


@pytest.mark.parametrize("value", ["2020-01-01", 5, {}])
def test_a_start_that_is_no_date_is_reported(value: Any) -> None:
    reports: list[str] = []
    assert start.extract(SimpleNamespace(x=value), reports.append) is None
    assert reports == [f"a value of type {type(value).__name__} is no date and is left out"]


def test_a_far_occurrence_is_left_out() -> None:
    reports: list[str] = []
    thing = SimpleNamespace(x=SPRING_NOON.replace(year=4008), recurrence="RRULE:FREQ=YEARLY;COUNT=5")
    assert start.extract(thing, reports.append) == (days(SPRING_NOON.replace(year=4008)),)
    assert start.extract(SimpleNamespace(x=datetime.max), reports.append) is None
    assert len(reports) == 2


N = dt2int(SPRING_NOON)


@pytest.mark.parametrize(
    ("query", "sql", "params"),
    [
        (SPRING_NOON, '"x" && %s::integer[]', ([N],)),
        ([SPRING_NOON, SPRING_NOON + timedelta(minutes=1)], '"x" && %s::integer[]', ([N, N + 1],)),
        ({"query": SPRING_NOON, "range": "min"}, '("x"[cardinality("x")]) >= %s', (N,)),
        ({"query": SPRING_NOON, "range": "max"}, '("x"[1]) <= %s', (N,)),
        (
            {"query": [SPRING_NOON, SPRING_NOON + timedelta(hours=1)], "range": "min:max"},
            '(("x"[cardinality("x")]) >= %s) AND (("x"[1]) <= %s) AND (EXISTS (SELECT FROM'
            ' unnest("x") AS occurrence WHERE occurrence BETWEEN %s AND %s))',
            (N, N + 60, N, N + 60),
        ),
        ({"not": SPRING_NOON}, '("x" && %s::integer[]) IS NOT TRUE', ([N],)),
        ({"query": datetime.max, "range": "max"}, '("x"[1]) <= %s', (LATEST,)),
    ],
)
def test_recurring_query(query: Any, sql: str, params: tuple[Any, ...]) -> None:
    condition = start.where({"x": query})
    assert condition is not None
    assert (condition.sql, condition.params) == (sql, params)


def test_none_finds_nothing() -> None:
    assert start.where({"x": None}) is NOTHING


def test_a_recurring_query_that_is_no_date() -> None:
    with pytest.raises(AttributeError):
        start.where({"x": "2020-01-01"})


def test_entry() -> None:
    assert start.entry(([N, N + 1],)) == (N, N + 1)
