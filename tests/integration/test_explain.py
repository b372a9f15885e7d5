"""EXPLAIN of recorded queries: compiled anew, read-only, and stopped in time."""

from plone.pgcatalog.advice.replay import explain
from plone.pgcatalog.advice.replay import explain_example
from plone.pgcatalog.advice.replay import ReplayError
from plone.pgcatalog.cli.explain import statement
from plone.pgcatalog.observe.log import Example
from plone.pgcatalog.sql.expression import Statement
from tests.integration.content import create
from typing import Any

import dataclasses
import datetime
import psycopg
import pytest
import transaction


@pytest.fixture
def filled(portal: Any) -> Any:
    for number in range(3):
        create(portal, "Document", f"page{number}", title=f"Page {number}")
    transaction.commit()
    return portal


def example(query: dict[str, Any], sort: Any = (), limit: Any = None, where: Any = None, **more: Any) -> Example:
    data = {"query": query, "where": where, "sort": list(sort), "limit": limit}
    data |= {"page": more.pop("page")} if "page" in more else {}
    now = datetime.datetime.now(datetime.UTC)
    values = {"left_out": [], "operation": "page", "statement": ""} | more
    operation, statement = values["operation"], values["statement"]
    return Example(1, now, "/", operation, "", data, values["left_out"], 1.0, 0.0, 1.0, 0.0, 1, statement)


def test_a_recorded_query_is_compiled_and_explained(filled: Any) -> None:
    catalog = filled.portal_catalog._catalog
    plan = explain_example(catalog, example({"portal_type": "Document"}, [["modified", True]], 2))
    assert " rows expected, " in plan.text
    assert plan.text.splitlines()[-1].startswith("Time on the server: ")
    assert plan.figures is not None
    assert plan.figures.rows_returned == 2
    assert plan.statement.endswith("LIMIT 2")
    assert plan.values == ("Document",)
    counted = explain_example(catalog, example({"portal_type": "Document"}, operation="count"))
    assert counted.statement.startswith("SELECT count(*)")
    assert "Aggregate" in counted.text
    rids = explain_example(catalog, example({"portal_type": "Document"}, operation="rids"))
    assert "string_agg" in rids.statement


def test_a_page_has_its_recorded_place(filled: Any) -> None:
    catalog = filled.portal_catalog._catalog
    evil = "SELECT evil() LIMIT 7 OFFSET 30; DROP TABLE x"
    recorded = example({"portal_type": "Document"}, statement=evil, page=[30, 7])
    plan = explain_example(catalog, recorded)
    assert plan.statement.endswith("LIMIT 7 OFFSET 30")
    assert "evil" not in plan.statement
    everything = example({"portal_type": "Document"}, [["modified", True]], 2, page=[0, None])
    assert explain_example(catalog, everything).statement.endswith("rid DESC")


@pytest.mark.parametrize("page", [None, "7", [7], ["30", "7"], [30, 7.5], {"size": 7}])
def test_a_record_without_a_page_has_that_of_its_query(filled: Any, page: Any) -> None:
    """Records of older versions have only the text of the statement, which is never read."""
    recorded = example({"portal_type": "Document"}, limit=5, statement="SELECT 1 LIMIT 7 OFFSET 30", page=page)
    assert explain_example(filled.portal_catalog._catalog, recorded).statement.endswith("LIMIT 5")


@pytest.mark.parametrize(
    ("recorded", "message"),
    [
        (example({}, left_out=["SearchableText"]), "values of SearchableText were not recorded"),
        (example({"portal_type": []}), "cannot find anything"),
        (example({}), "cannot find anything"),
        (example({"portal_type": "x"}, [["gone", False]]), "there is no index 'gone' any more"),
        (example({"created": {"query": ["no date"], "range": "min"}}), "the catalog refuses the query"),
        (example({"portal_type": {"@unknown": 1}}), "the record is damaged"),
        (example({"portal_type": "x"}, where={"Evil": {}}), "the record is damaged"),
        (example({"portal_type": "x"}, operation="metadata"), "read for certain rows"),
    ],
)
def test_what_cannot_be_run_again_says_why(filled: Any, recorded: Example, message: str) -> None:
    with pytest.raises(ReplayError, match=message):
        explain_example(filled.portal_catalog._catalog, recorded)


def test_explaining_cannot_write(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
        with pytest.raises(ReplayError, match="read-only transaction"):
            explain(database, Statement("DELETE FROM t"))
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(1,)]


def test_explaining_does_not_run_for_ever(database: str) -> None:
    with pytest.raises(ReplayError, match=r"stopped after 0\.2 seconds"):
        explain(database, Statement("SELECT pg_sleep(60)"), seconds=0.2)


def test_a_database_that_is_gone_is_named() -> None:
    with pytest.raises(ReplayError, match="PostgreSQL: "):
        explain("host=/nowhere dbname=none", Statement("SELECT 1"))


def test_an_example_is_what_it_was(filled: Any) -> None:
    one = example({"portal_type": "Document"})
    assert explain_example(filled.portal_catalog._catalog, dataclasses.replace(one, operation="count")).values == (
        "Document",
    )


# -- the command's query


@pytest.mark.parametrize(
    "query",
    [
        {"portal_type": "x", "sort_on": "modified", "sort_order": "reverse", "sort_limit": 3},
        {"portal_type": "x", "b_start": 1, "b_size": 2, "show_inactive": True},
        {"created": ["2026/01/01"], "created_range": "min"},
        {"Subject": ["a", "b"], "Subject_operator": "and", "path": "/plone", "path_depth": 1},
        {"portal_type": {"not": "x"}, "sort_on": ["getId", "modified"], "sort_order": ["reverse", "ascending"]},
        {"portal_type": "x", "sort_on": "getObjPositionInParent"},
    ],
)
@pytest.mark.parametrize("part", ["page", "count", "rids"])
def test_the_command_explains_what_a_search_takes(catalog: Any, query: dict[str, Any], part: str) -> None:
    catalog.unrestrictedSearchResults(query)
    assert statement(catalog._core, query, part).sql.startswith("SELECT ")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"nope": 1}, "^there is no index 'nope'; there are: "),
        ({"portal_type": "x", "nope": 1, "Nope": 2}, "^there is no index 'Nope', 'nope'; there are: "),
        ({"portal_type": "x", "portal_type_nope": "min"}, "^there is no index 'portal_type_nope'; there are: "),
        ({"portal_type": "x", "sort_on": "nope"}, "refuses the query: .*nope"),
        ({"portal_type": "x", "sort_on": ["getId", "nope"]}, "refuses the query: .*nope"),
        ({"portal_type": "x", "sort_on": "SearchableText"}, "refuses the query: .*SearchableText"),
        ({"portal_type": [1, "a"]}, "refuses the query: "),
        ({"portal_type": {"query": "x", "nope": 1}}, "option 'nope' is not valid"),
        ({"portal_type": "x", "sort_limit": "x"}, "refuses the query: "),
        ({}, "cannot find anything"),
    ],
)
def test_the_command_names_what_is_wrong(catalog: Any, query: dict[str, Any], message: str) -> None:
    with pytest.raises(ReplayError, match=message):
        statement(catalog._core, query, "page")
