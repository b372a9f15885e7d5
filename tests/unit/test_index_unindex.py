"""FieldIndex, UUIDIndex, KeywordIndex, BooleanIndex and GopipIndex: columns, and queries that ZCatalog's own cannot answer.

Answers, values and orders are compared in ``tests/integration/test_index_values_oracle.py``.  The tests here are about wrong
queries, values without a place in an order, and the forms of SQL that decide which SQL index is used.
"""

from Acquisition import Explicit
from Acquisition import Implicit
from plone.folder.nogopip import GopipIndex
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.simple import BooleanIndexTranslator
from plone.pgcatalog.indexes.simple import FieldIndexTranslator
from plone.pgcatalog.indexes.simple import GopipIndexTranslator
from plone.pgcatalog.indexes.simple import KeywordIndexTranslator
from plone.pgcatalog.indexes.simple import UUIDIndexTranslator
from plone.pgcatalog.sql.column import GIN_OPTIONS
from Products.PluginIndexes.BooleanIndex.BooleanIndex import BooleanIndex
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from Products.PluginIndexes.UUIDIndex.UUIDIndex import UUIDIndex
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
        ({"x": ("a", "b", "a")}, '"x" = ANY(%s::text[])', (["a", "b"],)),
        ({"x": zpublisher_record(query="a")}, '"x" = %s', ("a",)),
        ({"x": []}, "FALSE", ()),
        ({"x": {}}, "FALSE", ()),
        # None is never looked up, and a value without a key cannot be found
        ({"x": [None, "a"]}, '"x" = %s', ("a",)),
        ({"x": [{}, "a"]}, '"x" = %s', ("a",)),
        ({"x": float("nan")}, "FALSE", ()),
        # ranges end where another type begins
        ({"x": {"query": "b", "range": "min"}}, '"x" >= %s', ("b",)),
        ({"x": {"query": "b", "range": "max"}}, '("x" >= %s) AND ("x" <= %s)', ("\x03", "b")),
        ({"x": {"query": 5, "range": "min"}}, '("x" >= %s) AND ("x" < %s)', ("\x02n>a15", "\x02o")),
        ({"x": {"query": 5, "range": "max"}}, '("x" >= %s) AND ("x" <= %s)', ("\x02n", "\x02n>a15")),
        ({"x": {"query": ["b", "a"], "range": "min:max"}}, '("x" >= %s) AND ("x" <= %s)', ("a", "b")),
        ({"x": {"query": [{}], "range": "min"}}, "FALSE", ()),
        ({"x": {"query": [{}], "range": "max"}}, HAS_VALUE, ()),
        # `if hi:` - a falsy upper end is no end
        ({"x": {"query": 0, "range": "max"}}, HAS_VALUE, ()),
        ({"x": {"query": [0, -5], "range": "min:max"}}, '("x" >= %s) AND ("x" < %s)', ("\x02n<Z84~", "\x02o")),
        # not
        ({"x": {"not": "a"}}, '("x" = %s) IS NOT TRUE', ("a",)),
        ({"x": {"query": "a", "not": "b"}}, '("x" = %s) AND (("x" = %s) IS NOT TRUE)', ("a", "b")),
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
def test_query_without_the_index_has_no_condition(query: dict[str, Any]) -> None:
    assert field.where(query) is None


def test_impossible_query_is_the_constant_nothing() -> None:
    """An impossible query costs no round trip: the check is by identity."""
    assert field.where({"x": []}) is NOTHING
    assert field.where({"x": {"query": [], "not": "a", "range": ""}}) is not NOTHING
    assert keyword.where({"x": None}) is NOTHING


@pytest.mark.parametrize(
    ("translator", "query", "error"),
    [
        ("field", {"query": "a", "operator": "and"}, ValueError),
        ("field", {"query": "a", "depth": 1}, ValueError),
        ("field", {"query": [], "range": "min"}, ValueError),
        ("field", {"query": [1, "a"], "range": "min"}, TypeError),
        ("uuid", {"query": "a", "operator": "or"}, ValueError),
        ("keyword", {"query": "a", "operator": "xor"}, ValueError),
        *(("boolean", {"query": True, option: "or"}, ValueError) for option in ("not", "range", "operator")),
    ],
)
def test_wrong_query_is_refused(translator: str, query: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        globals()[translator].where({"x": query})


def test_usage_of_an_index_that_allows_it() -> None:
    index = FieldIndex("x")
    index.query_options = ("query", "usage")
    translator = FieldIndexTranslator(index, "x")
    for usage in ("range:min", "RANGE:MIN"):
        found = translator.where({"x": {"query": "b", "usage": usage}})
        assert found == field.where({"x": {"query": "b", "range": "min"}})
    assert translator.where({"x": {"query": "b", "usage": "exact"}}) == field.where({"x": "b"})


def test_operator_of_an_index_with_and_is_applied() -> None:
    index = FieldIndex("x")
    index.useOperator = "and"
    translator = FieldIndexTranslator(index, "x")
    assert translator.where({"x": ["a", "a"]}) == field.where({"x": "a"})
    assert translator.where({"x": ["a", "b"]}) is NOTHING
    assert translator.where({"x": ["a", {}]}) is NOTHING
    assert translator.where({"x": [None]}) is NOTHING


renamed = FieldIndexTranslator(FieldIndex("x"), "x_column")
uuid = UUIDIndexTranslator(UUIDIndex("x"), "x")


def refused(sentence: str) -> None:
    raise AssertionError(sentence)


def test_field_schema() -> None:
    assert renamed.columns() == (Column("x_column", "text"),)
    assert renamed.sql_indexes() == (SQLIndex("x_column", '("x_column")', column="x_column"),)
    assert renamed.order_by() == ('"x_column"',)
    assert renamed.key_expression() == '"x_column"'


def test_another_error_propagates() -> None:
    def method() -> None:
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        renamed.extract(SimpleNamespace(x=method), refused)


def test_value_that_a_field_index_cannot_store_is_reported() -> None:
    reports: list[str] = []
    assert renamed.extract(SimpleNamespace(x={}), reports.append) is None
    long = renamed.extract(SimpleNamespace(x="long" * 22_000), reports.append)
    assert long is not None
    assert len(long[0]) == 900
    assert reports == [
        "a value of type dict has no order and is ignored",
        "a long value is sorted by its beginning only",
    ]
    condition = renamed.where({"x": "long" * 22_000})
    assert condition is not None
    assert condition.params == long


def test_uuid_is_not_acquired() -> None:
    class Parent(Implicit):
        x = "parent's"

    class Child(Implicit):
        pass

    class Stranger(Explicit):
        x = "own"

    assert renamed.extract(Child().__of__(Parent()), refused) == ("parent's",)
    assert uuid.extract(Child().__of__(Parent()), refused) is None
    assert uuid.extract(Stranger().__of__(Parent()), refused) == ("own",)


def test_keyword_schema() -> None:
    assert keyword.columns() == (Column("x", "text[]", can_be_interned=True),)
    definition = f'USING gin ("x") {GIN_OPTIONS} WHERE "x" IS NOT NULL'
    assert keyword.sql_indexes() == (SQLIndex("x", definition, lists="x", column="x"),)
    assert keyword.key_expression() == 'unnest("x")'


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        (("b", "a", "b"), ["a", "b"]),
        (b"news", ["\x02bnews"]),
        ([7, "7", 7.0], ["\x02n>a17", "7"]),
        ([None, "a"], ["\x020", "a"]),
        (False, None),
    ],
)
def test_keyword_value(value: Any, keys: list[str] | None) -> None:
    assert keyword.extract(SimpleNamespace(x=value), refused) == (keys and (keys,))


def test_value_that_cannot_be_stored_is_reported() -> None:
    reports: list[str] = []
    thing = SimpleNamespace(x=[float("nan"), "a"])
    assert keyword.extract(thing, reports.append) == (["a"],)
    assert reports == ["a value of type float has no order and is ignored"]


@pytest.mark.parametrize(
    ("query", "sql", "params"),
    [
        ("a", '"x" && %s::text[]', (["a"],)),
        ({"query": ["a", "b"], "operator": "and"}, '"x" @> %s::text[]', (["a", "b"],)),
        ({"query": ["a", None], "operator": "AND"}, '"x" @> %s::text[]', (["a"],)),
        ({"query": ["a"], "not": "b"}, '("x" && %s::text[]) AND (("x" && %s::text[]) IS NOT TRUE)', (["a"], ["b"])),
        (
            {"query": ["a", "c"], "range": "min:max"},
            'EXISTS (SELECT FROM unnest("x") AS element WHERE element COLLATE "C" >= %s AND element COLLATE "C" <= %s)',
            ("a", "c"),
        ),
    ],
)
def test_keyword_query(query: Any, sql: str, params: tuple[Any, ...]) -> None:
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
def test_impossible_query_finds_nothing(query: Any) -> None:
    assert keyword.where({"x": query}) is NOTHING


def test_deviation_a_range_with_and_is_a_range() -> None:
    """In ZCatalog: only the rows that have every key in the range."""
    query = {"query": ["a", "c"], "range": "min:max"}
    assert keyword.where({"x": {**query, "operator": "and"}}) == keyword.where({"x": query})


boolean = BooleanIndexTranslator(BooleanIndex("x"), "x")
gopip = GopipIndexTranslator(GopipIndex("x", caller=SimpleNamespace(_catalog=None)), "x")


def test_boolean_schema() -> None:
    assert boolean.columns() == (Column("x", "boolean"),)
    assert boolean.sql_indexes() == ()
    assert boolean.order_by() == ('"x"',)
    assert boolean.where({"x": []}) is NOTHING


def test_gopip_stores_and_finds_nothing_but_sorts() -> None:
    assert gopip.columns() == ()
    assert gopip.sql_indexes() == ()
    assert gopip.extract(SimpleNamespace(x=1), refused) is None
    assert gopip.where({"x": 1}) is None
    assert gopip.order_by() == ()
    assert gopip.entry(()) == []
    assert gopip.key_expression() is None
