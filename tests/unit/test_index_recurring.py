"""DateRecurringIndex: columns, occurrences and queries."""

from datetime import date
from datetime import datetime
from datetime import timedelta
from datetime import timezone
from datetime import UTC
from DateTime.DateTime import DateTime
from plone.event.utils import dt2int
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.recurring import DateRecurringIndexTranslator
from plone.pgcatalog.indexes.recurring import LATEST
from Products.DateRecurringIndex.index import DateRecurringIndex
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytz


start = DateRecurringIndexTranslator(
    DateRecurringIndex("x", extra=SimpleNamespace(recurdef="recurrence", until="until")), "x"
)
BERLIN = pytz.timezone("Europe/Berlin")
NOON = datetime(2020, 3, 28, 12, tzinfo=UTC)
DAILY = "RRULE:FREQ=DAILY;COUNT=3"


def refused(sentence: str) -> None:
    raise AssertionError(sentence)


def occurrences(value: Any, rule: Any = None, **others: Any) -> list[int]:
    thing = SimpleNamespace(x=value, recurrence=rule, **others)
    values = start.extract(thing, refused)
    assert values is not None
    numbers: list[int] = values[0]
    return numbers


def days(*instants: datetime) -> list[int]:
    return [dt2int(instant) for instant in instants]


def test_schema() -> None:
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
        NOON,
        NOON.replace(tzinfo=None),
        NOON.astimezone(BERLIN),
        NOON.astimezone(ZoneInfo("Europe/Berlin")),
        DateTime("2020/03/28 12:00 UTC"),
        lambda: NOON,
    ],
)
def test_a_single_date(value: Any) -> None:
    assert occurrences(value) == days(NOON)


def test_a_plain_date_is_midnight_in_utc() -> None:
    assert occurrences(date(2020, 3, 28)) == days(NOON.replace(hour=0))


@pytest.mark.parametrize("zone", [BERLIN, ZoneInfo("Europe/Berlin")])
def test_an_event_stays_at_its_hour_over_daylight_saving(zone: Any) -> None:
    """Also in a zone that is not of pytz, where plone.event finds no ``localize``."""
    expected = days(NOON, NOON.replace(day=29, hour=11), NOON.replace(day=30, hour=11))
    assert occurrences(NOON.astimezone(zone), DAILY) == expected


@pytest.mark.parametrize("zone", [pytz.utc, UTC, timezone(timedelta(hours=5)), ZoneInfo("UTC")])
def test_an_event_in_a_zone_without_daylight_saving(zone: Any) -> None:
    expected = days(NOON, NOON.replace(day=29), NOON.replace(day=30))
    assert occurrences(NOON.astimezone(zone), DAILY) == expected


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
    assert occurrences(NOON, rule) == days(*(NOON.replace(day=day) for day in expected))


def test_until() -> None:
    assert len(occurrences(NOON, DAILY, until=NOON + timedelta(days=1))) == 2


def test_an_endless_event_ends() -> None:
    assert len(occurrences(NOON, "RRULE:FREQ=DAILY")) == 1000


@pytest.mark.parametrize("thing", [SimpleNamespace(), SimpleNamespace(x=None), SimpleNamespace(x=lambda: None)])
def test_no_value(thing: Any) -> None:
    """None too: a deviation from ZCatalog, which indexes it as the number 0."""
    assert start.extract(thing, refused) is None


def test_an_event_whose_only_occurrence_is_excluded() -> None:
    thing = SimpleNamespace(x=NOON, recurrence="RRULE:FREQ=DAILY;COUNT=1\nEXDATE:20200328T000000")
    assert start.extract(thing, refused) is None


@pytest.mark.parametrize("rule", ["RRULE:FREQ=SOMETIMES", "nonsense", "RRULE:COUNT=x", 7, ["RRULE"]])
def test_a_broken_rule_is_reported(rule: Any) -> None:
    reports: list[str] = []
    thing = SimpleNamespace(x=NOON, recurrence=rule)
    assert start.extract(thing, reports.append) == (days(NOON),)
    assert len(reports) == 1
    assert reports[0].startswith("the recurrence rule is broken (")


@pytest.mark.parametrize("value", ["2020-01-01", 5, {}])
def test_what_is_no_date_is_reported(value: Any) -> None:
    reports: list[str] = []
    assert start.extract(SimpleNamespace(x=value), reports.append) is None
    assert reports == [f"a value of type {type(value).__name__} is no date and is left out"]


def test_a_far_occurrence_is_left_out() -> None:
    reports: list[str] = []
    thing = SimpleNamespace(x=NOON.replace(year=4008), recurrence="RRULE:FREQ=YEARLY;COUNT=5")
    assert start.extract(thing, reports.append) == (days(NOON.replace(year=4008)),)
    assert start.extract(SimpleNamespace(x=datetime.max), reports.append) is None
    assert len(reports) == 2


N = dt2int(NOON)


@pytest.mark.parametrize(
    ("query", "sql", "params"),
    [
        (NOON, '"x" && %s::integer[]', ([N],)),
        ([NOON, NOON + timedelta(minutes=1)], '"x" && %s::integer[]', ([N, N + 1],)),
        ({"query": NOON, "range": "min"}, '("x"[cardinality("x")]) >= %s', (N,)),
        ({"query": NOON, "range": "max"}, '("x"[1]) <= %s', (N,)),
        (
            {"query": [NOON, NOON + timedelta(hours=1)], "range": "min:max"},
            '(("x"[cardinality("x")]) >= %s) AND (("x"[1]) <= %s) AND (EXISTS (SELECT FROM'
            ' unnest("x") AS occurrence WHERE occurrence BETWEEN %s AND %s))',
            (N, N + 60, N, N + 60),
        ),
        ({"not": NOON}, '("x" && %s::integer[]) IS NOT TRUE', ([N],)),
        ({"query": datetime.max, "range": "max"}, '("x"[1]) <= %s', (LATEST,)),
    ],
)
def test_query(query: Any, sql: str, params: tuple[Any, ...]) -> None:
    condition = start.where({"x": query})
    assert condition is not None
    assert (condition.sql, condition.params) == (sql, params)


def test_none_finds_nothing() -> None:
    assert start.where({"x": None}) is NOTHING


def test_a_query_that_is_no_date() -> None:
    with pytest.raises(AttributeError):
        start.where({"x": "2020-01-01"})


def test_entry() -> None:
    assert start.entry(([N, N + 1],)) == (N, N + 1)
