"""Searches by meaning in the log of slow queries: recorded without a vector, explained as run, and excluded from advice."""

from collections.abc import Iterator
from plone.pgcatalog.advice.advice import advise
from plone.pgcatalog.advice.replay import explain
from plone.pgcatalog.advice.replay import explain_example
from plone.pgcatalog.cli.work import statement
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe.log import log_of
from plone.pgcatalog.observe.plan import VECTOR
from plone.pgcatalog.observe.plan import why
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.storage import dsn_of
from tests.integration import site as sites
from tests.integration.meanings import embedder
from tests.integration.meanings import fill
from tests.integration.meanings import page
from tests.integration.slow_queries import generate_rows
from tests.integration.waiting import until
from tests.integration.web import MANAGER
from tests.integration.web import Web
from time import perf_counter
from typing import Any

import psycopg
import pytest
import re
import transaction


#: A vector as text: six or more numbers in brackets.
MANY_NUMBERS = r"\[-?[\d.e-]+(,-?[\d.e-]+){5}"


@pytest.fixture
def dsn(site_template: str, postgres: Any) -> str:
    return sites.clone(postgres, site_template)


@pytest.fixture
def place(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """(portal, web) of a site with vectors in which every search is slow."""
    with sites.opened(dsn) as db, sites.inside(db) as portal, embedder() as answers:
        page(portal, "leave", "Annual leave", "Fill in the application for leave.")
        page(portal, "urlaub", "Jahresurlaub", "Wer Urlaub nehmen will, beantragt den Urlaub.")
        fill(portal)
        result_cache().clear()
        monkeypatch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
        yield portal, Web(db), answers
        monkeypatch.undo()
        assert recorder.flush(10)


def search(portal: Any, **query: Any) -> None:
    catalog = portal.portal_catalog
    found = catalog.unrestrictedSearchResults(SearchableText="vacation", rank="hybrid", **query)
    assert {brain.getId for brain in found} == {"leave", "urlaub"}
    assert recorder.flush(10)
    transaction.begin()


def test_a_record_has_the_question_and_no_vector(place: Any, dsn: str) -> None:
    search(place[0])
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT shape, query -> 'query', to_jsonb(q)::text ~ %s FROM pgcatalog_slow_queries q"
            " WHERE operation = 'page'",
            (MANY_NUMBERS,),
        ).fetchall()
    assert rows == [("SearchableText =; rank hybrid", {"SearchableText": "vacation", "rank": "hybrid"}, False)]


@pytest.mark.parametrize("status", [200, 503])
def test_time_of_the_embedder_is_a_part_of_its_own(place: Any, status: int) -> None:
    """The first search waits for the embedder, even if it fails; a later one has a cached vector, or pauses."""
    portal, web, answers = place
    usual = answers.answer

    def late(request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        end = perf_counter() + 0.1
        until(lambda: perf_counter() >= end)
        return usual(request) if status == 200 else (status, {}, b"")

    answers.answer = late
    for _ in range(2):
        # Without a count, which would be the first statement.
        found = portal.portal_catalog.unrestrictedSearchResults(SearchableText="vacation", rank="hybrid")
        assert len([brain.getId for brain in found]) == (2 if status == 200 else 0)
        result_cache().clear()
        transaction.begin()
    assert recorder.flush(10)
    transaction.begin()
    log = log_of(portal.portal_catalog._core)
    second, first = [each for each in log.examples() if each.operation == "page" and "hybrid" in each.shape]
    assert first.embed_ms >= 100 > second.embed_ms
    for each in (first, second):
        parts = each.embed_ms, each.compile_ms, each.execute_ms, each.decode_ms
        assert sum(parts) == pytest.approx(each.total_ms)
    [group] = [each for each in log.groups() if each.operation == "page" and "hybrid" in each.shape]
    assert group.embed_ms == pytest.approx(first.embed_ms + second.embed_ms)
    assert why(group).parts["embed"] == pytest.approx(group.embed_ms / group.total_ms)
    shown = web.get("/plone/portal_catalog/manage_slow_queries", MANAGER, accept="text/html").text
    assert "waiting for the embedder" in shown


def test_search_by_meaning_is_explained_as_it_was_run(place: Any) -> None:
    portal = place[0]
    search(portal)
    catalog = portal.portal_catalog._core
    [example] = [each for each in log_of(catalog).examples() if each.operation == "page"]
    plan = explain_example(catalog, example)
    assert "_chunks_" in plan.text
    assert plan.figures is not None
    assert plan.figures.rows_returned == 2
    assert VECTOR in plan.values
    transaction.begin()
    explained = explain(
        dsn_of(catalog.jar), statement(catalog, {"SearchableText": "vacation", "rank": "hybrid"}, "page")
    )
    assert "_chunks_" in explained.text
    assert VECTOR in explained.values


@pytest.mark.parametrize("part", ["count", "rids"])
def test_other_statements_of_a_search_by_meaning_are_explained_too(place: Any, part: str) -> None:
    catalog = place[0].portal_catalog._core
    explained = explain(dsn_of(catalog.jar), statement(catalog, {"SearchableText": "vacation", "rank": "hybrid"}, part))
    assert "_chunks_" in explained.text


def test_pages_and_log_lines_show_no_vector(place: Any, caplog: pytest.LogCaptureFixture) -> None:
    portal, web, _ = place
    search(portal)
    shown = web.get("/plone/portal_catalog/manage_slow_queries", MANAGER, accept="text/html")
    assert shown.status == 200
    assert "rank hybrid" in shown.text
    for text in (shown.text, caplog.text):
        assert re.search(MANY_NUMBERS, text) is None


def test_advice_tries_indexes_for_tables_it_can_copy(place: Any, dsn: str) -> None:
    """Chunks are in no copy: a search by meaning is reported as not tried, and other searches get advice."""
    portal = place[0]
    generate_rows(dsn)
    search(portal)
    search(portal, portal_type="Document")
    advice = advise(portal.portal_catalog._core)
    assert advice.suggestions == []
