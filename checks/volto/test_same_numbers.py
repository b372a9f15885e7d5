"""Every page shows the same over our catalog as over a ZCatalog: pages, numbers and order."""

from checks.volto import looks
from checks.volto.visitors import FrontEnds
from checks.volto.visitors import manager
from checks.volto.visitors import visitor
from collections.abc import Callable
from pathlib import Path
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Page
from typing import Any

import pytest
import re


def search(page: Page, address: str) -> Any:
    """The search page."""
    total, titles = looks.search_page(looks.go(page, f"{address}/search?SearchableText=hedgehog"))
    # The order is the relevance, for which each catalog has its own formula.
    return total, len(titles)


def sorted_search(page: Page, address: str) -> Any:
    """The search page, sorted by title."""
    looks.go(page, f"{address}/search?SearchableText=hedgehog")
    with page.expect_response(re.compile("@search")):
        page.locator("button[name=sortable_title]").click()
    return looks.search_page(looks.settled(page))


def second_page(page: Page, address: str) -> Any:
    """Page 2 of the search page."""
    looks.go(page, f"{address}/search?SearchableText=hedgehog&sort_on=sortable_title")
    looks.turn(page, 2)
    return looks.search_page(page)


def newest_first(page: Page, address: str) -> Any:
    """The search page, the newest first."""
    looks.go(page, f"{address}/search?SearchableText=garden")
    with page.expect_response(re.compile("@search")):
        page.locator("button[name=effective]").click()
    return looks.search_page(looks.settled(page))


def by_tag(page: Page, address: str) -> Any:
    """The search page for a tag."""
    return looks.search_page(looks.go(page, f"{address}/search?Subject=Winter&sort_on=sortable_title"))


def search_block(page: Page, address: str) -> Any:
    """A page with a search block."""
    return looks.block(looks.go(page, f"{address}/find"))


def page_of_block(page: Page, address: str) -> Any:
    """Page 3 of a search block."""
    looks.go(page, f"{address}/find")
    looks.turn(page, 3)
    return looks.block(page)


def words_in_block(page: Page, address: str) -> Any:
    """A search block in which words are typed."""
    looks.go(page, f"{address}/find")
    before, _ = looks.block(page)
    field = page.locator(".block.search .search-input input")
    field.fill("beetles")
    with page.expect_response(re.compile("@querystring-search")):
        field.press("Enter")
    # The answer is there before the page shows it.
    expect(page.locator(".block.search .search-details")).not_to_contain_text(before)
    return looks.block(looks.settled(page))


def picked_facet(page: Page, address: str) -> Any:
    """A search block with a picked facet."""
    looks.go(page, f"{address}/find")
    looks.pick(page, "News Item")
    return looks.block(page)


def two_blocks(page: Page, address: str) -> Any:
    """A page with two search blocks."""
    looks.go(page, f"{address}/two")
    return looks.block(page, 0), looks.block(page, 1)


def listing(page: Page, address: str) -> Any:
    """A listing, and page 2 of it."""
    looks.go(page, f"{address}/listing")
    first = looks.texts(page, looks.LISTED)
    looks.turn(page, 2)
    return first, looks.texts(page, looks.LISTED)


def front_page(page: Page, address: str) -> Any:
    """The navigation of the front page."""
    looks.go(page, address)
    return looks.texts(page, "nav a.item")


VISITS: tuple[Callable[[Page, str], Any], ...] = (
    *(search, sorted_search, second_page, newest_first, by_tag, front_page),
    *(search_block, page_of_block, words_in_block, picked_facet, two_blocks, listing),
)


@pytest.mark.parametrize("visit", VISITS, ids=lambda visit: visit.__name__)
def test_visitors_see_the_same_as_over_zcatalog(
    browser: Browser, front_ends: FrontEnds, visit: Callable[[Page, str], Any]
) -> None:
    seen = []
    for address in (front_ends.ours, front_ends.without_add_on, front_ends.zcatalog):
        with visitor(browser) as page:
            seen.append(visit(page, address))
    assert seen[0]
    assert seen[0] == seen[1] == seen[2]


def contents(page: Page, address: str) -> Any:
    """Folder contents."""
    looks.go(page, f"{address}/contents")
    expect(page.locator("table tbody tr").first).to_be_visible()
    return looks.texts(page, "table tbody tr td.indexes, table tbody tr td a")


def filtered_contents(page: Page, address: str) -> Any:
    """Folder contents with a filter."""
    looks.go(page, f"{address}/contents")
    expect(page.locator("table tbody tr").first).to_be_visible()
    with page.expect_response(re.compile(r"@search.*hedgehog")):
        page.get_by_placeholder("Filter…").fill("hedgehog")
    looks.settled(page)
    return looks.texts(page, "table tbody tr td a")


def facets_of_members(page: Page, address: str) -> Any:
    """The facets of a search block, for a manager."""
    looks.go(page, f"{address}/find")
    looks.block(page)
    offered = looks.without_counts(looks.facets(page))
    return offered["Tags"], looks.block(page)


MANAGERS = (contents, filtered_contents, facets_of_members)


@pytest.mark.parametrize("visit", MANAGERS, ids=lambda visit: visit.__name__)
def test_managers_see_the_same_as_over_zcatalog(
    browser: Browser, front_ends: FrontEnds, visit: Callable[[Page, str], Any]
) -> None:
    seen = []
    for address in (front_ends.ours, front_ends.without_add_on, front_ends.zcatalog):
        with manager(browser, address) as page:
            seen.append(visit(page, address))
    assert seen[0]
    assert seen[0] == seen[1] == seen[2]


def test_the_guide_lists_the_pages_that_are_visited() -> None:
    guide = (Path(__file__).parents[2] / "docs/how-to/volto.md").read_text("utf-8")
    rows = re.findall(r"^\| (.*) \| a (visitor|manager) \|$", guide, re.MULTILINE)
    assert rows == [
        (str(visit.__doc__).rstrip("."), who)
        for who, visits in (("visitor", VISITS), ("manager", MANAGERS))
        for visit in visits
    ]
    assert len(rows) == 15, "The guide says fifteen."
