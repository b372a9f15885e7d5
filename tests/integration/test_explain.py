"""EXPLAIN of recorded queries: compiled anew, read-only, and with a time limit."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.advice.replay import explain
from plone.pgcatalog.advice.replay import explain_example
from plone.pgcatalog.advice.replay import ReplayError
from plone.pgcatalog.cli.work import statement
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe.log import Choice
from plone.pgcatalog.observe.log import Example
from plone.pgcatalog.observe.log import histogram
from plone.pgcatalog.observe.log import log_of
from plone.pgcatalog.observe.plan import explain_json
from plone.pgcatalog.observe.plan import PlanFigures
from plone.pgcatalog.observe.plan import summary
from plone.pgcatalog.observe.plan import why
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.sql.expression import Statement
from psycopg.rows import dict_row
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.slow_queries import generate_rows
from tests.integration.slow_queries import ROWS
from tests.integration.web import MANAGER
from tests.integration.web import Site
from typing import Any

import datetime
import json
import psycopg
import pytest
import transaction


def fill(portal: Any) -> None:
    for number in range(3):
        create(portal, "Document", f"page{number}", title=f"Page {number}")


SHARED = fill


def example(query: dict[str, Any], sort: Any = (), limit: Any = None, where: Any = None, **more: Any) -> Example:
    data = {"query": query, "where": where, "sort": list(sort), "limit": limit}
    data |= {"page": more.pop("page")} if "page" in more else {}
    now = datetime.datetime.now(datetime.UTC)
    values = {"left_out": [], "operation": "page", "statement": ""} | more
    times = {"total_ms": 1.0, "embed_ms": 0.0, "compile_ms": 0.0, "execute_ms": 1.0, "decode_ms": 0.0}
    return Example(id=1, recorded_at=now, path="/", shape="", query=data, result_rows=1, **times, **values)


def test_a_recorded_query_is_compiled_and_explained(shared_filled: Any) -> None:
    catalog = shared_filled.portal_catalog._core
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


NO_PAGES = (None, "7", [7], ["30", "7"], [30, 7.5], {"size": 7})


@pytest.mark.parametrize(
    ("page", "query", "end"),
    [
        ([30, 7], {}, "LIMIT 7 OFFSET 30"),
        ([0, None], {"sort": [["modified", True]], "limit": 2}, "rid DESC"),
        *((page, {"limit": 5}, "LIMIT 5") for page in NO_PAGES),
    ],
)
def test_page_is_the_recorded_one_or_that_of_the_query(shared_filled: Any, page: Any, query: Any, end: str) -> None:
    """A record is data: the page in the text of the statement is never read."""
    evil = "SELECT evil() LIMIT 7 OFFSET 31; DROP TABLE x"
    recorded = example({"portal_type": "Document"}, **query, statement=evil, page=page)
    plan = explain_example(shared_filled.portal_catalog._core, recorded)
    assert plan.statement.endswith(end)
    assert "evil" not in plan.statement


@pytest.mark.parametrize(
    ("recorded", "message"),
    [
        (example({}, left_out=["SearchableText"]), "values of SearchableText were not recorded"),
        (example({"portal_type": []}), "matches nothing"),
        (example({}), "matches nothing"),
        (example({"portal_type": "x"}, [["gone", False]]), "there is no index 'gone' any more"),
        (example({"created": {"query": ["no date"], "range": "min"}}), "the catalog refuses the query"),
        (example({"portal_type": {"@unknown": 1}}), "the record is damaged"),
        (example({"portal_type": "x"}, where={"Evil": {}}), "the record is damaged"),
        (example({"portal_type": "x"}, operation="metadata"), "read for certain rows"),
    ],
)
def test_query_that_cannot_be_run_again_names_the_reason(shared_filled: Any, recorded: Example, message: str) -> None:
    with pytest.raises(ReplayError, match=message):
        explain_example(shared_filled.portal_catalog._core, recorded)


def test_explaining_cannot_write_and_has_a_time_limit(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
        for sql, message in (
            ("DELETE FROM t", "read-only transaction"),
            ("SELECT pg_sleep(60)", r"after 0\.2 seconds"),
        ):
            with pytest.raises(ReplayError, match=message):
                explain(database, Statement(sql), seconds=0.2)
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(1,)]
    with pytest.raises(ReplayError, match="PostgreSQL: "):
        explain("host=/nowhere dbname=none", Statement("SELECT 1"))


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
def test_command_explains_each_query_that_a_search_accepts(shared_filled: Any, query: dict[str, Any]) -> None:
    catalog = shared_filled.portal_catalog
    catalog.unrestrictedSearchResults(query)
    for part in ("page", "count", "rids"):
        assert statement(catalog._core, query, part).sql.startswith("SELECT ")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"nope": 1}, "^there is no index 'nope'; the indexes are: "),
        ({"portal_type": "x", "nope": 1, "Nope": 2}, "^there is no index 'Nope', 'nope'; the indexes are: "),
        ({"portal_type": "x", "portal_type_nope": "min"}, "^there is no index 'portal_type_nope'; the indexes are: "),
        ({"portal_type": "x", "sort_on": "nope"}, "refuses the query: .*nope"),
        ({"portal_type": "x", "sort_on": ["getId", "nope"]}, "refuses the query: .*nope"),
        ({"portal_type": "x", "sort_on": "SearchableText"}, "refuses the query: .*SearchableText"),
        ({"portal_type": [1, "a"]}, "refuses the query: "),
        ({"portal_type": {"query": "x", "nope": 1}}, "option 'nope' is not valid"),
        ({"portal_type": "x", "sort_limit": "x"}, "refuses the query: "),
        ({}, "matches nothing"),
    ],
)
def test_command_names_the_error(shared_filled: Any, query: dict[str, Any], message: str) -> None:
    with pytest.raises(ReplayError, match=message):
        statement(shared_filled.portal_catalog._core, query, "page")


SECRET = "creator7"


@pytest.fixture(scope="module")
def shared(shared_site: Site) -> Iterator[Site]:
    """A site with generated rows."""
    generate_rows(shared_site.dsn)
    yield shared_site
    assert recorder.flush(10)


@pytest.fixture
def site(shared: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The shared site, with an empty log; everything is slow."""
    assert recorder.flush(10)
    execute(shared, "DELETE FROM pgcatalog_slow_queries")
    execute(shared, "DELETE FROM pgcatalog_history")
    recorder.recorders[shared.dsn]._plans.clear()
    result_cache().clear()
    monkeypatch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
    yield shared
    assert recorder.flush(10)


def execute(site: Site, query: str, *values: Any) -> list[dict[str, Any]]:
    with psycopg.connect(site.dsn, autocommit=True, row_factory=dict_row) as connection:
        cursor = connection.execute(query, values)
        return cursor.fetchall() if cursor.description else []


def recorded(site: Site, operation: str = "page") -> list[dict[str, Any]]:
    assert recorder.flush(10)
    return execute(site, "SELECT * FROM pgcatalog_slow_queries WHERE operation = %s ORDER BY id", operation)


def search(site: Site, *creators: str, **query: Any) -> None:
    """Search for the rows of each of *creators*, in one transaction."""
    with site.inside() as portal:
        for creator in creators or (SECRET,):
            search_in(portal, Creator=creator, **query)


def search_in(portal: Any, **query: Any) -> None:
    len(portal.portal_catalog.unrestrictedSearchResults(**{"sort_on": "modified", **query})[:5])


@contextmanager
def log(site: Site) -> Iterator[Any]:
    """Yield the log of *site*, with all records."""
    assert recorder.flush(10)
    with site.inside() as portal:
        yield log_of(portal.portal_catalog._core)


def groups(site: Site) -> list[Any]:
    """Return the groups of recorded pages."""
    with log(site) as found:
        return [group for group in found.groups() if group.operation == "page"]


def test_plan_is_stored_with_rows_and_without_values(site: Site) -> None:
    search(site, review_state="private")
    [row] = recorded(site)
    assert SECRET not in json.dumps(row["plan"])
    assert "private" not in json.dumps(row["plan"])
    figures = PlanFigures.of(row["plan"])
    assert figures is not None
    assert figures.server_ms > 0
    # Of 200 creators one has 20 rows; PostgreSQL chooses the plan.
    assert figures.rows_returned == 5 <= figures.rows_read <= ROWS
    assert "Scan" in json.dumps(row["plan"])


def test_a_shape_is_explained_once_an_hour(site: Site) -> None:
    for number in range(3):
        search(site, f"creator{number}")
        assert recorder.flush(10)
    assert [row["plan"] is not None for row in recorded(site)] == [True, False, False]
    [group] = groups(site)
    assert group.server_ms is not None
    found = why(group)
    assert sum(found.parts.values()) == pytest.approx(1)


def test_a_count_that_reads_all_rows_returns_those_it_counts(site: Site) -> None:
    with site.inside() as portal:
        assert len(portal.portal_catalog.unrestrictedSearchResults(review_state="published")) == ROWS // 2
    [row] = recorded(site, "count")
    figures = PlanFigures.of(row["plan"])
    assert figures is not None
    assert figures.rows_returned == ROWS // 2


def test_a_parallel_count_returns_the_rows_that_its_processes_count(shared_site: Site) -> None:
    with psycopg.connect(shared_site.dsn) as connection:
        connection.execute("CREATE UNLOGGED TABLE many AS SELECT generate_series(1, 1000) AS n")
        for name in ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size"):
            connection.execute(f"SET LOCAL {name} = 0")
        plan = summary(explain_json(connection, Statement("SELECT count(*) FROM many", ())))
        connection.rollback()
    assert "Gather" in json.dumps(plan)
    assert plan["rows_returned"] == plan["rows_read"] == 1000


def colds(site: Site) -> list[str]:
    return [row["cold"] for row in recorded(site) if row["shape"].startswith("Creator")]


def test_first_search_after_a_write_is_no_colder(site: Site) -> None:
    """The states of catalogs come with the snapshot."""
    with site.inside() as portal:
        create(portal, "Document", f"page{portal.portal_catalog.getCounter()}")
    search(site, SECRET, "creator8", "creator9", sort_on="created")
    # Whether the connection has prepared the statement depends on earlier tests.
    assert set(colds(site)) <= {"", "connection"}
    assert colds(site)[2] == ""


def test_first_search_of_a_process_is_cold(site: Site) -> None:
    with sites.opened(site.dsn) as db:
        search(Site(db), sort_on="Date")
    assert colds(site) == ["process"]


def test_storage_with_history_is_cold_no_more_often(dsn: str, site: Site) -> None:
    """*site* makes everything slow."""
    with sites.opened(dsn, history_preserving=True) as db:
        kept = Site(db)
        for number in range(4):
            with kept.inside() as portal:
                search_in(portal, Creator=f"creator{number}", sort_on="Date")
                if number == 2:
                    create(portal, "Document", "page")
        first, *others = colds(kept)
    assert first == "process"
    assert len(others) == 3
    assert set(others) <= {"", "connection"}


def test_address_of_the_page_is_stored_without_its_query(site: Site) -> None:
    """The history of one page is counted from its queries."""
    assert site.web.get("/plone/@@search", MANAGER, SearchableText="hedgehog").status == 200
    assert {row["page"] for row in recorded(site)} == {"/plone/@@search"}
    [count] = execute(site, "SELECT count(*) FROM pgcatalog_slow_queries")
    with log(site) as found:
        assert found.pages(Choice(hours=24)) == ["/plone/@@search"]
        assert found.groups(choice=Choice(page="/plone/@@search"))
        assert found.groups(choice=Choice(page="/plone")) == []
        hours = found.history(Choice(hours=24, page="/plone/@@search")).hours
        assert sum(figures.count for figures in hours.values()) == count["count"] > 0
        assert found.history(Choice(hours=24, page="/elsewhere")).hours == {}


def test_pending_rows_cannot_be_explained_by_others(site: Site) -> None:
    with site.inside() as portal:
        create(portal, "Document", "pending")
        search_in(portal, Creator=SECRET, sort_on="sortable_title")
        rows = [row for row in recorded(site) if row["shape"].startswith("Creator")]
        transaction.abort()
    assert rows
    assert {row["plan"] is None for row in rows} == {True}


def test_the_history_counts_every_query_of_an_hour(site: Site) -> None:
    for first, behind in ((0, 4), (4, 7)):
        search(site, *(f"creator{number}" for number in range(first, behind)))
        assert recorder.flush(10)
    times = [row["total_ms"] for row in recorded(site)]
    [line] = execute(site, "SELECT figures FROM pgcatalog_history WHERE operation = 'page'")
    assert line["figures"] == histogram(times)
    # Rows deleted from the log stay in the history.
    execute(site, "DELETE FROM pgcatalog_slow_queries")
    with log(site) as found:
        history = found.history(Choice(hours=24))
    [hour] = history.hours.values()
    assert hour.count == 7
    assert 0 < hour.p50_ms <= hour.p95_ms
    assert [figures.count for figures in history.now.values()] == [7]
    assert history.before == {}


def test_the_week_before_is_compared(site: Site) -> None:
    search(site)
    [group] = groups(site)
    with log(site) as found:
        # This log did not exist a week before.
        assert not found.history(Choice(hours=24)).is_compared
    execute(
        site,
        "INSERT INTO pgcatalog_history SELECT catalog, hour - interval '7 days', operation, shape, %s"
        " FROM pgcatalog_history WHERE operation = 'page'",
        histogram([20.0] * 9),
    )
    with log(site) as found:
        history = found.history(Choice(hours=24))
    assert history.is_compared
    assert history.before[group.key].count == 9
    assert len(history.hours) == 1
    [group] = groups(site)
    assert not group.is_new  # this shape existed before the last start


def test_new_shape_was_not_slow_before_the_last_start(site: Site) -> None:
    search(site)
    # A log that begins with the last start, as in a new site, has no former period to compare with.
    assert [group.is_new for group in groups(site)] == [False]
    execute(
        site,
        "INSERT INTO pgcatalog_history"
        " SELECT DISTINCT catalog, date_trunc('hour', now(), 'UTC') - interval '3 h', '', '', '{1}'::bigint[]"
        " FROM pgcatalog_history",
    )
    assert [group.is_new for group in groups(site)] == [True]
    # As in a process that starts now: all entries are older.
    execute(site, "UPDATE pgcatalog_slow_queries SET process_started = now() + interval '1 minute'")
    assert [group.is_new for group in groups(site)] == [False]


def test_slow_for_this_site_is_ten_times_the_median(site: Site) -> None:
    search(site, *(f"creator{number}" for number in range(4)))
    assert recorder.flush(10)
    newest = "(SELECT max(id) FROM pgcatalog_slow_queries)"
    execute(site, f"UPDATE pgcatalog_slow_queries SET total_ms = CASE WHEN id = {newest} THEN 21 ELSE 2 END")
    assert [group.long for group in groups(site)] == [1]


def test_the_history_is_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "HISTORY_LINES", 2)
    line = "INSERT INTO pgcatalog_history SELECT 1, now() - n * interval"
    execute(site, f"{line} '1 hour', 'page', 'x', '{{}}' FROM generate_series(1, 10) n")
    execute(site, f"{line} '1 day', '', '', '{{}}' FROM (VALUES (30), (50)) AS days (n)")
    search(site)
    assert recorder.flush(10)
    lines = execute(site, "SELECT operation FROM pgcatalog_history ORDER BY hour")
    # The sizes are few, and not displaced by queries.
    assert lines[0]["operation"] == ""
    assert len(lines) <= 4
