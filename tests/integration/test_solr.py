"""``@solr`` and ``@solr-suggest``: the requests of kitconcept.solr's front-end, answered by our catalog."""

from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.restapi.solr_parameters import DEFAULT
from plone.pgcatalog.restapi.solr_parameters import RECORD
from plone.registry.interfaces import IRegistry
from tests.integration import site as sites
from tests.integration.examples import assert_example
from tests.integration.examples import EXAMPLES
from tests.integration.examples import write
from tests.integration.fixtures import SiteWith
from tests.integration.needles import encoded
from tests.integration.needles import facets
from tests.integration.needles import fill_for_solr
from tests.integration.needles import found_by_search
from tests.integration.needles import ids
from tests.integration.needles import LOGINS
from tests.integration.needles import solr_site
from tests.integration.needles import TABS
from tests.integration.web import Response
from tests.integration.web import Site
from typing import Any
from urllib.parse import parse_qs
from zope.component import getUtility
from zope.configuration.config import ConfigurationMachine
from zope.configuration.xmlconfig import include
from zope.configuration.xmlconfig import registerCommonDirectives
from zope.schema.interfaces import WrongContainedType

import json
import os
import plone.pgcatalog.restapi
import plone.rest
import Products.Five.browser
import pytest
import subprocess
import sys
import types
import zope.component


@pytest.fixture(scope="module")
def site(site_with: SiteWith) -> Iterator[Site]:
    with solr_site(site_with(fill_for_solr)) as site:
        yield site


def get(site: Site, path: str = "/plone/@solr", login: str | None = None, /, **query: Any) -> Response:
    return site.web.get(path, login, "application/json", **query)


def solr(site: Site, login: str | None = None, /, path: str = "/plone/@solr", **query: Any) -> Any:
    response = get(site, path, login, **query)
    assert response.status == 200, response.text
    return response.json


def groups(answer: Any) -> dict[str, int]:
    return dict(answer["facet_groups"])


# -- answers


def test_page_has_the_format_read_by_the_front_end(site: Site) -> None:
    answer = solr(site, q="needle", rows=5, sort="getId desc")
    assert (answer["response"]["numFound"], answer["response"]["start"]) == (12, 0)
    assert answer["portal_path"] == "/plone"
    assert answer["layouts"] == ["list", "grid"]
    assert answer["vocabularies"] == TABS["vocabularies"]
    assert ids(answer) == ["page11", "page10", "page09", "page08", "page07"]
    doc = answer["response"]["docs"][0]
    assert doc["path_string"] == "/plone/news/page11"
    assert (doc["Type"], doc["Title"], doc["getId"]) == ("Page", "Page 11 of the needle", "page11")
    assert "one <mark>needle</mark>, number" in doc["highlighting"][0]
    assert doc["highlighting_title"] == ["Page 11 of the <mark>needle</mark>"]
    assert doc["highlighting_description"] == ["About &lt;b&gt;<mark>needles</mark>&lt;/b&gt; &amp; pins"]
    assert isinstance(doc["mime_type"], str)
    assert ids(solr(site, q="needle", rows=5, start=10, sort="getId desc")) == ["page01", "page00"]


def test_without_a_text_everything_is_found_and_nothing_is_marked(site: Site) -> None:
    answer = solr(site, rows=100)
    assert {"news", "fair", "page00"} <= set(ids(answer))
    assert not [name for doc in answer["response"]["docs"] for name in doc if name.startswith("highlighting")]
    assert ids(answer) == ids(solr(site, q="*", rows=100)) == ids(solr(site, q="", rows=100))


def test_tabs_are_counted_whichever_is_chosen(site: Site) -> None:
    everything = {"All": 12, "Events": 0, "Pages with tag0": 4}
    chosen = encoded({"Subject": {"c": {"tag1": True}}})
    for query in ({}, {"group_select": 2}, {"facet_conditions": chosen}, {"rows": 0}):
        assert groups(solr(site, q="needle", **query)) == everything
    assert groups(solr(site, q="pin"))["Events"] == 1
    tab = solr(site, q="needle", group_select=2)
    assert tab["response"]["numFound"] == 4
    assert tab["facet_fields"] == []
    assert tab["layouts"] == ["list"]


def test_facets_are_those_of_the_tab(site: Site) -> None:
    answer = solr(site, q="needle")
    assert answer["facet_fields"][0] == [
        {"name": "Subject", "label": "Tags"},
        [["even", 6], ["odd", 6], ["tag0", 4], ["tag1", 4], ["tag2", 4]],
    ]
    assert facets(answer)["is_folderish"] == {"false": 12}
    chosen = solr(site, q="needle", facet_conditions=encoded({"Subject": {"c": {"tag0": True, "odd": False}}}))
    assert chosen["response"]["numFound"] == 4
    assert facets(chosen)["Subject"] == facets(answer)["Subject"]
    folders = solr(site, facet_conditions=encoded({"is_folderish": {"c": {"true": True}}}), sort="getId asc")
    assert {doc["Type"] for doc in folders["response"]["docs"]} <= {"Folder", "Plone Site"}
    assert "news" in ids(folders)
    part = solr(site, q="needle", facet_conditions=encoded({"Subject": {"p": "TAG", "m": True}}))
    assert facets(part)["Subject"] == {"tag0": 4, "tag1": 4, "tag2": 4}


def test_tab_and_facet_of_the_same_index_are_both_applied(site: Site) -> None:
    chosen = encoded({"Subject": {"c": {"even": True}}})
    answer = solr(site, q="needle", group_select=2, facet_conditions=chosen, sort="getId asc")
    assert ids(answer) == ["page00", "page06"]


def test_types_have_name_and_title(site: Site) -> None:
    assert ids(solr(site, portal_type="Event")) == ["fair"]
    names = solr(site, rows=100, sort="getId asc", **{"portal_type:list": ["Document", "Event"]})
    assert ids(names) == ids(solr(site, rows=100, sort="getId asc", **{"portal_type:list": ["Page", "Event"]}))
    assert len(ids(names)) >= 13


def test_further_conditions_narrow_the_hits(site: Site) -> None:
    def found(*rows: Any) -> list[str]:
        return ids(solr(site, rows=100, sort="getId asc", extra_conditions=encoded(rows)))

    everything = found()
    assert found(["Subject", "string", {"in": []}], ["created", "date-range", {}]) == everything
    assert found(["portal_type", "string", {"in": ["Event", "Folder"]}]) == ["fair", "news"]
    assert found(["created", "date-range", {"ge": "2001-01-01"}]) == everything
    assert found(["created", "date-range", {"le": "2001-01-01"}]) == []
    assert found(["getId", "date-range", {"ge": "page05", "le": "page07"}]) == ["page05", "page06", "page07"]
    assert found(["getId", "date-range", {"gr": "page05", "ls": "page07"}]) == ["page06"]


def test_typing_error_is_corrected(site: Site) -> None:
    plain = solr(site, q="haystakc")
    assert "spellcheck" not in plain
    assert plain["response"]["numFound"] == 0
    checked = solr(site, q="haystakc", spellcheck="true")
    assert checked["response"]["numFound"] == 0
    assert checked["spellcheck"]["suggestions"][0] == "haystakc"
    assert [word["word"] for word in checked["spellcheck"]["suggestions"][1]["suggestion"]] == ["haystack"]
    collated = solr(site, q="haystakc number", spellcheck="true", collate="true")
    assert collated["collation_misspellings"] == ["haystakc", "haystack"]
    assert collated["response"]["numFound"] == groups(collated)["All"] == 12
    assert "collation_misspellings" not in solr(site, q="haystack", collate="true")
    assert "collation_misspellings" not in solr(site, q="xyzzyxyzzy", collate="true")


def test_answer_has_the_keys_of_a_solr_server(site: Site) -> None:
    answer = solr(site, q="needle", rows=1, keep_full_solr_response="true")
    assert answer["facet_counts"]["facet_queries"] == groups(answer)
    assert answer["facet_counts"]["facet_fields"]["Subject"][:4] == ["even", 6, "odd", 6]
    doc = answer["response"]["docs"][0]
    assert answer["highlighting"][doc["UID"]]["content"] == doc["highlighting"]
    assert not {"facet_counts", "highlighting"} & solr(site, q="needle").keys()


@pytest.mark.parametrize(
    ("condition", "is_found"),
    [
        (["portal_type", "string", {"in": ["Event", "File"]}], True),
        (["portal_type", "string", {"in": ["Document"]}], False),
        (["created", "date-range", {"ge": "2001-01-01"}], True),
        (["created", "date-range", {"ls": "2001-01-01"}], False),
        (["allowedRolesAndUsers", "string", {"in": ["Manager"]}], None),
        (["nothing", "string", {"in": ["x"]}], None),
    ],
    ids=str,
)
def test_suggestions_and_their_words_fulfil_further_conditions(
    site: Site, condition: Any, is_found: bool | None
) -> None:
    query = {"query": "pin fai", "extra_conditions": encoded([condition])}
    response = get(site, "/plone/@solr-suggest", **query)
    assert response.status == (400 if is_found is None else 200)
    if is_found is not None:
        assert (bool(response.json["suggestions"]), "fair" in str(response.json["terms"])) == (is_found, is_found)
        assert solr(site, path="/plone/@solr-suggest", path_prefix="/news", **query)["suggestions"] == []


# -- permissions


@pytest.mark.parametrize("login", LOGINS)
def test_hits_are_those_of_search_and_counts_are_of_visible_hits(site: Site, login: str | None) -> None:
    expected = found_by_search(site.web, login, SearchableText="needle", sort_on="getId")
    more = encoded({"Subject": {"m": True}})
    answer = solr(site, login, q="needle", rows=100, sort="getId asc", facet_conditions=more)
    assert ids(answer) == expected
    assert groups(answer)["All"] == answer["response"]["numFound"] == len(expected)
    for name, tag in (("secret", "secret"), ("old", "expired"), ("later", "future")):
        assert (name in expected) == (tag in facets(answer)["Subject"])


@pytest.mark.parametrize(
    "trick",
    [
        {"allowedRolesAndUsers": "Manager"},
        {"facet_conditions": encoded({"allowedRolesAndUsers": {"c": {"Manager": True}}})},
        {"extra_conditions": encoded([["allowedRolesAndUsers", "string", {"in": ["Manager"]}]])},
        {"extra_conditions": encoded([["effectiveRange", "date-range", {"ge": "1990-01-01"}]])},
        {"where": "x"},
    ],
    ids=str,
)
def test_no_parameter_shows_hidden_pages(site: Site, trick: dict[str, Any]) -> None:
    honest = ids(solr(site, q="needle", rows=100))
    response = get(site, q="needle", rows=100, **trick)
    if response.status == 200:
        assert set(ids(response.json)) <= set(honest)
    else:
        assert response.status == 400


def test_place_narrows_the_hits_and_shows_nothing_hidden(site: Site) -> None:
    assert ids(solr(site, path="/plone/news/@solr", rows=100)) == ids(solr(site, rows=100, path_prefix="/news"))
    assert ids(solr(site, path_prefix="/news/secret")) == []
    assert ids(solr(site, "mara:secret", path_prefix="/news/secret")) == ["secret"]


# -- invalid requests


@pytest.mark.parametrize(
    "query",
    [
        {"group_select": "3"},
        {"group_select": "-1"},
        {"group_select": "x"},
        {"lang": "en", "is_multilingual": "true"},
        {"extra_conditions": "no base64!"},
        {"extra_conditions": encoded({})},
        {"extra_conditions": encoded([["Subject", "string"]])},
        {"extra_conditions": encoded([[["Subject"], "string", {"in": ["a"]}]])},
        {"extra_conditions": encoded([["Subject", "strings", {"in": ["a"]}]])},
        {"extra_conditions": encoded([["Subject", "string", {"in": "a"}]])},
        {"extra_conditions": encoded([["Subject", "string", {"out": ["a"]}]])},
        {"extra_conditions": encoded([["nothing", "string", {"in": ["a"]}]])},
        {"extra_conditions": encoded([["created", "date-range", {"ge": "2001", "gr": "2001"}]])},
        {"extra_conditions": encoded([["created", "date-range", {"ge": 5}]])},
        {"extra_conditions": encoded([["created", "date-range", {"eq": "2001"}]])},
        {"extra_conditions": encoded([["created", "date-range", {"ge": "no date"}]])},
    ],
    ids=str,
)
def test_invalid_parameter_is_a_bad_request(site: Site, query: dict[str, Any]) -> None:
    response = get(site, **query)
    assert response.status == 400, response.text
    assert response.json["message"]


# -- installation


def test_only_a_site_with_our_profile_has_and_reports_the_service(site: Site, stock_dsn: str) -> None:
    assert get(site, "/plone/@site").json["collective.solr.active"] is True
    with sites.opened(stock_dsn) as db:
        other = Site(db)
        with other.inside() as portal:
            portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
        assert get(other, "/plone/@solr").status == 404
        assert get(other, "/plone/@solr-suggest", None, query="x").status == 404
        assert "collective.solr.active" not in get(other, "/plone/@site").json


def registered() -> list[str]:
    """Return the names registered by the ZCML of the services."""
    machine = ConfigurationMachine()
    registerCommonDirectives(machine)
    for package, file in (
        (zope.component, "meta.zcml"),
        (Products.Five.browser, "meta.zcml"),
        (plone.rest, "meta.zcml"),
        (plone.pgcatalog.restapi, "configure.zcml"),
    ):
        include(machine, file, package)
    return [repr(action["discriminator"]) for action in machine.actions]


def test_kitconcept_solr_answers_if_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def services() -> set[str]:
        found = registered()
        return {n for n in ("@solr'", "@solr-suggest'", "@pgsearch'", "ISiteEndpointExpander") if n in str(found)}

    assert len(services()) == 4
    monkeypatch.setitem(sys.modules, "kitconcept", types.ModuleType("kitconcept"))
    monkeypatch.setitem(sys.modules, "kitconcept.solr", types.ModuleType("kitconcept.solr"))
    assert services() == {"@pgsearch'"}


# -- settings


def test_a_site_without_settings_has_the_tabs_of_the_front_end(site_with: SiteWith) -> None:
    with sites.opened(site_with(fill_for_solr)) as db:
        fresh = Site(db)
        with fresh.inside():
            assert getUtility(IRegistry)[RECORD] == DEFAULT
        assert groups(solr(fresh, q="pin")) == {"All": 13, "Pages": 12, "Events": 1, "Images": 0, "Files": 0}
        with fresh.inside():
            del getUtility(IRegistry).records[RECORD]
        assert groups(solr(fresh, q="pin"))["Events"] == 1


@pytest.mark.parametrize(
    "settings",
    [
        [],
        {"searchTabs": {}},
        {"searchTabs": [{"query": {}}]},
        {"searchTabs": [{"label": ""}]},
        {"searchTabs": [{"label": "x", "filter": "Type:(Page)"}]},
        {"searchTabs": [{"label": "x", "facetFields": ["Subject"]}]},
        {"fieldList": "UID"},
        {"unknown": []},
    ],
    ids=str,
)
def test_settings_of_another_shape_are_refused(site: Site, settings: Any) -> None:
    with site.inside(), pytest.raises(WrongContainedType):
        getUtility(IRegistry)[RECORD] = settings


def test_tab_with_a_missing_index_is_reported(site: Site) -> None:
    with site.inside():
        getUtility(IRegistry)[RECORD] = {"searchTabs": [{"label": "All", "query": {"nothing": "x"}}]}
    try:
        response = get(site)
    finally:
        with site.inside():
            getUtility(IRegistry)[RECORD] = TABS
    assert response.status == 400
    assert "nothing" in response.json["message"]


# -- the documentation


def test_example_in_the_documentation_is_the_real_answer(site: Site) -> None:
    query = {"q": "needle", "rows": "1", "sort": "getId asc", "facet_conditions": encoded({"Subject": {"m": True}})}
    if os.environ.get("RECORD_REST_EXAMPLES"):
        write("solr-settings", TABS)
    assert_example("solr", "/plone/@solr", query, get(site, **query))
    assert json.loads((EXAMPLES / "solr-settings.json").read_text("utf-8")) == TABS


HERE = Path(__file__).parent / "volto_solr"
SESSION = HERE / "session.json"
#: A folder with the bundle (volto_solr/README.md): the session is recorded anew.
BUNDLE = os.environ.get("RECORD_VOLTO_SOLR")
#: Keys whose values differ from run to run.
VARYING = {"UID", "created", "effective", "modified", "image_scales", "start", "end"}


@pytest.fixture(scope="module")
def session(site: Site) -> dict[str, Any]:
    if BUNDLE:
        requests = front_end("requests")
        answers = {name: ask(site, path) for name, path in requests.items()}
        played = front_end("states", json.dumps(answers))
        steps = {name: {"request": requests[name], "answer": answers[name], **played[name]} for name in requests}
        SESSION.write_text(json.dumps(steps, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
    recorded: dict[str, Any] = json.loads(SESSION.read_text("utf-8"))
    return recorded


def front_end(command: str, text: str = "") -> Any:
    """Send *text* to the bundled front-end and return its output for *command*."""
    arguments = ["node", f"{BUNDLE}/play.cjs", command]
    return json.loads(subprocess.run(arguments, input=text.encode(), check=True, stdout=subprocess.PIPE).stdout)


def ask(site: Site, link: str) -> Any:
    """Return the answer to *link*, which the front-end has quoted only partly."""
    path, _, query = link.partition("?")
    response = site.web.get(f"/plone{path}", None, "application/json", **parse_qs(query, keep_blank_values=True))
    assert response.status == 200, response.text
    return response.json


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: key in VARYING or shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_answers_are_those_the_front_end_was_tested_with(site: Site, session: dict[str, Any]) -> None:
    for name, step in session.items():
        assert shape(ask(site, step["request"])) == shape(step["answer"]), name


@pytest.mark.slow
def test_the_front_end_shows_the_page(session: dict[str, Any]) -> None:
    for name, step in session.items():
        if "page" in step:
            docs = step["answer"]["response"]["docs"]
            assert step["state"]["total"] == step["answer"]["response"]["numFound"], name
            paths = [doc["path_string"].removeprefix("/plone") for doc in docs]
            assert [item["@id"] for item in step["state"]["items"]] == paths
            assert all(f'<p class="url">{path}</p>' in step["page"] for path in paths)
    words = session["words"]
    assert [item["title"] for item in words["state"]["items"]][:1] == ["Page 00 of the needle"]
    assert "of the <mark>needle</mark>" in words["page"]
    assert "12 results for" in words["page"]
    assert "Pages with tag0" in words["page"]
    titles = [item["title"] for name in ("by title", "next page") for item in session[name]["state"]["items"]]
    assert titles == [item["title"] for item in words["state"]["items"]][:10]
    assert {item["@type"] for item in session["types"]["state"]["items"]} == {"Event", "Folder"}
    everything = session["everything"]
    assert {"Image", "News Item", "Event", "Folder", "Page"} <= {i["@type"] for i in everything["state"]["items"]}
    assert '<img src="/news/straw/@@images/' in everything["page"]
    assert '<span class="imageType">PNG</span>' in everything["page"]


@pytest.mark.slow
def test_the_front_end_shows_facets_corrections_and_one_folder(session: dict[str, Any]) -> None:
    words, chosen = session["words"], session["a chosen tag"]
    assert words["state"]["facetFields"][0] == chosen["state"]["facetFields"][0]
    assert chosen["state"]["total"] == 4
    assert "searchConditionsField" in chosen["page"]
    assert session["part of a tag"]["state"]["facetFields"][0][1] == [["tag0", 4], ["tag1", 4], ["tag2", 4]]
    assert words["state"]["layouts"] == ["list", "grid"]
    typo = session["a typing error"]
    assert (typo["corrected"], typo["suggested"]) == ({"haystakc": "haystack"}, ["haystack"])
    assert typo["state"]["total"] == 12
    assert [item["title"] for item in session["typed"]["state"]["items"]] == ["Pin fair"]
    assert [item["title"] for item in session["typed here"]["state"]["items"]] == ["Page 03 of the needle"]
    # The folder of the search page is left out.
    paths = [item["@id"] for item in session["this folder only"]["state"]["items"]]
    assert len(paths) == 5
    assert all(path.startswith("/news/") for path in paths)
