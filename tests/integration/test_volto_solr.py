"""A session of kitconcept.solr's published front-end with ``@solr``: recorded with its own JavaScript, replayed without."""

from collections.abc import Iterator
from pathlib import Path
from tests.integration.fixtures import SiteWith
from tests.integration.needles import fill_for_solr
from tests.integration.needles import solr_site
from tests.integration.web import Site
from typing import Any
from urllib.parse import parse_qs

import json
import os
import pytest
import subprocess


pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "volto_solr"
SESSION = HERE / "session.json"
#: A folder with the bundle (volto_solr/README.md): the session is recorded anew.
BUNDLE = os.environ.get("RECORD_VOLTO_SOLR")
#: What differs from run to run.
VARYING = {"UID", "created", "effective", "modified", "image_scales", "start", "end"}


@pytest.fixture(scope="module")
def site(site_with: SiteWith) -> Iterator[Site]:
    with solr_site(site_with(fill_for_solr)) as site:
        yield site


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
    """Give *text* to the bundled front-end and return what it prints for *command*."""
    arguments = ["node", f"{BUNDLE}/play.cjs", command]
    return json.loads(subprocess.run(arguments, input=text.encode(), check=True, stdout=subprocess.PIPE).stdout)


def ask(site: Site, link: str) -> Any:
    """Return the answer to *link*, which the front-end has not wholly quoted."""
    path, _, query = link.partition("?")
    response = site.web.get(f"/plone{path}", None, "application/json", **parse_qs(query, keep_blank_values=True))
    assert response.status == 200, response.text
    return response.json


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: key in VARYING or shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else value


def test_the_answers_are_those_the_front_end_was_tried_with(site: Site, session: dict[str, Any]) -> None:
    for name, step in session.items():
        assert shape(ask(site, step["request"])) == shape(step["answer"]), name


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


def test_the_front_end_shows_facets(session: dict[str, Any]) -> None:
    words, chosen = session["words"], session["a chosen tag"]
    assert words["state"]["facetFields"][0] == chosen["state"]["facetFields"][0]
    assert chosen["state"]["total"] == 4
    assert "searchConditionsField" in chosen["page"]
    assert session["part of a tag"]["state"]["facetFields"][0][1] == [["tag0", 4], ["tag1", 4], ["tag2", 4]]
    assert words["state"]["layouts"] == ["list", "grid"]


def test_the_front_end_shows_what_was_meant(session: dict[str, Any]) -> None:
    typo = session["a typing error"]
    assert typo["corrected"] == {"haystakc": "haystack"}
    assert typo["suggested"] == ["haystack"]
    assert typo["state"]["total"] == 12
    assert [item["title"] for item in session["typed"]["state"]["items"]] == ["Pin fair"]
    assert [item["title"] for item in session["typed here"]["state"]["items"]] == ["Page 03 of the needle"]


def test_the_folder_of_the_search_page_is_left_out(session: dict[str, Any]) -> None:
    paths = [item["@id"] for item in session["this folder only"]["state"]["items"]]
    assert len(paths) == 5
    assert all(path.startswith("/news/") for path in paths)
