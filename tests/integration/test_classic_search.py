"""Plone's own search page, which a site may prefer to ours, its live search and the REST services over HTTP."""

from collections.abc import Iterator
from html import unescape
from plone.app.textfield import RichTextValue
from plone.namedfile.file import NamedBlobImage
from plone.pgcatalog.classic.suggestions import DidYouMean
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.results.cache import result_cache
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.rebuilding import sql
from tests.integration.traffic import traced
from tests.integration.volto_pages import PIXEL
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from urllib.parse import parse_qsl
from urllib.parse import urlsplit
from zope.component import getMultiAdapter
from zope.interface import alsoProvides

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
    "secret": ("Secret hedgehog", "Nobody sees its rendezvous"),
}
#: Hits of a visitor.
FOUND = ["visits", *PAGES, "urchin"]


def fill_pages(portal: Any) -> None:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    add_users(portal)
    for name, (title, text) in (PAGES | OTHERS).items():
        page = create(portal, "Document", name, title=title, text=RichTextValue(text, "text/plain"))
        if name != "secret":
            publish(page)
    tune(search_page=False, pins="hedgehog = /visits", synonyms="hedgehog, urchin", stop_words="en: the")


SHARED = fill_pages


@pytest.fixture(scope="module")
def web(shared_site: Site) -> Web:
    with shared_site.inside() as portal:
        counted(shared_site.dsn, portal.portal_catalog)
    return shared_site.web


def search(web: Web, text: str, login: str | None = None, **query: Any) -> Any:
    page = web.get("/plone/@@search", login, "text/html", SearchableText=text, **query)
    assert page.status == 200
    return page.text


def hits(page: str) -> list[str]:
    """Return the ids of the hits on the search page, in order."""
    listed = page.partition('id="search-results"')[2]
    return re.findall(r'<div class="result-title">.*?<a href="http://nohost/plone/([^"?]+)', listed, re.S)


def assert_ranked(names: list[str]) -> None:
    """Check that the pinned page is first, followed by the pages with the word itself in the order of their relevance."""
    assert names[0] == "visits"
    assert sorted(names) == sorted(FOUND)
    assert [name for name in names if name in PAGES] == list(PAGES)


def test_the_search_page_shows_ranked_hits(web: Web) -> None:
    page = search(web, "hedgehog")
    assert_ranked(hits(page))
    assert re.search(r'id="search-results-number"[^>]*>\s*5\s*<', page)
    assert hits(search(web, "hedgehog", **{"b_start:int": 3})) == hits(page)[3:]
    assert hits(search(web, "hedgehog", **{"portal_type:list": "Event"})) == []
    assert hits(search(web, "hedgehog", sort_on="sortable_title")) == ["forest", "garden", "hedgehog", "urchin"]


def test_search_page_shows_only_visible_hits(web: Web) -> None:
    found = hits(search(web, "hedgehog", "boss:secret"))
    assert sorted(found) == sorted([*FOUND, "secret"])
    assert found[0] == "visits"


def test_live_search_shows_the_hits_of_the_search_page(web: Web) -> None:
    pages = [
        web.get("/plone/@@ajax-search", None, "*/*", SearchableText="hedgehog", perPage=2, page=number).json
        for number in (1, 2, 3)
    ]
    assert (pages[0]["total"], [len(page["items"]) for page in pages]) == (5, [2, 2, 1])
    items = [item for page in pages for item in page["items"]]
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


# -- did you mean


def meant(page: str) -> tuple[str, dict[str, str]] | None:
    """Return the suggested text and the parameters of its link; None for a page without suggestion."""
    found = re.search(r'<p[^>]*id="did-you-mean"[^>]*>(.*?)<a href="([^"]*)">(.*?)</a></p>', page, re.S)
    if found is None:
        assert "did-you-mean" not in page
        return None
    # Inside the results, the part that the page's script inserts.
    assert found.start() > page.index('id="search-results"')
    assert found[1].strip() == "Did you mean:"
    address = urlsplit(unescape(found[2]))
    assert (address.scheme, address.netloc, address.path) == ("http", "nohost", "/plone/@@search")
    return unescape(found[3]), dict(parse_qsl(address.query, keep_blank_values=True))


@pytest.mark.parametrize("login", [None, "mara:secret", "boss:secret"])
def test_search_without_hits_suggests_a_correction(web: Web, login: str | None) -> None:
    page = search(web, "Hegdehog leaves", login)
    assert hits(page) == []
    assert meant(page) == ("Hedgehog leaves", {"SearchableText": "Hedgehog leaves"})
    assert hits(search(web, "Hedgehog leaves", login)) == ["garden"]


def test_link_of_the_suggestion_has_the_other_filters(web: Web) -> None:
    filters = {
        "portal_type:list": "Document",
        "created.query:record:date": "2001-01-01",
        "created.range:record": "min",
        "sort_on": "sortable_title",
        "advanced_search": "True",
    }
    found = meant(search(web, "hegdehog", **filters, **{"b_start:int": "0", "ajax_load": "1"}))
    assert found == ("hedgehog", {**filters, "SearchableText": "hedgehog"})
    assert len(hits(search(web, "hedgehog", **filters))) == 4
    # Pages excluded by the filters are no suggestion.
    assert meant(search(web, "hegdehog", **{"portal_type:list": "Event"})) is None
    assert meant(search(web, "hegdehog", path="/plone/nowhere")) is None


def test_suggestion_has_no_invisible_word(web: Web) -> None:
    for login, query in ((None, {}), (None, {"allowedRolesAndUsers": "Manager"}), ("mara:secret", {})):
        assert meant(search(web, "rendezvsou", login, **query)) is None
    assert meant(search(web, "rendezvsou", "boss:secret")) == ("rendezvous", {"SearchableText": "rendezvous"})


@pytest.mark.parametrize("rest", ["& <", "<!-- '", '"leaves"', "+ % #"])
def test_search_text_is_escaped(web: Web, rest: str) -> None:
    page = search(web, f"hegdehog {rest}")
    assert meant(page) == (f"hedgehog {rest}", {"SearchableText": f"hedgehog {rest}"})
    shown = page.partition('id="did-you-mean"')[2].partition("</p>")[0]
    assert re.findall(r"[<>]+/?", shown) == [">", "<", ">", "</", ">"]
    assert not re.search(r"&(?!amp;|lt;|gt;|quot;|#)", shown)


@pytest.mark.parametrize("text", ["hedgehog AND hegdehog", "", "  ", "xyzzyxyzzy", "\0", "(", "hegdehog -leaves*"])
def test_no_link_finds_nothing(web: Web, text: str) -> None:
    found = meant(search(web, text))
    assert found is None or hits(search(web, found[0]))


def test_search_with_hits_computes_no_suggestion(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(DidYouMean, "render", lambda self: asked.append(self) or "")
    assert hits(search(web, "hedgehog"))
    assert meant(search(web, "hedgehog", **{"b_start:int": "100"})) is None
    assert meant(web.get("/plone", None, "text/html").text) is None
    assert web.get("/plone/@@ajax-search", None, "*/*", SearchableText="hegdehog").json["total"] == 5
    assert not asked
    search(web, "hegdehog")
    assert len(asked) == 1


def test_error_in_the_suggestion_spares_the_page(web: Web, shared_site: Site, caplog: pytest.LogCaptureFixture) -> None:
    sql(shared_site.dsn, "ALTER TABLE pgcatalog_words RENAME TO words_elsewhere")
    try:
        page = search(web, "hegdehog")
    finally:
        sql(shared_site.dsn, "ALTER TABLE words_elsewhere RENAME TO pgcatalog_words")
    assert meant(page) is None
    assert "No results were found" in page
    assert 'relation "pgcatalog_words" does not exist' in caplog.text
    assert meant(search(web, "hegdehog")) is not None


def test_a_site_that_has_uninstalled_it_has_the_page_without(web: Web) -> None:
    """Must be the last test: it changes the site."""
    with sites.inside(web.db) as portal:
        portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")
        transaction.commit()
    assert meant(search(web, "hegdehog")) is None
    assert "hedgehog" in hits(search(web, "hedgehog"))


TITLES = {
    "first": "Hedgehogs in the garden",
    "second": "A hedge for birds, and a hedge for wind",
    "third": "Hedging your bets",
    "fourth": "The owl at night",
    "fifth": "No hedge",
    **{f"winter{number}": f"Hedgehogs in winter {number}" for number in range(9)},
}
SECRET = {"secret": "Hedgewars rendezvous"}


@pytest.fixture(scope="module")
def site(site_template: str, postgres: Any) -> Iterator[Any]:
    """(portal, Web, dsn): a site whose pages are public, except one."""
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        add_users(portal)
        for name, title in (TITLES | SECRET).items():
            page = create(portal, "Document", name, title=title)
            if name not in SECRET:
                publish(page)
        transaction.commit()
        counted(dsn, portal.portal_catalog)
        yield portal, Web(db), dsn


def live(site: Any, text: str, login: str | None = None, **query: Any) -> Any:
    return site[1].get("/plone/@@ajax-search", login, "*/*", SearchableText=text, **{"perPage": 7, **query}).json


def words(answer: dict[str, Any]) -> list[str]:
    return [word["text"] for word in answer["words"]]


def searched(url: str) -> str:
    """Return the search text in *url*, an address of the search page."""
    address = urlsplit(url)
    assert (address.netloc, address.path) == ("nohost", "/plone/@@search")
    return dict(parse_qsl(address.query))["SearchableText"]


def test_words_complete_what_was_typed(site: Any) -> None:
    answer = live(site, "garden HEDG")
    assert answer["total"] == 1
    assert words(answer) == ["garden hedgehogs"]
    assert [searched(word["url"]) for word in answer["words"]] == words(answer)
    assert answer["words"][0]["label"] == "Search for garden hedgehogs"
    assert words(live(site, "hedg")) == ["hedgehogs", "hedge", "hedging"]
    # A complete word has no completion.
    assert words(live(site, "hedge")) == ["hedgehogs"]
    assert words(live(site, "owl ")) == []


def test_live_search_items_are_plones_and_have_pages(site: Any) -> None:
    first, second = live(site, "hedgehogs"), live(site, "hedgehogs", page=2)
    assert (first["total"], len(first["items"])) == (second["total"], 7) == (10, 7)
    assert len({item["url"] for item in (*first["items"], *second["items"])}) == 10
    assert set(first["items"][0]) == {"id", "title", "description", "url", "state", "img_tag"}
    assert words(second) == []


def test_text_without_hits_is_corrected(site: Any) -> None:
    answer, meant = live(site, "Hegdehogs gardn"), live(site, "Hedgehogs garden")
    assert answer["corrected"] == {
        "text": "Hedgehogs garden",
        "label": "Showing results for Hedgehogs garden",
        "url": "http://nohost/plone/@@search?SearchableText=Hedgehogs+garden",
    }
    assert (answer["total"], answer["items"]) == (meant["total"], meant["items"]) == (1, meant["items"])
    assert "corrected" not in meant
    later = live(site, "hegdehogs", page=2)
    assert (later["total"], len(later["items"])) == (10, 3)


def test_text_unlike_any_word_is_not_corrected(site: Any) -> None:
    for text in ("xyzzyxyzzy", "", "  ", "\0", "(", '"', "hedgehogs owl", "hegdehogs owll", "*"):
        answer = live(site, text)
        assert "corrected" not in answer
        assert len(answer["items"]) == min(answer["total"], 7)
        # The browser checks the minimum length.
        assert answer.get("short") == (None if text.strip() else "Type at least ${number} letters")


def test_correction_obeys_the_filters(site: Any) -> None:
    for path, is_corrected in (("/plone/winter1", True), ("/plone/fourth", False)):
        assert ("corrected" in live(site, "hegdehogs", path=path)) is is_corrected
    assert live(site, "hegdehogs", **{"portal_type:list": "Event"})["total"] == 0


@pytest.mark.parametrize("login", [None, "mara:secret"])
def test_live_search_has_no_invisible_word_or_title(site: Any, login: str | None) -> None:
    for text in ("hedgew", "hedgewar", "rendez", "rendezvsou", "Hedgewras"):
        answer = json.dumps(live(site, text, login)).lower()
        assert "hedgewars" not in answer.replace(text.lower(), "")
        assert "rendezvous" not in answer
    assert live(site, "rendezvsou", "boss:secret")["corrected"]["text"] == "rendezvous"
    assert "hedgewars" in words(live(site, "hedgew", "boss:secret"))
    # A hidden page has no effect on the answers about visible ones.
    assert live(site, "hedgewogs", login)["total"] == live(site, "hedgehogs", login)["total"]


@pytest.mark.parametrize(("text", "most"), [("hedg", 1), ("hedgehogs", 1), ("hegdehogs", 3), ("xyzzyxyzzy", 2)])
@pytest.mark.parametrize("user", [None, "mara"])
def test_live_search_sends_few_messages(site: Any, text: str, most: int, user: str | None) -> None:
    portal, *_ = site
    sites.return_to(portal)
    alsoProvides(portal.REQUEST, IPGCatalogLayer)
    portal.REQUEST.form = {"SearchableText": text, "perPage": "7", "page": "1"}
    with acting_as(portal, user):
        # The first answer loads the objects that it needs.
        getMultiAdapter((portal, portal.REQUEST), name="ajax-search")()
        result_cache().clear()
        transaction.begin()
        portal.portal_types.objectValues()
        with traced(portal) as traffic:
            json.loads(getMultiAdapter((portal, portal.REQUEST), name="ajax-search")())
    statements = traffic[0].statements
    assert len(statements) <= most, statements


# -- similar pages


def related(site: Any, login: str | None = None) -> list[str]:
    page = site[1].get("/plone/first", login, "text/html").text
    return page.partition('id="related-pages"')[2].partition("</aside>")[0].split('href="')[1:]


def test_related_pages_are_the_visible_ones_and_absent_on_the_front_page(site: Any) -> None:
    portal, _, dsn = site
    assert related(site) == [], "off by default"
    sites.return_to(portal)
    transaction.begin()
    tune(related_pages=5)
    share_words = "thistles burdock nettles"
    for name in ("first", "winter1", "winter2", "secret"):
        portal[name].description = share_words
        portal[name].reindexObject()
    transaction.commit()
    counted(dsn, portal.portal_catalog)
    try:
        found = related(site)
        assert {link.partition('"')[0] for link in found[:2]} == {f"http://nohost/plone/winter{n}" for n in (1, 2)}
        assert len(found) == 5
        for login in (None, "mara:secret"):
            assert "secret" not in "".join(related(site, login))
        assert "secret" in "".join(related(site, "boss:secret")[:3])
        portal.setDefaultPage("first")
        transaction.commit()
        # The front page is about the whole site.
        assert related(site) == []
    finally:
        tune(related_pages=0)
        portal.setDefaultPage(None)
        transaction.commit()


def test_nothing_is_saved(site: Any) -> None:
    """Plone's own code saves an empty list of scales in each page when it is first shown."""
    portal, _, dsn = site
    publish(create(portal, "Document", "lynx", title="A lynx"))
    transaction.commit()

    newest = "SELECT max(tid) FROM transaction_log"
    before = sql(dsn, newest)
    assert live(site, "lynx")["items"][0]["img_tag"] is None
    assert sql(dsn, newest) == before


def test_images_are_shown_as_by_plone(site: Any) -> None:
    portal, _, _ = site
    picture = create(portal, "Image", "picture", title="Portrait of a badger")
    picture.image = NamedBlobImage(PIXEL, "image/png", "badger.png")
    picture.reindexObject()
    transaction.commit()
    [item] = live(site, "badger", "boss:secret")["items"]
    assert item["img_tag"].startswith("<img ")
