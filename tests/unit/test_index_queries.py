"""Schemas and queries of the index types: impossible and wrong queries, and the SQL that decides which SQL index is used.

Answers and orders are compared with ZCatalog's in ``tests/integration/test_index_values_oracle.py``.
"""

from datetime import datetime
from datetime import timedelta
from datetime import UTC
from DateTime.DateTime import DateTime
from DateTime.interfaces import DateTimeError
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.path import PathIndexTranslator
from plone.pgcatalog.indexes.recurring import LATEST
from plone.pgcatalog.indexes.simple import FieldIndexTranslator
from plone.pgcatalog.sql.column import GIN_OPTIONS
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from Products.PluginIndexes.PathIndex.PathIndex import PathIndex
from tests.unit.translators import TRANSLATORS
from typing import Any
from unittest.mock import ANY
from ZPublisher.HTTPRequest import record

import pytest


def where(translator: str, query: Any) -> Condition | None:
    return TRANSLATORS[translator].where({"x": query})


OF_X = {"column": "x"}
GIN = f'USING gin ("x") {GIN_OPTIONS} WHERE "x" IS NOT NULL'
FIRST, LAST = '"x"[1]', '"x"[cardinality("x")]'


@pytest.mark.parametrize(
    ("translator", "columns", "indexes", "order", "key"),
    [
        ("field", [Column("x", "text")], [SQLIndex("x", '("x")', **OF_X)], ['"x"'], '"x"'),
        (
            "keyword",
            [Column("x", "text[]", can_be_interned=True)],
            [SQLIndex("x", GIN, lists="x", **OF_X)],
            ANY,
            'unnest("x")',
        ),
        ("boolean", [Column("x", "boolean")], [], ['"x"'], '"x"'),
        ("gopip", [], [], [], None),
        ("date", [Column("x", "timestamptz")], [SQLIndex("x", '("x")', **OF_X)], ['"x"'], ANY),
        (
            "range",
            [Column("x_since", "integer", is_period=True), Column("x_until", "integer", is_period=True)],
            [],
            ['"x_since"', '"x_until"'],
            None,
        ),
        (
            "recurring",
            [Column("x", "integer[]")],
            [
                SQLIndex(f"x_{name}", f"(({each})) WHERE ({each}) IS NOT NULL")
                for name, each in (("first", FIRST), ("last", LAST))
            ],
            [f"({FIRST})", '"x"'],
            'unnest("x")',
        ),
    ],
)
def test_schema(translator: str, columns: Any, indexes: Any, order: Any, key: str | None) -> None:
    found = TRANSLATORS[translator]
    assert list(found.columns()) == columns
    assert [(i.name, i.definition, i.lists) for i in found.sql_indexes()] == [
        (i.name, i.definition, i.lists) for i in indexes
    ]
    assert list(found.order_by()) == order
    assert found.key_expression() == key


def test_columns_of_a_path_are_named_after_their_index_except_for_plones_own() -> None:
    for name, columns in (("path", ["path_value", "parent_path", "depth"]), ("x", ["x_path", "x_parent", "x_depth"])):
        assert [column.name for column in PathIndexTranslator(PathIndex(name), name).columns()] == columns


def zpublisher_record(**options: Any) -> Any:
    parsed = record()
    parsed.__dict__.update(options)
    return parsed


HAS_VALUE = '"x" IS NOT NULL'
NOON, MINUTE = datetime(2020, 2, 29, 12, tzinfo=UTC), timedelta(minutes=1)
DURING = '("x" >= %s) AND ("x" < %s)'
BELOW = '"x_path" = %s OR ("x_path" >= %s AND "x_path" < %s)'
PARENTS = '"x_parent" = ANY(%s::text[])'


@pytest.mark.parametrize(
    ("translator", "query", "sql", "params"),
    [
        ("field", "a", '"x" = %s', ("a",)),
        ("field", ("a", "b", "a"), '"x" = ANY(%s::text[])', (["a", "b"],)),
        ("field", zpublisher_record(query="a"), '"x" = %s', ("a",)),
        # None is never looked up, and a value without a key cannot be found
        ("field", [None, "a"], '"x" = %s', ("a",)),
        ("field", [{}, "a"], '"x" = %s', ("a",)),
        # ranges end where another type begins
        ("field", {"query": "b", "range": "min"}, '"x" >= %s', ("b",)),
        ("field", {"query": "b", "range": "max"}, '("x" >= %s) AND ("x" <= %s)', ("\x03", "b")),
        ("field", {"query": 5, "range": "min"}, '("x" >= %s) AND ("x" < %s)', ("\x02n>a15", "\x02o")),
        ("field", {"query": 5, "range": "max"}, '("x" >= %s) AND ("x" <= %s)', ("\x02n", "\x02n>a15")),
        ("field", {"query": ["b", "a"], "range": "min:max"}, '("x" >= %s) AND ("x" <= %s)', ("a", "b")),
        ("field", {"query": [{}], "range": "max"}, HAS_VALUE, ()),
        # `if hi:` - a falsy upper end is no end
        ("field", {"query": 0, "range": "max"}, HAS_VALUE, ()),
        ("field", {"query": [0, -5], "range": "min:max"}, '("x" >= %s) AND ("x" < %s)', ("\x02n<Z84~", "\x02o")),
        # not
        ("field", {"not": "a"}, '("x" = %s) IS NOT TRUE', ("a",)),
        ("field", {"query": "a", "not": "b"}, '("x" = %s) AND (("x" = %s) IS NOT TRUE)', ("a", "b")),
        ("field", {"query": "a", "not": []}, '"x" = %s', ("a",)),
        ("field", {"not": "a", "range": "min"}, f'({HAS_VALUE}) AND (("x" = %s) IS NOT TRUE)', ("a",)),
        ("field", {"not": {}}, "TRUE", ()),
        ("keyword", "a", '"x" && %s::text[]', (["a"],)),
        ("keyword", {"query": ["a", "b"], "operator": "and"}, '"x" @> %s::text[]', (["a", "b"],)),
        ("keyword", {"query": ["a", None], "operator": "AND"}, '"x" @> %s::text[]', (["a"],)),
        (
            "keyword",
            {"query": ["a"], "not": "b"},
            '("x" && %s::text[]) AND (("x" && %s::text[]) IS NOT TRUE)',
            (["a"], ["b"]),
        ),
        # A range with "and" is a range; in ZCatalog: only the rows that have every key in the range.
        *(
            (
                "keyword",
                {"query": ["a", "c"], "range": "min:max"} | operator,
                'EXISTS (SELECT FROM unnest("x") AS element WHERE element COLLATE "C" >= %s AND element COLLATE "C" <= %s)',
                ("a", "c"),
            )
            for operator in ({}, {"operator": "and"})
        ),
        # ZCatalog looks up the unconverted date, and excludes nothing.
        (
            "date",
            {"query": NOON, "not": NOON},
            f"({DURING}) AND (({DURING}) IS NOT TRUE)",
            (NOON, NOON + MINUTE) * 2,
        ),
        # A time beyond all occurrences is after each.
        ("recurring", {"query": datetime.max, "range": "max"}, f"({FIRST}) <= %s", (LATEST,)),
        ("path", "/a", BELOW, ("/a", "/a/", "/a0")),
        ("path", {"query": "/a", "depth": 0}, '"x_path" = %s', ("/a",)),
        ("path", {"query": "/a/", "depth": 0}, '"x_path" = %s', ("/a/",)),
        ("path", {"query": "a", "depth": 1}, '"x_parent" = %s', ("/a",)),
        ("path", {"query": ["/a", "/b", "/a"], "depth": 1}, PARENTS, (["/a", "/b"],)),
        (
            "path",
            {"query": "/a", "depth": 2},
            f'({BELOW}) AND ("x_depth" BETWEEN %s AND %s)',
            ("/a", "/a/", "/a0", 1, 3),
        ),
        ("path", {"query": "/a/b", "navtree": 1}, PARENTS, (["/a/b", "/a", "/"],)),
        ("path", {"query": "/a/b", "navtree": 1, "depth": 0}, '"x_path" = ANY(%s::text[])', (["/a/b", "/a", "/"],)),
        # The start of a navigation tree below the root is the root.
        *(
            ("path", {"query": "/a", "navtree": 1, "navtree_start": start}, PARENTS, (["/a", "/"],))
            for start in (-1, -(10**20))
        ),
        ("path", {"query": "/", "navtree": 0}, '("x_path" IS NOT NULL) IS TRUE', ()),
        ("path", ["/a/b", "/a", "/a/c/d"], BELOW, ("/a", "/a/", "/a0")),
        ("path", ["/a", "/a-b"], f"({BELOW}) OR ({BELOW})", ("/a-b", "/a-b/", "/a-b0", "/a", "/a/", "/a0")),
    ],
)
def test_query_becomes_sql(translator: str, query: Any, sql: str, params: tuple[Any, ...]) -> None:
    assert where(translator, query) == Condition(sql, params)


@pytest.mark.parametrize(
    ("translator", "query"),
    [
        *(("field", query) for query in ([], {}, float("nan"), {"query": [{}], "range": "min"})),
        *(("keyword", query) for query in ([], None, [None], float("nan"), {"query": [], "operator": "and"})),
        ("keyword", {"query": ["a", float("nan")], "operator": "and"}),
        ("keyword", {"query": [{}], "range": "min"}),
        ("boolean", []),
        *(("date", query) for query in ([], None, "", b"2020", [None])),
        ("recurring", None),
        *((path, query) for path in ("path", "plain path") for query in ([], (), None, 7, [None])),
        *(("path", query) for query in ({"depth": 1}, {"query": []}, {"query": [("/a", "x")]})),
    ],
)
def test_impossible_query_is_the_constant_nothing(translator: str, query: Any) -> None:
    """It costs no round trip: the check is by identity."""
    assert where(translator, query) is NOTHING


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
        ("date", "garbage", DateTimeError),
        ("range", [], IndexError),
        ("range", "garbage", DateTimeError),
        ("range", {"query": DateTime(3600, "UTC"), "range": "min"}, ValueError),
        ("recurring", "2020-01-01", AttributeError),
        ("plain path", {"query": "/a", "depth": 1}, ValueError),
    ],
)
def test_wrong_query_is_refused(translator: str, query: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        where(translator, query)


@pytest.mark.parametrize("query", [{}, {"y": "a"}, {"x_range": "min"}])
def test_query_without_the_index_has_no_condition(query: dict[str, Any]) -> None:
    assert [name for name, translator in TRANSLATORS.items() if translator.where(query) is not None] == []
    assert where("gopip", 1) is None


def test_options_that_an_index_allows_are_applied() -> None:
    index = FieldIndex("x")
    index.query_options = ("query", "usage")
    translator = FieldIndexTranslator(index, "x")
    for usage, query in (("range:min", {"query": "b", "range": "min"}), ("RANGE:MIN", None), ("exact", "b")):
        found = translator.where({"x": {"query": "b", "usage": usage}})
        assert found == where("field", query or {"query": "b", "range": "min"})
    index.useOperator = "and"
    assert translator.where({"x": ["a", "a"]}) == where("field", "a")
    for values in (["a", "b"], ["a", {}], [None]):
        assert translator.where({"x": values}) is NOTHING


def test_container_of_the_whole_catalog_needs_no_index() -> None:
    """Nearly every row is in it; any other path has the range of an index."""

    class Placed(PathIndex):  # type: ignore[misc]
        def getPhysicalPath(self) -> tuple[str, ...]:
            return ("", "plone", "portal_catalog", "x")

    translator = PathIndexTranslator(Placed("x"), "x")
    for path in ("/plone", "/plone/portal_catalog/"):
        condition = translator.where({"x": path})
        assert condition is not None
        assert condition.sql == f"({BELOW}) IS TRUE"
    assert translator.where({"x": "/plone/a"}) == Condition(BELOW, ("/plone/a", "/plone/a/", "/plone/a0"))
