"""The Volto pages requested by the benchmark ``pages`` show the content stated by their names."""

from benchmarks.page_kinds import EDITOR
from benchmarks.page_kinds import PAGES
from benchmarks.page_kinds import RELATIONS
from benchmarks.page_kinds import Visited
from benchmarks.page_kinds import VOLTO
from benchmarks.volto_site import furnish_for_volto
from tests.integration.content import create
from tests.integration.people import publish
from tests.integration.volto_pages import FEW
from tests.integration.volto_pages import LINKS
from tests.integration.web import Site
from typing import Any

import pytest


pytestmark = pytest.mark.slow


DOCUMENTS = [f"folder0/doc{number}" for number in range(RELATIONS + 10)]


def fill(portal: Any) -> None:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    portal.portal_workflow.setDefaultChain("simple_publication_workflow")
    login, _, password = EDITOR.partition(":")
    portal.acl_users.userFolderAddUser(login, password, ["Member", "Editor"], [])
    folder = create(portal, "Folder", "folder0", title="Folder")
    publish(folder)
    for path in DOCUMENTS:
        publish(create(folder, "Document", path.rpartition("/")[2], title=f"Document {path}"))
    furnish_for_volto(portal, DOCUMENTS)


SHARED = fill


def has_blocks(answer: Any, *names: str) -> bool:
    """Return whether *answer* has blocks with links, teasers and images of the site, and has expanded these components."""
    blocks = list(answer["blocks"].values())
    links = {block["value"][0]["children"][1]["data"]["url"] for block in blocks if block["@type"] == "slate"}
    teasers = [block["href"][0]["title"] for block in blocks if block["@type"] == "teaser"]
    images = [block for block in blocks if block["@type"] == "image" and "image_scales" in block]
    return (
        {link.rpartition("/doc")[0] for link in links} == {"http://nohost/plone/folder0"}
        and (len(links), len(teasers), len(images)) == (LINKS, FEW, FEW)
        and all(title.startswith("Document ") for title in teasers)
        and bool(answer["@components"]["navigation"]["items"])
        and all(len(answer["@components"][name]) > 1 for name in names)
    )


CHECKS = {
    "Volto page": lambda answer: has_blocks(answer, "breadcrumbs", "contextnavigation"),
    "Volto page, editor": lambda answer: has_blocks(answer, "types", "workflow", "actions", "navroot"),
    "front page of Volto": has_blocks,
    "search block with facets": lambda answer: "items_total" in answer,
    f"relations of {RELATIONS}": lambda answer: len(answer["relations"]["relatedItems"]["items"]) == RELATIONS,
}


@pytest.mark.parametrize("page", [page for page in PAGES if page.group == VOLTO], ids=lambda page: page.name)
def test_kind_of_page_shows_the_content_of_its_name(shared_site: Site, page: Any) -> None:
    visited = Visited("/plone", 1, DOCUMENTS)
    response = shared_site.web.open(page.path(visited, 0), page.login, page.headers["Accept"])
    assert response.status == 200, response.text
    assert CHECKS[page.name](response.json), response.text
