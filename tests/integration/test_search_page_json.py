"""The search page of Classic UI and ``@pgsearch`` with ``search_page=1`` answer an address with the same hits, counts and names."""

from html import unescape
from plone.base.interfaces.syndication import ISiteSyndicationSettings
from plone.pgcatalog.searchpage.page import QUICK_ROWS
from plone.registry.interfaces import IRegistry
from tests.acceptance.search_site import fill_for_mara
from tests.integration.content import large_catalog
from tests.integration.content import tune
from tests.integration.search_pages import Page
from tests.integration.search_pages import site as site
from tests.integration.search_pages import web as web
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from urllib.parse import parse_qsl
from urllib.parse import urlencode
from urllib.parse import urlsplit
from zope.component import getUtility

import lxml.html
import pytest


def fill(portal: Any) -> None:
    fill_for_mara(portal)
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")


SHARED = fill
SERVICE = "/plone/@pgsearch"
WINTER = "SearchableText=hedgehog&Subject:list=Winter"
ADDRESSES = (
    "",
    "SearchableText=hedgehog",
    f"{WINTER}&Subject:list=Food&portal_type:list=Event",
    "SearchableText=hedgehog&facet.Date:list=2025&facet.Date:list=2025-02&sort_on=Date",
    "SearchableText=hedgehog&path:list=/plone/news&b_size=20&sort_on=sortable_title",
    "path:list=/plone/news&path:list=/plone/animals",
    "SearchableText=hedgehog&b_start:int=20",
    "SearchableText=hedgehog&b_start:int=40&b_size=20&sort_on=sortable_title",
    "SearchableText=hegdehog",
    "SearchableText=hegdehog&as_typed=hegdehog",
    "SearchableText=the",
    "SearchableText=zzzzzz&portal_type:list=Event",
    "SearchableText=garden -winter",
    "SearchableText=%22garden by day%22",
    "SearchableText=visits&unknown=1&x=<b>",
    "Subject=Winter&created.query:record:date=2001-01-01&created.range:record=min",
    "b_size=many&b_start=x&facet.Date:list=nothing",
    "portal_type:list=Document&portal_type:list=Nothing",
)


def data(web: Web, query: str, login: str | None = None, path: str = SERVICE) -> Any:
    response = web.open(f"{path}?{query}&search_page=1", login, "application/json")
    assert response.status == 200, response.text
    return response.json


def plain(html: str) -> str:
    return " ".join(lxml.html.fromstring(f"<p>{html}</p>").text_content().split())


def pairs(url: str) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(unescape(url)).query, keep_blank_values=True)


def values(boxes: list[dict[str, Any]]) -> list[tuple[str, str, int | None, bool]]:
    """Return (value, title, count, is chosen) of all values, in order."""
    return [
        row
        for box in boxes
        for row in (
            (box["value"], box["title"], box["count"], box["is_chosen"]),
            *values(box["parts"]),
        )
    ]


def shown(page: Page) -> dict[str, Any]:
    """Return the content of the page of Classic UI, in the form of ``answered``."""
    tree = page.tree
    return {
        "total": page.total,
        "titles": page.titles,
        "texts": page.texts('//li//p[contains(@class, "result-text")]'),
        "places": page.texts('//div[contains(@class, "result-place")]//a'),
        "tags": page.texts('//ul[contains(@class, "result-tags")]//a[@rel]'),
        "facets": {
            legend.text_content().strip(): [
                (
                    choice.xpath(".//input")[0].get("value"),
                    choice.xpath(".//label/span")[0].text_content(),
                    page._count(choice),
                    choice.xpath(".//input")[0].get("checked") is not None,
                )
                for choice in legend.getparent().xpath('.//div[@class="form-check"]')
            ]
            for legend in tree.xpath("//fieldset/legend")
        },
        "chips": {title: pairs(url) for title, url in page.chips.items()},
        "pages": [
            (pairs(link.get("href")), link.get("rel"), link.get("aria-current"))
            for link in tree.xpath('//a[contains(@class, "page-link")]')
        ],
        "sort": page.texts('//*[@id="search-sort"]/option'),
        "corrected": page.texts('//*[@id="search-corrected"]/strong'),
        "suggestion": page.texts('//*[@id="did-you-mean"]/a'),
        "hidden": [[field.get("name"), field.get("value")] for field in tree.xpath('//*[@id="search-kept"]/input')],
    }


def answered(answer: Any) -> dict[str, Any]:
    """Return the content of the response of the service."""
    items = answer["items"]
    return {
        "total": answer["items_total"],
        "titles": [plain(item["highlighting"]["Title"][0]) for item in items],
        "texts": [plain(text) for item in items for text in item["highlighting"]["text"]],
        "places": [crumb["title"] for item in items for crumb in item["breadcrumbs"]],
        "tags": [tag["title"] for item in items for tag in item["tags"]],
        "facets": {facet["title"]: values(facet["values"]) for facet in answer["facets"]},
        "chips": {chip["value"]: pairs(chip["query"]) for chip in answer["chips"]},
        "pages": [
            (pairs(link["query"]), link["rel"], "page" if link["is_present"] else None) for link in answer["pages"]
        ],
        "sort": [option["title"] for option in answer["sort"]] if answer["items_total"] else [],
        "corrected": [answer["corrected"]] if answer["corrected"] else [],
        "suggestion": [answer["suggestion"]] if answer["suggestion"] else [],
        "hidden": answer["hidden_fields"],
    }


@pytest.mark.parametrize("query", ADDRESSES)
@pytest.mark.parametrize("login", [None, "mara:secret"])
def test_both_pages_answer_an_address_alike(web: Web, login: str | None, query: str) -> None:
    page = shown(Page(web.open(f"/plone/@@search?{query}", login)))
    answer = answered(data(web, query, login))
    page["sort"] = page["sort"] if page["total"] else []
    assert answer == page


def test_each_link_leads_to_its_hits(web: Web) -> None:
    answer = data(web, f"{WINTER}&portal_type:list=Event")
    assert [chip["value"] for chip in answer["chips"]] == ["Event", "Winter"]
    event, winter = (data(web, chip["query"][1:]) for chip in answer["chips"])
    assert event["items_total"] > answer["items_total"] < winter["items_total"]
    assert data(web, answer["links"]["unfiltered"][1:])["chips"] == []
    similar = data(web, answer["items"][0]["similar"][1:])
    assert [chip["value"] for chip in similar["chips"]] == [answer["items"][0]["title"]]
    assert answer["items"][0]["@id"] not in [item["@id"] for item in similar["items"]]


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("path=/", []),
        ("path=/plone/", []),
        ("path=/news", ["/plone/news"]),
        ("path:list=/news&path:list=", ["/plone/news"]),
    ],
)
def test_paths_of_volto_start_at_the_site(web: Web, query: str, paths: list[str]) -> None:
    answer = data(web, f"SearchableText=hedgehog&{query}")
    expected = urlencode([("SearchableText", "hedgehog"), *(("path:list", path) for path in paths)])
    assert answered(answer) == answered(data(web, expected))
    assert [chip["value"] for chip in answer["chips"]] == ["News" for _ in paths]
    assert all(data(web, chip["query"][1:])["chips"] == [] for chip in answer["chips"])


def test_both_pages_have_the_feed_of_the_search_if_the_site_has_feeds(site: Site, web: Web) -> None:
    query = f"{WINTER}&b_start:int=10"
    for allowed in (True, False):
        with site.inside():
            getUtility(IRegistry).forInterface(ISiteSyndicationSettings).search_rss_enabled = allowed
        feed = data(web, query)["links"]["rss"]
        page = Page(web.open(f"/plone/@@search?{query}")).tree
        links = page.xpath('//link[contains(@href, "search_rss")]/@href | //*[@id="rss-subscription"]/a/@href')
        assert links == ([feed, feed] if allowed else [])
    assert feed is None
    with site.inside():
        getUtility(IRegistry).forInterface(ISiteSyndicationSettings).search_rss_enabled = True
    feed = urlsplit(data(web, query)["links"]["rss"])
    assert parse_qsl(feed.query) == [("SearchableText", "hedgehog"), ("Subject:list", "Winter")]
    for path in (feed.path, feed.path.replace("/plone", "/plone/++api++")):
        answer = web.open(f"{path}?{feed.query}")
        assert answer.status == 200
        assert "<rdf:RDF" in answer.text


def test_facets_of_a_large_catalog_follow(site: Site, web: Web) -> None:
    whole = data(web, WINTER)
    with large_catalog(site, QUICK_ROWS):
        first = data(web, WINTER)
        rest = data(web, f"{WINTER}&facets=alone")
        along = data(web, f"{WINTER}&facets=along")
    assert first["facets_follow"]
    assert [values(facet["values"]) for facet in first["facets"]] == [[("Winter", "Winter", None, True)]]
    assert [item["@id"] for item in first["items"]] == [item["@id"] for item in whole["items"]]
    assert rest.keys() == {"@id", "facets", "chips"}
    assert rest["facets"] == along["facets"] == whole["facets"]


def test_pinned_pages_are_first_and_marked_on_both_pages(site: Site, web: Web) -> None:
    with site.inside():
        tune(pins="hedgehog = /visits")
    items = data(web, "SearchableText=hedgehog")["items"]
    assert [item["is_pinned"] for item in items] == [True] + [False] * 9
    page = Page(web.open("/plone/@@search?SearchableText=hedgehog"))
    assert page.texts('//*[contains(@class, "result-pinned")]') == ["Recommended"]
    with site.inside():
        tune(pins="")


@pytest.mark.parametrize(
    "query", ["sort_on=allowedRolesAndUsers", f"SearchableText=x&Subject:list={'x' * 17_000}"], ids=("order", "long")
)
def test_bad_addresses_are_refused(web: Web, query: str) -> None:
    assert web.open(f"{SERVICE}?{query}&search_page=1", None, "application/json").status == 400
