"""The search page of a large catalog sends the hits first; its script, or else a link, requests the facets."""

from plone.pgcatalog.classic.search import QUICK_ROWS
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.results.cache import result_cache
from tests.acceptance.search_site import fill_for_mara
from tests.integration.content import counted
from tests.integration.content import pretend_rows
from tests.integration.search_pages import follow
from tests.integration.search_pages import Page
from tests.integration.search_pages import search
from tests.integration.traffic import traced
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from zope.component import getMultiAdapter
from zope.interface import alsoProvides

import pytest


SHARED = fill_for_mara


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Site:
    with shared_site.inside() as portal:
        counted(shared_site.dsn, portal.portal_catalog)
        pretend_rows(portal, QUICK_ROWS + 1)
    return shared_site


@pytest.fixture(scope="module")
def web(site: Site) -> Web:
    return site.web


HEDGEHOG = {"SearchableText": "hedgehog"}
QUERIES: list[dict[str, Any]] = [
    {},
    HEDGEHOG,
    {"SearchableText": "hegdehog"},
    {**HEDGEHOG, "Subject:list": ["Winter", "Food"], "facet.Date:list": "2025", "b_start:int": "10"},
    {**HEDGEHOG, "portal_type:list": "Event", "Creator:list": "anna", "path:list": "/plone/news", "sort_on": "Date"},
    {"Subject:list": ["Winter", "no such tag"]},
]


def source(page: Page) -> str:
    """Return the address from which the script of *page* reads the facets."""
    [address] = page.tree.xpath('//*[@id="search-facets"]/@data-source')
    return str(address)


@pytest.mark.parametrize("login", [None, "mara:secret", pytest.param("boss:secret", marks=pytest.mark.slow)])
@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_hits_and_facets_apart_are_those_of_the_page_with_both(web: Web, login: str | None, query: Any) -> None:
    both = search(web, login, **query, facets="along")
    first = search(web, login, **query)
    assert (first.total, first.titles) == (both.total, both.titles)
    then = follow(web, source(first), login)
    assert then.facets == both.facets
    assert then.checked == both.checked == first.checked
    assert then.chips == {value: url.replace("&facets=along", "") for value, url in both.chips.items()}
    assert not then.titles


def test_page_counts_no_facet_and_its_form_has_the_chosen_values(site: Site, web: Web) -> None:
    query = {**HEDGEHOG, "Subject": ["Winter"], "portal_type": ["Event"]}
    with site.inside() as portal:
        portal.REQUEST.form.update(query)
        alsoProvides(portal.REQUEST, IPGCatalogLayer)
        view = getMultiAdapter((portal, portal.REQUEST), name="search")
        result_cache().clear()
        with traced(portal) as traffic:
            view.update()
            assert view.hits
            assert [(v.token, v.count) for box in view.boxes for v in box.shown] == [("Event", None), ("Winter", None)]
        assert not traffic[0].matching("GROUPING SETS")


def test_link_requests_the_facets_without_a_script(web: Web) -> None:
    first = search(web, **HEDGEHOG)
    [refresh] = first.tree.xpath('//noscript/meta[@http-equiv="refresh"]/@content')
    page = follow(web, refresh.removeprefix("0; url="))
    assert page.facets["Subject"]
    assert not page.tree.xpath("//noscript/meta")
    # The form requests them, too.
    assert page.tree.xpath('//*[@id="search-kept"]/input[@name="facets"]/@value') == ["along"]
    again = search(web, **HEDGEHOG, **{"Subject:list": "Winter"}, facets="along")
    [chip] = again.chips.values()
    assert follow(web, chip).facets == page.facets


def test_page_that_cannot_be_narrowed_requests_no_facets(web: Web) -> None:
    for query, is_narrowed in (
        ({"SearchableText": "xyzzyxyzzy"}, False),
        ({"SearchableText": "visits", "path:list": "/plone"}, True),
    ):
        page = search(web, **query)
        assert bool(page.tree.xpath('//*[@id="search-facets"]/@data-source')) == page.has_side == is_narrowed


def test_unknown_value_of_facets_is_ignored(web: Web) -> None:
    for how in ("", "x", ["along", "alone"], "a" * 3000):
        page = search(web, **HEDGEHOG, facets=how)
        assert page.total == 49
        assert source(page).partition("facets=")[2] == "alone"


@pytest.mark.parametrize("how", ["alone", "along"])
def test_facets_alone_reveal_no_more_than_the_page(web: Web, how: str) -> None:
    for query in ({}, {"Subject:list": "Hidden"}, {"path:list": "/plone/closed"}, {"SearchableText": "rendezvous"}):
        page = search(web, None, **query, facets=how)
        assert "Hidden tag" not in page.html
        assert "Hidden place" not in page.html
    assert "Hidden tag" in search(web, "mara:secret", facets=how).html


def test_a_small_catalog_sends_both(site: Site, web: Web) -> None:
    with site.inside() as portal:
        pretend_rows(portal, QUICK_ROWS)
    try:
        page = search(web, **HEDGEHOG)
        assert page.facets["Subject"]
        assert not page.tree.xpath('//*[@id="search-facets"]/@data-source | //noscript/meta')
    finally:
        with site.inside() as portal:
            pretend_rows(portal, QUICK_ROWS + 1)
