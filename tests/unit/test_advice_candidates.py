"""Candidate indexes for the condition of a query; none of them can ever make a save fail."""

from plone.pgcatalog.advice.advice import steady
from plone.pgcatalog.advice.candidates import BTREE_BYTES
from plone.pgcatalog.advice.candidates import Candidate
from plone.pgcatalog.advice.candidates import Candidates
from plone.pgcatalog.advice.candidates import columns_of
from plone.pgcatalog.advice.candidates import ColumnStatistics
from plone.pgcatalog.advice.candidates import duplicates
from plone.pgcatalog.advice.candidates import Filter
from plone.pgcatalog.advice.candidates import filters_of
from plone.pgcatalog.advice.candidates import IndexStatistics
from plone.pgcatalog.advice.candidates import sort_columns
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import NEWEST_FIRST
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.query.ranked import Score
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.predicate import any_value
from plone.pgcatalog.sql.predicate import below
from plone.pgcatalog.sql.predicate import between
from plone.pgcatalog.sql.predicate import compared
from plone.pgcatalog.sql.predicate import equals
from plone.pgcatalog.sql.predicate import has_value
from plone.pgcatalog.sql.predicate import is_flag
from plone.pgcatalog.sql.predicate import matches
from plone.pgcatalog.sql.predicate import overlaps
from typing import Any

import pytest


def column(name: str, type: str = "text") -> Column:
    return Column(name, type)


A, B, C = map(column, "abc")
BYTES = Column("t", "tsvector", is_long=True)


def compiled(where: Condition, order: tuple[Order, ...] = (OLDEST_FIRST,), score: Any = None) -> CompiledQuery:
    return CompiledQuery(where, order, score, Window())


def day(value: int) -> Condition:
    return compared(A, ">=", value) & compared(A, "<", value + 1)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (equals(A, "x"), [("a", "equal", "x")]),
        (equals(A, "x") & equals(B, "y"), [("a", "equal", "x"), ("b", "equal", "y")]),
        (any_value(A, ["x"]) & equals(B, "y"), [("a", "any", None), ("b", "equal", "y")]),
        (day(1) & overlaps(column("b", "text[]"), []), [("a", "range", None), ("b", "array", None)]),
        (day(1) | day(5), [("a", "range", None)]),
        (between(A, 1, 2), [("a", "range", None)]),
        (below(A, "/x"), [("a", "range", None)]),
        (below(A, "/x") & equals(B, "x"), [("a", "range", None), ("b", "equal", "x")]),
        (equals(A, "x") | equals(B, "y"), []),
        ((equals(A, "x") | equals(B, "y")) & equals(C, "z"), [("c", "equal", "z")]),
        (equals(A, "x") | compared(B, ">=", 2), []),
        (is_flag(A, True) & is_flag(B, False), [("a", "flag", None), ("b", "flag", None)]),
        (matches(BYTES, "x") & ~equals(A, "y"), [("t", "text", None)]),
        (compared(A, "<=", 1) & compared(B, ">=", 1), [("a", "range", None), ("b", "range", None)]),
        (Condition('"a" = %s', ("x",)) & equals(B, "y"), [("b", "equal", "y")]),
        (has_value(A), []),
        (EVERYTHING, []),
    ],
)
def test_filters_are_the_conjuncts_about_one_column_each(where: Condition, expected: Any) -> None:
    assert filters_of(compiled(where)) == tuple(Filter(*f) for f in expected)


def test_sort_columns_are_those_of_the_order() -> None:
    terms = (Order('"a"', True, A), Order('"b"', column=B), NEWEST_FIRST)
    assert sort_columns(compiled(EVERYTHING, terms)) == ("a", "b")
    assert sort_columns(compiled(EVERYTHING, (Order("lower(x)"), OLDEST_FIRST))) == ()
    assert sort_columns(compiled(EVERYTHING)) == ()


def test_columns_are_known_except_for_opaque_conditions() -> None:
    where = matches(BYTES, "x") & ~equals(A, "y")
    assert columns_of(compiled(where)) == {"t", "a"}
    assert columns_of(compiled(where, score=Score("1", (), ((equals(B, "x"),),)))) == {"t", "a", "b"}
    assert columns_of(compiled(where, score=Fragment("length(body)"))) is None
    assert columns_of(compiled(where & Condition("lower(c) = 'x'"))) is None
    assert columns_of(compiled(where & Condition("lower(c) = 'x'", (), (C,)))) == {"t", "a", "c"}


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


def test_frequent_value_makes_a_partial_index() -> None:
    found = definitions([equal("state", "published")], ("modified",))
    assert """("modified", "rid") WHERE "state" = 'published'""" in found
    assert not [d for d in definitions([equal("creator", "jane")], ("modified",)) if "WHERE" in d]


def test_value_that_not_all_queries_share_makes_no_partial_index() -> None:
    fickle = Filter("state", "equal", "published", steady=False)
    assert not [d for d in definitions([fickle], ("modified",)) if "WHERE" in d]
    first, other = equal("state", "published"), equal("type", "Event")
    assert steady([(first, other)] * 3) == (first, other)
    assert [f.steady for f in steady([(first, other)] * 2)] == [False, False]
    assert [f.steady for f in steady([(first, other), (first, other), (first,)])] == [True, False]


def test_other_columns_can_be_included() -> None:
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


def test_existing_index_is_not_proposed() -> None:
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


def test_equal_candidates_are_proposed_once() -> None:
    assert duplicates([index("one", ("a",)), index("two", ("a", "b"))]) == {"one": "two"}
    assert duplicates([index("one", ("a",)), index("two", ("a",))]) == {"one": "two"}
    assert duplicates([index("one", ("b",)), index("two", ("a", "b"))]) == {}
    assert duplicates([index("one", ("a",), is_unique=True), index("two", ("a", "b"))]) == {}
    assert duplicates([index("one", ("a",), predicate="x"), index("two", ("a", "b"))]) == {}
    assert duplicates([index("one", ("a",), included=("c",)), index("two", ("a", "b"))]) == {}
    assert duplicates([index("one", ("a",)), index("two", ("a", "b"), is_valid=False)]) == {}
    assert duplicates([index("one", ("",)), index("two", ("",))]) == {}
    assert duplicates([index("one", ("b",), method="gin"), index("two", ("a", "b"), method="gin")]) == {"one": "two"}
