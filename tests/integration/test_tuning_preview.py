"""The box *Try a query* of the control panel Search Tuning: the order by unsaved settings, and its reasons."""

from collections.abc import Iterator
from plone.app.textfield import RichTextValue
from plone.pgcatalog.discovery.preview import preview
from plone.pgcatalog.discovery.preview import PreviewHit
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.settings import SETTINGS_ATTRIBUTE
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.traffic import traced
from tests.integration.tuning_panel import PANEL
from tests.integration.tuning_panel import sent
from tests.integration.web import MANAGER
from tests.integration.web import Site
from typing import Any

import html
import json
import pytest
import re
import transaction


#: id -> (title, description, keywords, text)
PAGES = {
    "titled": ("All about hedgehogs", "", (), "Spines and more"),
    "described": ("Garden", "Visitors such as hedgehogs", (), "Leaves and more"),
    "tagged": ("Night", "", ("hedgehogs",), "Owls and more"),
    "texted": ("Winter", "", (), "Hedgehogs sleep, and hedgehogs dream"),
    "urchins": ("Urchins", "", (), "The older name"),
    "visits": ("Our station", "", (), "When we are open"),
    "secret": ("Secret hedgehogs", "", (), "Nobody sees them"),
}
FOUND = ["titled", "described", "tagged", "texted"]
QUERY = {"SearchableText": "hedgehogs"}


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Any]:
    """(portal, Web): a site with pages, all public except one, and users; the tests leave no change."""
    with sites.inside(shared_site.db) as portal:
        add_users(portal)
        portal.manage_permission("plone.restapi: Use REST API", ["Anonymous"], acquire=1)
        portal.acl_users.userFolderAddUser("sita", "secret", ["Site Administrator"], [])
        for name, (title, description, subject, text) in PAGES.items():
            page = create(portal, "Document", name, title=title, description=description, subject=subject)
            page.text = RichTextValue(text, "text/plain")
            page.reindexObject()
            if name == "secret":
                for permission in ("View", "Access contents information"):
                    page.manage_permission(permission, ["Manager"])
                page.reindexObjectSecurity()
            else:
                publish(page)
        transaction.commit()
        counted(shared_site.dsn, portal.portal_catalog)
        yield portal, shared_site.web


@pytest.fixture
def portal(site: Any) -> Iterator[Any]:
    with sites.rolled_back(site[0]) as portal:
        yield portal


def hits(portal: Any, user: str | None = "mara", **settings: Any) -> list[PreviewHit]:
    with acting_as(portal, user):
        return preview(portal.portal_catalog, QUERY, settings)


def ids(hits: list[PreviewHit]) -> list[str]:
    return [hit.brain.getId for hit in hits]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"weight_keywords": 1000.0},
        {"weight_title": 0.0, "weight_body": 9.0},
        {"type_boosts": "Document = 3"},
        {"half_lives": "Document = 1 day", "hidden_pages": "/titled"},
        {"pins": "hedgehogs = /visits until 2001-01-01\nhedgehogs = /texted from 2001-01-01"},
        {"pins": "hedgehogs = /visits\nhedgehogs = /texted"},
        {"synonyms": "hedgehogs, urchins"},
        {"pins": "hedgehogs = /secret", "synonyms": "hedgehogs => urchins", "weight_description": 50.0},
    ],
)
def test_order_is_the_one_after_saving(portal: Any, settings: dict[str, Any]) -> None:
    before, found = ids(hits(portal)), hits(portal, **settings)
    assert sorted(before) == sorted(FOUND)
    tune(**settings)
    with acting_as(portal, "mara"):
        assert ids(found) == [brain.getId for brain in portal.portal_catalog(**QUERY)]
    places = {name: place for place, name in enumerate(before, 1)}
    assert [(hit.place, hit.place_before) for hit in found] == [
        (place, places.get(name)) for place, name in enumerate(ids(found), 1)
    ]


def test_shares_show_the_part_of_the_page_with_the_words(portal: Any) -> None:
    found = {hit.brain.getId: hit for hit in hits(portal, synonyms="hedgehogs => urchins", pins="hedgehogs = /visits")}
    parts = {"titled": "title", "described": "description", "tagged": "keywords", "texted": "body"}
    for name, part in parts.items():
        shares = found[name].shares
        assert sum(shares.values()) == pytest.approx(1)
        assert max(shares, key=lambda key: shares[key]) == part, (name, shares)
    assert [name for name, hit in found.items() if hit.is_pinned] == ["visits"]
    assert found["visits"].shares == {}
    assert found["visits"].place_before is None


def test_boosts_are_shown(portal: Any) -> None:
    assert {hit.boost for hit in hits(portal)} == {1.0}
    assert {hit.boost for hit in hits(portal, type_boosts="Document = 0.5")} == {0.5}
    assert {hit.half_life for hit in hits(portal)} == {0}
    assert {hit.half_life for hit in hits(portal, half_lives="Document = 90 days")} == {90}


@pytest.mark.parametrize("user", [None, "mara"])
def test_hidden_pages_are_not_shown(portal: Any, user: str | None) -> None:
    assert "secret" not in ids(hits(portal, user, pins="hedgehogs = /secret"))
    assert "secret" in ids(hits(portal, "boss"))


def test_preview_takes_three_messages(portal: Any) -> None:
    # Whether the history is that of the snapshot is checked once, for any search.
    assert len(portal.portal_catalog.unrestrictedSearchResults(getId="titled")) == 1
    result_cache().clear()
    with traced(portal) as traffic:
        assert hits(portal, "mara", pins="hedgehogs = /visits", weight_title=9.0)
    ours = traffic[0].matching("pgcatalog")
    assert len(ours) == 3, ours


# -- the service of Volto


#: Lines with an effect only in a section, or none, today.
PINS = "hedgehogs = /texted below /en\nowls = /x until 2001-01-01\nmice = /visits from 2999-01-01"


def posted(web: Any, login: str | None = "sita:secret", **data: Any) -> Any:
    return web.send_json("POST", "/plone/@pgcatalog-preview", login, data)


def places(answer: Any) -> list[tuple[str, int, int | None, bool]]:
    assert answer.status == 200, answer.text
    return [
        (hit["@id"].rpartition("/")[2], hit["place"], hit["place_before"], hit["is_pinned"])
        for hit in answer.json["hits"]
    ]


@pytest.mark.parametrize("section", ["", "/en", "/de", "/e"])
@pytest.mark.parametrize("more", [{}, {"synonyms": "hedgehogs, urchins", "weight_keywords": 99.0}])
def test_service_returns_the_hits_of_the_panel(site: Any, section: str, more: dict[str, Any]) -> None:
    portal, web = site
    settings = {"pins": PINS, **more}
    page = web.post(PANEL, "sita:secret", **sent(**settings), **TRY, try_section=section)
    answer = posted(web, text=" hedgehogs ", section=section, settings=settings)
    found = places(answer)
    assert [name for name, *_ in found] == listed(page)
    assert [name for name, *_, is_pinned in found if is_pinned] == ["texted"] * (section == "/en")
    assert ('selected="selected"' in page.text.partition('id="try-section"')[2].partition("</select>")[0]) is (
        section == "/en"
    )
    assert answer.json["sections"] == ["/en"]
    assert [pin["words"] for pin in answer.json["idle_pins"]] == ["owls", "mice"]
    assert [pin["ended"] for pin in answer.json["idle_pins"]] == ["2001-01-01", None]
    assert [(line["field"], line["line"]) for line in answer.json["findings"]] == [("pins", 2)]
    transaction.begin()
    assert not getattr(portal.portal_catalog, SETTINGS_ATTRIBUTE).get("pins")


def test_service_compares_frequent_searches_if_requested(site: Any) -> None:
    _, web = site
    empty = {"searches": 0, "first": 0, "five": 0, "total": 0, "left": 0, "changed": []}
    assert [posted(web, **data).json["replay"] for data in ({}, {"replay": 1}, {"replay": True})] == [None, None, empty]
    assert posted(web).json["hits"] is None


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({"settings": {"pins": "nonsense", "weight_title": -1, "half_lives": 7}}, 400),
        ({"settings": []}, 400),
        ({"text": 7, "section": [], "settings": {"unknown": 1}}, 200),
        ({"text": "x" * 10**5 + '\0\ud800 "', "section": "/en\0"}, 200),
    ],
)
def test_service_bears_odd_data(site: Any, data: dict[str, Any], status: int) -> None:
    answer = posted(site[1], **data)
    assert answer.status == status, answer.text
    if status == 400 and data["settings"]:
        errors = json.loads(answer.json["message"])
        assert [error["field"] for error in errors] == ["weight_title", "half_lives", "pins"]
        assert errors[2]["message"].startswith("Line 1: 'nonsense' is not of the form")


@pytest.mark.parametrize("login", [None, "mara:secret", "edith:secret"])
def test_service_needs_the_permission_of_the_panel(site: Any, login: str | None) -> None:
    assert posted(site[1], login, text="hedgehogs").status == 401


# -- the panel


#: Fields of the box for a query with the words of QUERY.
TRY = {"try_text": "hedgehogs", "try": "1"}


def listed(page: Any) -> list[str]:
    """Return the ids of the hits on the panel, in order."""
    assert page.status == 200
    return re.findall(r'data-path="/plone/([^"]+)"', page.text)


def lines(page: Any, name: str) -> str:
    """Return the text of the field *name* of the form."""
    found = re.search(rf'<textarea[^>]*name="form.widgets.{name}"[^>]*>([^<]*)</textarea>', page.text)
    assert found
    return html.unescape(found[1]).strip().replace("\r", "")


@pytest.mark.parametrize("login", ["sita:secret", MANAGER])
def test_query_is_tried_and_nothing_saved(site: Any, login: str) -> None:
    portal, web = site
    before = portal.portal_catalog.getCounter()
    page = web.post(PANEL, login, **sent(pins="hedgehogs = /visits"), **TRY)
    found = listed(page)
    assert found[0] == "visits"
    assert ("secret" in found) == (login == MANAGER)
    assert lines(page, "pins") == "hedgehogs = /visits"
    transaction.begin()
    assert not getattr(portal.portal_catalog, SETTINGS_ATTRIBUTE).get("pins")
    assert portal.portal_catalog.getCounter() == before
    # The saved settings are not changed, and errors are shown.
    page = web.post(PANEL, login, **sent(pins="nowhere"), **TRY)
    assert listed(page) == []
    assert "Line 1: 'nowhere' is not of the form" in html.unescape(page.text)


def test_panel_lists_pins_that_do_not_apply_today(site: Any) -> None:
    _, web = site
    pins = "a = /x until 2001-01-01\nb = /y from 2999-01-01\nc = /z from 2001-01-01 until 2999-01-01"
    page = web.post(PANEL, "sita:secret", **sent(pins=pins), **TRY)
    [section] = re.findall(r'<section[^>]*id="idle-pins".*?</section>', page.text, re.S)
    words = re.sub(r"<[^>]+>|\s+", " ", section)
    assert re.findall(r"(\w): +(/\w) +(\w+) on +([\d-]+)", words) == [
        ("a", "/x", "ended", "2001-01-01"),
        ("b", "/y", "begins", "2999-01-01"),
    ]
    assert 'id="idle-pins"' not in web.post(PANEL, "sita:secret", **sent(), **TRY).text


def test_link_can_try_a_query_with_the_saved_settings(site: Any) -> None:
    _, web = site
    page = web.get(PANEL, "sita:secret", "text/html", **TRY)
    assert sorted(listed(page)) == sorted(FOUND)
    nothing = web.get(PANEL, "sita:secret", "text/html", **TRY | {"try_text": "xyzzy"})
    assert 'id="try-nothing"' in nothing.text


def test_pins_and_synonyms_are_put_into_the_form(site: Any) -> None:
    portal, web = site
    uid = portal.visits.UID()
    page = web.post(PANEL, "sita:secret", **sent(), pin_words="hedgehogs", pin_page=uid, add_pin="1")
    assert listed(page)[0] == "visits"
    assert lines(page, "pins") == f"hedgehogs = {uid}"
    stored = sent(pins="winter = /texted")
    page = web.post(PANEL, "sita:secret", **stored, try_text="hedgehogs", pin=portal.tagged.UID())
    assert listed(page)[0] == "tagged"
    assert lines(page, "pins") == f"winter = /texted\nhedgehogs = {portal.tagged.UID()}"
    page = web.post(PANEL, "sita:secret", **sent(), synonym_word="hedgehogs", synonym_other="urchins", add_synonym="1")
    assert "urchins" in listed(page)
    assert lines(page, "synonyms") == "hedgehogs, urchins"


@pytest.mark.parametrize(
    "form",
    [
        {"pin_words": "a\nb = /c", "pin_page": "nonsense", "add_pin": "1"},
        {"pin_words": "", "pin_page": "/x", "add_pin": "1"},
        {"try_text": "<script>", "pin": "<script>"},
        {"synonym_word": "one", "synonym_other": "", "add_synonym": "1"},
        {"synonym_word": "\0", "synonym_other": "=>", "add_synonym": "1"},
    ],
)
def test_impossible_addition_is_reported(site: Any, form: dict[str, str]) -> None:
    _, web = site
    page = web.post(PANEL, "sita:secret", **sent(), **form)
    assert page.status == 200
    assert "is not of the form" in html.unescape(page.text) or "is neither a path" in html.unescape(page.text)
    assert "<script>" not in page.text.partition('id="try-a-query"')[2].partition("</section>")[0]
    assert (lines(page, "pins"), lines(page, "synonyms")) == ("", "")
