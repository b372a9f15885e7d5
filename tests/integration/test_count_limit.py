"""Counting up to a limit: as an exact count says, as far as the limit goes, and no further."""

from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from tests.integration.content import create
from tests.integration.fixtures import SiteWith
from tests.integration.pages import make_pages
from tests.integration.pages import PAGE_QUERIES
from tests.integration.search_pages import Page
from tests.integration.settings import tune
from tests.integration.traffic import traced
from tests.integration.web import MANAGER
from tests.integration.web import Web
from typing import Any

import pytest
import transaction


QUERIES: dict[str, dict[str, Any]] = {
    **PAGE_QUERIES,
    "sorted by Python": {"portal_type": "Document", "sort_on": "getObjPositionInParent"},
}


@pytest.fixture
def dsn(site_with: SiteWith) -> str:
    return site_with(make_pages)


def ids(brains: Any) -> list[str]:
    return [brain.getId for brain in brains]


@pytest.mark.parametrize("reads_first", [False, True])
@pytest.mark.parametrize("name", QUERIES)
def test_a_limit_changes_nothing_but_the_count(portal: Any, name: str, reads_first: bool) -> None:
    query = QUERIES[name]
    search = portal.portal_catalog.unrestrictedSearchResults
    exact = search(**query)
    total, rows, length = exact.actual_result_count, ids(exact[:7]), len(exact)
    # Twice: the second time the first rows and their count may come in one message, or from the cache.
    for limit in (0, 1, 6, 7, 8, total - 1, total, total + 1, 10_000) * 2:
        if limit < 0:
            continue
        if limit == 7:
            result_cache().clear(HITS)
        results = search(**query)
        results.count_up_to(limit)
        if reads_first:
            assert ids(results[:7]) == rows
        if name == "sorted by Python":
            assert (results.actual_result_count, results.is_limited) == (total, False)
        else:
            assert (results.actual_result_count, results.is_limited) == (min(limit, total), limit < total)
        assert ids(results[:7]) == rows
        assert len(results) == length
    assert search(**query).actual_result_count == total


def test_what_is_not_committed_is_counted_too(portal: Any) -> None:
    search = portal.portal_catalog.unrestrictedSearchResults
    total = search(portal_type="Document").actual_result_count
    create(portal, "Document", "another")
    results = search(portal_type="Document")
    results.count_up_to(total)
    assert (results.actual_result_count, results.is_limited) == (total, True)


def test_a_result_keeps_its_count_when_the_catalog_changes(portal: Any) -> None:
    search = portal.portal_catalog.unrestrictedSearchResults
    total = search(portal_type="Document").actual_result_count
    results = search(portal_type="Document")
    results.count_up_to(total)
    create(portal, "Document", "another")
    assert search(portal_type="Document").actual_result_count == total + 1
    assert (results.actual_result_count, results.is_limited) == (total, False)


def test_no_more_rows_are_counted_than_the_limit_says(portal: Any) -> None:
    search = portal.portal_catalog.unrestrictedSearchResults
    result_cache().clear(HITS)
    with traced(portal) as traffic:
        results = search(portal_type="Document", b_size=0)
        results.count_up_to(3)
        assert results.is_limited
        assert results.is_limited
    [counting] = traffic[0].matching("count(*)")
    assert "LIMIT 4" in counting


def test_a_negative_limit_is_an_error(portal: Any) -> None:
    with pytest.raises(ValueError, match="not negative"):
        portal.portal_catalog.unrestrictedSearchResults().count_up_to(-1)


def test_the_search_page_says_that_there_are_more(portal: Any, db: Any) -> None:
    web = Web(db)

    def page() -> Page:
        return Page(web.get("/plone/@@search", MANAGER, "text/html", SearchableText="page*"))

    total = page().total
    for limit, shown in ((0, total), (total, total), (total - 1, total - 1)):
        tune(count_limit=limit, search_facets=())
        transaction.commit()
        found = page()
        assert (found.total, "More than" in found.html) == (shown, shown < total)
    # Facets have to count all hits anyway.
    tune(count_limit=1, search_facets=("portal_type",))
    transaction.commit()
    found = page()
    assert (found.total, "More than" in found.html) == (total, False)


def test_a_rest_client_asks_for_it(portal: Any, db: Any) -> None:
    def asked(**parameters: int) -> tuple[int, bool | None, int]:
        answer = Web(db).get("/plone/@pgsearch", MANAGER, "application/json", q="page*", **parameters)
        response = answer.json["response"]
        return response["numFound"], response.get("numFoundExact"), len(response["docs"])

    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    transaction.commit()
    total, exact, size = asked()
    assert exact is None
    assert asked(count_limit=total) == (total, True, size)
    assert asked(count_limit=total - 1) == (total - 1, False, size)
