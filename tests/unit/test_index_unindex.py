"""FieldIndex, UUIDIndex, KeywordIndex, BooleanIndex and GopipIndex: columns, values, and the dialect of UnIndex as SQL."""

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
from plone.pgcatalog.indexes.unindex import MISSING
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


renamed = FieldIndexTranslator(FieldIndex("x"), "x_column")
uuid = UUIDIndexTranslator(UUIDIndex("x"), "x")


def refused(sentence: str) -> None:
    raise AssertionError(sentence)


def test_field_schema() -> None:
    assert renamed.columns() == (Column("x_column", "text"),)
    assert renamed.sql_indexes() == (SQLIndex("x_column", '("x_column")', column="x_column"),)
    assert renamed.order_by() == ('"x_column"',)
    assert renamed.key_expression() == '"x_column"'


@pytest.mark.parametrize(
    ("value", "values"),
    [
        ("a", ("a",)),
        ("", ("\x03",)),
        (0, ("\x02n=",)),
        (lambda: "called", ("called",)),
        (("a", 1), ("\x02ta\x01\x02\x02n>a11\x01\x02",)),
        (None, None),
        ([], None),
    ],
)
def test_field_value(value: Any, values: Any) -> None:
    assert renamed.extract(SimpleNamespace(x=value), refused) == values


def test_no_attribute_is_no_value_of_a_field_index() -> None:
    assert renamed.extract(SimpleNamespace(), refused) is None


@pytest.mark.parametrize("error", [AttributeError, TypeError])
def test_an_attribute_error_is_no_value(error: type[Exception]) -> None:
    def method() -> None:
        raise error

    assert renamed.extract(SimpleNamespace(x=method), refused) is None


def test_another_error_propagates() -> None:
    def method() -> None:
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        renamed.extract(SimpleNamespace(x=method), refused)


def test_what_a_field_index_cannot_hold_is_reported() -> None:
    reports: list[str] = []
    assert renamed.extract(SimpleNamespace(x={}), reports.append) is None
    long = renamed.extract(SimpleNamespace(x="long" * 22_000), reports.append)
    assert long is not None
    assert len(long[0]) == 900
    assert reports == [
        "a value of type dict has no order and is left out",
        "a long value is found as a whole, but sorted by its beginning only",
    ]
    condition = renamed.where({"x": "long" * 22_000})
    assert condition is not None
    assert condition.params == long


def test_field_entry_and_key() -> None:
    assert renamed.entry(("\x02n>a1425",)) == 4.25
    assert renamed.entry(("a",)) == "a"
    assert renamed.key("\x02n>a21") == 10


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


def test_uuid_query() -> None:
    condition = uuid.where({"x": ["a", "b"]})
    assert condition is not None
    assert (condition.sql, condition.params) == ('"x" = ANY(%s::text[])', (["a", "b"],))
    with pytest.raises(ValueError):
        uuid.where({"x": {"query": "a", "operator": "or"}})


def test_keyword_schema() -> None:
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
def test_keyword_value(value: Any, keys: list[str] | None) -> None:
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
def test_finds_nothing(query: Any) -> None:
    assert keyword.where({"x": query}) is NOTHING


def test_an_unknown_operator() -> None:
    with pytest.raises(ValueError, match="operator 'xor'"):
        keyword.where({"x": {"query": "a", "operator": "xor"}})


def test_deviation_a_range_with_and_is_a_range() -> None:
    """ZCatalog: only the rows that have every key that lies in the range."""
    query = {"query": ["a", "c"], "range": "min:max"}
    assert keyword.where({"x": {**query, "operator": "and"}}) == keyword.where({"x": query})


def test_keyword_entry_and_key() -> None:
    assert keyword.entry((["\x02n>a17", "a"],)) == [7, "a"]
    assert keyword.key("\x02n>a17") == 7


boolean = BooleanIndexTranslator(BooleanIndex("x"), "x")
gopip = GopipIndexTranslator(GopipIndex("x", caller=SimpleNamespace(_catalog=None)), "x")


def test_boolean_schema() -> None:
    assert boolean.columns() == (Column("x", "boolean"),)
    assert boolean.sql_indexes() == ()
    assert boolean.order_by() == ('"x"',)


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), (1, True), ("x", True), (False, False), (None, False), ("", False)]
)
def test_boolean_value(value: Any, expected: bool) -> None:
    assert boolean.extract(SimpleNamespace(x=value), refused) == (expected,)


def test_no_attribute_is_no_value() -> None:
    assert boolean.extract(SimpleNamespace(), refused) is None


@pytest.mark.parametrize(
    ("query", "sql"),
    [
        *((True, '"x"'), (1, '"x"'), ("False", '"x"'), (object(), '"x"'), ([[]], 'NOT "x"')),
        *((False, 'NOT "x"'), (0, 'NOT "x"'), (None, 'NOT "x"'), ("", 'NOT "x"')),
        *(([False], 'NOT "x"'), ([True, False], '"x"'), ((0, 1), 'NOT "x"')),
        ({"query": [False]}, 'NOT "x"'),
    ],
)
def test_the_first_value_counts(query: Any, sql: str) -> None:
    condition = boolean.where({"x": query})
    assert condition is not None
    assert (condition.sql, condition.params) == (sql, ())


def test_no_value_finds_nothing() -> None:
    assert boolean.where({"x": []}) is NOTHING
    assert boolean.where({"y": True}) is None


@pytest.mark.parametrize("option", ["not", "range", "operator"])
def test_options_are_refused(option: str) -> None:
    with pytest.raises(ValueError, match=option):
        boolean.where({"x": {"query": True, option: "or"}})


def test_boolean_entry_and_key() -> None:
    assert (boolean.entry((True,)), type(boolean.entry((True,)))) == (1, int)
    assert boolean.key(False) is False


def test_gopip_stores_and_finds_nothing_but_sorts() -> None:
    assert gopip.columns() == ()
    assert gopip.sql_indexes() == ()
    assert gopip.extract(SimpleNamespace(x=1), refused) is None
    assert gopip.where({"x": 1}) is None
    assert gopip.order_by() == ()
    assert gopip.entry(()) == []
    assert gopip.key_expression() is None
