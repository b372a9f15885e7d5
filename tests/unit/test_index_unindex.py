"""The dialect of UnIndex, as SQL of a FieldIndex and a KeywordIndex."""

from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.simple import FieldIndexTranslator
from plone.pgcatalog.indexes.simple import KeywordIndexTranslator
from plone.pgcatalog.indexes.unindex import MISSING
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from types import SimpleNamespace
from typing import Any
from ZPublisher.HTTPRequest import record

import pytest


field = FieldIndexTranslator(FieldIndex("x"), "x")
keyword = KeywordIndexTranslator(KeywordIndex("x"), "x")

HAS_VALUE = '"x" IS NOT NULL'


def zpublisher_record(**options: Any) -> Any:
    parsed = record()
    parsed.__dict__.update(options)
    return parsed


@pytest.mark.parametrize(
    ("query", "sql", "params"),
    [
        # one value, several, none
        ({"x": "a"}, '"x" = %s', ("a",)),
        ({"x": ["a"]}, '"x" = %s', ("a",)),
        ({"x": ("a", "b", "a")}, '"x" = ANY(%s::text[])', (["a", "b"],)),
        ({"x": {"query": "a"}}, '"x" = %s', ("a",)),
        ({"x": zpublisher_record(query="a")}, '"x" = %s', ("a",)),
        ({"x": []}, "FALSE", ()),
        ({"x": {"query": []}}, "FALSE", ()),
        ({"x": {}}, "FALSE", ()),
        # None is never looked up, and what has no key cannot be found
        ({"x": None}, "FALSE", ()),
        ({"x": [None, "a"]}, '"x" = %s', ("a",)),
        ({"x": [{}, "a"]}, '"x" = %s', ("a",)),
        ({"x": float("nan")}, "FALSE", ()),
        # ranges end where another type begins
        ({"x": {"query": "b", "range": "min"}}, '"x" >= %s', ("b",)),
        ({"x": {"query": "b", "range": "max"}}, '("x" >= %s) AND ("x" <= %s)', ("\x03", "b")),
        ({"x": {"query": 5, "range": "min"}}, '("x" >= %s) AND ("x" < %s)', ("\x02n>a15", "\x02o")),
        ({"x": {"query": 5, "range": "max"}}, '("x" >= %s) AND ("x" <= %s)', ("\x02n", "\x02n>a15")),
        ({"x": {"query": ["b", "a"], "range": "min:max"}}, '("x" >= %s) AND ("x" <= %s)', ("a", "b")),
        ({"x": {"query": ["b", "a"], "range": "max:min"}}, '("x" >= %s) AND ("x" <= %s)', ("a", "b")),
        ({"x": ["c", "b"], "x_range": "minmax"}, '("x" >= %s) AND ("x" <= %s)', ("b", "c")),
        ({"x": {"query": [{}], "range": "min"}}, "FALSE", ()),
        ({"x": {"query": [{}], "range": "max"}}, HAS_VALUE, ()),
        # `if hi:` - a falsy upper end is none
        ({"x": {"query": 0, "range": "max"}}, HAS_VALUE, ()),
        ({"x": {"query": [0, -5], "range": "min:max"}}, '("x" >= %s) AND ("x" < %s)', ("\x02n<Z84~", "\x02o")),
        ({"x": {"query": None, "range": "min"}}, HAS_VALUE, ()),
        ({"x": {"query": "a", "range": "between"}}, HAS_VALUE, ()),
        ({"x": {"query": "a", "range": ""}}, '"x" = %s', ("a",)),
        # not
        ({"x": {"not": "a"}}, '("x" = %s) IS NOT TRUE', ("a",)),
        ({"x": {"not": ["a", "b"]}}, '("x" = ANY(%s::text[])) IS NOT TRUE', (["a", "b"],)),
        ({"x": {"query": "a", "not": "b"}}, '("x" = %s) AND (("x" = %s) IS NOT TRUE)', ("a", "b")),
        ({"x": "a", "x_not": "b"}, '("x" = %s) AND (("x" = %s) IS NOT TRUE)', ("a", "b")),
        ({"x": {"query": "a", "not": []}}, '"x" = %s', ("a",)),
        ({"x": {"not": "a", "range": "min"}}, f'({HAS_VALUE}) AND (("x" = %s) IS NOT TRUE)', ("a",)),
        ({"x": {"not": {}}}, "TRUE", ()),
    ],
)
def test_field_query(query: dict[str, Any], sql: str, params: tuple[Any, ...]) -> None:
    condition = field.where(query)
    assert condition is not None
    assert (condition.sql, condition.params) == (sql, params)


@pytest.mark.parametrize("query", [{}, {"y": "a"}, {"x_range": "min"}])
def test_a_query_without_the_index(query: dict[str, Any]) -> None:
    assert field.where(query) is None


def test_nothing_is_recognised() -> None:
    """An impossible query costs no round trip: that is decided by identity."""
    assert field.where({"x": []}) is NOTHING
    assert field.where({"x": {"query": [], "not": "a", "range": ""}}) is not NOTHING
    assert keyword.where({"x": None}) is NOTHING


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ({"x": {"query": "a", "operator": "and"}}, ValueError),
        ({"x": {"query": "a", "depth": 1}}, ValueError),
        ({"x": "a", "x_usage": "range:min"}, ValueError),
        ({"x": {"query": [], "range": "min"}}, ValueError),
        ({"x": {"query": [1, "a"], "range": "min"}}, TypeError),
    ],
)
def test_a_wrong_query(query: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        field.where(query)


def test_usage_of_an_index_that_allows_it() -> None:
    index = FieldIndex("x")
    index.query_options = ("query", "usage")
    translator = FieldIndexTranslator(index, "x")
    for usage in ("range:min", "RANGE:MIN"):
        found = translator.where({"x": {"query": "b", "usage": usage}})
        assert found == field.where({"x": {"query": "b", "range": "min"}})
    assert translator.where({"x": {"query": "b", "usage": "exact"}}) == field.where({"x": "b"})


def test_the_operator_of_an_index_that_means_and() -> None:
    index = FieldIndex("x")
    index.useOperator = "and"
    translator = FieldIndexTranslator(index, "x")
    assert translator.where({"x": ["a", "a"]}) == field.where({"x": "a"})
    assert translator.where({"x": ["a", "b"]}) is NOTHING
    assert translator.where({"x": ["a", {}]}) is NOTHING
    assert translator.where({"x": [None]}) is NOTHING


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("a", "b", "b"),
        ("a", None, MISSING),
        (0, None, 0),  # `if oldDatum:`
        (None, "b", "b"),
        ("a", [], []),
        (MISSING, [], MISSING),
        (1, True, 1),
    ],
)
def test_several_attributes(first: Any, last: Any, expected: Any) -> None:
    """Each attribute is indexed over the one before it."""
    index = FieldIndex("x", extra={"indexed_attrs": ["first", "last"]})
    thing = SimpleNamespace(last=last)
    if first is not MISSING:
        thing.first = first
    assert FieldIndexTranslator(index, "x").datum(thing) == expected


def test_the_last_attribute_is_missing() -> None:
    index = FieldIndex("x", extra={"indexed_attrs": ["first", "last"]})
    assert FieldIndexTranslator(index, "x").datum(SimpleNamespace(first=1)) is MISSING
