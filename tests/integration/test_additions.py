"""Additions to ``@search`` and ``@querystring-search``: counts, snippets, corrections, passages and words, in one response."""

from pathlib import Path
from tests.integration.content import tune
from tests.integration.examples import assert_example
from tests.integration.needles import encoded
from tests.integration.needles import facets
from tests.integration.needles import fill
from tests.integration.needles import LOGINS
from tests.integration.search_pages import site as site
from tests.integration.search_pages import web as web
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any

import json
import pytest


SHARED = fill
SESSION = Path(__file__).parent / "plone_client" / "session.json"
RANGES = {"sortable_title": {"a to p": ["a", "q"]}}
#: Parameters of ``@search``; the same for ``@querystring-search``.
ADDED: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"facets": "Subject,portal_type"}, {"facets": ["Subject", "portal_type"]}),
    ({"facet_ranges": json.dumps(RANGES)}, {"facet_ranges": RANGES}),
    ({"facets": "Subject", "facet_limit": "2"}, {"facets": ["Subject"], "facet_limit": 2}),
    ({"snippets": "1"}, {"snippets": True}),
    ({"passages": "2"}, {"passages": 2}),
    ({"terms": "3"}, {"terms": 3}),
]
KEYS = {"facets", "facets_timed_out", "passages", "terms", "did_you_mean"}
EXAMPLES: dict[str, tuple[str, dict[str, str]]] = {
    "search-additions": (
        "@search",
        {
            **{"SearchableText": "needle", "sort_on": "getId", "b_size": "2", "facets": "Subject,portal_type"},
            **{"facet_ranges": json.dumps(RANGES), "snippets": "1", "passages": "1", "terms": "3"},
        },
    ),
    "search-typo": ("@search", {"SearchableText": "haystakc", "snippets": "1", "terms": "3"}),
    "querystring-search-additions": (
        "@querystring-search",
        {
            "query": json.dumps(
                {
                    "query": [
                        {"i": "SearchableText", "o": "plone.app.querystring.operation.string.contains", "v": "needle"}
                    ],
                    **{"b_size": 1, "facets": ["Subject"], "facet_limit": 2, "snippets": True, "terms": 3},
                }
            )
        },
    ),
}


def search(web: Web, login: str | None = None, /, **query: Any) -> Any:
    answer = web.get("/plone/@search", login, accept="application/json", b_size="100", sort_on="getId", **query)
    assert answer.status == 200, answer.text
    return answer.json


def block(web: Web, login: str | None, text: str, **body: Any) -> Any:
    criteria = [{"i": "SearchableText", "o": "plone.app.querystring.operation.string.contains", "v": text}]
    body = {"query": criteria, "b_size": 100, "sort_on": "getId", **body}
    answer = web.send_json("POST", "/plone/@querystring-search", login, body)
    assert answer.status == 200, answer.text
    return answer.json


def hits(answer: Any) -> Any:
    """Return *answer* without additions and addresses."""
    items = [{key: item[key] for key in item.keys() - {"highlighting"}} for item in answer["items"]]
    return {key: answer[key] for key in answer.keys() - KEYS - {"@id", "batching"}} | {"items": items}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_in_the_documentation_are_the_real_answers(web: Web, name: str) -> None:
    path, query = f"/plone/{EXAMPLES[name][0]}", EXAMPLES[name][1]
    assert_example(name, path, query, web.get(path, accept="application/json", **query))


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize(("form", "body"), ADDED, ids=str)
def test_both_services_add_the_same_to_the_same_hits(
    web: Web, form: dict[str, str], body: dict[str, Any], login: str | None
) -> None:
    for text in ("needle", "haystakc", "haystack"):
        plain, added = (search(web, login, SearchableText=text, **query) for query in ({}, form))
        of_block = block(web, login, text, **body)
        assert KEYS.isdisjoint(plain)
        assert hits(plain) == hits(added) == hits(of_block)
        assert {key: added.get(key) for key in KEYS} == {key: of_block.get(key) for key in KEYS}
        assert [i.get("highlighting") for i in added["items"]] == [i.get("highlighting") for i in of_block["items"]]


@pytest.mark.parametrize("login", LOGINS)
def test_additions_are_those_of_our_own_services(web: Web, login: str | None) -> None:
    def ours(service: str, **query: str) -> Any:
        return web.get(f"/plone/{service}", login, accept="application/json", **query).json

    added = search(web, login, SearchableText="needle", facets="Subject", facet_limit="1000", passages="2", terms="10")
    answer = ours(
        "@pgsearch", q="needle", facet_conditions=encoded({"Subject": {"m": True}}), passages="2", mode="words"
    )
    assert added["facets"]["Subject"]["data"] == facets(answer)["Subject"]
    assert {passage["UID"] for passage in added["passages"]} <= {
        item["UID"] for item in search(web, login, SearchableText="needle", metadata_fields="UID")["items"]
    }
    assert len(added["passages"]) == len(answer["passages"])
    assert added["terms"] == ours("@pgsuggest", query="needle")["terms"]
    assert (
        search(web, login, SearchableText="haystakc", snippets="1")["did_you_mean"]
        == ours("@pgsearch", q="haystakc")["did_you_mean"]
    )


@pytest.mark.parametrize(
    "query",
    [
        *({name: value} for name in ("facet_limit", "passages", "terms") for value in ("-1", "x", "1001", "9" * 400)),
        *({"facets": value} for value in ("nothing", "SearchableText", "allowedRolesAndUsers", "Subject,nothing")),
        *({"facet_ranges": value} for value in ("x", "[" * 100_000, "[1]", '{"created": 1}', '{"nothing": {}}')),
    ],
    ids=lambda query: str(query)[:40],
)
def test_invalid_additions_are_bad_requests(web: Web, query: dict[str, str]) -> None:
    assert web.get("/plone/@search", accept="application/json", SearchableText="needle", **query).status == 400


def test_the_client_of_the_next_front_end_gets_them(web: Web) -> None:
    session = json.loads(SESSION.read_text("utf-8"))
    [request] = session["requests"]
    answer = web.open(request.replace("/++api++", "/plone", 1), accept="application/json").json
    assert answer.keys() == session["result"].keys() >= {"items", "facets", "passages", "terms"}
    assert answer["facets"] == session["result"]["facets"]
    assert [item["highlighting"] for item in answer["items"]] == [i["highlighting"] for i in session["result"]["items"]]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_pages_left_out_of_searches_are_left_out_of_blocks_with_a_text_only(site: Site, method: str) -> None:
    def found(*criteria: tuple[str, str, Any]) -> tuple[set[str], int, Any]:
        rows = [{"i": i, "o": f"plone.app.querystring.operation.{o}", "v": v} for i, o, v in criteria]
        body = {"query": rows, "b_size": 100, "facets": ["Subject"]}
        path = "/plone/news/@querystring-search"
        if method == "GET":
            answer = site.web.get(path, accept="application/json", query=json.dumps(body)).json
        else:
            answer = site.web.send_json("POST", path, None, body).json
        names = {item["@id"].rpartition("/")[2] for item in answer["items"]}
        return names, answer["items_total"], answer["facets"]["Subject"]["data"]

    text, listing = ("SearchableText", "string.contains", "needle"), ("portal_type", "selection.any", ["Document"])
    before, all_pages = found(text, listing), found(listing)
    assert before[1] == 12
    with site.inside():
        tune(hidden_pages="hide = /news/page04", pins="needle => -/news/page05")
    try:
        names, total, tags = found(text, listing)
        assert names == before[0] - {"page04", "page05"}
        assert (total, sum(tags.values())) == (10, 20)
        assert found(listing) == all_pages
        with site.inside() as portal:
            of_code = portal.restrictedTraverse("@@querybuilderresults")(
                [{"i": text[0], "o": f"plone.app.querystring.operation.{text[1]}", "v": text[2]}], brains=True
            )
            assert "page04" in {brain.getId for brain in of_code}
    finally:
        with site.inside():
            tune(hidden_pages="", pins="")
