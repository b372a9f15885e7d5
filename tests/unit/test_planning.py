"""Statements with planner hints: those that compare long values, and only the necessary hints.

The hints by themselves are tested in test_sql.py; here they are combined with the columns of the index types.
"""

from collections.abc import Sequence
from plone.pgcatalog.database.prepared import PLAN_CUSTOM
from plone.pgcatalog.database.prepared import PLAN_GENERIC
from plone.pgcatalog.database.prepared import with_planner_hints
from plone.pgcatalog.indexes.simple import KeywordIndexTranslator
from plone.pgcatalog.query.bind import hide_unselective_indexes
from plone.pgcatalog.query.bind import plans_once
from plone.pgcatalog.query.bind import SELECTIVE_SHARE
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import below
from plone.pgcatalog.sql.predicate import between
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from tests.unit.compiling import compiled
from typing import Any

import pytest


ROLES = KeywordIndexTranslator(KeywordIndex("allowedRolesAndUsers"), "allowed_roles")
PROVIDES = KeywordIndexTranslator(KeywordIndex("object_provides"), "object_provides")
TEXT = compiled({"Title": "red"}).where
INTERFACE = PROVIDES.match_key("x.IContent")
VISIBLE = ROLES.match_key("Anonymous")
DOCUMENTS = compiled({"portal_type": "Document"}).where
PAGES = compiled({"portal_type": ["Document", "Folder"]}).where
TAGGED = compiled({"Subject": "a"}).where
MORE = SELECTIVE_SHARE * 1.1


def share(**shares: float) -> Any:
    """Return a function of (column, values): the share of the rows with them, by *shares*, or None."""
    return lambda column, values: shares.get(column.name)


def statements(condition: Condition) -> list[str]:
    """Return the SQL sent to select the rows that match *condition*."""
    statement = Statement(f"SELECT rid FROM relation WHERE {condition.sql}", condition.params, condition.is_costly)
    found, at = with_planner_hints(statement)
    assert found[at] is statement
    return [each.sql for each in found]


# -- without a scan of the table


@pytest.mark.parametrize("condition", [DOCUMENTS, PAGES, TAGGED, VISIBLE, DOCUMENTS & VISIBLE, INTERFACE, ~DOCUMENTS])
def test_short_values_are_left_to_postgresql(condition: Condition) -> None:
    assert len(statements(condition)) == 1


@pytest.mark.parametrize("condition", [TEXT, DOCUMENTS & TEXT, TEXT | INTERFACE, ~TEXT])
def test_long_values_are_not_compared_in_a_scan_and_the_setting_ends_with_the_statement(condition: Condition) -> None:
    before, _, after = statements(condition)
    assert before == "SET LOCAL enable_seqscan = off"
    assert after == "SET LOCAL enable_seqscan TO DEFAULT"


# -- conditions that most rows fulfil


@pytest.mark.parametrize(
    ("found", "is_looked_up"), [(0.0, True), (SELECTIVE_SHARE, True), (MORE, False), (None, False)]
)
def test_sort_condition_that_all_rows_fulfil_needs_no_index(found: float | None, is_looked_up: bool) -> None:
    asked = compiled({"Title": "red"}, ("created", False)).where

    def of_any_value(column: Column, values: Sequence[Any] | None) -> float | None:
        return found if (column.name, values) == ("created", None) else 0.0

    assert (hide_unselective_indexes(asked, of_any_value) == asked) == is_looked_up


def test_share_of_each_column_is_that_of_its_own_values() -> None:
    asked: list[tuple[str, list[Any]]] = []

    def note(column: Column, values: Any) -> float:
        asked.append((column.name, list(values)))
        return 0.0

    hide_unselective_indexes(compiled({"Creator": "100%", "portal_type": ["a", "b"]}).where & TEXT & VISIBLE, note)
    assert asked == [("portal_type", ["a", "b"]), ("creator", ["100%"]), ("allowed_roles", ["Anonymous"])]


# -- planned once for all values

PATH = Column("path", "text")


@pytest.mark.parametrize("condition", [TEXT, TEXT & VISIBLE & DOCUMENTS, TEXT & below(PATH, "/plone").hidden()])
def test_condition_without_alternative_plans_is_planned_once(condition: Condition) -> None:
    assert plans_once(condition)


@pytest.mark.parametrize("found", [below(PATH, "/plone/a"), between(PATH, "a", "b"), TEXT | INTERFACE, ~TEXT])
def test_condition_that_an_index_may_speed_up_is_planned_with_its_values(found: Condition) -> None:
    assert not plans_once(TEXT & found)


def test_the_plan_of_one_statement_is_not_that_of_the_next() -> None:
    statement = Statement("SELECT 1", (), plans_once=True)
    assert with_planner_hints(statement) == ([Statement(PLAN_GENERIC), statement, Statement(PLAN_CUSTOM)], 1)
    assert with_planner_hints(statement, replans=False) == ([statement], 0)
