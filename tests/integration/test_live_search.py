"""Live search over HTTP: pages as Plone has them, words to go on with, and a correction; for each visitor what may be seen."""

from collections.abc import Iterator
from plone.namedfile.file import NamedBlobImage
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.registry.interfaces import IRegistry
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.traffic import traced
from tests.integration.vocabulary import counted
from tests.integration.web import Web
from typing import Any
from urllib.parse import parse_qsl
from urllib.parse import urlsplit
from zope.component import getMultiAdapter
from zope.component import getUtility
from zope.interface import alsoProvides

import base64
import json
import psycopg
import pytest
import transaction


TITLES = {
    "first": "Hedgehogs in the garden",
    "second": "A hedge for birds, and a hedge for wind",
    "third": "Hedging your bets",
    "fourth": "The owl at night",
    "fifth": "No hedge",
    **{f"winter{number}": f"Hedgehogs in winter {number}" for number in range(9)},
}
SECRET = {"secret": "Hedgewars rendezvous"}

#: A transparent picture in PNG.
PIXEL = base64.b64decode(
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def site(site_template: str, postgres: Any) -> Iterator[Any]:
    """(portal, Web, dsn): a site whose pages are public, one excepted."""
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


def live(site: Any, text: str, login: str | None = None, **query: Any) -> dict[str, Any]:
    _, web, _ = site
    answer = web.get("/plone/@@ajax-search", login, "*/*", SearchableText=text, **{"perPage": 7, **query})
    assert answer.status == 200
    found: dict[str, Any] = answer.json
    return found


def words(answer: dict[str, Any]) -> list[str]:
    return [word["text"] for word in answer["words"]]


def searched(url: str) -> str:
    """Return what the search page at *url* is asked for."""
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
    # What is there already is no completion.
    assert words(live(site, "hedge")) == ["hedgehogs"]
    assert words(live(site, "owl ")) == []


def test_items_are_plones_and_pages_go_on(site: Any) -> None:
    first, second = live(site, "hedgehogs"), live(site, "hedgehogs", page=2)
    assert (first["total"], len(first["items"])) == (second["total"], 7) == (10, 7)
    assert len({item["url"] for item in (*first["items"], *second["items"])}) == 10
    assert set(first["items"][0]) == {"id", "title", "description", "url", "state", "img_tag"}
    assert words(second) == []


def test_what_finds_nothing_is_corrected(site: Any) -> None:
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


@pytest.mark.parametrize("text", ["xyzzyxyzzy", "", "  ", "\0", "(", '"', "hedgehogs owl", "hegdehogs owll", "*"])
def test_what_nothing_is_like_finds_nothing(site: Any, text: str) -> None:
    answer = live(site, text)
    assert "corrected" not in answer
    assert len(answer["items"]) == min(answer["total"], 7)


def test_without_a_text_it_says_what_to_tell_who_has_typed_too_little(site: Any) -> None:
    """The browser knows the number."""
    assert live(site, "")["short"] == "Type at least ${number} letters"
    assert "short" not in live(site, "hedgehogs")


def test_the_correction_obeys_the_filters(site: Any) -> None:
    assert "corrected" in live(site, "hegdehogs", path="/plone/winter1")
    assert "corrected" not in live(site, "hegdehogs", path="/plone/fourth")
    assert live(site, "hegdehogs", **{"portal_type:list": "Event"})["total"] == 0


@pytest.mark.parametrize("login", [None, "mara:secret"])
def test_nobody_is_told_a_word_or_title_that_he_may_not_see(site: Any, login: str | None) -> None:
    for text in ("hedgew", "hedgewar", "rendez", "rendezvsou", "Hedgewras"):
        answer = json.dumps(live(site, text, login)).lower()
        assert "hedgewars" not in answer.replace(text.lower(), "")
        assert "rendezvous" not in answer
    assert live(site, "rendezvsou", "boss:secret")["corrected"]["text"] == "rendezvous"
    assert "hedgewars" in words(live(site, "hedgew", "boss:secret"))
    # As if it were nowhere: what is hidden does not stand in the way of what is not.
    assert live(site, "hedgewogs", login)["total"] == live(site, "hedgehogs", login)["total"]


@pytest.mark.parametrize(("text", "most"), [("hedg", 1), ("hedgehogs", 1), ("hegdehogs", 2), ("xyzzyxyzzy", 1)])
@pytest.mark.parametrize("user", [None, "mara"])
def test_it_costs_few_messages(site: Any, text: str, most: int, user: str | None) -> None:
    portal, *_ = site
    from plone.pgcatalog.interfaces import IPGCatalogLayer
    from plone.pgcatalog.results.cache import result_cache

    sites.return_to(portal)
    request = portal.REQUEST
    alsoProvides(request, IPGCatalogLayer)
    result_cache().clear()
    transaction.begin()
    portal.portal_types.objectValues()
    with acting_as(portal, user), traced(portal) as traffic:
        request.form = {"SearchableText": text, "perPage": "7", "page": "1"}
        json.loads(getMultiAdapter((portal, request), name="ajax-search")())
    ours = traffic[0].matching("pgcatalog")
    assert len(ours) <= most, ours


# -- similar pages


def related(site: Any, login: str | None = None) -> list[str]:
    _, web, _ = site
    page = web.get("/plone/first", login, "text/html").text
    return page.partition('id="related-pages"')[2].partition("</aside>")[0].split('href="')[1:]


def test_related_pages_are_off_until_somebody_wants_them(site: Any) -> None:
    assert related(site) == []


def test_related_pages_show_what_the_visitor_may_see(site: Any) -> None:
    portal, _, dsn = site
    sites.return_to(portal)
    transaction.begin()
    getUtility(IRegistry)[f"{PREFIX}.related_pages"] = 5
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
    finally:
        getUtility(IRegistry)[f"{PREFIX}.related_pages"] = 0
        transaction.commit()


def test_nothing_is_saved(site: Any) -> None:
    """Plone's own saves an empty list of scales in each page that it shows for the first time."""
    portal, _, dsn = site
    publish(create(portal, "Document", "lynx", title="A lynx"))
    transaction.commit()

    def newest() -> Any:
        with psycopg.connect(dsn) as connection:
            return connection.execute("SELECT max(tid) FROM transaction_log").fetchone()

    before = newest()
    assert live(site, "lynx")["items"][0]["img_tag"] is None
    assert newest() == before


def test_images_are_shown_as_by_plone(site: Any) -> None:
    portal, _, _ = site
    picture = create(portal, "Image", "picture", title="Portrait of a badger")
    picture.image = NamedBlobImage(PIXEL, "image/png", "badger.png")
    picture.reindexObject()
    transaction.commit()
    [item] = live(site, "badger", "boss:secret")["items"]
    assert item["img_tag"].startswith("<img ")
