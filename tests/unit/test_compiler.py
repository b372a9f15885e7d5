"""Compiling a query dict, its sort and its limits into conditions with parameters, an order, and a window."""

from itertools import islice
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import LARGEST_WINDOW
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.query.criteria import sort_directions
from plone.pgcatalog.query.expression import QueryError
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import Not
from plone.pgcatalog.query.objects import Or
from plone.pgcatalog.query.objects import Text
from tests.unit.compiling import compiled
from tests.unit.compiling import order
from tests.unit.compiling import rendered
from typing import Any

import pytest


DOCUMENTS = {"portal_type": "Document"}


def test_several_indexes_are_joined_by_and_in_the_order_of_the_catalog_costly_comparisons_last() -> None:
    """PostgreSQL compares a row in this order, and Title is the first index of the catalog."""
    query = {"Title": "red", "Creator": "mara", "portal_type": "Document", "Subject": "a"}
    sql, params = rendered(compiled(query).where)
    assert sql.startswith('("portal_type" = %s) AND ("creator" = %s) AND ("subject" && %s::text[]) AND ("title" @@')
    assert params == ["Document", "mara", ["a"], "'red'"]


@pytest.mark.parametrize(
    "query",
    [
        *({}, {"no_such_index": "x"}, {"sort_on": "created", "sort_limit": 10, "b_size": 5}, {"portal_type": []}),
        *({"portal_type": []} | {"Creator": "mara"}, {"portal_type": None}, {"getObjPositionInParent": 3}),
        {"where": "a parameter of a request"},
    ],
)
def test_query_that_can_find_nothing_is_marked(query: dict[str, Any]) -> None:
    assert compiled(query).is_empty


def test_names_without_an_index_are_ignored() -> None:
    assert compiled(DOCUMENTS | {"no_such_index": "x", "batch": 1}).key == compiled(DOCUMENTS).key


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ({"path": {"query": "/a", "no_such_option": 1}}, ValueError),
        ({"Subject": {"query": "a", "operator": "xor"}}, ValueError),
        ({"Title": 7}, TypeError),
        ({"where": Eq("no_such_index", "x")}, QueryError),
    ],
)
def test_errors_of_the_indexes_are_raised(query: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        compiled(query)


# -- query objects


def test_a_query_object_is_one_more_condition_or_a_query_alone() -> None:
    query = {"Creator": "mara", "where": Or(Eq("portal_type", "Event"), Text("red", "Title"))}
    sql, params = rendered(compiled(query).where)
    assert sql.startswith('("creator" = %s) AND (')
    assert " OR " in sql
    assert params == ["mara", "Event", "'red'"]
    alone = compiled({"where": Not(Eq("portal_type", "Event"))})
    assert rendered(alone.where) == ('("portal_type" = %s) IS NOT TRUE', ["Event"])
    assert not alone.is_empty


# -- order


@pytest.mark.parametrize(
    ("sort", "limit", "terms"),
    [
        ([], None, ["rid"]),
        ([("created", False)], None, ['"created"', "rid"]),
        ([("created", True)], None, ['"created" DESC', "rid"]),
        # ZCatalog then sorts (key, rid) pairs, in both directions.
        ([("created", True)], 10, ['"created" DESC', "rid DESC"]),
        ([("created", False)], 10, ['"created"', "rid"]),
        ([("created", True), ("Creator", False)], 10, ['"created" DESC', '"creator"', "rid"]),
        ([("created", False), ("Creator", True)], None, ['"created"', '"creator" DESC NULLS LAST', "rid"]),
        ([("created", False), ("Creator", False)], None, ['"created"', '"creator" NULLS FIRST', "rid"]),
    ],
)
def test_every_order_ends_with_the_record_id(sort: list[tuple[str, bool]], limit: Any, terms: list[str]) -> None:
    query = compiled(DOCUMENTS, *sort, limit=limit)
    assert list(order(query)) == terms
    assert query.sort_count == len(sort)


def test_rows_without_a_value_are_left_out_of_a_sorted_result() -> None:
    """... of a whole result rows without a value in the first index only."""
    sort = [("created", False), ("Creator", False)]
    sql, params = rendered(compiled(DOCUMENTS, *sort).where)
    assert sql == '("portal_type" = %s) AND ("created" IS NOT NULL)'
    sql, params = rendered(compiled(DOCUMENTS, *sort, limit=10).where)
    assert sql == '("portal_type" = %s) AND ("created" IS NOT NULL) AND ("creator" IS NOT NULL)'
    assert params == ["Document"]
    assert compiled({"portal_type": []}, ("created", False)).is_empty


def test_order_that_only_python_can_compute_is_left_to_it() -> None:
    sort = (("getObjPositionInParent", True), ("created", False))
    query = compiled(DOCUMENTS, *sort, limit=10)
    assert query.python_sort == sort
    assert list(order(query)) == ["rid"]
    assert rendered(query.where) == ('"portal_type" = %s', ["Document"])


@pytest.mark.parametrize(
    ("count", "given", "directions"),
    [
        *((1, None, [False]), (1, "", [False]), (1, "ascending", [False]), (1, "reverse", [True])),
        *((1, "Descending", [True]), (2, "descending", [True, True])),
        *((2, ["descending", "ascending"], [True, False]), (3, ["descending", "ascending"], [True, False, True])),
        *((2, [], [False, False]), (1, ["ascending", "descending"], [False])),
    ],
)
def test_directions_beyond_those_given_follow_the_first(count: int, given: Any, directions: list[bool]) -> None:
    assert list(islice(sort_directions(given), count)) == directions


# -- rank


def test_a_text_ranks_unless_the_result_is_sorted() -> None:
    sql, params = rendered(compiled({"Title": "red"} | DOCUMENTS).score)
    assert '"title"' in sql
    assert params == ["'red'"]
    assert compiled({"Title": "red"}, ("created", False)).score is None
    assert compiled({"Title": "red"}, ("getObjPositionInParent", False)).score is None
    assert compiled(DOCUMENTS).score is None


def test_the_text_of_a_query_object_ranks() -> None:
    one, other = compiled({"Title": "red"}), compiled({"where": Or(Text("red", "Title"), Eq("Creator", "mara"))})
    assert rendered(one.score) == rendered(other.score)
    assert compiled({"where": Text("red", "Title")}, ("created", True)).score is None


# -- window


@pytest.mark.parametrize(
    ("query", "limit", "window"),
    [
        ({}, None, Window()),
        ({}, 0, Window()),
        ({}, 5, Window(0, 5)),
        ({}, "5", Window(0, 5)),
        ({"b_size": 10}, None, Window(0, 10)),
        ({"b_size": 10}, 5, Window(0, 10)),
        ({"b_start": 20, "b_size": 10}, None, Window(20, 10)),
        ({"b_start": 20}, None, Window()),
        ({"b_start": 20}, 5, Window(20, 5)),
        ({"b_start": "-3", "b_size": "10"}, None, Window(-3, 10)),
        ({"b_start": 10**30, "b_size": 10**30}, None, Window(LARGEST_WINDOW, LARGEST_WINDOW)),
    ],
)
def test_window_is_that_of_batch_and_limit(query: dict[str, Any], limit: Any, window: Window) -> None:
    assert compiled(DOCUMENTS | query, limit=limit).window == window


@pytest.mark.parametrize(
    ("window", "sort_count", "cut"),
    [
        (Window(), 1, "abcdef"),
        (Window(0, 3), 1, "abc"),
        (Window(4, 3), 1, "ef"),
        (Window(9, 3), 1, ""),
        # From the end of the window backwards; with one index nothing is before the first row.
        (Window(-3, 5), 1, "ab"),
        (Window(-5, 3), 1, ""),
        (Window(-3, 5), 0, ""),
        (Window(-5, 3), 2, "ab"),
    ],
)
def test_window_cuts_as_in_zcatalog(window: Window, sort_count: int, cut: str) -> None:
    query = CompiledQuery(EVERYTHING, (), None, window, sort_count=sort_count)
    assert "".join(query.cut("abcdef")) == cut


def test_only_a_window_that_counts_from_the_first_row_is_cut_by_sql() -> None:
    windows = (Window(), Window(3, 0), Window(-1, 3), Window(0, -1))
    assert [window.fits_sql for window in windows] == [True, True, False, False]


# -- keys


def test_key_distinguishes_queries_by_everything_that_changes_the_answer() -> None:
    queries = [
        compiled(DOCUMENTS),
        compiled({"portal_type": "Event"}),
        compiled({"Creator": "Document"}),
        *(compiled(DOCUMENTS, sort) for sort in (("created", False), ("created", True), ("Creator", False))),
        compiled(DOCUMENTS, limit=3),
        compiled(DOCUMENTS | {"b_start": 3, "b_size": 3}),
        compiled(DOCUMENTS | {"Title": "red"}),
    ]
    keys = {query.key for query in queries}
    assert len(keys) == len(queries)
    assert None not in keys
    assert compiled({"portal_type": "a", "Creator": "b"}).key == compiled({"Creator": "b", "portal_type": ["a"]}).key
