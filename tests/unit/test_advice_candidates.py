"""Candidate indexes for the condition of a query; none of them can ever make a save fail."""

from plone.pgcatalog.advice import candidates
from plone.pgcatalog.advice.advice import steady
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import NEWEST_FIRST
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.query.ranked import Score
from plone.pgcatalog.sql import predicate as p
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Fragment
from typing import Any

import pytest


A, B, C = (Column(name, "text") for name in "abc")
BYTES = Column("t", "tsvector", is_long=True)


def compiled(where: Condition, order: tuple[Order, ...] = (OLDEST_FIRST,), score: Any = None) -> CompiledQuery:
    return CompiledQuery(where, order, score, Window())


def day(value: int) -> Condition:
    return p.compared(A, ">=", value) & p.compared(A, "<", value + 1)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (p.equals(A, "x"), [("a", "equal", "x")]),
        (p.equals(A, "x") & p.equals(B, "y"), [("a", "equal", "x"), ("b", "equal", "y")]),
        (p.any_value(A, ["x"]) & p.equals(B, "y"), [("a", "any", None), ("b", "equal", "y")]),
        (day(1) & p.overlaps(Column("b", "text[]"), []), [("a", "range", None), ("b", "array", None)]),
        (day(1) | day(5), [("a", "range", None)]),
        (p.between(A, 1, 2), [("a", "range", None)]),
        (p.below(A, "/x"), [("a", "range", None)]),
        (p.below(A, "/x") & p.equals(B, "x"), [("a", "range", None), ("b", "equal", "x")]),
        (p.equals(A, "x") | p.equals(B, "y"), []),
        ((p.equals(A, "x") | p.equals(B, "y")) & p.equals(C, "z"), [("c", "equal", "z")]),
        (p.equals(A, "x") | p.compared(B, ">=", 2), []),
        (p.is_flag(A, True) & p.is_flag(B, False), [("a", "flag", None), ("b", "flag", None)]),
        (p.matches(BYTES, "x") & ~p.equals(A, "y"), [("t", "text", None)]),
        (p.compared(A, "<=", 1) & p.compared(B, ">=", 1), [("a", "range", None), ("b", "range", None)]),
        (Condition('"a" = %s', ("x",)) & p.equals(B, "y"), [("b", "equal", "y")]),
        (p.has_value(A), []),
        (EVERYTHING, []),
    ],
)
def test_filters_are_the_conjuncts_about_one_column_each(where: Condition, expected: Any) -> None:
    assert candidates.filters_of(compiled(where)) == tuple(candidates.Filter(*f) for f in expected)


def test_sort_columns_are_those_of_the_order() -> None:
    terms = (Order('"a"', True, A), Order('"b"', column=B), NEWEST_FIRST)
    assert candidates.sort_columns(compiled(EVERYTHING, terms)) == ("a", "b")
    assert candidates.sort_columns(compiled(EVERYTHING, (Order("lower(x)"), OLDEST_FIRST))) == ()
    assert candidates.sort_columns(compiled(EVERYTHING)) == ()


def test_columns_are_known_except_for_opaque_conditions() -> None:
    where = p.matches(BYTES, "x") & ~p.equals(A, "y")
    assert candidates.columns_of(compiled(where)) == {"t", "a"}
    assert candidates.columns_of(compiled(where, score=Score("1", (), ((p.equals(B, "x"),),)))) == {"t", "a", "b"}
    assert candidates.columns_of(compiled(where, score=Fragment("length(body)"))) is None
    assert candidates.columns_of(compiled(where & Condition("lower(c) = 'x'"))) is None
    assert candidates.columns_of(compiled(where & Condition("lower(c) = 'x'", (), (C,)))) == {"t", "a", "c"}


COLUMNS = {
    "rid": candidates.ColumnStatistics("rid", "bigint"),
    "type": candidates.ColumnStatistics("type", "text", 4, 0, {"Document": 0.5, "Event": 0.3}),
    "state": candidates.ColumnStatistics("state", "text", 2, 0, {"published": 0.6, "private": 0.4}),
    "creator": candidates.ColumnStatistics("creator", "text", 1000, 0, {}),
    "title": candidates.ColumnStatistics("title", "text", -1, 0, {}),
    "modified": candidates.ColumnStatistics("modified", "timestamp with time zone", -1),
    "since": candidates.ColumnStatistics("since", "integer", 10),
    "parent": candidates.ColumnStatistics("parent", "text", 100),
    "folder": candidates.ColumnStatistics("folder", "boolean", 2),
    "tags": candidates.ColumnStatistics("tags", "text[]", 100),
    "strange": candidates.ColumnStatistics("strange", "text", 100),
}
TEXT_BYTES = {"type": 900, "state": 900, "creator": 900, "title": 900, "parent": 2600}


def propose(
    filters: list[candidates.Filter], sort: tuple[str, ...] = (), indexes: Any = ()
) -> list[candidates.Candidate]:
    return candidates.Candidates(COLUMNS, TEXT_BYTES, indexes).propose(filters, sort)


def equal(column: str, value: Any = "x") -> candidates.Filter:
    return candidates.Filter(column, "equal", value)


def definitions(*args: Any) -> list[str]:
    return [candidate.definition for candidate in propose(*args)]


def test_equal_columns_lead_the_most_selective_first() -> None:
    found = definitions([equal("type", "Document"), equal("creator")], ("modified",))
    assert {'("creator", "modified", "rid")', '("creator", "type", "modified", "rid")'} <= set(found)
    assert not [d for d in found if d.startswith('("type", "creator"')]
    # Other columns can be included.
    found = definitions([candidates.Filter("type", "any"), candidates.Filter("since", "range")], ("modified",))
    assert {f'("modified", "rid") INCLUDE ({names})' for names in ('"since"', '"since", "type"')} <= set(found)


def test_frequent_value_makes_a_partial_index() -> None:
    found = definitions([equal("state", "published")], ("modified",))
    assert """("modified", "rid") WHERE "state" = 'published'""" in found
    assert not [d for d in definitions([equal("creator", "jane")], ("modified",)) if "WHERE" in d]
    arrays = definitions([candidates.Filter("tags", "array"), equal("type", "Event")])
    assert arrays == ["""USING gin ("tags") WHERE "type" = 'Event'"""]


def test_value_that_not_all_queries_share_makes_no_partial_index() -> None:
    fickle = candidates.Filter("state", "equal", "published", steady=False)
    assert not [d for d in definitions([fickle], ("modified",)) if "WHERE" in d]
    first, other = equal("state", "published"), equal("type", "Event")
    assert steady([(first, other)] * 3) == (first, other)
    assert [f.steady for f in steady([(first, other)] * 2)] == [False, False]
    assert [f.steady for f in steady([(first, other), (first, other), (first,)])] == [True, False]


def test_values_are_quoted() -> None:
    columns = {**COLUMNS, "type": candidates.ColumnStatistics("type", "text", 4, 0, {"O'Brien\\": 0.5})}
    proposed = candidates.Candidates(columns, TEXT_BYTES, ()).propose([equal("type", "O'Brien\\")], ("modified",))
    [found] = [candidate for candidate in proposed if candidate.where]
    assert found.definition.endswith("""WHERE "type" =  E'O''Brien\\\\'""")


def test_no_index_row_can_become_too_long() -> None:
    filters = [equal("type", "Document"), equal("state", "published"), candidates.Filter("tags", "array")]
    filters += [candidates.Filter("since", "range"), candidates.Filter("folder", "flag")]
    filters += map(equal, ("creator", "title", "parent", "strange"))
    widths = {**TEXT_BYTES, "rid": 8, "modified": 8, "since": 8, "folder": 8}
    for sort in ((), ("modified",), ("title",), ("parent",), ("strange",)):
        for candidate in propose(filters, sort):
            if candidate.kind != "gin":
                names = [*candidate.keys, *candidate.included]
                assert sum(widths[name] for name in names) <= candidates.BTREE_BYTES


def index(name: str, keys: tuple[str, ...], **more: Any) -> candidates.IndexStatistics:
    values = {"method": "btree", "included": (), "predicate": "", "is_unique": False, "is_valid": True} | more
    return candidates.IndexStatistics(name, "", keys=keys, bytes=0, scans=0, comment="", **values)


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
    one = candidates.Candidate("composite", ("a", "b"))
    assert one.name == candidates.Candidate("composite", ("a", "b")).name
    assert one.name != candidates.Candidate("composite", ("a", "b"), ("c",)).name
    assert one.ddl("t") == f'CREATE INDEX CONCURRENTLY "t_{one.name}" ON "t" ("a", "b")'
    assert candidates.Candidate("partial", ("a",), (), ("b", "x")).columns == ("a", "b")


@pytest.mark.parametrize(
    ("one", "other", "is_duplicate"),
    [
        ({}, {}, True),
        ({}, {"keys": ("a",)}, True),
        ({"keys": ("b",)}, {}, False),
        ({"is_unique": True}, {}, False),
        ({"predicate": "x"}, {}, False),
        ({"included": ("c",)}, {}, False),
        ({}, {"is_valid": False}, False),
        ({"keys": ("",)}, {"keys": ("",)}, False),
        ({"keys": ("b",), "method": "gin"}, {"method": "gin"}, True),
    ],
)
def test_index_whose_columns_begin_another_one_is_a_duplicate(one: Any, other: Any, is_duplicate: bool) -> None:
    found = candidates.duplicates(
        [index("one", **{"keys": ("a",), **one}), index("two", **{"keys": ("a", "b"), **other})]
    )
    assert found == ({"one": "two"} if is_duplicate else {})
