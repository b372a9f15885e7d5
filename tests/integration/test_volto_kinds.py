"""The Volto pages requested by the benchmark ``pages`` show the content stated by their names."""

from benchmarks.page_kinds import EDITOR
from benchmarks.page_kinds import PAGES
from benchmarks.page_kinds import RELATIONS
from benchmarks.page_kinds import Visited
from benchmarks.page_kinds import VOLTO
from benchmarks.page_kinds import VOLTO_PAGES
from benchmarks.volto_site import furnish_for_volto
from tests.integration.content import create
from tests.integration.people import publish
from tests.integration.volto_pages import FEW
from tests.integration.volto_pages import LINKS
from tests.integration.web import Site
from typing import Any

import pytest


DOCUMENTS = RELATIONS + 10


def fill(portal: Any) -> None:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    portal.portal_workflow.setDefaultChain("simple_publication_workflow")
    login, _, password = EDITOR.partition(":")
    portal.acl_users.userFolderAddUser(login, password, ["Member", "Editor"], [])
    folder = create(portal, "Folder", "folder0", title="Folder")
    publish(folder)
    for number in range(DOCUMENTS):
        publish(create(folder, "Document", f"doc{number}", title=f"Document {number}"))
    furnish_for_volto(portal, [f"folder0/doc{number}" for number in range(DOCUMENTS)])


SHARED = fill


def has_blocks(answer: Any) -> bool:
    """Return whether the blocks of *answer* link to pages and images of the site."""
    blocks = list(answer["blocks"].values())
    links = [block["value"][0]["children"][1]["data"]["url"] for block in blocks if block["@type"] == "slate"]
    teasers = [block["href"][0]["title"] for block in blocks if block["@type"] == "teaser"]
    images = [block for block in blocks if block["@type"] == "image" and "image_scales" in block]
    return (
        [link.startswith("http://nohost/plone/folder0/doc") for link in links] == [True] * LINKS
        and len(set(links)) == LINKS
        and [title.startswith("Document ") for title in teasers] == [True] * FEW
        and len(images) == FEW
    )


def has_expansions(answer: Any, *names: str) -> bool:
    """Return whether *answer* has expanded its components, with those *names*."""
    components = answer["@components"]
    return bool(components["navigation"]["items"]) and all(len(components[name]) > 1 for name in names)


CHECKS = {
    "Volto page": lambda answer: has_blocks(answer) and has_expansions(answer, "breadcrumbs", "contextnavigation"),
    "Volto page, editor": lambda answer: (
        has_blocks(answer) and has_expansions(answer, "types", "workflow", "actions", "navroot")
    ),
    "front page of Volto": lambda answer: has_blocks(answer) and has_expansions(answer, "navigation"),
    "search block with facets": lambda answer: "items_total" in answer,
    f"relations of {RELATIONS}": lambda answer: (
        len(answer["relations"]["relatedItems"]["items"])
        == answer["relations"]["relatedItems"]["items_total"]
        == RELATIONS
    ),
}


def test_each_kind_of_page_is_checked() -> None:
    assert set(CHECKS) == {page.name for page in PAGES if page.group == VOLTO}


@pytest.mark.parametrize("page", [page for page in PAGES if page.group == VOLTO], ids=lambda page: page.name)
def test_kind_of_page_shows_the_content_of_its_name(shared_site: Site, page: Any) -> None:
    visited = Visited("/plone", 1, [f"folder0/doc{number}" for number in range(DOCUMENTS)])
    for number in (0, VOLTO_PAGES - 1):
        response = shared_site.web.open(page.path(visited, number), page.login, page.headers["Accept"])
        assert response.status == 200, response.text
        assert CHECKS[page.name](response.json), response.text
