"""``@querystring-search`` of plone.restapi, which Volto's search block asks: as it was, with facet counts if asked for."""

from collections.abc import Iterator
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import add_users
from tests.integration.people import FUTURE
from tests.integration.people import PAST
from tests.integration.people import publish
from tests.integration.people import share
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from urllib.parse import quote

import json
import pytest


OPERATION = "plone.app.querystring.operation"
EVERYTHING = {"i": "path", "o": f"{OPERATION}.string.absolutePath", "v": "/"}
USERS = [None, "mara:secret", "boss:secret"]


def among(index: str, *values: str) -> dict[str, Any]:
    return {"i": index, "o": f"{OPERATION}.selection.any", "v": list(values)}


@pytest.fixture(scope="module")
def web(site_template: str, postgres: Any) -> Iterator[Web]:
    with sites.opened(sites.clone(postgres, site_template)) as db:
        site = Site(db)
        with site.inside() as portal:
            portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
            add_users(portal)
            for number in range(4):
                publish(create(portal, "Document", f"page{number}", subject=("all", f"tag{number % 2}")))
            publish(create(portal, "Folder", "folder", subject=("tag0",)))
            share(create(portal, "Document", "hidden", subject=("secret",)), "mara", "Reader")
            for name, setter, moment in (("old", "setExpirationDate", PAST), ("later", "setEffectiveDate", FUTURE)):
                page = create(portal, "Document", name, subject=(name,))
                publish(page)
                getattr(page, setter)(moment)
                page.reindexObject()
        yield site.web


def ask(web: Web, login: str | None = None, /, path: str = "/plone", **body: Any) -> Any:
    return web.send_json("POST", f"{path}/@querystring-search", login, {"query": [EVERYTHING], **body})


def data(answer: Any) -> dict[str, dict[str, int]]:
    assert answer.status == 200, answer.text
    return {name: facet["data"] for name, facet in answer.json["facets"].items()}


def test_without_facets_the_answer_is_as_it_was(web: Web) -> None:
    assert "facets" not in ask(web).json
    assert "facets" not in ask(web, facets=[]).json
    with_facets = ask(web, facets=["portal_type"]).json
    del with_facets["facets"]
    assert with_facets == ask(web).json
    assert with_facets["items_total"] == 6


@pytest.mark.parametrize("login", USERS)
def test_counts_are_of_what_the_search_finds(web: Web, login: str | None) -> None:
    answer = ask(web, login, facets=["portal_type", "Subject"], b_size=1)
    found = ask(web, login, metadata_fields=["Subject"], b_size=100).json
    assert sum(data(answer)["portal_type"].values()) == answer.json["items_total"] == len(found["items"])
    for subject, count in data(answer)["Subject"].items():
        assert ask(web, login, query=[EVERYTHING, among("Subject", subject)]).json["items_total"] == count


def test_nobody_learns_what_is_hidden(web: Web) -> None:
    shown = {login: set(data(ask(web, login, facets=["Subject"]))["Subject"]) for login in USERS}
    assert shown[None] == {"all", "tag0", "tag1"}
    assert shown["mara:secret"] == {*shown[None], "secret"}
    assert shown["boss:secret"] == {*shown[None], "secret", "old", "later"}
    for name in ("allowedRolesAndUsers", "effectiveRange"):
        assert ask(web, facets=[name]).status == 400
        assert ask(web, facet_ranges={name: {"all": [None, None]}}).status == 400
        query = [EVERYTHING, among(name, "Manager")]
        assert set(data(ask(web, query=query, facets=["Subject"]))["Subject"]) <= shown[None]


def test_a_chosen_value_leaves_the_others_of_its_facet(web: Web) -> None:
    query = [EVERYTHING, among("Subject", "tag0")]
    answer = ask(web, query=query, facets=["Subject", "portal_type"])
    assert answer.json["items_total"] == 3
    assert data(answer) == {"Subject": {"all": 4, "tag0": 3, "tag1": 2}, "portal_type": {"Document": 2, "Folder": 1}}


def test_a_page_does_not_count_itself(web: Web) -> None:
    assert data(ask(web, facets=["portal_type"]))["portal_type"] == {"Document": 4, "Folder": 1, "Plone Site": 1}
    there = data(ask(web, path="/plone/page0", facets=["portal_type"]))
    assert there["portal_type"] == {"Document": 3, "Folder": 1, "Plone Site": 1}


def test_ranges_limits_and_the_service_for_get(web: Web) -> None:
    ranges = {"created": {"past": [None, "2020-01-01"], "since": ["2020-01-01", None]}}
    assert data(ask(web, facet_ranges=ranges))["created"] == {"past": 0, "since": 6}
    cut = ask(web, facets=["Subject"], facet_limit=1).json["facets"]["Subject"]
    assert cut == {"data": {"all": 4}, "truncated": True}
    query = quote(json.dumps({"query": [EVERYTHING], "facets": ["is_folderish"]}))
    answer = web.get("/plone/@querystring-search", None, "application/json", query=query)
    assert data(answer) == {"is_folderish": {"false": 4, "true": 2}}


def test_a_query_of_unknown_indexes_counts_what_it_finds(web: Web) -> None:
    answer = ask(web, query=[among("nothing", "x")], facets=["is_folderish"])
    assert sum(data(answer)["is_folderish"].values()) == answer.json["items_total"]


@pytest.mark.parametrize(
    "body",
    [
        {"facets": "portal_type"},
        {"facets": [1]},
        {"facets": {"portal_type": 1}},
        {"facets": ["nothing"]},
        {"facets": ["SearchableText"]},
        {"facets": ["portal_type"], "facet_limit": -1},
        {"facets": ["portal_type"], "facet_limit": True},
        {"facets": ["portal_type"], "facet_limit": "5"},
        {"facet_ranges": []},
        {"facet_ranges": {"created": 1}},
        {"facet_ranges": {"created": {"x": [1, 2, 3]}}},
        {"facet_ranges": {"created": {"x": ["no date", None]}}},
        {"facet_ranges": {"Title": {"x": ["a", "b"]}}},
        {"facets": ["created"], "facet_ranges": {"created": {}}},
    ],
    ids=str,
)
def test_what_cannot_be_read_is_a_bad_request(web: Web, body: dict[str, Any]) -> None:
    if body == {"facet_ranges": []}:
        assert "facets" not in ask(web, **body).json  # nothing is asked for
    else:
        assert ask(web, **body).status == 400
