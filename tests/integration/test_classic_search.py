"""Plone's own search page, its live search and the REST services show ranked and tuned hits, over HTTP."""

from collections.abc import Iterator
from plone.app.textfield import RichTextValue
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.test_tuning import tune
from tests.integration.web import Web
from typing import Any
from zope.component.hooks import setSite

import json
import pytest
import re
import transaction


#: id -> (title, words of the text); best hit for "hedgehog" first
PAGES = {
    "hedgehog": ("Hedgehog", "A hedgehog eats what a hedgehog likes"),
    "garden": ("Garden", "A hedgehog in the leaves"),
    "forest": ("Forest", "Owls, foxes, badgers, boars, and once " + "trees and more trees " * 20 + "a hedgehog"),
}
OTHERS = {
    "visits": ("Visits", "When we are open"),
    "urchin": ("Urchin", "Its older name"),
    "secret": ("Secret hedgehog", "Nobody sees it"),
}
#: what a visitor finds
FOUND = ["visits", *PAGES, "urchin"]


@pytest.fixture(scope="module")
def web(site_template: str, postgres: Any) -> Iterator[Web]:
    with sites.opened(sites.clone(postgres, site_template)) as db:
        with sites.application(db) as app:
            sites.login(app)
            setSite(app.plone)
            app.plone.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
            add_users(app.plone)
            for name, (title, text) in (PAGES | OTHERS).items():
                page = create(app.plone, "Document", name, title=title, text=RichTextValue(text, "text/plain"))
                if name != "secret":
                    publish(page)
            tune(pins="hedgehog = /visits", synonyms="hedgehog, urchin", stop_words="en: the")
            transaction.commit()
        yield Web(db)


def hits(page: str) -> list[str]:
    """Return the ids of the hits on the search page, in order."""
    listed = page.partition('id="search-results"')[2]
    return re.findall(r'<div class="result-title">.*?<a href="http://nohost/plone/([^"?]+)', listed, re.S)


def assert_ranked(names: list[str]) -> None:
    """The pinned page is first, pages with the word itself in the order of their relevance."""
    assert names[0] == "visits"
    assert sorted(names) == sorted(FOUND)
    assert [name for name in names if name in PAGES] == list(PAGES)


def test_the_search_page_shows_ranked_hits(web: Web) -> None:
    page = web.get("/plone/@@search", None, "text/html", SearchableText="hedgehog")
    assert page.status == 200
    assert_ranked(hits(page.text))
    assert re.search(r'id="search-results-number"[^>]*>\s*5\s*<', page.text)


def test_its_pages_and_filters_agree(web: Web) -> None:
    second = web.get("/plone/@@search", None, "text/html", SearchableText="hedgehog", **{"b_start:int": 3})
    first = web.get("/plone/@@search", None, "text/html", SearchableText="hedgehog")
    assert hits(second.text) == hits(first.text)[3:]
    none = web.get("/plone/@@search", None, "text/html", SearchableText="hedgehog", **{"portal_type:list": "Event"})
    assert hits(none.text) == []
    by_title = web.get("/plone/@@search", None, "text/html", SearchableText="hedgehog", sort_on="sortable_title")
    assert hits(by_title.text) == ["forest", "garden", "hedgehog", "urchin"]


def test_it_shows_what_the_user_may_see(web: Web) -> None:
    page = web.get("/plone/@@search", "boss:secret", "text/html", SearchableText="hedgehog")
    assert sorted(hits(page.text)) == sorted([*FOUND, "secret"])
    assert hits(page.text)[0] == "visits"


def test_live_search_shows_the_same(web: Web) -> None:
    answer = json.loads(web.get("/plone/@@ajax-search", None, "*/*", SearchableText="hedgehog", perPage=2).body)
    more = json.loads(web.get("/plone/@@ajax-search", None, "*/*", SearchableText="hedgehog", perPage=2, page=2).body)
    rest = json.loads(web.get("/plone/@@ajax-search", None, "*/*", SearchableText="hedgehog", perPage=2, page=3).body)
    assert (answer["total"], len(answer["items"]), len(more["items"]), len(rest["items"])) == (5, 2, 2, 1)
    items = [*answer["items"], *more["items"], *rest["items"]]
    assert_ranked([item["url"].rpartition("/")[2] for item in items])
    assert items[0]["title"] == "Visits"


@pytest.mark.parametrize("text", ["hedgehog", "the hedgehog"])
def test_the_rest_services_have_the_same_order(web: Web, text: str) -> None:
    stock = web.get("/plone/@search", None, "application/json", SearchableText=text).json
    assert_ranked([item["@id"].rpartition("/")[2] for item in stock["items"]])
    assert stock["items_total"] == 5
    ours = web.get("/plone/@pgsearch", None, "application/json", q=text, facets="portal_type").json
    assert_ranked([doc["path_string"].rpartition("/")[2] for doc in ours["response"]["docs"]])
    assert ours["response"]["numFound"] == 5
    assert ours["facet_fields"] == [
        [{"name": "portal_type", "label": "portal_type", "truncated": False}, [["Document", 5]]]
    ]
    urchin = next(doc for doc in ours["response"]["docs"] if doc["path_string"].endswith("urchin"))
    assert urchin["highlighting"]["Title"] == ["<mark>Urchin</mark>"]
