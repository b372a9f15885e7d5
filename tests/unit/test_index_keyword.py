"""KeywordIndex: columns, values and queries."""

from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.simple import KeywordIndexTranslator
from plone.pgcatalog.sql.column import GIN_OPTIONS
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from types import SimpleNamespace
from typing import Any

import pytest


keyword = KeywordIndexTranslator(KeywordIndex("x"), "x")


def refused(sentence: str) -> None:
    raise AssertionError(sentence)


def test_schema() -> None:
    assert keyword.columns() == (Column("x", "text[]", can_be_interned=True),)
    definition = f'USING gin ("x") {GIN_OPTIONS} WHERE "x" IS NOT NULL'
    assert keyword.sql_indexes() == (SQLIndex("x", definition, lists="x", column="x"),)
    assert keyword.key_expression() == 'unnest("x")'


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        (("b", "a", "b"), ["a", "b"]),
        ({"a"}, ["a"]),
        ("news", ["news"]),
        (b"news", ["\x02bnews"]),
        (7, ["\x02n>a17"]),
        ([7, "7", 7.0], ["\x02n>a17", "7"]),
        ([None, "a"], ["\x020", "a"]),
        ([["a"], ["b"]], ["\x02s\x02sa\x01\x03\x02\x01\x02\x02sb\x01\x03\x02\x01\x02"]),
        (lambda: ["a"], ["a"]),
        *((value, None) for value in ((), [], "", 0, None, False)),
    ],
)
def test_value(value: Any, keys: list[str] | None) -> None:
    assert keyword.extract(SimpleNamespace(x=value), refused) == (keys and (keys,))


def test_the_last_attribute_counts() -> None:
    translator = KeywordIndexTranslator(KeywordIndex("x", extra={"indexed_attrs": "a,b"}), "x")
    assert translator.extract(SimpleNamespace(a=["1"], b=["2"]), refused) == (["2"],)
    assert translator.extract(SimpleNamespace(a=["1"], b=[]), refused) is None
    assert translator.extract(SimpleNamespace(a=["1"]), refused) is None


def test_what_cannot_be_held_is_reported() -> None:
    reports: list[str] = []
    thing = SimpleNamespace(x=[float("nan"), "a"])
    assert keyword.extract(thing, reports.append) == (["a"],)
    assert reports == ["a value of type float has no order and is left out"]


@pytest.mark.parametrize(
    ("query", "sql", "params"),
    [
        ("a", '"x" && %s::text[]', (["a"],)),
        (["a", "b", "a"], '"x" && %s::text[]', (["a", "b"],)),
        (7, '"x" && %s::text[]', (["\x02n>a17"],)),
        ({"query": ["a", "b"], "operator": "and"}, '"x" @> %s::text[]', (["a", "b"],)),
        ({"query": ["a", None], "operator": "AND"}, '"x" @> %s::text[]', (["a"],)),
        ({"query": ["a"], "not": "b"}, '("x" && %s::text[]) AND (("x" && %s::text[]) IS NOT TRUE)', (["a"], ["b"])),
        ({"not": "b"}, '("x" && %s::text[]) IS NOT TRUE', (["b"],)),
        (
            {"query": ["a", "c"], "range": "min:max"},
            'EXISTS (SELECT FROM unnest("x") AS element WHERE element COLLATE "C" >= %s AND element COLLATE "C" <= %s)',
            ("a", "c"),
        ),
        ({"query": "a", "range": "nonsense"}, '"x" IS NOT NULL', ()),
    ],
)
def test_query(query: Any, sql: str, params: tuple[Any, ...]) -> None:
    condition = keyword.where({"x": query})
    assert condition is not None
    assert (condition.sql, condition.params) == (sql, params)


@pytest.mark.parametrize(
    "query",
    [
        *([], None, [None], float("nan")),
        {"query": [], "operator": "and"},
        {"query": ["a", float("nan")], "operator": "and"},
        {"query": [{}], "range": "min"},
    ],
)
def test_finds_nothing(query: Any) -> None:
    assert keyword.where({"x": query}) is NOTHING


def test_an_unknown_operator() -> None:
    with pytest.raises(ValueError, match="operator 'xor'"):
        keyword.where({"x": {"query": "a", "operator": "xor"}})


def test_deviation_a_range_with_and_is_a_range() -> None:
    """ZCatalog: only the rows that have every key that lies in the range."""
    query = {"query": ["a", "c"], "range": "min:max"}
    assert keyword.where({"x": {**query, "operator": "and"}}) == keyword.where({"x": query})


def test_entry_and_key() -> None:
    assert keyword.entry((["\x02n>a17", "a"],)) == [7, "a"]
    assert keyword.key("\x02n>a17") == 7
