"""The search page of a large catalog in a real browser: hits first, then the facets, and nothing jumps."""

from collections.abc import Iterator
from pathlib import Path
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Page
from playwright.sync_api import Route
from plone.pgcatalog.classic.search import QUICK_ROWS
from tests.acceptance.axe import Axe
from tests.acceptance.browser import BROWSER_TESTS
from tests.acceptance.browser import fits
from tests.acceptance.browser import opened
from tests.acceptance.browser import served
from tests.acceptance.search_site import fill
from tests.integration.content import counted
from tests.integration.content import pretend_rows
from tests.integration.web import Site
from typing import Any

import pytest
import re


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


class Held:
    """Holds the requests of *page* for facets until they are released."""

    def __init__(self, page: Page) -> None:
        self.routes: list[Route] = []
        self.page = page
        page.route(FACETS, lambda route: self.routes.append(route))

    def release(self) -> None:
        with self.page.expect_response(FACETS):
            self.routes.pop().continue_()


def complete(page: Page) -> None:
    """Wait until the facets are those of the hits."""
    expect(page.locator("#search-facets:not([aria-busy])")).to_be_attached()


def unfolded(page: Page, width: int) -> None:
    if width < 992:
        page.get_by_role("button", name="Filter the results").click()
        expect(page.locator("#search-filters")).to_have_class(re.compile(r"\bshow\b"))


def place(page: Page) -> Any:
    """Return where the first hit is, and how wide."""
    box = page.locator("#search-results .result-title").first.bounding_box()
    assert box is not None
    return box["x"], box["y"]


@pytest.mark.parametrize("width", [1280, 375])
def test_hits_are_there_before_the_facets_and_stay_where_they_are(
    browser: Browser, address: str, axe: Axe, tmp_path: Path, width: int
) -> None:
    with opened(browser, width=width) as context:
        page = context.new_page()
        held = Held(page)
        page.goto(f"{address}/{HEDGEHOG}")
        expect(page.locator("#search-results-number")).to_have_text("49")
        expect(page.locator("#search-facets[aria-busy]")).to_be_attached()
        before = place(page)
        assert axe(page, "#content-core") == []
        page.screenshot(path=tmp_path / f"large-waiting-{width}.png")
        held.release()
        complete(page)
        assert place(page) == before
        unfolded(page, width)
        expect(page.get_by_label("Event")).to_be_visible()
        assert axe(page, "#content-core") == []
        assert fits(page)
        page.screenshot(path=tmp_path / f"large-facets-{width}.png")


def test_facets_and_focus_stay_during_a_count(browser: Browser, address: str) -> None:
    with opened(browser) as context:
        page = context.new_page()
        page.goto(f"{address}/{HEDGEHOG}")
        complete(page)
        held = Held(page)
        event = page.get_by_label("Event")
        event.focus()
        page.keyboard.press("Space")
        expect(page.locator("#search-results-number")).to_have_text("14")
        expect(page.locator("#search-chips strong")).to_have_count(1)
        expect(event).to_be_focused()
        expect(event).to_be_checked()
        expect(page.get_by_label("News Item")).to_be_visible()
        held.release()
        complete(page)
        expect(event).to_be_focused()
        expect(page.locator("#search-chips strong")).to_have_text(["Event"])
        # A removed choice is not checked any more, though its facet has not been counted again.
        page.locator("#search-chips a").first.click()
        expect(page.locator("#search-results-number")).to_have_text("49")
        expect(event).not_to_be_checked()
        # A choice made during the count applies.
        page.get_by_label("Bruno Costa").check()
        expect(page.locator("#search-results-number")).to_have_text("16")
        held.release()
        complete(page)
        expect(page.locator("#search-chips strong")).to_have_text(["Bruno Costa"])


def test_page_is_usable_without_its_facets(browser: Browser, address: str) -> None:
    with opened(browser) as context:
        page = context.new_page()
        page.route(FACETS, lambda route: route.abort())
        page.goto(f"{address}/{HEDGEHOG}&portal_type:list=Event")
        complete(page)
        expect(page.get_by_label("Event")).to_be_checked()
        page.locator("#search-text").fill("winter")
        page.locator("#search-text").press("Enter")
        expect(page.locator("#search-heading")).to_contain_text("winter")
        expect(page.locator("#search-chips strong")).to_have_text(["Event"])


def test_without_a_script_facets_come_with_the_page(browser: Browser, address: str) -> None:
    with opened(browser, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{address}/{HEDGEHOG}")
        page.get_by_label("Event").check()
        page.get_by_label("Bruno Costa").check()
        page.get_by_role("button", name="Apply").click()
        expect(page.locator("#search-chips strong")).to_have_text(["Event", "Bruno Costa"])
        page.locator("#search-chips a").first.click()
        expect(page.locator("#search-results-number")).to_have_text("16")
        expect(page.get_by_label("Event")).to_be_visible()
