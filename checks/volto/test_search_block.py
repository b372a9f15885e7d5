"""Search blocks with the pieces of the search page: years, months and places, chips, counts; on two sizes, and in dark colours."""

from checks.volto import looks
from checks.volto.visitors import FrontEnds
from checks.volto.visitors import manager
from checks.volto.visitors import SIZES
from checks.volto.visitors import visitor
from collections.abc import Iterator
from pathlib import Path
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Page
from tests.acceptance.axe import Axe
from tests.acceptance.browser import fits

import pytest


CHIPS = ".pgcatalog-chips strong"
#: A theme that follows the scheme of the browser, by the variables of Volto's light theme.
DARK = """
@media (prefers-color-scheme: dark) {
  :root {
    color-scheme: dark;
    --primary-color: #101418; --primary-foreground-color: #f2f2f2; --link-foreground-color: #8cc8ff;
  }
  body, #main, .content-area, .header-wrapper, #footer, .ui.basic.segment, .ui.segment.basic {
    background: var(--primary-color) !important; color: var(--primary-foreground-color) !important;
  }
  a, a .icon, h1, h2, h3, h4, .item { color: var(--link-foreground-color) !important; }
  h1, h2, h3, h4, .discreet, p, label { color: var(--primary-foreground-color) !important; }
}
"""


@pytest.fixture
def page(browser: Browser, size: str) -> Iterator[Page]:
    with visitor(browser, **SIZES[size]) as page:
        yield page


def test_block_has_years_places_and_chips(
    page: Page, front_ends: FrontEnds, size: str, axe: Axe, tmp_path: Path
) -> None:
    looks.go(page, f"{front_ends.ours}/trees")
    expect(page.locator("fieldset legend")).to_have_text(["Type", "Tags", "Date", "Place"])
    offered = looks.facets(page)
    assert offered["Place"][0] == "Meadows (11)"
    assert "2025 (30)" in offered["Date"]
    looks.pick(page, "2025")
    looks.pick(page, "March 2025")
    looks.pick(page, "Meadows")
    assert looks.block(page)[0] == "1"
    expect(page.locator(CHIPS)).to_have_text(["March 2025", "Meadows"])
    expect(page.locator(".filter-listing")).to_be_hidden()
    assert axe(page, ".pgcatalog-chips", "fieldset[data-facet]") == []
    assert fits(page)
    page.locator(CHIPS).first.scroll_into_view_if_needed()
    page.screenshot(path=tmp_path / f"volto-block{size}.png")

    # The address is the state.
    looks.settled(page).reload()
    expect(page.locator(CHIPS)).to_have_text(["March 2025", "Meadows"])
    assert looks.block(page)[0] == "1"
    page.get_by_role("button", name="Remove the filter: Date: March 2025").click()
    expect(page.locator(CHIPS)).to_have_text(["2025", "Meadows"])
    page.get_by_role("button", name="Remove all filters").click()
    expect(page.locator(CHIPS)).to_have_count(0)
    expect(page.locator(looks.ENTRIES, has_text="2025").first).to_have_text("202530")


def test_keyboard_is_enough(page: Page, front_ends: FrontEnds) -> None:
    looks.go(page, f"{front_ends.ours}/trees")
    place = page.get_by_label("Meadows")
    place.focus()
    page.keyboard.press("Space")
    expect(page.locator(CHIPS)).to_have_text(["Meadows"])
    remove = page.get_by_role("button", name="Remove the filter: Place: Meadows")
    remove.focus()
    page.keyboard.press("Enter")
    expect(remove).to_have_count(0)


def test_other_catalogs_have_the_block_without_them(page: Page, front_ends: FrontEnds) -> None:
    looks.go(page, f"{front_ends.zcatalog}/trees")
    assert int(looks.block(page)[0]) > 30
    expect(page.locator(".block.search fieldset")).to_have_count(0)
    expect(page.locator(".checkbox-facet")).to_have_count(1)


def test_editor_shows_the_facets(browser: Browser, front_ends: FrontEnds) -> None:
    with manager(browser, front_ends.ours) as page:
        looks.go(page, f"{front_ends.ours}/trees/edit")
        expect(page.locator(looks.ENTRIES, has_text="Meadows")).to_have_text("Meadows11")


@pytest.mark.parametrize(
    ("name", "path", "part"),
    [
        ("page", "/search?SearchableText=hedgehog&Subject:list=Winter&portal_type:list=Document", "#pgcatalog-search"),
        ("corrected", "/search?SearchableText=hegdehog", "#pgcatalog-search"),
        ("tips", "/search?SearchableText=zzzzzz", "#pgcatalog-search"),
        ("block", "/trees?facet.path=/plone/meadows", "fieldset[data-facet]"),
    ],
)
def test_dark_themes_have_enough_contrast(
    browser: Browser, front_ends: FrontEnds, size: str, axe: Axe, tmp_path: Path, name: str, path: str, part: str
) -> None:
    with visitor(browser, color_scheme="dark", **SIZES[size]) as page:
        looks.go(page, front_ends.search_page + path)
        page.add_style_tag(content=DARK)
        assert axe(page, part) == []
        page.screenshot(path=tmp_path / f"volto-dark-{name}{size}.png")
        if name == "page":
            if size:
                page.locator(".pgcatalog-opener").click()
                assert axe(page, "[role=dialog]") == []
                page.screenshot(path=tmp_path / "volto-dark-drawer-small.png")
                page.keyboard.press("Escape")
            looks.suggestions(page, "hedg")
            assert axe(page, looks.PANEL) == []
            page.screenshot(path=tmp_path / f"volto-dark-panel{size}.png")
