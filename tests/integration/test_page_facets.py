"""Facets of the search page in a search block: ``page_facets`` of ``@querystring-search``."""

from tests.acceptance.search_site import fill_for_mara
from tests.integration.search_pages import site as site
from tests.integration.search_pages import web as web
from tests.integration.web import Web
from typing import Any
from urllib.parse import urlencode

import pytest


def fill(portal: Any) -> None:
    fill_for_mara(portal)
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")


SHARED = fill
OPERATION = "plone.app.querystring.operation"
#: A whole site, as the query of a search block.
EVERYWHERE = {"i": "path", "o": f"{OPERATION}.string.absolutePath", "v": "/"}
LOGINS = (None, "mara:secret")
CHOICES: list[dict[str, list[str]]] = [
    {"Date": [], "path": []},
    {"Date": ["2025"], "path": []},
    {"Date": ["2025", "2025-02"], "path": ["/plone/news"]},
    {"Date": ["2025-02", "2024"], "path": ["/plone/news", "/plone/animals"]},
    {"path": ["/plone/closed"]},
    {"path": ["/plone/nowhere"], "Date": ["x", "2025-99"]},
    {"portal_type": ["Event", "Document"], "Subject": ["Winter"]},
]


def block(web: Web, chosen: Any, login: str | None = None, *, status: int = 200, **body: Any) -> Any:
    text = {"i": "SearchableText", "o": f"{OPERATION}.string.contains", "v": "hedgehog"}
    body = {"query": [text, EVERYWHERE], "page_facets": chosen, "sort_on": "getId", "b_size": 100, **body}
    answer = web.send_json("POST", "/plone/@querystring-search", login, body)
    assert answer.status == status, answer.text
    return answer.json


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize("chosen", CHOICES, ids=str)
def test_block_has_facets_and_hits_of_the_search_page(
    web: Web, chosen: dict[str, list[str]], login: str | None
) -> None:
    names = {name: f"facet.{name}" if name == "Date" else name for name in chosen}
    pairs = [(f"{names[name]}:list", value) for name, values in chosen.items() for value in values]
    query = urlencode([("SearchableText", "hedgehog"), *pairs, ("search_page", "1"), ("b_size", "100")])
    page = web.open(f"/plone/@pgsearch?{query}", login, "application/json").json
    answer = block(web, chosen, login)
    assert answer["items_total"] == page["items_total"]
    assert sorted(item["@id"] for item in answer["items"]) == sorted(item["@id"] for item in page["items"])
    of_page = {facet["name"]: facet for facet in page["facets"]}
    assert answer["page_facets"] == [of_page[name] for name in chosen if name in of_page]


def test_chosen_values_narrow_the_other_facets_too(web: Web) -> None:
    answer = block(web, {"Date": ["2025"]}, facets=["portal_type"])
    assert sum(answer["facets"]["portal_type"]["data"].values()) == answer["items_total"] > 0


def test_places_are_those_below_the_searched_one(web: Web) -> None:
    news = {**EVERYWHERE, "v": "/news"}
    answer = block(web, {"path": []}, query=[news])
    assert answer["items_total"] > 10
    assert answer["page_facets"] == []


def test_block_without_the_parameter_has_no_such_facets(web: Web) -> None:
    assert "page_facets" not in block(web, {})


def test_authors_are_hidden_from_visitors(web: Web) -> None:
    visitor, member = (block(web, {"Creator": ["anna"]}, login) for login in LOGINS)
    assert "page_facets" not in visitor
    assert visitor["items_total"] > member["items_total"]
    assert [facet["name"] for facet in member["page_facets"]] == ["Creator"]


@pytest.mark.parametrize("name", ["nothing", "SearchableText", "allowedRolesAndUsers", "effectiveRange", "start"])
def test_index_without_a_facet_is_left_out(web: Web, name: str) -> None:
    assert block(web, {name: ["Manager"], "path": []}) == block(web, {"path": []})


@pytest.mark.parametrize(
    "chosen", ["path", {"path": 1}, {"path": [1]}, {"path": {"query": "/"}}, {str(n): [] for n in range(21)}], ids=str
)
def test_other_values_are_bad_requests(web: Web, chosen: Any) -> None:
    block(web, chosen, status=400)
