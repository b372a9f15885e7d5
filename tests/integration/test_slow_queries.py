"""Slow queries are logged and recorded, without any effect on the request."""

from collections.abc import Iterator
from plone.pgcatalog.observe import log
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe.recorder import Recorder
from plone.pgcatalog.observe.trace import throttle
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.sql.expression import Statement
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.waiting import PATIENCE
from typing import Any

import logging
import multiprocessing
import os
import psycopg
import pytest
import transaction


LOGGER = "plone.pgcatalog.observe.trace"


@pytest.fixture(scope="module")
def dsn(site_template: str, postgres: Any) -> str:
    """DSN of a site shared by the tests of this module."""
    return sites.clone(postgres, site_template)


@pytest.fixture(scope="module")
def filled(dsn: str) -> Iterator[Any]:
    """The site, with pages."""
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        for number in range(12):
            create(portal, "Document", f"page{number}", title=f"Page {number}")
        transaction.commit()
        yield portal


@pytest.fixture(autouse=True)
def everything_is_slow(filled: Any, dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    transaction.begin()
    result_cache().clear()
    throttle.clear()
    assert recorder.flush(10)
    with psycopg.connect(dsn) as connection:
        connection.execute("DELETE FROM pgcatalog_slow_queries")
    monkeypatch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
    yield
    monkeypatch.undo()
    assert recorder.flush(10)


def search(portal: Any, **query: Any) -> list[Any]:
    # Without iter() list() would request the length first.
    return list(iter(portal.portal_catalog.unrestrictedSearchResults(**query)))


def count(portal: Any, **query: Any) -> int:
    return len(portal.portal_catalog.unrestrictedSearchResults(**query))


def recorded(dsn: str, columns: str = "operation, shape, result_rows") -> list[Any]:
    """Return the recorded values, except for reads of metadata, which depend on the cache."""
    assert recorder.flush(10)
    query = f"SELECT {columns} FROM pgcatalog_slow_queries WHERE operation <> 'metadata' ORDER BY id"
    with psycopg.connect(dsn) as connection:
        return connection.execute(query).fetchall()


def test_a_slow_query_is_logged_and_recorded(filled: Any, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    catalog = filled.portal_catalog
    with caplog.at_level(logging.WARNING, LOGGER):
        results = catalog.unrestrictedSearchResults(portal_type="Document", sort_on="modified", sort_order="reverse")
        assert results[0].getPath() == "/plone/page11"
    [message] = [r.getMessage() for r in caplog.records if r.name == LOGGER]
    assert message.startswith("page of /plone/portal_catalog took ")
    assert message.endswith(", 12 rows: portal_type =; sort modified desc")
    assert recorded(dsn) == [("page", "portal_type =; sort modified desc", 12)]


def test_total_and_remaining_rows_are_separate_records(filled: Any, dsn: str) -> None:
    catalog = filled.portal_catalog
    assert len(catalog.unrestrictedSearchResults(portal_type="Document", sort_on="getId")) == 12
    assert recorded(dsn) == [("count", "portal_type =; sort getId", 1)]
    assert catalog.unrestrictedSearchResults(portal_type="Document", sort_on="getId")[-1].getId == "page9"
    assert [row[0] for row in recorded(dsn)] == ["count", "rids"]


def test_record_has_times_query_and_statement(filled: Any, dsn: str) -> None:
    search(filled, portal_type="Document", sort_on="modified", sort_limit=5)
    [row] = recorded(dsn, "catalog, path, query, left_out, total_ms, compile_ms, execute_ms, decode_ms, statement")
    zoid, path, query, left_out, total, compiled, executed, decoded, statement = row
    assert (zoid, path, left_out) == (filled.portal_catalog._core.zoid, "/plone/portal_catalog", [])
    asked = {"query": {"portal_type": "Document"}, "where": None, "sort": [["modified", False]], "limit": 5}
    assert query == {**asked, "page": [0, 5]}
    assert min(compiled, executed, decoded) > 0
    assert compiled + executed + decoded == pytest.approx(total)
    assert statement.startswith("SELECT rid, path")
    assert "Document" not in statement


def test_searches_that_are_fast_or_need_no_statement_are_not_recorded(
    filled: Any, dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    assert search(filled, portal_type=[]) == []
    for threshold in ("0", "60000", "-1"):
        monkeypatch.setenv("PGCATALOG_SLOW_QUERY_MS", threshold)
        assert len(search(filled, portal_type="Document", sort_on="getId")) == 12
    # From the cache.
    monkeypatch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
    assert len(search(filled, portal_type="Document", sort_on="getId")) == 12
    assert recorded(dsn) == []
    assert not [r for r in caplog.records if r.name == LOGGER]


def test_recording_leaves_the_transaction_alone(filled: Any, dsn: str) -> None:
    """Nothing is written on the snapshot's connection, an abort loses no record, and no connection stays open."""
    catalog = filled.portal_catalog._core
    count(filled, getId="page1")
    transaction.abort()
    assert [row[:2] for row in recorded(dsn)] == [("count", "getId =")]
    transaction.begin()
    assert [g.count for g in log.log_of(catalog).groups()] == [1]
    count(filled, getId="page2")
    recorder.flush(10)
    # Not in the snapshot of a transaction that began earlier.
    assert [g.count for g in log.log_of(catalog).groups()] == [1]
    with psycopg.connect(dsn) as connection:
        own = "application_name LIKE 'pgcatalog:%' AND datname = current_database()"
        assert connection.execute(f"SELECT application_name FROM pg_stat_activity WHERE {own}").fetchall() == []


def test_odd_values_stop_no_search(filled: Any, dsn: str) -> None:
    for value in ("a\0b", "\ud800", "'; --", ["x" * 10**5], {"query": "x", "not": b"\xff"}, 10**400):
        search(filled, getId=value)
    shapes = [row[1] for row in recorded(dsn)]
    assert shapes.count("getId =") == 5


def test_most_expensive_groups_come_first(filled: Any, dsn: str) -> None:
    zoid = filled.portal_catalog._core.zoid
    with psycopg.connect(dsn) as connection:
        for shape, times in (("one", range(1, 101)), ("two", [5000]), ("three", [1, 3])):
            for ms in times:
                connection.execute(
                    "INSERT INTO pgcatalog_slow_queries (catalog, path, operation, shape, query, left_out, total_ms,"
                    " embed_ms, compile_ms, execute_ms, decode_ms, result_rows, statement, page, cold, process_started)"
                    " VALUES (%s, '/', 'page', %s, '{}', '{}', %s, 0, 0, 0, 0, 1, '', '', '', now())",
                    (zoid, shape, ms),
                )
    transaction.begin()
    groups = log.log_of(filled.portal_catalog._core).groups()
    # First the shapes that are slow for this site: over 100 ms.
    assert [(g.shape, g.count, g.long) for g in groups] == [("two", 1, 1), ("one", 100, 1), ("three", 2, 0)]
    one = groups[1]
    assert (one.mean_ms, one.max_ms, one.total_ms) == (50.5, 100, 5050)
    assert one.p95_ms == pytest.approx(95.05)
    assert sum(g.share for g in groups) == pytest.approx(1)
    assert len(log.log_of(filled.portal_catalog._core).groups(limit=2)) == 2


def test_a_catalog_sees_and_clears_its_own_log_only(filled: Any, dsn: str) -> None:
    catalog = filled.portal_catalog._core
    count(filled, portal_type="Document")
    recorded(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE pgcatalog_slow_queries SET catalog = catalog + 1")
        [(id,)] = connection.execute("SELECT id FROM pgcatalog_slow_queries").fetchall()
    count(filled, portal_type="Folder")
    recorded(dsn)
    transaction.begin()
    own = log.log_of(catalog)
    assert [example.shape for example in own.examples()] == ["portal_type ="]
    assert own.example(id) is None
    assert own.example(own.examples()[0].id) == own.examples()[0]
    for absent in (-1, 2**63, 10**30):
        assert own.example(absent) is None
    assert log.clear(dsn, catalog.zoid) == 1
    assert recorded(dsn, "id") == [(id,)]
    assert log.clear(dsn, catalog.zoid + 1) == 1


def test_the_log_is_bounded(filled: Any, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "SLOW_QUERY_ROWS", 3)
    for number in range(6):
        count(filled, getId=f"page{number}")
        recorder.flush(10)
    assert [query["query"]["getId"] for (query,) in recorded(dsn, "query")] == ["page3", "page4", "page5"]
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE pgcatalog_slow_queries SET recorded_at = now() - interval '2 days'")
    monkeypatch.setattr(recorder, "SLOW_QUERY_DAYS", 1)
    count(filled, getId="page6")
    assert [query["query"]["getId"] for (query,) in recorded(dsn, "query")] == ["page6"]


def entry_of(portal: Any, dsn: str, number: int = 0) -> Any:
    from plone.pgcatalog.observe.record import SlowQuery

    return SlowQuery(1, "/", "page", f"shape {number}", "{}", [], 1.0, 0.0, 0.0, 1.0, 0.0, 1, Statement("SELECT"))


def test_records_beyond_the_queue_are_dropped_and_counted(filled: Any, dsn: str) -> None:
    queue = Recorder(dsn, size=5)
    for number in range(20):
        queue.put(entry_of(filled, dsn, number))
    assert queue.dropped == 15
    assert queue.flush(10)
    assert (queue.recorded, queue.failed) == (5, 0)
    assert [shape for (shape,) in recorded(dsn, "shape")] == [f"shape {i}" for i in range(5)]


def test_an_unreachable_database_costs_the_records_only(caplog: pytest.LogCaptureFixture) -> None:
    queue = Recorder("host=/nowhere dbname=none")
    queue.put(entry_of(None, ""))
    assert queue.flush(10)
    assert (queue.recorded, queue.failed) == (0, 1)
    assert "recording 1 slow queries failed" in caplog.text


def _search_in_child(dsn: str) -> None:
    recorder.record(dsn, entry_of(None, dsn, 2))
    os._exit(0 if recorder.flush(10) else 1)


def test_forked_process_records_its_own_queries(filled: Any, dsn: str) -> None:
    recorder.record(dsn, entry_of(filled, dsn, 1))
    child = multiprocessing.get_context("fork").Process(target=_search_in_child, args=(dsn,))
    child.start()
    child.join(PATIENCE)
    assert child.exitcode == 0
    assert sorted(recorded(dsn, "shape")) == [("shape 1",), ("shape 2",)]


def test_uninstall_deletes_the_log(filled: Any, dsn: str) -> None:
    """Runs last: the site has no catalog of ours afterwards."""
    count(filled, getId="page1")
    assert len(recorded(dsn)) == 1
    filled.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")
    recorder.flush(10)
    transaction.commit()
    assert recorded(dsn) == []
