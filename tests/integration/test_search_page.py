"""The search page over HTTP: each choice narrows it, each offer leads to hits, and hidden pages are in no answer."""

from collections.abc import Iterator
from datetime import datetime
from datetime import UTC
from html import unescape
from plone.base.interfaces import INavigationRoot
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.searchpage.page import QUICK_ROWS
from tests.acceptance.search_site import fill_for_mara
from tests.acceptance.search_site import TOPICS
from tests.integration.content import create
from tests.integration.content import large_catalog
from tests.integration.content import pretend_rows
from tests.integration.content import tune
from tests.integration.people import publish
from tests.integration.search_pages import follow
from tests.integration.search_pages import Page
from tests.integration.search_pages import search
from tests.integration.search_pages import site as site
from tests.integration.search_pages import web as web
from tests.integration.traffic import traced
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from urllib.parse import parse_qsl
from urllib.parse import urlsplit
from zope.component import getMultiAdapter
from zope.interface import alsoProvides

import pytest


ALL = 49
HIDDEN = ("rendezvous", "Hidden tag", "Hidden place")


SHARED = fill_for_mara


HEDGEHOG = {"SearchableText": "hedgehog"}


#: Both kinds of searches; the second one in the slow tests.
TEXTS = pytest.mark.parametrize("text", ["hedgehog", pytest.param("", marks=pytest.mark.slow)])


# -- facets


@pytest.mark.parametrize(
    ("login", "query"), [(None, HEDGEHOG), ("mara:secret", {}), ("boss:secret", {"SearchableText": "winter"})], ids=str
)
def test_each_count_is_the_number_of_hits_when_it_is_chosen(web: Web, login: str | None, query: dict[str, str]) -> None:
    page = search(web, login, **query)
    assert {"portal_type", "Subject", "Date", "path"} <= set(page.facets)
    for name, values in page.facets.items():
        parameter = "facet.Date:list" if name == "Date" else f"{name}:list"
        token, count = next(iter(values.items()))
        chosen = search(web, login, **query, **{parameter: token})
        assert chosen.total == count, (name, token)
        assert chosen.checked == {token}
        assert follow(web, next(iter(chosen.chips.values())), login).total == page.total


def test_values_of_a_facet_are_alternatives_and_facets_narrow_each_other(web: Web) -> None:
    one = search(web, **HEDGEHOG, **{"Subject:list": "Winter"})
    two = search(web, **HEDGEHOG, **{"Subject:list": ["Winter", "Food"]})
    assert one.total < two.total < ALL
    # A choice leaves the other values of its own facet unchanged.
    assert one.facets["Subject"] == two.facets["Subject"] == search(web, **HEDGEHOG).facets["Subject"]
    both = search(web, **HEDGEHOG, **{"Subject:list": ["Winter", "Food"], "portal_type:list": "Event"})
    assert both.total == two.facets["portal_type"]["Event"]
    assert both.facets["portal_type"] == two.facets["portal_type"]
    assert list(both.chips) == ["Event", "Winter", "Food"]
    assert follow(web, both.chips["Food"]).chips.keys() == {"Event", "Winter"}


def test_a_chosen_year_offers_its_months(web: Web) -> None:
    year = search(web, **HEDGEHOG, **{"facet.Date:list": "2025"})
    months = {token: count for token, count in year.facets["Date"].items() if token.startswith("2025-")}
    assert months
    assert sum(count or 0 for count in months.values()) == year.facets["Date"]["2025"] == year.total
    month = next(iter(months))
    # The month applies although its year is chosen, too; several periods are alternatives.
    narrow = search(web, **HEDGEHOG, **{"facet.Date:list": ["2025", month]})
    assert narrow.total == months[month]
    assert len(narrow.chips) == 1
    other = search(web, **HEDGEHOG, **{"facet.Date:list": ["2023", month]})
    assert other.total == months[month] + (year.facets["Date"]["2023"] or 0)


@pytest.mark.parametrize(
    "query",
    [
        {"facet.Date:list": ["x", "99999", "2025-13", "0000", "", "9999-12"]},
        {"facet.Date": "2025; DROP TABLE x"},
        {"b_size:int": "7", "b_start:int": "-1"},
        {"b_size": "many", "b_start": "x"},
        {"b_start": "9" * 400},
        {"similar": "no such page"},
        {"similar": ["a", "b"]},
        {"SearchableText:list": ["a", "b"]},
        {"sort_on": "nothing"},
        {"path:list": ["/plone", "/nowhere", ""]},
        {"path": "/plone/animals"},
        {"as_typed": "x" * 3000},
        {"where": "x"},
        {"created.query:record:date": "2001-01-01", "created.range:record": "min"},
        {"Subject.query:record": "Winter"},
        {"Subject:list": [f"tag{n}" for n in range(200)]},
        {"portal_type:list": ["Document", "Nothing", "Plone Site"]},
    ],
    ids=lambda query: str(query)[:60],
)
@TEXTS
def test_any_address_is_a_page(web: Web, text: str, query: dict[str, Any]) -> None:
    assert search(web, SearchableText=text, **query).total >= 0


def test_no_facet_has_one_value_only_that_every_hit_has(web: Web) -> None:
    for query in (
        {},
        {"SearchableText": "visits"},
        {"Subject:list": "Winter"},
        {"portal_type:list": "Folder"},
        {**HEDGEHOG, "path:list": "/plone/news", "facet.Date:list": "2025"},
        {**HEDGEHOG, "portal_type:list": "Event", "Creator:list": "anna"},
    ):
        page = search(web, "boss:secret", **query)
        assert page.total
        for name, values in page.facets.items():
            # Chosen values stay, so that they can be unchosen.
            is_chosen = page.checked & set(values)
            assert len(values) > 1 or is_chosen or list(values.values()) != [page.total], (query, name)
    chosen = search(web, SearchableText="visits", **{"portal_type:list": "Document"})
    assert chosen.facets == {"portal_type": {"Document": 1}}


def test_addresses_of_plones_page_mean_the_same(web: Web) -> None:
    """Links and bookmarks still work: names of indexes are parameters."""
    tune_off = {"portal_type:list": "Event", "created.query:record:date": "2001-01-01", "created.range:record": "min"}
    assert search(web, **HEDGEHOG, **tune_off).total == search(web, **HEDGEHOG, **{"portal_type:list": "Event"}).total
    assert search(web, path="/plone/animals", **HEDGEHOG).total == 16
    assert search(web, **{"Subject:list": "Winter"}).total > 0
    assert search(web, **HEDGEHOG, review_state="private").total == 0


@TEXTS
def test_restricted_indexes_and_authors_sort_no_visitors_page(web: Web, text: str) -> None:
    """Their order would reveal who may see a page, or who has written it."""
    for view in ("@@search", "@@ajax-search"):
        for name in ("allowedRolesAndUsers", "effectiveRange", "Creator"):
            for parameter in ("sort_on", "sort_on:list"):
                response = web.get(f"/plone/{view}", None, "text/html", SearchableText=text, **{parameter: name})
                assert response.status == 400, (view, parameter, name)
    assert search(web, "mara:secret", SearchableText=text, sort_on="Creator").total
    unsorted = search(web, SearchableText=text, **{"sort-on": "allowedRolesAndUsers"})
    assert unsorted.titles == search(web, SearchableText=text).titles


# -- the page


def test_hits_have_marks_and_their_place(web: Web) -> None:
    page = search(web, **HEDGEHOG)
    assert page.total == ALL
    assert len(page.titles) == 10
    assert "<mark>hedgehog</mark>" in page.html
    assert page.texts('//*[@class="result-text mb-1"]/mark')
    assert any("Located in Animals" in text for text in page.texts('//ol[contains(@class, "searchResults")]/li'))


def test_pages_of_results_neither_repeat_nor_skip(web: Web) -> None:
    whole = search(web, **HEDGEHOG, **{"b_size:int": "50"}).titles
    assert len(whole) == ALL
    page, found = search(web, **HEDGEHOG), []
    while True:
        found += page.titles
        more = page.tree.xpath('//a[@rel="next"]/@href')
        if not more:
            break
        page = follow(web, more[0])
    assert found == whole
    by_title = search(web, **HEDGEHOG, sort_on="sortable_title", **{"b_size:int": "50"}).titles
    assert sorted(by_title) == sorted(whole)
    assert by_title[0].startswith("A hedgehog")


def test_an_empty_query_shows_the_facets_of_the_site(web: Web) -> None:
    page = search(web)
    assert page.total == ALL + 4
    assert page.facets["portal_type"] == {"Document": 22, "Event": 14, "News Item": 14, "Folder": 3}
    assert set(page.facets["path"]) == {"/plone/animals", "/plone/news", "/plone/station"}


def test_a_typo_is_corrected_unless_the_visitor_insists(web: Web) -> None:
    page = search(web, SearchableText="hegdehog", sort_on="sortable_title")
    assert page.total == ALL
    assert page.texts('//*[@id="search-corrected"]')[0].startswith("Showing results for hedgehog")
    [instead] = page.tree.xpath('//*[@id="search-corrected"]//a/@href')
    typed = follow(web, instead)
    assert typed.total == 0
    assert not typed.texts('//*[@id="search-corrected"]')
    [meant] = typed.tree.xpath('//*[@id="did-you-mean"]//a/@href')
    assert follow(web, meant).titles == page.titles
    # A correction must have hits with the chosen filters.
    chosen = search(web, SearchableText="hegdehog", **{"facet.Date:list": "1999"})
    assert chosen.total == 0
    assert not chosen.texts('//*[@id="search-corrected"]')


def test_empty_result_is_stated_once_with_advice(web: Web) -> None:
    for query in (
        {"SearchableText": "xyzzyxyzzy"},
        {"SearchableText": "hegdehog", "as_typed": "hegdehog"},
        {**HEDGEHOG, "facet.Date:list": "1999"},
        {"facet.Date:list": "1999"},
    ):
        page = search(web, **query)
        [said] = page.texts('//*[@id="search-status"]')
        assert said == "0 items matching your search terms."
        [listing] = page.texts('//*[@id="search-listing"]')
        assert listing.count("match") == 1
        assert not [word for word in ("no results", "not found", "nothing") if word in listing.lower()]
        tried = page.texts('//*[@id="search-advice"]//li')
        assert ("Check the spelling." in tried) == ("SearchableText" in query)
        assert ("Search without filters." in tried) == ("facet.Date:list" in query)
        for url in page.tree.xpath('//*[@id="search-advice"]//a/@href'):
            assert follow(web, url).total > 0
    assert not search(web, **HEDGEHOG).texts('//*[@id="search-advice"]')


def test_similar_pages_can_be_narrowed_as_well(web: Web) -> None:
    page = search(web, **HEDGEHOG)
    link = page.tree.xpath('//a[contains(@href, "similar=")]/@href')[0]
    similar = follow(web, link)
    assert similar.total > 0
    assert page.titles[0] not in similar.titles
    assert page.titles[0] in similar.chips
    for token, count in similar.facets["portal_type"].items():
        assert follow(web, f"{unescape(link)}&portal_type:list={token}").total == count


def test_feed_and_links_have_the_parameters_of_the_search(web: Web) -> None:
    page = search(web, **HEDGEHOG, **{"Subject:list": "Winter", "review_state": "published", "b_start:int": "10"})
    assert page.tree.xpath('//link[@type="application/rss+xml"]/@href')
    assert page.tree.xpath('//form[@id="searchform"]//input[@name="review_state"]/@value') == ["published"]
    for url in page.chips.values():
        names = [name for name, _ in parse_qsl(urlsplit(url).query)]
        assert "b_start:int" not in names
        assert "review_state" in names


# -- permissions


@pytest.mark.parametrize("path", ["/plone", pytest.param("/plone/en", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "query",
    [
        {},
        HEDGEHOG,
        {"SearchableText": "rendezvous"},
        {"SearchableText": "rendezvsou"},
        {"SearchableText": "rendezvsou", "as_typed": "rendezvsou"},
        {"SearchableText": "closed"},
        {"Subject:list": "Hidden"},
        {"allowedRolesAndUsers": "Manager", **HEDGEHOG},
        {"allowedRolesAndUsers:list": ["Manager", "user:boss"], "show_inactive": "1"},
        {"path:list": "/plone/closed"},
        {"path": "/plone/closed", **HEDGEHOG},
        {"similar": "SECRET"},
    ],
    ids=str,
)
def test_hidden_words_titles_and_counts_are_not_shown(site: Site, path: str, query: Any) -> None:
    with site.inside() as portal:
        secret = portal.secret.UID()
        if path == "/plone/en" and "en" not in portal:
            alsoProvides(create(portal, "Folder", "en", title="English"), INavigationRoot)
            publish(portal.en)
    asked = {name: secret if value == "SECRET" else value for name, value in query.items()}
    page = search(site.web, None, path, **asked)
    shown = page.html
    for value in (v for values in asked.values() for v in ([values] if isinstance(values, str) else values)):
        shown = shown.replace(value, "")
    assert not [word for word in HIDDEN if word.lower() in shown.lower()]
    assert "Hidden tag" not in page.facets.get("Subject", {})
    assert page.facets.get("review_state") is None
    assert "/plone/closed" not in {token for token, n in page.facets.get("path", {}).items() if n is not None}


def test_users_with_permission_see_them(web: Web) -> None:
    assert search(web, "mara:secret", SearchableText="rendezvous").total == 1
    assert "Hidden tag" in search(web, "mara:secret").facets["Subject"]
    corrected = search(web, "mara:secret", SearchableText="rendezvsou")
    assert corrected.texts('//*[@id="search-corrected"]/strong') == ["rendezvous"]
    assert search(web, "boss:secret").labels["/plone/closed"] == "Hidden place"
    assert "/plone/closed" not in search(web, "mara:secret").facets["path"]


def test_authors_are_shown_as_by_plone(web: Web) -> None:
    member = search(web, "mara:secret", **HEDGEHOG)
    assert member.facets["Creator"] == {"anna": 16, "bruno": 16, "clara": 16, "admin": 2}
    assert member.labels["clara"] == "Clara Dvořák"
    visitor = search(web, **HEDGEHOG)
    assert "Creator" not in visitor.facets
    assert not [name for name in ("Berger", "Costa", "anna") if name in visitor.html]
    # The name of a user that is never shown to visitors: it finds no page.
    asked = search(web, "mara:secret", **HEDGEHOG, **{"Creator:list": "boss"})
    assert asked.total == 0
    assert asked.chips.keys() == {"boss"}
    assert "Berger" not in search(web, **HEDGEHOG, **{"Creator:list": "anna"}).html


def test_a_type_that_is_not_searched_is_no_value(site: Site) -> None:
    with site.inside() as portal:
        portal.portal_registry["plone.types_not_searched"] = ("Event",)
    try:
        page = search(site.web, "boss:secret", **HEDGEHOG)
        assert "Event" not in page.facets["portal_type"]
        assert search(site.web, "boss:secret", **HEDGEHOG, **{"portal_type:list": "Event"}).total == 0
    finally:
        with site.inside() as portal:
            portal.portal_registry["plone.types_not_searched"] = ()


# -- what a site can choose


def test_a_site_chooses_its_facets_and_their_order(site: Site) -> None:
    with site.inside():
        tune(search_facets=("Subject", "review_state", "modified", "is_folderish"))
    try:
        year = str(datetime.now(UTC).year)
        page = search(site.web, "boss:secret", **{"facet.modified:list": year})
        assert list(page.facets) == ["Subject", "review_state", "modified", "is_folderish"]
        assert page.labels["published"] == "Published"
        folders = search(site.web, "boss:secret", **{"is_folderish:list": "True"})
        assert folders.total == page.facets["is_folderish"]["True"]
        # Not a facet, but a criterion as in Plone's page.
        assert search(site.web, **{"portal_type:list": "Event"}).total == 14
        with site.inside():
            tune(search_facets=())
        page = search(site.web, **HEDGEHOG)
        assert page.facets == {}
        assert not page.has_side
        assert page.total == ALL
    finally:
        with site.inside():
            tune(search_facets=("portal_type", "Subject", "Date", "Creator", "path"))


def test_the_column_of_the_facets_is_hidden_without_any(web: Web) -> None:
    page = search(web, **HEDGEHOG)
    assert page.has_side
    assert set(page.facets["Subject"]) == set(TOPICS)
    assert not search(web, SearchableText="xyzzyxyzzy").has_side
    # A choice can be undone there, even if there are no hits.
    assert search(web, SearchableText="xyzzyxyzzy", **{"Subject:list": "Winter"}).has_side


def test_site_can_use_plones_page(site: Site) -> None:
    with site.inside():
        tune(search_page=False)
    try:
        page = site.web.get("/plone/@@search", None, "text/html", **HEDGEHOG)
        assert "search-facets" not in page.text
        assert 'class="searchPage pat-formautofocus pat-search"' in page.text
        assert 'id="did-you-mean"' in site.web.get("/plone/@@search", None, "text/html", SearchableText="hegdehog").text
    finally:
        with site.inside():
            tune(search_page=True)
    assert search(site.web, **HEDGEHOG).facets


# -- a large catalog sends the hits first; its script, or else a link, requests the facets


@pytest.fixture
def large(site: Site) -> Iterator[Web]:
    """The site with the number of rows of a large catalog."""
    with large_catalog(site, QUICK_ROWS):
        yield site.web


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
def test_hits_and_facets_apart_are_those_of_the_page_with_both(large: Web, login: str | None, query: Any) -> None:
    both = search(large, login, **query, facets="along")
    first = search(large, login, **query)
    assert (first.total, first.titles) == (both.total, both.titles)
    then = follow(large, source(first), login)
    assert then.facets == both.facets
    assert then.checked == both.checked == first.checked
    assert then.chips == {value: url.replace("&facets=along", "") for value, url in both.chips.items()}
    assert not then.titles


def test_page_counts_no_facet_and_its_form_has_the_chosen_values(site: Site, large: Web) -> None:
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


def test_link_requests_the_facets_without_a_script(large: Web) -> None:
    first = search(large, **HEDGEHOG)
    [refresh] = first.tree.xpath('//noscript/meta[@http-equiv="refresh"]/@content')
    page = follow(large, refresh.removeprefix("0; url="))
    assert page.facets["Subject"]
    assert not page.tree.xpath("//noscript/meta")
    # The form requests them, too.
    assert page.tree.xpath('//*[@id="search-kept"]/input[@name="facets"]/@value') == ["along"]
    again = search(large, **HEDGEHOG, **{"Subject:list": "Winter"}, facets="along")
    [chip] = again.chips.values()
    assert follow(large, chip).facets == page.facets


def test_page_that_cannot_be_narrowed_requests_no_facets(large: Web) -> None:
    for query, is_narrowed in (
        ({"SearchableText": "xyzzyxyzzy"}, False),
        ({"SearchableText": "visits", "path:list": "/plone"}, True),
    ):
        page = search(large, **query)
        assert bool(page.tree.xpath('//*[@id="search-facets"]/@data-source')) == page.has_side == is_narrowed


def test_unknown_value_of_facets_is_ignored(large: Web) -> None:
    for how in ("", "x", ["along", "alone"], "a" * 3000):
        page = search(large, **HEDGEHOG, facets=how)
        assert page.total == 49
        assert source(page).partition("facets=")[2] == "alone"


@pytest.mark.parametrize("how", ["alone", "along"])
def test_facets_alone_reveal_no_more_than_the_page(large: Web, how: str) -> None:
    for query in ({}, {"Subject:list": "Hidden"}, {"path:list": "/plone/closed"}, {"SearchableText": "rendezvous"}):
        page = search(large, None, **query, facets=how)
        assert "Hidden tag" not in page.html
        assert "Hidden place" not in page.html
    assert "Hidden tag" in search(large, "mara:secret", facets=how).html


def test_a_small_catalog_sends_hits_and_facets_together(large: Web, site: Site) -> None:
    with site.inside() as portal:
        pretend_rows(portal, QUICK_ROWS)
    page = search(large, **HEDGEHOG)
    assert page.facets["Subject"]
    assert not page.tree.xpath('//*[@id="search-facets"]/@data-source | //noscript/meta')
