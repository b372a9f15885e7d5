"""Volto's further requests to our services: refusals of the panels, visibility of authors, marked words and corrections."""

from base64 import b64encode
from collections.abc import Callable
from collections.abc import Iterator
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.restapi.solr_parameters import RECORD
from plone.registry.interfaces import IRegistry
from tests.integration.fixtures import SiteWith
from tests.integration.needles import fill_for_solr
from tests.integration.needles import solr_site
from tests.integration.web import MANAGER
from tests.integration.web import Site
from tests.unit.volto_reads import read_by_volto
from typing import Any
from zope.component import getUtility

import json
import pytest
import re


OPERATION = "plone.app.querystring.operation"
EVERYTHING = {"i": "path", "o": f"{OPERATION}.string.absolutePath", "v": "/"}
TABS = {"searchTabs": [{"label": "All", "facetFields": [{"name": "Creator"}, {"name": "Subject"}]}, {"label": "More"}]}
RANGES = json.dumps({"Creator": {"all": ["a", "z"]}})
AUTHORS = b64encode(json.dumps({"Creator": {"m": True}}).encode()).decode()


@pytest.fixture(scope="module")
def site(site_with: SiteWith) -> Iterator[Site]:
    with solr_site(site_with(fill_for_solr)) as site:
        with site.inside():
            registry = getUtility(IRegistry)
            registry[RECORD] = TABS
            registry["plone.available_languages"] = ["en", "de"]
            registry["plone.use_request_negotiation"] = True
        yield site


# -- panels


WRONG = (
    ("pgcatalog-search", "synonyms", "climate's"),
    ("pgcatalog-search", "pins", 'say "hello" = <b>nowhere'),
    ("pgcatalog-search", "type_boosts", "News Item = a lot & more"),
    ("pgcatalog-search", "stop_words", "the, \\a, 'of'"),
    ("pgcatalog-search", "weight_title", -1),
    ("pgcatalog", "slow_query_ms", -3),
    ("pgcatalog", "search_timeout", "many"),
    ("pgcatalog-search-page", "count_limit", -1),
    ("pgcatalog-search-page", "search_facets", ["no index's name"]),
)


@pytest.mark.parametrize(("panel", "field", "value"), WRONG)
def test_refused_value_is_reported_beside_its_field(site: Site, panel: str, field: str, value: Any) -> None:
    path = f"/plone/++api++/@controlpanels/{panel}"
    before = site.web.get(path, MANAGER, accept="application/json").json["data"]
    response = site.web.patch(path, MANAGER, {field: value})
    assert response.status == 400
    [error] = read_by_volto(response.json["message"])
    assert error["field"] == field
    assert error["message"]
    if isinstance(value, str) and panel == "pgcatalog-search":
        # The message has the line as typed, in Python's quotes.
        assert repr(value) in error["message"] or repr(value.rpartition(" = ")[2]) in error["message"]
    assert site.web.get(path, MANAGER, accept="application/json").json["data"] == before


def test_each_wrong_field_has_its_message(site: Site) -> None:
    wrong = {field: value for panel, field, value in WRONG if panel == "pgcatalog-search"}
    response = site.web.patch("/plone/++api++/@controlpanels/pgcatalog-search", MANAGER, wrong)
    assert sorted(error["field"] for error in read_by_volto(response.json["message"])) == sorted(wrong)


def test_invalid_json_is_refused_as_by_any_panel(site: Site) -> None:
    ours, plones = (
        site.web.send_body("PATCH", f"/plone/++api++/@controlpanels/{panel}", MANAGER, b"[1]")
        for panel in ("pgcatalog-search", "search")
    )
    assert (ours.status, ours.json["message"]) == (plones.status, plones.json["message"])


# -- authors


def facets(site: Site, login: str | None, service: str, **query: str) -> set[str]:
    """Return the names of the facets that *service* returns for *query*."""
    answer = site.web.get(f"/plone/{service}", login, "application/json", **query).json
    return {field["name"] for field, _ in answer["facet_fields"]}


def pgsearch(site: Site, login: str | None, **query: str) -> set[str]:
    return facets(site, login, "@pgsearch", facets="Subject", **query)


def block(site: Site, login: str | None) -> set[str]:
    query = {"query": [EVERYTHING], "facets": ["Creator", "Subject"]}
    posted = site.web.send_json("POST", "/plone/@querystring-search", login, query).json["facets"]
    address = {"query": json.dumps(query)}
    assert site.web.get("/plone/@querystring-search", login, "application/json", **address).json["facets"] == posted
    return set(posted)


def classic(site: Site, login: str | None) -> set[str]:
    page = site.web.get("/plone/@@search", login, "text/html", SearchableText="needle").text
    return {name for name in ("Creator", "Subject") if re.search(rf'name="{name}:list"', page)}


#: Interface -> function that returns the names of the counted indexes.
FACES: dict[str, Callable[[Site, str | None], set[str]]] = {
    "@solr": lambda site, login: facets(site, login, "@solr"),
    "@pgsearch": lambda site, login: pgsearch(site, login, facet_conditions=AUTHORS),
    "ranges": lambda site, login: pgsearch(site, login, facet_ranges=RANGES),
    "@querystring-search": block,
    "search page": classic,
}


@pytest.mark.parametrize("face", FACES)
def test_authors_are_counted_for_users_who_see_bylines(site: Site, face: str) -> None:
    """One rule in every interface: that of Plone's by-lines."""
    with site.inside() as portal:
        getUtility(IRegistry)[f"{PREFIX}.search_facets"] = ("Creator", "Subject")
        portal.news.page00.setCreators(["mara"])
        portal.news.page00.reindexObject()
    assert FACES[face](site, None) == {"Subject"}
    assert FACES[face](site, "edith:secret") == {"Creator", "Subject"}
    with site.inside():
        getUtility(IRegistry)["plone.allow_anon_views_about"] = True
    try:
        assert FACES[face](site, None) == {"Creator", "Subject"}
    finally:
        with site.inside():
            getUtility(IRegistry)["plone.allow_anon_views_about"] = False


# -- @search


def search(site: Site, login: str | None = None, **query: Any) -> Any:
    response = site.web.get("/plone/@search", login, "application/json", **query)
    assert response.status == 200, response.text
    return response.json


def without_snippets(answer: Any) -> Any:
    items = [{name: value for name, value in item.items() if name != "highlighting"} for item in answer["items"]]
    names = ("items_total", "did_you_mean")
    return {"items": items} | {name: answer[name] for name in names if name in answer}


@pytest.mark.parametrize("start", [0, 5, 10])
def test_search_with_snippets_has_the_same_hits(site: Site, start: int, caplog: pytest.LogCaptureFixture) -> None:
    query = {"SearchableText": "needle*", "use_site_search_settings": 1, "b_size": 5, "b_start": start}
    plain, marked = search(site, **query), search(site, **query, snippets=1)
    assert without_snippets(marked) == without_snippets(plain)
    assert "snippets" not in caplog.text
    assert not any("highlighting" in item for item in plain["items"])
    for item in marked["items"]:
        assert "<mark>needle</mark>" in item["highlighting"]["text"][0]
        assert set(re.findall(r"<[^>]*>", item["highlighting"]["text"][0])) == {"<mark>", "</mark>"}


def test_search_without_words_has_no_marks(site: Site) -> None:
    queries: list[dict[str, Any]] = [{"portal_type": "Event"}, {"SearchableText": "needle", "fullobjects": 1}, {}]
    for query in queries:
        assert not any("highlighting" in item for item in search(site, **query, snippets=1)["items"]), query


def test_search_without_hits_has_a_correction(site: Site) -> None:
    assert search(site, SearchableText="haystakc*", snippets=1)["did_you_mean"] == "haystack"
    assert search(site, SearchableText="xyzzyxyzzy*", snippets=1)["did_you_mean"] is None
    assert "did_you_mean" not in search(site, SearchableText="haystakc*")
    assert "did_you_mean" not in search(site, SearchableText="needle*", snippets=1)


def test_correction_is_a_word_visible_to_the_user(site: Site) -> None:
    """The word *secret* is in a page that was shared with mara."""
    typo = {"SearchableText": "secrte*", "snippets": 1}
    assert search(site, **typo)["did_you_mean"] is None
    assert search(site, "mara:secret", **typo)["did_you_mean"] == "secret"
