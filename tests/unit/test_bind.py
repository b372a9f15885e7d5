"""Binding a query to the stored form of a catalog, as data: (query, stored form) -> (SQL, values)."""

from collections.abc import Callable
from dataclasses import replace
from DateTime import DateTime
from datetime import datetime
from datetime import UTC
from functools import partial
from hypothesis import given
from hypothesis import strategies as st
from pathlib import Path
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.prepared import PLAN_CUSTOM
from plone.pgcatalog.database.prepared import PLAN_GENERIC
from plone.pgcatalog.database.prepared import with_planner_hints
from plone.pgcatalog.database.sets import CachedSets
from plone.pgcatalog.query import bind
from plone.pgcatalog.query import statements
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.ranked import LARGE
from plone.pgcatalog.query.ranked import Score
from plone.pgcatalog.query.ranked import SMALL
from plone.pgcatalog.query.ranked import Stages
from plone.pgcatalog.settings import RANKED_ROWS
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import below
from plone.pgcatalog.sql.predicate import between
from plone.pgcatalog.sql.predicate import has_value
from plone.pgcatalog.sql.shares import bound
from plone.pgcatalog.sql.shares import Shares
from plone.pgcatalog.sql.shares import UNKNOWN
from plone.pgcatalog.sql.values import set_number
from tests.unit.compiling import compiled
from tests.unit.compiling import TRANSLATORS
from typing import Any

import json
import pytest


RECORDS = json.loads((Path(__file__).parent / "data" / "bound_statements.json").read_text("utf-8"))
LAYOUT = Layout(tuple(column for t in TRANSLATORS.values() for column in t.columns()), ())
LISTS = [["water", "wood"], ["water"], ["stone"]]

STATEMENTS: dict[str, Callable[[CompiledQuery, Stored], Statement]] = {
    "page": lambda query, stored: statements.page(query, stored, 0, 25),
    "page behind": lambda query, stored: statements.page(query, stored, 50, 25, with_total=True),
    "page with metadata": lambda query, stored: statements.page_with_metadata(
        query, stored, 0, 25, ["Title"], True, False
    ),
    "count": statements.count,
    "count up to 100": lambda query, stored: statements.count(replace(query, count_limit=100), stored),
    "ids": statements.ids,
    "first ids": lambda query, stored: statements.first_ids(query, stored, 1024),
}


def known() -> CachedSets:
    sets = CachedSets()
    sets.store([(set_number("subject", values), "subject", values) for values in LISTS], newest=3)
    return sets


def interned_columns(*names: str) -> Any:
    return LAYOUT.with_interned(frozenset(names)).interned_columns


#: Stored forms by name: a small catalog with arrays, one that stores lists by number, a large one with known shares.
FORMS = {
    "arrays": Stored(('"catalog_1"', ()), rows=300, full=RANKED_ROWS, interned_columns=interned_columns()),
    "numbers": Stored(
        ('"catalog_1"', ()),
        complete=("portal_type", "created", "creator"),
        interned_columns=interned_columns("subject"),
        cached_sets=[known()],
        rows=300,
        full=RANKED_ROWS,
    ),
    "large": Stored(
        ('"catalog_1"', ()),
        complete=("portal_type",),
        interned_columns=interned_columns("subject"),
        cached_sets=[known()],
        rows=50_000,
        full=RANKED_ROWS,
        shares=Shares({"portal_type": 1.0}, {"portal_type": {"Document": 0.7, "News Item": 0.01}}),
    ),
}


def query_of(record: dict[str, Any]) -> CompiledQuery:
    def value(data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return DateTime(data["DateTime"]) if "DateTime" in data else {key: value(part) for key, part in data.items()}

    query: dict[str, Any] = value(record["query"])
    return compiled(query, *[(name, reverse) for name, reverse in record["sort"]])


def plain(value: Any) -> Any:
    """Return *value* as JSON represents it."""
    return json.loads(json.dumps(value, default=str))


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: f"{r['form']}-{r['statement']}-{r['query']}-{r['sort']}")
def test_a_bound_query_is_the_statement_on_record(record: dict[str, Any]) -> None:
    made = STATEMENTS[record["statement"]](query_of(record), FORMS[record["form"]])
    assert (made.sql, plain(made.params)) == (record["sql"], record["values"])
    assert (made.is_costly, made.plans_once) == (record["costly"], record["plans_once"])


def test_binding_changes_none_of_its_arguments() -> None:
    for record in RECORDS:
        query, stored = query_of(record), FORMS[record["form"]]
        make = STATEMENTS[record["statement"]]
        first, second = make(query, stored), make(query, stored)
        assert (first, first.params) == (second, second.params)
        assert query.key == query_of(record).key


TITLE, SUBJECT = Column("title", "text"), Column("subject", "text[]")


def test_condition_that_every_row_fulfils_is_omitted() -> None:
    stored = Stored(("catalog", ()), complete={"title"})
    assert bind.condition(has_value(TITLE), stored) is EVERYTHING
    assert bind.condition(has_value(SUBJECT), stored) is not EVERYTHING


def test_hits_are_counted_separately_only_if_stages_may_not_count_them() -> None:
    """In a large catalog the first stage stops after so many hits."""
    query = compiled({"Title": "water"})
    few, many = (
        statements.page(query, replace(FORMS["large"], rows=rows), 0, 25, with_total=True).sql
        for rows in (6_000, 50_000)
    )
    assert "(SELECT total FROM found) AS total" in few
    assert "coalesce((SELECT total FROM found), (SELECT count(*)" in many


def test_moved_rows_come_last_without_another_order() -> None:
    stored = Stored(("catalog", ()), moved="(SELECT true)")
    assert bind.order_by(compiled({"portal_type": "Document"}), stored) == "(SELECT true), rid"
    assert bind.order_by(compiled({"portal_type": "Document"}, ("Creator", False)), stored) == '"creator", rid'


def test_values_of_a_source_are_at_its_place() -> None:
    stored = Stored(("(SELECT * FROM t WHERE n = %s) AS catalog", (7,)))
    query = compiled({"Creator": "mara"})
    for make in (statements.count, statements.ids, partial(statements.page, start=0, size=None)):
        assert make(query, stored).params == (7, "mara")


def test_unsaved_lists_are_looked_up_beside_the_saved_ones() -> None:
    stored = Stored(("catalog", ()), interned_columns=interned_columns("subject"), pending_sets="pending")
    assert "FROM pending AS pending" in bind.lists_sql(stored)["subject"]
    assert bind.lists_sql(Stored(("catalog", ()))) == {}


def test_shares_are_those_of_the_planner_or_unknown() -> None:
    column = Column("portal_type", "text")
    assert UNKNOWN.with_any(column, ["Document"]) is UNKNOWN.between(column, None, None) is None
    assert Shares(of_value={"portal_type": {"Document": 0.5}}).with_any(column, ["Document", "Link"]) == 0.5
    known = Shares({"portal_type": 0.5}, bounds={"portal_type": ["a", "b", "c", "d"]})
    ends = [(None, None), (None, "b"), ("b", None), ("bb", "c"), ("x", None), ("c", "b")]
    assert [known.between(column, *each) for each in ends] == [0.5, 0.25, 0.375, 0.125, 0, 0]


@given(st.lists(st.datetimes(timezones=st.just(UTC)), min_size=2, max_size=9))
def test_bounds_of_times_sort_as_the_times(times: list[datetime]) -> None:
    seconds = [each.replace(microsecond=0) for each in times]
    assert sorted(seconds, key=bound) == sorted(seconds)


# -- planner hints: with statements that compare long values, and only the necessary ones

TEXT, DOCUMENTS = compiled({"Title": "red"}).where, compiled({"portal_type": "Document"}).where
PATH = Column("path", "text")


@pytest.mark.parametrize(
    ("condition", "is_hinted"),
    [
        *((condition, False) for condition in (DOCUMENTS, ~DOCUMENTS, compiled({"Subject": "a"}).where)),
        *((condition, True) for condition in (TEXT, DOCUMENTS & TEXT, TEXT | DOCUMENTS, ~TEXT)),
    ],
)
def test_long_values_are_not_compared_in_a_scan_and_the_setting_ends_with_the_statement(
    condition: Condition, is_hinted: bool
) -> None:
    statement = Statement(f"SELECT rid FROM relation WHERE {condition.sql}", condition.params, condition.is_costly)
    hints = ["SET LOCAL enable_seqscan = off", "SET LOCAL enable_seqscan TO DEFAULT"] if is_hinted else []
    found, at = with_planner_hints(statement)
    assert found[at] is statement
    assert [each.sql for each in found if each is not statement] == hints


@pytest.mark.parametrize(
    ("where", "largest"),
    [
        (TEXT, LARGE),
        (TEXT & below(PATH, "/plone").hidden() & DOCUMENTS.hidden(), LARGE),
        (TEXT & DOCUMENTS, SMALL),
        (TEXT & compiled({"Title": "blue"}).where, SMALL),
        (DOCUMENTS, SMALL),
        *((TEXT & other, 0) for other in (below(PATH, "/plone/a"), between(PATH, "a", "b"), TEXT | DOCUMENTS, ~TEXT)),
    ],
)
def test_only_a_condition_without_alternative_plans_is_planned_once(where: Condition, largest: int) -> None:
    """Another one may be found by an index, which depends on its values: in a catalog with many rows more so."""
    score = Score("1", ())
    sizes = (RANKED_ROWS + 1, SMALL, SMALL + 1, LARGE, LARGE + 1)
    stages = {rows: Stages.of(("catalog", ()), where, score, rows, RANKED_ROWS) for rows in sizes}
    assert [rows for rows, each in stages.items() if each and each.plans_once] == [
        rows for rows in sizes if rows <= largest
    ]


def test_the_plan_of_one_statement_is_not_that_of_the_next() -> None:
    statement = Statement("SELECT 1", (), plans_once=True)
    assert with_planner_hints(statement) == ([Statement(PLAN_GENERIC), statement, Statement(PLAN_CUSTOM)], 1)
    assert with_planner_hints(statement, replans=False) == ([statement], 0)
