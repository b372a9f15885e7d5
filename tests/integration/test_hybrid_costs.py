"""Costs of a search by meaning, and no costs for sites without one.  Counted, never timed."""

from collections.abc import Callable
from collections.abc import Iterator
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.meaning import table
from plone.pgcatalog.results.cache import result_cache
from tests.integration import site as sites
from tests.integration.embedders import Answers
from tests.integration.meanings import embedder
from tests.integration.meanings import fill
from tests.integration.meanings import page
from tests.integration.meanings import setting
from tests.integration.traffic import traced
from tests.integration.traffic import Traffic
from tests.integration.web import MANAGER
from tests.integration.web import Web
from typing import Any
from zope.component import getMultiAdapter
from zope.interface import alsoProvides

import json
import pytest
import subprocess
import sys
import transaction


#: Runs a plain site's searches in a process of its own, and prints the imported modules.
WITHOUT = """
from tests.integration import site as sites
import sys
with sites.opened(sys.argv[1]) as db, sites.inside(db) as portal:
    found = portal.portal_catalog.searchResults(SearchableText="leave", rank="hybrid")
    assert [brain.getId for brain in found] == ["leave"]
    portal.leave.reindexObject()
    import transaction
    transaction.commit()
print("httpx" in sys.modules, "numpy" in sys.modules)
"""


@pytest.fixture(scope="module")
def place(site_template: str, postgres: Any) -> Iterator[Any]:
    with sites.opened(sites.clone(postgres, site_template)) as db, sites.inside(db) as portal, embedder() as answers:
        page(portal, "leave", "Annual leave", "Fill in the application for leave.", subject=("paper",))
        page(portal, "urlaub", "Jahresurlaub", "Wer Urlaub nehmen will, beantragt den Urlaub.", subject=("other",))
        fill(portal)
        yield portal, answers, Web(db)


@pytest.fixture
def portal(place: tuple[Any, Answers, Web]) -> Iterator[Any]:
    portal = place[0]
    # A connection that has loaded the objects of the page, and a process that has statistics.
    transaction.begin()
    list(portal.portal_catalog.searchResults(SearchableText="unheard"))
    yield portal
    transaction.abort()


def asked(portal: Any, text: str, **query: Any) -> list[str]:
    results = portal.portal_catalog.searchResults(SearchableText=text, rank="hybrid", **query)
    return [brain.Title for brain in results[:10]]


def cost(portal: Any, search: Callable[[], Any]) -> Traffic:
    with traced(portal) as traffic:
        search()
    return traffic[0]


def test_search_takes_one_statement_and_the_first_of_a_snapshot_one_more(portal: Any) -> None:
    first = cost(portal, lambda: asked(portal, "vacation"))
    assert first.round_trips == 2
    second = cost(portal, lambda: asked(portal, "puppies and money"))
    assert second.round_trips == 1
    with_a_facet = cost(portal, lambda: asked(portal, "holiday", Subject="paper"))
    assert with_a_facet.round_trips == 1


def test_listing_takes_one_message_for_the_page_and_one_for_snippets(portal: Any) -> None:
    asked(portal, "vacation")

    def shown() -> None:
        results = portal.portal_catalog.searchResults(SearchableText="holidays", rank="hybrid", b_start=0, b_size=10)
        with results.catalog.session.batch():
            results.count_with_page()
            brains = list(results)
        assert results.actual_result_count == len(brains) == len(results.snippets(brains)) == 2

    assert cost(portal, shown).round_trips == 2


def looks(portal: Any, search: Callable[[], Any]) -> int:
    """Return the number of scans of the table of chunks, or of its indexes, for *search*."""
    core = portal.portal_catalog._core
    vectors = table.vectors_of(core)
    assert vectors is not None
    counted = "SELECT seq_scan + coalesce(idx_scan, 0) FROM pg_stat_xact_user_tables WHERE relname = %s"

    def scans() -> int:
        [(count,)] = core.session.execute(counted, (vectors.name,))
        return int(count)

    before = scans()
    search()
    return scans() - before


@pytest.mark.parametrize("exclude_own", [False, True])
def test_page_facets_and_count_compute_nearness_once(portal: Any, exclude_own: bool) -> None:
    every = {"portal_type": "Document"}
    narrowed = every | {"Subject": "paper"}
    # The question is new, so it is not answered from a cache.
    number = f"{exclude_own} 0"

    def shown() -> None:
        query = {"SearchableText": f"holiday {number}", "rank": "hybrid", "b_start": 0, "b_size": 10}
        results = portal.portal_catalog.searchResults(query | narrowed)
        with results.catalog.session.batch():
            results.count_with_page()
            brains = list(results)
            facets = results.facets(["Subject"], exclude_own=exclude_own)
        assert len(brains) == facets.total == results.actual_result_count == len(results) == 1

    alone = looks(portal, lambda: asked(portal, f"vacation {number}", **narrowed))
    transaction.begin()
    # A facet without its own criterion counts another set.
    other = looks(portal, lambda: asked(portal, f"vacation {number}", **every)) if exclude_own else 0
    assert alone > 0
    transaction.begin()
    assert looks(portal, shown) == alone + other


def test_nearness_is_computed_anew_after_changes_in_the_transaction(portal: Any) -> None:
    assert set(asked(portal, "the next holiday")) == {"Annual leave", "Jahresurlaub"}
    portal.leave.reindexObject(["Subject"])
    for _ in range(2):
        assert looks(portal, lambda: asked(portal, "the next holiday", Subject="paper")) > 0
        portal.leave.reindexObject(["Subject"])


def test_the_next_snapshot_sees_another_table(portal: Any) -> None:
    asked(portal, "vacation")
    transaction.begin()
    assert cost(portal, lambda: asked(portal, "vacation leave")).round_trips >= 2


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/plone/@@search", "vacation one"),
        ("/plone/@search", "vacation two"),
        ("/plone/@@ajax-search", "vacation three"),
        ("/plone/@pgsearch", "vacation four"),
    ],
)
def test_page_calls_the_embedder_once_and_the_next_one_not_at_all(place: Any, path: str, text: str) -> None:
    _, answers, web = place
    query = {"SearchableText": text, "use_site_search_settings": "1"}
    if path.endswith("pgsearch"):
        query = {"q": text, "mode": "hybrid", "facets": "Subject,portal_type", "Subject": "paper", "passages": "3"}
    try:
        setting(search_by_meaning=True)
        answers.requests.clear()
        for _ in range(2):
            assert (
                web.get(path, MANAGER, accept="text/html" if "@@" in path else "application/json", **query).status
                == 200
            )
        assert [request["input"] for request in answers.requests] == [[text]]
    finally:
        setting(search_by_meaning=False)


def search_page(view: Any) -> None:
    view.update()
    assert view.hits
    assert view.suggestion is None


def live_search(view: Any) -> None:
    assert "corrected" not in json.loads(view())


def service(view: Any) -> None:
    assert view.reply().get("did_you_mean") is None


@pytest.mark.parametrize(
    ("name", "show", "messages"),
    [
        ("search", search_page, 3),
        # It marks no words of bodies.
        ("ajax-search", live_search, 2),
        ("GET_application_json_@search", service, 3),
        ("GET_application_json_@pgsearch", service, 3),
    ],
)
def test_page_with_hits_by_words_sends_no_further_statement(
    place: Any, portal: Any, name: str, show: Callable[[Any], None], messages: int
) -> None:
    request = portal.REQUEST
    request.form = {"use_site_search_settings": "1", "snippets": "1"}
    request.form |= {"q": "leave", "mode": "hybrid"} if "pgsearch" in name else {"SearchableText": "leave"}
    alsoProvides(request, IPGCatalogLayer)
    try:
        setting(search_by_meaning=True)
        # Load the objects of the page, and the process's data about vectors.
        show(getMultiAdapter((portal, request), name=name))
        transaction.begin()
        result_cache().clear()
        traffic = cost(portal, lambda: show(getMultiAdapter((portal, request), name=name)))
        # The tables of vectors, the page, and its snippets.
        assert traffic.round_trips == messages, "\n\n".join(traffic.statements)
    finally:
        setting(search_by_meaning=False)


@pytest.mark.parametrize(
    "query",
    [
        {"portal_type": "Document", "sort_on": "getId", "b_size": 10},
        {"path": "/plone", "sort_on": "modified"},
        {"SearchableText": "leave"},
        {"SearchableText": "leave", "rank": "words"},
    ],
)
def test_plain_searches_cost_the_same_with_vectors(place: Any, portal: Any, query: dict[str, Any]) -> None:
    _, answers, _ = place

    def measured() -> tuple[list[str], int]:
        portal.leave.reindexObject()  # ends the validity of all cached answers
        transaction.commit()
        transaction.begin()
        len(portal.portal_catalog.searchResults(portal_type="Folder"))
        traffic = cost(portal, lambda: [brain.Title for brain in portal.portal_catalog.searchResults(query)])
        return traffic.statements, traffic.row_bytes

    answers.requests.clear()
    with_vectors = measured()
    url = answers.url
    try:
        setting(embedder_url="")
        without = measured()
    finally:
        setting(embedder_url=url)
    assert len(with_vectors[0]) == len(without[0])
    assert [text[:60] for text in with_vectors[0]] == [text[:60] for text in without[0]]
    assert abs(with_vectors[1] - without[1]) <= 2 * len(with_vectors[0])  # transaction ids may get one digit more
    assert answers.requests == []


def test_site_without_an_embedder_imports_no_module_for_it(site_template: str, postgres: Any) -> None:
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        page(portal, "leave", "Annual leave", "Fill in the application for leave.")
        transaction.commit()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT, dsn], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["False", "False"], done.stderr
