"""The services over HTTP: their answers, the users' permissions, and an unchanged stock ``@search``."""

from base64 import b64encode
from tests.integration.examples import assert_example
from tests.integration.needles import encoded
from tests.integration.needles import facets
from tests.integration.needles import fill
from tests.integration.needles import found_by_search
from tests.integration.needles import ids
from tests.integration.needles import LOGINS
from tests.integration.search_pages import site as site
from tests.integration.search_pages import web as web
from tests.integration.web import Response
from tests.integration.web import Web
from typing import Any
from urllib.parse import quote

import html
import json
import pytest
import re


#: Request of a search block: a listing, and the numbers of its facets.
LISTING = {
    "query": [
        {"i": "portal_type", "o": "plone.app.querystring.operation.selection.any", "v": ["Document"]},
        {"i": "Subject", "o": "plone.app.querystring.operation.selection.any", "v": ["tag0"]},
    ],
    "sort_on": "getId",
    "b_size": 2,
    "metadata_fields": ["Subject"],
    "facets": ["Subject", "portal_type"],
}
SHARED = fill


def get(web: Web, path: str, login: str | None = None, /, **query: Any) -> Response:
    return web.get(path, login, accept="application/json", **query)


def search(web: Web, login: str | None = None, /, path: str = "/plone", **query: Any) -> Any:
    response = get(web, f"{path}/@pgsearch", login, **query)
    assert response.status == 200, response.text
    return response.json


def conditions(**chosen: Any) -> str:
    return encoded(chosen)


# -- answers


def test_page_with_everything_is_one_response(web: Web) -> None:
    answer = search(web, q="needle", facets="Subject,portal_type", rows=5)
    assert answer["response"]["numFound"] == 12
    assert answer["response"]["start"] == 0
    assert len(answer["response"]["docs"]) == 5
    assert answer["portal_path"] == "/plone"
    assert answer["facet_groups"] == [["All", 12]]
    assert facets(answer) == {
        "Subject": {"even": 6, "odd": 6, "tag0": 4, "tag1": 4, "tag2": 4},
        "portal_type": {"Document": 12},
    }
    doc = answer["response"]["docs"][0]
    assert doc["@id"] == f"http://nohost{doc['path_string']}"
    assert doc["@type"] == "Document"
    assert doc["Title"] == doc["title"]
    assert re.fullmatch("[0-9a-f]{32}", doc["UID"])
    assert "one <mark>needle</mark>, number" in doc["highlighting"]["text"][0]
    assert doc["highlighting"]["Title"][0].endswith("of the <mark>needle</mark>")
    assert "<b>" not in doc["highlighting"]["text"][0]


def test_page_begins_where_the_last_one_ended(web: Web) -> None:
    query = {"q": "needle", "sort": "getId desc", "rows": 5}
    pages = [ids(search(web, start=start, **query)) for start in (0, 5, 10, 15)]
    assert [len(page) for page in pages] == [5, 5, 2, 0]
    assert [name for page in pages for name in page] == [f"page{n:02}" for n in range(11, -1, -1)]
    assert search(web, start=15, **query)["response"]["numFound"] == 12
    none = search(web, q="needle", rows=0, facets="Subject")
    assert (ids(none), none["response"]["numFound"], facets(none)["Subject"]["odd"]) == ([], 12, 6)


def test_chosen_values_are_alternatives_and_their_facet_has_all_values(web: Web) -> None:
    answer = search(
        web,
        q="needle",
        facets="Subject,portal_type",
        facet_conditions=conditions(Subject={"c": {"tag0": True, "odd": False}}),
    )
    assert answer["response"]["numFound"] == 4
    assert facets(answer)["Subject"] == {"even": 6, "odd": 6, "tag0": 4, "tag1": 4, "tag2": 4}
    assert facets(answer)["portal_type"] == {"Document": 4}
    two = search(web, q="needle", facet_conditions=conditions(Subject={"c": {"tag0": True, "tag1": True}}))
    assert two["response"]["numFound"] == 8
    assert list(facets(two)) == ["Subject"]
    both = search(web, Subject="even", facet_conditions=conditions(Subject={"c": {"tag0": True}}))
    assert both["response"]["numFound"] == 2
    assert facets(both)["Subject"] == {"even": 6, "tag0": 2, "tag1": 2, "tag2": 2}


def test_chosen_values_have_the_type_of_their_index(web: Web) -> None:
    for value, found in (("true", {"news"}), ("false", {"fair"})):
        chosen = conditions(is_folderish={"c": {value: True}}, getId={"m": True})
        answer = search(web, path_prefix="/", rows=100, facet_conditions=chosen)
        assert found <= set(ids(answer))
        assert all(doc["@type"] == "Folder" for doc in answer["response"]["docs"]) == (value == "true")
        assert facets(answer)["is_folderish"] == {True: 1, False: 13}
    response = get(web, "/plone/@pgsearch", facet_conditions=conditions(created={"c": {"no date": True}}))
    assert response.status == 400


def test_facets_are_cut_searched_and_extended(web: Web) -> None:
    cut = search(web, q="needle", facets="Subject", facet_limit=2)["facet_fields"][0]
    assert cut == [{"name": "Subject", "label": "Subject", "truncated": True}, [["even", 6], ["odd", 6]]]
    part = search(web, q="needle", facet_conditions=conditions(Subject={"p": "TAG"}))
    assert facets(part)["Subject"] == {"tag0": 4, "tag1": 4, "tag2": 4}
    more = search(web, path="/plone", facets="getId", facet_conditions=conditions(getId={"m": True}))
    assert len(facets(more)["getId"]) == more["response"]["numFound"] > 6
    assert len(facets(search(web, facets="getId"))["getId"]) == 6


def test_ranges_are_facets(web: Web) -> None:
    ranges = {"sortable_title": {"before q": ["a", "q"], "from q on": ["q", None]}}
    answer = search(web, q="needle", facet_ranges=json.dumps(ranges))
    assert facets(answer) == {"sortable_title": {"before q": 12, "from q on": 0}}


def test_parameters_of_indexes_are_those_of_search(web: Web) -> None:
    for query in (
        {"portal_type": "Event"},
        {"Subject": ["tag0", "tag1"]},
        {"Subject.query": ["tag0", "even"], "Subject.operator": "and"},
        {"created.query": "2001-01-01", "created.range": "max"},
        {"path.query": "/plone/news", "path.depth": "1"},
        {"review_state": "private"},
    ):
        for login in LOGINS:
            expected = found_by_search(web, login, sort_on="getId", **query)
            assert ids(search(web, login, rows=100, sort_on="getId", **query)) == expected


def test_place_is_the_context_or_a_prefix_in_the_site(web: Web) -> None:
    assert "fair" in ids(search(web, rows=100))
    assert "fair" not in ids(search(web, path="/plone/news", rows=100))
    assert "news" in ids(search(web, path_prefix="/news", rows=100))
    inside = ids(search(web, path_prefix="/news/", rows=100))
    assert len(inside) == 12
    assert "news" not in inside


def test_answer_without_a_request_for_snippets_has_none(web: Web) -> None:
    docs = search(web, q="needle", snippets="0")["response"]["docs"]
    assert not any("highlighting" in doc for doc in docs)
    short = search(web, q="needle", snippet_length=20)["response"]["docs"][0]["highlighting"]["text"][0]
    assert re.search("<mark>needles?</mark>", short)
    assert len(html.unescape(re.sub("</?mark>|…", "", short))) <= 20


def test_suggestions_have_pages_by_the_beginning_of_their_titles_and_words_of_the_site(web: Web) -> None:
    def suggested(query: str, path: str = "/plone", **more: str) -> Any:
        return get(web, f"{path}/@pgsuggest", query=query, **more).json

    [page] = suggested("pin f")["suggestions"]
    assert (page["title"], page["@id"]) == ("Pin fair", "http://nohost/plone/fair")
    assert len(suggested("needl")["suggestions"]) == 10
    assert suggested("hay")["terms"] == ["haystack", "hay"]
    assert suggested("a lon")["terms"] == ["long"]
    assert suggested("haystakc")["terms"] == suggested("hasytac")["terms"] == ["haystack"]
    assert suggested("fai", "/plone/news")["terms"] == []
    assert suggested("hay", path_prefix="/news/")["terms"] == ["haystack"]
    for text in ("", "   ", "*", '"', "((", "AND", "\u0000x", "x" * 5000):
        assert suggested(text)["suggestions"] == []


def test_search_without_hits_has_a_correction(web: Web) -> None:
    assert search(web, q="haystakc")["did_you_mean"] == "haystack"
    assert search(web, q="xyzzyxyzzy")["did_you_mean"] is None
    assert "did_you_mean" not in search(web, q="haystack")
    assert "did_you_mean" not in search(web)
    assert search(web, q="haystack", spellcheck="true")["did_you_mean"] is None
    assert search(web, q="haystakc", portal_type="Event")["did_you_mean"] is None
    assert search(web, q="haystakc", sort="created desc", start=5, rows=0)["did_you_mean"] == "haystack"


def test_similar_pages_are_found(web: Web) -> None:
    items = get(web, "/plone/news/page03/@pgsimilar").json["items"]
    assert len(items) == 10
    assert "http://nohost/plone/news/page03" not in {item["@id"] for item in items}
    few = get(web, "/plone/news/page03/@pgsimilar", rows=3, Subject="even").json["items"]
    assert len(few) == 3
    events = get(web, "/plone/news/page03/@pgsimilar", portal_type="Event").json["items"]
    assert [item["title"] for item in events] == ["Pin fair"]
    assert get(web, "/plone/news/page03/@pgsimilar", rows="x").status == 400
    assert get(web, "/plone/news/page03/@pgsimilar", created="no date").status == 400
    assert get(web, "/plone/@pgsimilar").json["items"] == []


# -- permissions


@pytest.mark.parametrize("login", LOGINS)
def test_hits_are_those_of_search_and_counts_are_of_visible_hits(web: Web, login: str | None) -> None:
    expected = found_by_search(web, login, SearchableText="needle", sort_on="getId")
    answer = search(web, login, q="needle", rows=100, sort_on="getId", facets="Subject,review_state", facet_limit=50)
    assert ids(answer) == expected
    assert answer["response"]["numFound"] == len(expected)
    counted = facets(answer)
    for name, tag in (("secret", "secret"), ("old", "expired"), ("later", "future")):
        assert (name in expected) == (tag in counted["Subject"])
        assert (name in expected) == any(
            doc["path_string"].endswith(f"/{name}") for doc in answer["response"]["docs"] if "highlighting" in doc
        )
    assert get(web, "/plone/@pgsuggest", login, query="secr").json["terms"] == ["secret"] * ("secret" in expected)
    assert search(web, login, q="secrte")["did_you_mean"] == ("secret" if "secret" in expected else None)
    similar = get(web, "/plone/news/page00/@pgsimilar", login, rows=100).json["items"]
    assert {item["@id"].rpartition("/")[2] for item in similar} <= {*expected, "fair"}
    pages = get(web, "/plone/@pgsuggest", login, query="secret").json["suggestions"]
    assert [page["title"] for page in pages] == (["The secret needle"] if "secret" in expected else [])


@pytest.mark.parametrize(
    "trick",
    [
        {"allowedRolesAndUsers": "Manager"},
        {"allowedRolesAndUsers.query": "Manager"},
        {"effectiveRange": "1990-01-01"},
        {"where": "x"},
        {"where.query": "x"},
        {"facet_conditions": conditions(allowedRolesAndUsers={"c": {"Manager": True}})},
        {"facet_conditions": conditions(effectiveRange={"c": {"1990-01-01": True}})},
        {"facets": "allowedRolesAndUsers"},
        {"facets": "effectiveRange"},
        {"facet_ranges": json.dumps({"allowedRolesAndUsers": {"all": ["", None]}})},
        {"metadata_fields": "allowedRolesAndUsers"},
    ],
    ids=str,
)
def test_no_parameter_shows_hidden_pages(web: Web, trick: dict[str, Any]) -> None:
    honest = ids(search(web, q="needle", rows=100, sort_on="getId"))
    response = get(web, "/plone/@pgsearch", q="needle", rows=100, sort_on="getId", **trick)
    if response.status == 200:
        assert ids(response.json) == honest
        assert "user:" not in response.text
    else:
        assert response.status == 400


def test_a_private_folder_is_no_place_to_search(web: Web) -> None:
    for service in ("@pgsearch", "@pgsimilar", "@pgsuggest", "@search", "@solr", "@solr-suggest"):
        assert get(web, f"/plone/news/secret/{service}").status == 401
        assert get(web, f"/plone/news/secret/{service}", "mara:secret").status == 200


# -- invalid requests


@pytest.mark.parametrize(
    "query",
    [
        {"rows": "x"},
        {"rows": "-1"},
        {"rows": "1000"},
        {"rows": "٣"},
        {"start": "-5"},
        {"start": "1e3"},
        {"start": ["1", "2"]},
        {"q": ["a", "b"]},
        {"snippet_length": "many"},
        {"facet_limit": "-1", "facets": "Subject"},
        {"facet_conditions": "no base64!"},
        {"facet_conditions": b64encode(b"[1]").decode()},
        {"facet_conditions": b64encode(b"\xff").decode()},
        {"facet_conditions": conditions(Subject=5)},
        {"facet_conditions": conditions(nothing={"c": {"a": True}})},
        {"facet_ranges": "{"},
        {"facet_ranges": "[1]"},
        {"facet_ranges": '{"created": {"x": 5}}'},
        {"facet_ranges": '{"created": {"x": ["no date", null]}}'},
        {"facets": "nothing"},
        {"facets": "SearchableText"},
        {"created": "no date"},
        {"created.range": "min"},
    ],
    ids=str,
)
def test_invalid_parameter_is_a_bad_request(web: Web, query: dict[str, Any]) -> None:
    response = get(web, "/plone/@pgsearch", **query)
    assert response.status == 400, response.text
    assert response.json["message"]


def test_an_unknown_sort_is_ignored_as_by_search(web: Web) -> None:
    assert search(web, q="needle", sort="nothing desc")["response"]["numFound"] == 12


# -- the documentation


#: Documented examples: name -> path and parameters.
EXAMPLES: dict[str, tuple[str, dict[str, str]]] = {
    "pgsearch": ("@pgsearch", {"q": "needle", "facets": "Subject,portal_type", "rows": "2", "sort": "getId asc"}),
    "pgsearch-chosen": (
        "@pgsearch",
        {"q": "needle", "rows": "0", "facet_conditions": conditions(Subject={"c": {"tag0": True, "tag1": True}})},
    ),
    "pgsearch-ranges": (
        "@pgsearch",
        {"rows": "0", "facet_ranges": '{"sortable_title": {"a to o": ["a", "p"], "p to z": ["p", null]}}'},
    ),
    "pgsearch-error": ("@pgsearch", {"rows": "-1"}),
    "pgsearch-typo": ("@pgsearch", {"q": "haystakc"}),
    "pgsuggest": ("@pgsuggest", {"query": "pin f"}),
    "pgsimilar": ("news/page03/@pgsimilar", {"rows": "2"}),
    "querystring-search": ("@querystring-search", {"query": json.dumps(LISTING)}),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_in_the_documentation_are_the_real_answers(web: Web, name: str) -> None:
    path, query = f"/plone/{EXAMPLES[name][0]}", EXAMPLES[name][1]
    assert_example(name, path, query, get(web, path, **query))


# -- search blocks


OPERATION = "plone.app.querystring.operation"
EVERYTHING = {"i": "path", "o": f"{OPERATION}.string.absolutePath", "v": "/"}


def among(index: str, *values: str) -> dict[str, Any]:
    return {"i": index, "o": f"{OPERATION}.selection.any", "v": list(values)}


def ask(web: Web, login: str | None = None, /, path: str = "/plone", **body: Any) -> Any:
    return web.send_json("POST", f"{path}/@querystring-search", login, {"query": [EVERYTHING], **body})


def data(answer: Any) -> dict[str, dict[str, int]]:
    assert answer.status == 200, answer.text
    return {name: facet["data"] for name, facet in answer.json["facets"].items()}


def test_answer_without_facets_is_unchanged(web: Web) -> None:
    assert "facets" not in ask(web).json
    for nothing in ({"facets": []}, {"facet_ranges": []}):
        assert "facets" not in ask(web, **nothing).json
    with_facets = ask(web, facets=["portal_type"]).json
    del with_facets["facets"]
    assert with_facets == ask(web).json
    assert with_facets["items_total"] == 15


@pytest.mark.parametrize("login", LOGINS)
def test_counts_are_of_the_hits_of_the_search(web: Web, login: str | None) -> None:
    answer = ask(web, login, facets=["portal_type", "Subject"], b_size=1)
    found = ask(web, login, metadata_fields=["Subject"], b_size=100).json
    assert sum(data(answer)["portal_type"].values()) == answer.json["items_total"] == len(found["items"])
    for subject, count in data(answer)["Subject"].items():
        assert ask(web, login, query=[EVERYTHING, among("Subject", subject)]).json["items_total"] == count


def test_hidden_pages_are_in_no_answer(web: Web) -> None:
    shown = {login: set(data(ask(web, login, facets=["Subject"], facet_limit=9))["Subject"]) for login in LOGINS}
    assert shown[None] == {"even", "odd", "tag0", "tag1", "tag2"}
    assert shown["mara:secret"] == {*shown[None], "secret"}
    assert shown["boss:secret"] == {*shown[None], "secret", "expired", "future"}
    for name in ("allowedRolesAndUsers", "effectiveRange"):
        assert ask(web, facets=[name]).status == 400
        assert ask(web, facet_ranges={name: {"all": [None, None]}}).status == 400
        query = [EVERYTHING, among(name, "Manager")]
        assert set(data(ask(web, query=query, facets=["Subject"]))["Subject"]) <= shown[None]


def test_chosen_value_does_not_narrow_its_own_facet(web: Web) -> None:
    query = [EVERYTHING, among("Subject", "tag0")]
    answer = ask(web, query=query, facets=["Subject", "portal_type"])
    assert answer.json["items_total"] == 4
    subjects = {"even": 6, "odd": 7, "tag0": 4, "tag1": 4, "tag2": 4}
    assert data(answer) == {"Subject": subjects, "portal_type": {"Document": 4}}


def test_a_page_does_not_count_itself(web: Web) -> None:
    everywhere = {"Document": 12, "Event": 1, "Folder": 1, "Plone Site": 1}
    assert data(ask(web, facets=["portal_type"]))["portal_type"] == everywhere
    there = data(ask(web, path="/plone/news/page00", facets=["portal_type"]))
    assert there["portal_type"] == everywhere | {"Document": 11}


def test_ranges_limits_and_the_service_for_get(web: Web) -> None:
    ranges = {"created": {"past": [None, "2020-01-01"], "since": ["2020-01-01", None]}}
    assert data(ask(web, facet_ranges=ranges))["created"] == {"past": 0, "since": 15}
    cut = ask(web, facets=["Subject"], facet_limit=1).json["facets"]["Subject"]
    assert cut == {"data": {"odd": 7}, "truncated": True}
    query = quote(json.dumps({"query": [EVERYTHING], "facets": ["is_folderish"]}))
    assert data(get(web, "/plone/@querystring-search", query=query)) == {"is_folderish": {"false": 13, "true": 2}}


def test_query_of_unknown_indexes_counts_its_hits(web: Web) -> None:
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
        {"facet_ranges": {"created": 1}},
        {"facet_ranges": {"created": {"x": [1, 2, 3]}}},
        {"facet_ranges": {"created": {"x": ["no date", None]}}},
        {"facet_ranges": {"Title": {"x": ["a", "b"]}}},
        {"facets": ["created"], "facet_ranges": {"created": {}}},
    ],
    ids=str,
)
def test_invalid_block_is_a_bad_request(web: Web, body: dict[str, Any]) -> None:
    assert ask(web, **body).status == 400
