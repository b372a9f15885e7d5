"""DateRangeIndex: columns, values and queries."""

from DateTime.DateTime import DateTime
from DateTime.interfaces import DateTimeError
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.daterange import ALWAYS_SINCE
from plone.pgcatalog.indexes.daterange import ALWAYS_UNTIL
from plone.pgcatalog.indexes.daterange import DateRangeIndexTranslator
from Products.PluginIndexes.DateRangeIndex.DateRangeIndex import DateRangeIndex
from types import SimpleNamespace
from typing import Any

import pytest


effective = DateRangeIndexTranslator(DateRangeIndex("x", "since", "until"), "x")
HOUR = DateTime(3600, "UTC")


def refused(sentence: str) -> None:
    raise AssertionError(sentence)


def test_schema() -> None:
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
def test_value(attributes: dict[str, Any], values: tuple[int, int], entry: Any) -> None:
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
def test_query(query: Any) -> None:
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
