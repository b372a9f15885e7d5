"""The search page of a large catalog in a real browser: hits first, then the facets, and nothing jumps."""

from collections.abc import Iterator
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Page
from playwright.sync_api import Route
from plone.pgcatalog.searchpage.page import QUICK_ROWS
from tests.acceptance.axe import Axe
from tests.acceptance.browser import BROWSER_TESTS
from tests.acceptance.browser import fits
from tests.acceptance.browser import found
from tests.acceptance.browser import served
from tests.acceptance.browser import unfold
from tests.acceptance.browser import visiting
from tests.acceptance.search_site import fill
from tests.integration.content import counted
from tests.integration.content import pretend_rows
from tests.integration.web import Site
from time import monotonic
from urllib.parse import parse_qsl
from urllib.parse import urlsplit

import pytest


pytestmark = BROWSER_TESTS

FACETS = "**/*facets=alone*"
HEDGEHOG = "@@search?SearchableText=hedgehog"


SHARED = fill


@pytest.fixture(scope="module")
def address(shared_site: Site) -> Iterator[str]:
    """Address of a site with hedgehogs whose catalog is treated as a large one, served over HTTP."""
    with shared_site.inside() as portal:
        portal.portal_registry["plone.allow_anon_views_about"] = True
    with shared_site.inside() as portal:
        counted(shared_site.dsn, portal.portal_catalog)
        pretend_rows(portal, QUICK_ROWS + 1)
    with served(shared_site.db) as url:
        yield url


def parameters(url: str) -> set[tuple[str, str]]:
    """Return the names and values of the query of *url*."""
    return set(parse_qsl(urlsplit(url).query))


class Held:
    """Holds the requests of *page* for facets until they are released."""

    def __init__(self, page: Page) -> None:
        self.routes: list[Route] = []
        self.page = page
        page.route(FACETS, lambda route: self.routes.append(route))

    def release(self) -> None:
        """Wait for the request of the shown hits, and let it continue."""
        wanted = parameters(self.page.url) | {("facets", "alone")}
        end = monotonic() + 60
        while not (self.routes and parameters(self.routes[-1].request.url) == wanted):
            assert monotonic() < end, [route.request.url for route in self.routes]
            self.page.wait_for_timeout(20)
        with self.page.expect_response(FACETS):
            self.routes.pop().continue_()
        complete(self.page)


def complete(page: Page) -> None:
    """Wait until the facets are those of the hits."""
    expect(page.locator("#search-facets:not([aria-busy])")).to_be_attached()


def place(page: Page) -> tuple[float, float]:
    """Return the place of the first hit."""
    box = page.locator("#search-results .result-title").first.bounding_box()
    assert box is not None
    return box["x"], box["y"]


@pytest.mark.parametrize("width", [1280, 375])
def test_hits_are_there_before_the_facets_and_stay_where_they_are(
    browser: Browser, address: str, axe: Axe, width: int
) -> None:
    with visiting(browser, width=width) as page:
        held = Held(page)
        page.goto(f"{address}/{HEDGEHOG}")
        found(page, 49)
        expect(page.locator("#search-facets[aria-busy]")).to_be_attached()
        before = place(page)
        assert axe(page, "#content-core") == []
        held.release()
        assert place(page) == before
        if width == 375:
            unfold(page)
        expect(page.get_by_label("Event")).to_be_visible()
        assert axe(page, "#content-core") == []
        assert fits(page)


def test_facets_and_focus_stay_during_a_count(visitor: Page, address: str) -> None:
    page = visitor
    page.goto(f"{address}/{HEDGEHOG}")
    complete(page)
    held, event, chips = Held(page), page.get_by_label("Event"), page.locator("#search-chips strong")
    event.focus()
    page.keyboard.press("Space")
    found(page, 14)
    expect(chips).to_have_count(1)
    expect(event).to_be_focused()
    expect(event).to_be_checked()
    expect(page.get_by_label("News Item")).to_be_visible()
    held.release()
    expect(event).to_be_focused()
    expect(chips).to_have_text(["Event"])
    # A removed choice is not checked any more, though its facet has not been counted again.
    page.locator("#search-chips a").first.click()
    found(page, 49)
    expect(event).not_to_be_checked()
    # A choice made during the count applies.
    page.get_by_label("Bruno Costa").check()
    found(page, 16)
    held.release()
    expect(chips).to_have_text(["Bruno Costa"])


def test_page_is_usable_without_its_facets(visitor: Page, address: str) -> None:
    page = visitor
    page.route(FACETS, lambda route: route.abort())
    page.goto(f"{address}/{HEDGEHOG}&portal_type:list=Event")
    complete(page)
    expect(page.get_by_label("Event")).to_be_checked()
    page.locator("#search-text").fill("winter")
    page.locator("#search-text").press("Enter")
    expect(page.locator("#search-heading")).to_contain_text("winter")
    expect(page.locator("#search-chips strong")).to_have_text(["Event"])
