"""Which indexes are tried, read from the SQL of a query; and that none of them could ever stop a save."""

from plone.pgcatalog.advice.advice import steady
from plone.pgcatalog.advice.candidates import BTREE_BYTES
from plone.pgcatalog.advice.candidates import Candidate
from plone.pgcatalog.advice.candidates import Candidates
from plone.pgcatalog.advice.filters import Filter
from plone.pgcatalog.advice.filters import filters_of
from plone.pgcatalog.advice.filters import sort_columns
from plone.pgcatalog.advice.statistics import ColumnStatistics
from plone.pgcatalog.advice.statistics import duplicates
from plone.pgcatalog.advice.statistics import IndexStatistics
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import Window
from typing import Any

import pytest


def compiled(sql: str, values: tuple[Any, ...] = (), order: tuple[str, ...] = ("rid",), score: Any = None) -> Any:
    return CompiledQuery(Condition(sql, values), order, score, Window())


@pytest.mark.parametrize(
    ("sql", "values", "expected"),
    [
        ('"a" = %s', ("x",), [("a", "equal", "x")]),
        ('("a" = %s) AND ("b" = %s)', ("x", "y"), [("a", "equal", "x"), ("b", "equal", "y")]),
        ('("a" = ANY(%s::text[])) AND ("b" = %s)', (["x"], "y"), [("a", "any", None), ("b", "equal", "y")]),
        (
            '(("a" >= %s) AND ("a" < %s)) AND ("b" && %s::text[])',
            (1, 2, []),
            [("a", "range", None), ("b", "array", None)],
        ),
        ('"p" = %s OR ("p" >= %s AND "p" < %s)', (1, 2, 3), [("p", "range", None)]),
        (
            '("p" = %s OR ("p" >= %s AND "p" < %s)) AND ("a" = %s)',
            (1, 2, 3, "x"),
            [("p", "range", None), ("a", "equal", "x")],
        ),
        ('("a" = %s) OR ("b" = %s)', ("x", "y"), []),
        ('(("a" = %s) OR ("b" = %s)) AND ("c" = %s)', ("x", "y", "z"), [("c", "equal", "z")]),
        ('"a" = %s OR ("b" >= %s AND "b" < %s)', (1, 2, 3), []),
        ('("flag") AND (NOT "other")', (), [("flag", "flag", None), ("other", "flag", None)]),
        ('("t" @@ %s::tsquery) AND (("a" = %s) IS NOT TRUE)', ("x", "y"), [("t", "text", None)]),
        ('"since" <= %s AND "until" >= %s', (1, 1), [("since", "range", None), ("until", "range", None)]),
        ("TRUE", (), []),
    ],
)
def test_filters_are_read_from_the_sql(sql: str, values: Any, expected: Any) -> None:
    assert filters_of(compiled(sql, values)) == tuple(Filter(*f) for f in expected)


def test_sort_columns() -> None:
    assert sort_columns(compiled("TRUE", (), ('"a" DESC', '"b"', "rid DESC"))) == ("a", "b")
    assert sort_columns(compiled("TRUE", (), ("lower(x)", "rid"))) == ()
    assert sort_columns(compiled("TRUE", (), ("rid",))) == ()


COLUMNS = {
    "rid": ColumnStatistics("rid", "bigint"),
    "type": ColumnStatistics("type", "text", 4, 0, {"Document": 0.5, "Event": 0.3}),
    "state": ColumnStatistics("state", "text", 2, 0, {"published": 0.6, "private": 0.4}),
    "creator": ColumnStatistics("creator", "text", 1000, 0, {}),
    "title": ColumnStatistics("title", "text", -1, 0, {}),
    "modified": ColumnStatistics("modified", "timestamp with time zone", -1),
    "since": ColumnStatistics("since", "integer", 10),
    "parent": ColumnStatistics("parent", "text", 100),
    "folder": ColumnStatistics("folder", "boolean", 2),
    "tags": ColumnStatistics("tags", "text[]", 100),
    "strange": ColumnStatistics("strange", "text", 100),
}
TEXT_BYTES = {"type": 900, "state": 900, "creator": 900, "title": 900, "parent": 2600}


def propose(filters: list[Filter], sort: tuple[str, ...] = (), indexes: Any = ()) -> list[Candidate]:
    return Candidates(COLUMNS, TEXT_BYTES, indexes).propose(filters, sort)


def equal(column: str, value: Any = "x") -> Filter:
    return Filter(column, "equal", value)


def definitions(*args: Any) -> list[str]:
    return [candidate.definition for candidate in propose(*args)]


def test_equal_columns_lead_the_most_selective_first() -> None:
    found = definitions([equal("type", "Document"), equal("creator")], ("modified",))
    assert '("creator", "modified", "rid")' in found
    assert '("creator", "type", "modified", "rid")' in found
    assert not [d for d in found if d.startswith('("type", "creator"')]


def test_a_frequent_value_makes_a_partial_index() -> None:
    found = definitions([equal("state", "published")], ("modified",))
    assert """("modified", "rid") WHERE "state" = 'published'""" in found
    assert not [d for d in definitions([equal("creator", "jane")], ("modified",)) if "WHERE" in d]


def test_a_value_that_not_all_ask_for_makes_none() -> None:
    fickle = Filter("state", "equal", "published", steady=False)
    assert not [d for d in definitions([fickle], ("modified",)) if "WHERE" in d]
    first, other = equal("state", "published"), equal("type", "Event")
    assert steady([(first, other)] * 3) == (first, other)
    assert [f.steady for f in steady([(first, other)] * 2)] == [False, False]
    assert [f.steady for f in steady([(first, other), (first, other), (first,)])] == [True, False]


def test_other_columns_can_be_carried_along() -> None:
    found = definitions([Filter("type", "any"), Filter("since", "range")], ("modified",))
    assert '("modified", "rid") INCLUDE ("since")' in found
    assert '("modified", "rid") INCLUDE ("since", "type")' in found


def test_arrays_get_a_partial_gin() -> None:
    assert definitions([Filter("tags", "array"), equal("type", "Event")]) == [
        """USING gin ("tags") WHERE "type" = 'Event'"""
    ]


def test_values_are_quoted() -> None:
    columns = {**COLUMNS, "type": ColumnStatistics("type", "text", 4, 0, {"O'Brien\\": 0.5})}
    [found] = [
        c for c in Candidates(columns, TEXT_BYTES, ()).propose([equal("type", "O'Brien\\")], ("modified",)) if c.where
    ]
    assert found.definition.endswith("""WHERE "type" =  E'O''Brien\\\\'""")


def test_no_index_row_can_become_too_long() -> None:
    filters = [
        equal("type", "Document"),
        equal("state", "published"),
        equal("creator"),
        equal("title"),
        equal("parent"),
    ]
    filters += [Filter("tags", "array"), equal("strange"), Filter("since", "range"), Filter("folder", "flag")]
    widths = {**TEXT_BYTES, "rid": 8, "modified": 8, "since": 8, "folder": 8}
    for sort in ((), ("modified",), ("title",), ("parent",), ("strange",)):
        for candidate in propose(filters, sort):
            if candidate.kind != "gin":
                names = [*candidate.keys, *candidate.included]
                assert sum(widths[name] for name in names) <= BTREE_BYTES


def index(name: str, keys: tuple[str, ...], **more: Any) -> IndexStatistics:
    values = {"method": "btree", "included": (), "predicate": "", "is_unique": False, "is_valid": True} | more
    return IndexStatistics(name, "", keys=keys, bytes=0, scans=0, comment="", **values)


def test_what_is_there_is_not_proposed() -> None:
    filters = [equal("creator")]
    assert '("creator", "modified", "rid")' in definitions(filters, ("modified",))
    there = index("x", ("creator", "modified", "rid", "title"))
    assert '("creator", "modified", "rid")' not in definitions(filters, ("modified",), [there])
    invalid = index("x", ("creator", "modified", "rid"), is_valid=False)
    assert '("creator", "modified", "rid")' in definitions(filters, ("modified",), [invalid])
    for candidate in propose(filters, ("modified",)):
        built = index(f"pgcatalog_1_{candidate.name}", ("unlike",))
        assert candidate not in propose(filters, ("modified",), [built])


def test_names_are_the_definitions() -> None:
    one = Candidate("composite", ("a", "b"))
    assert one.name == Candidate("composite", ("a", "b")).name
    assert one.name != Candidate("composite", ("a", "b"), ("c",)).name
    assert one.ddl("t") == f'CREATE INDEX CONCURRENTLY "t_{one.name}" ON "t" ("a", "b")'
    assert Candidate("partial", ("a",), (), ("b", "x")).columns == ("a", "b")


def test_duplicates() -> None:
    assert duplicates([index("one", ("a",)), index("two", ("a", "b"))]) == {"one": "two"}
    assert duplicates([index("one", ("a",)), index("two", ("a",))]) == {"one": "two"}
    assert duplicates([index("one", ("b",)), index("two", ("a", "b"))]) == {}
    assert duplicates([index("one", ("a",), is_unique=True), index("two", ("a", "b"))]) == {}
    assert duplicates([index("one", ("a",), predicate="x"), index("two", ("a", "b"))]) == {}
    assert duplicates([index("one", ("a",), included=("c",)), index("two", ("a", "b"))]) == {}
    assert duplicates([index("one", ("a",)), index("two", ("a", "b"), is_valid=False)]) == {}
    assert duplicates([index("one", ("",)), index("two", ("",))]) == {}
    assert duplicates([index("one", ("b",), method="gin"), index("two", ("a", "b"), method="gin")]) == {"one": "two"}
