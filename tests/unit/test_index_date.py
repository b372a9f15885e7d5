"""DateIndex: full resolution in the column, the index's own resolution in queries."""

from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import timezone
from datetime import UTC
from DateTime.DateTime import DateTime
from DateTime.interfaces import DateTimeError
from hypothesis import given
from hypothesis import strategies as st
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.date import CEILING
from plone.pgcatalog.indexes.date import DateIndexTranslator
from plone.pgcatalog.indexes.date import FLOOR
from plone.pgcatalog.indexes.date import from_minutes
from plone.pgcatalog.indexes.date import to_instant
from plone.pgcatalog.indexes.date import to_minutes
from Products.PluginIndexes.DateIndex.DateIndex import DateIndex
from types import SimpleNamespace
from typing import Any

import pytest


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
