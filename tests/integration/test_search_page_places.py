"""Places on the search page: a chosen folder offers its visible subfolders, with a chip for each level."""

from tests.integration.content import create
from tests.integration.people import add_plain_users
from tests.integration.people import publish
from tests.integration.people import share
from tests.integration.search_pages import follow
from tests.integration.search_pages import Page
from tests.integration.search_pages import search
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any

import pytest


pytestmark = pytest.mark.slow


#: Folder -> number of its other pages; the hidden ones are private, and so is the content of the last.
FOLDERS = {
    "news": 1,
    "news/2025": 2,
    "news/2025/autumn": 3,
    "news/2026": 1,
    "news/hidden": 1,
    "news/closed": 0,
    "news/closed/secret": 1,
    "station": 4,
}
HIDDEN = ("news/hidden", "news/closed", "news/closed/secret")
#: Leaves, which are no places: more of them than values of a facet.
LEAVES = 40


def fill(portal: Any) -> None:
    portal.portal_workflow.setChainForPortalTypes(("Document", "Folder"), ("simple_publication_workflow",))
    add_plain_users(portal)
    for path, number in FOLDERS.items():
        place, _, name = path.rpartition("/")
        folder = create(portal.unrestrictedTraverse(place) if place else portal, "Folder", name, title=titled(path))
        for n in range(number):
            page = create(folder, "Document", f"page{n}", title="A hedgehog")
            if path != "news/closed/secret":
                publish(page)
        if path not in HIDDEN:
            publish(folder)
    for n in range(LEAVES):
        publish(create(portal.station, "Document", f"leaf{n:02}", title="A leaf"))
    share(portal.news.closed, "mara", "Reader")


SHARED = fill


@pytest.fixture(scope="module")
def web(shared_site: Site) -> Web:
    return shared_site.web


def titled(path: str) -> str:
    return f"Title of {path.replace('/', ' ')}"


def places(page: Page) -> dict[str, int | None]:
    return {token.removeprefix("/plone/"): count for token, count in page.facets.get("path", {}).items()}


def chosen(web: Web, *paths: str, login: str | None = None, **query: Any) -> Page:
    return search(web, login, **query, **{"path:list": [f"/plone/{path}" for path in paths]})


def test_a_chosen_place_offers_its_folders(web: Web) -> None:
    top = search(web)
    # The private folder has a public page: it counts, and its place is not named.
    assert places(top) == {"station": 1 + 4 + LEAVES, "news": 12}
    inside = chosen(web, "news")
    assert places(inside) == {**places(top), "news/2025": 7, "news/2026": 2}
    deeper = chosen(web, "news", "news/2025")
    assert places(deeper) == {**places(inside), "news/2025/autumn": 4}
    assert deeper.total == 7
    assert [
        box.get("value") for box in deeper.tree.xpath("//fieldset[@data-facet='path']/ul/li/ul/li/ul/li//input")
    ] == ["/plone/news/2025/autumn"]
    # Leaves are no places, however many there are.
    assert places(chosen(web, "station")) == places(top)


def test_a_chip_for_each_level_leads_back_to_the_one_above(web: Web) -> None:
    page = chosen(web, "news", "news/2025", "news/2025/autumn")
    assert list(page.chips) == [titled("news"), titled("news/2025"), titled("news/2025/autumn")]
    assert page.total == 4
    assert follow(web, page.chips[titled("news/2025/autumn")]).total == 7
    above = follow(web, page.chips[titled("news/2025")])
    assert (above.total, list(above.chips)) == (12, [titled("news")])
    assert follow(web, page.chips[titled("news")]).chips == {}
    # An address of the innermost folder alone shows the way to it.
    alone = chosen(web, "news/2025/autumn")
    assert alone.checked == {"/plone/news/2025/autumn"}
    assert {"news", "news/2025"} <= set(places(alone))
    assert alone.total == 4


def test_two_places_are_alternatives(web: Web) -> None:
    both = chosen(web, "news", "news/2026", "station")
    assert both.total == 2 + 1 + 4 + LEAVES


@pytest.mark.parametrize("login", [None, "mara:secret"])
def test_hidden_place_is_not_shown(web: Web, login: str | None) -> None:
    hidden = {"news/hidden"} if login else {*HIDDEN}
    for asked in (
        ["news/hidden"],
        ["news", "news/closed"],
        ["news/closed/secret"],
        ["nowhere", "/", ".."],
        ["news/page0"],
        [f"deep{'/deep' * n}" for n in range(30)],
        ["news//2025", "news/2025/"],
    ):
        page = chosen(web, *asked, login=login)
        assert hidden.isdisjoint(path for path in FOLDERS if titled(path) in page.html), asked
        assert hidden.isdisjoint(place for place, count in places(page).items() if count is not None), asked


def test_place_is_offered_to_users_with_permission(web: Web) -> None:
    inside = chosen(web, "news", "news/closed", login="mara:secret")
    assert places(inside)["news/closed/secret"] == 2
    assert "news/hidden" not in places(inside)
    assert "news/hidden" in places(chosen(web, "news", login="boss:secret"))
