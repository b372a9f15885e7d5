"""A search page's instructions to crawlers, and the limit of concurrent facet counts per process."""

from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.searchpage.page import QUICK_ROWS
from tests.acceptance.search_site import fill_for_mara
from tests.integration.content import large_catalog
from tests.integration.search_pages import follow
from tests.integration.search_pages import Page
from tests.integration.search_pages import site as site
from tests.integration.search_pages import web as web
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from urllib.parse import parse_qsl
from urllib.parse import urlsplit

import pytest
import re


SHARED = fill_for_mara

HEDGEHOG = {"SearchableText": "hedgehog"}
#: Searches of a crawler that follows links: with and without words, filtered, on a further page.
QUERIES: list[dict[str, Any]] = [
    HEDGEHOG,
    {**HEDGEHOG, "sort_on": "Date", "b_start:int": "10"},
    {**HEDGEHOG, "Subject:list": ["Winter", "Food"], "facet.Date:list": "2025"},
    {"portal_type:list": "Event", "path:list": "/plone/news"},
    {"Subject:list": "no such tag"},
    {**HEDGEHOG, "facets": "along"},
    {**HEDGEHOG, "facets": "alone"},
]
FACETS = {"portal_type", "Subject", "facet.Date", "Creator", "path", "similar"}


@pytest.fixture
def large(site: Site) -> Iterator[Web]:
    """The site, whose catalog has too many rows for synchronous facet counts."""
    with large_catalog(site, QUICK_ROWS):
        yield site.web


def names_in(url: str) -> set[str]:
    return {name.partition(":")[0] for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}


def get(web: Web, **query: Any) -> tuple[Any, Page]:
    response = web.get("/plone/@@search", None, "text/html", **query)
    return response, Page(response)


def canonical(page: Page) -> tuple[str, dict[str, str]]:
    """Return the path and the parameters of the canonical link of *page*."""
    [link] = page.tree.xpath('//link[@rel="canonical"]/@href')
    return urlsplit(link).path, dict(parse_qsl(urlsplit(link).query))


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_search_with_parameters_is_marked_noindex_and_its_words_are_its_canonical_link(
    web: Web, query: dict[str, Any]
) -> None:
    response, page = get(web, **query)
    assert response.headers["X-Robots-Tag"] == "noindex, follow"
    if query.get("facets") != "alone":
        assert page.tree.xpath('//head/meta[@name="robots"]/@content') == ["noindex, follow"]
        words = {name: value for name, value in query.items() if name == "SearchableText"}
        assert canonical(page) == ("/plone/@@search", words)


def test_search_page_without_parameters_may_be_indexed(web: Web) -> None:
    response, page = get(web)
    assert "X-Robots-Tag" not in response.headers
    assert not page.tree.xpath('//meta[@name="robots"]')
    assert canonical(page) == ("/plone/@@search", {})
    assert canonical(Page(web.get("/plone/news", None, "text/html"))) == ("/plone/news", {}), "Plone's own"


@pytest.mark.parametrize("size", ["web", "large"])
def test_no_link_with_a_facet_is_to_be_followed(request: pytest.FixtureRequest, size: str) -> None:
    web = request.getfixturevalue(size)
    for query in QUERIES:
        _, page = get(web, **query)
        links = page.tree.xpath('//*[@id="searchform"]//a | //*[@id="search-chips"]//a')
        narrowed = [link for link in links if names_in(link.get("href")) & (FACETS | {"facets"})]
        assert [link.get("href") for link in narrowed if "nofollow" not in link.get("rel", "").split()] == [], query


def test_page_without_a_script_requests_facets_until_one_is_chosen(large: Web) -> None:
    _, first = get(large, **HEDGEHOG)
    assert len(first.tree.xpath('//noscript/meta[@http-equiv="refresh"]')) == 1
    for query in QUERIES[2:4]:
        _, narrowed = get(large, **query)
        assert not narrowed.tree.xpath("//meta[@http-equiv='refresh']")
        [link] = narrowed.tree.xpath("//noscript/a")
        assert link.get("rel") == "nofollow"
        assert any(count for box in follow(large, link.get("href")).facets.values() for count in box.values())


ROBOTS = Path(__file__).parents[2] / "docs" / "how-to" / "robots.txt"
OPEN = ["/", "/news", "/de/news/research", "/search", "/@@search", "/sitemap.xml.gz", "/image/@@images/1.png"]
CLOSED = [
    *("/search?SearchableText=x", "/@@search?Subject:list=a", "/de/@@search?b_start=10", "/de/search?x=1"),
    *("/search_rss?SearchableText=x", "/events?page=1&query=%5B%5D", "/++api++/@search?SearchableText=x"),
    *("/++api++/de/@pgsearch?q=x", "/++api++/@querystring-search"),
]


def disallows(robots: str, path: str) -> bool:
    """Return whether a rule of *robots* is for *path*, by RFC 9309."""
    rules = [line.partition(": ")[2] for line in robots.splitlines() if line.startswith("Disallow: ")]
    patterns = (".*".join(map(re.escape, rule.split("*"))) for rule in rules)
    return any(re.match(pattern, path) for pattern in patterns)


def test_documented_robots_txt_closes_searches_and_nothing_else(site: Site, web: Web) -> None:
    with site.inside() as portal:
        before = portal.portal_registry["plone.robots_txt"]
        portal.portal_registry["plone.robots_txt"] = ROBOTS.read_text("utf-8")
    try:
        robots = web.get("/plone/robots.txt", None, "text/plain").text
    finally:
        with site.inside() as portal:
            portal.portal_registry["plone.robots_txt"] = before
    assert "Sitemap: http" in robots
    assert {path for path in (*OPEN, *CLOSED) if disallows(robots, path)} == set(CLOSED)
