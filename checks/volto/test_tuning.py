"""The tab *Preview and searches* of Search Tuning in Volto, beside Classic UI's: the loop from a missed search to a synonym."""

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
from plone.pgcatalog.observe import searches
from tests.acceptance.axe import Axe
from tests.acceptance.browser import fits

import pytest


TAB = "#pgcatalog-tuning"
HITS = "#pgcatalog-hits tbody tr"
#: The lists, in the order of Classic UI.
TITLES = ["Top searches", "Searches without results", "Corrected searches", "Searches without an opened hit"]


#: The same in German.
GERMAN = ["Häufigste Suchen", "Suchen ohne Ergebnisse", "Korrigierte Suchen", "Suchen ohne geöffneten Treffer"]
#: Volto's toolbar would cover a part of the picture.
NO_TOOLBAR = "#toolbar { display: none }"


def picture(page: Page, path: Path) -> None:
    """Take a picture of the whole tab."""
    page.add_style_tag(content=NO_TOOLBAR)
    page.locator(TAB).screenshot(path=path)


@pytest.fixture
def address(front_ends: FrontEnds) -> str:
    return front_ends.search_page


@pytest.fixture
def page(browser: Browser, address: str, size: str) -> Iterator[Page]:
    """A manager's page, after a visitor has searched in Volto for two texts."""
    with visitor(browser) as page:
        for text in ("hedgehog", "igel", "igel"):
            looks.go(page, f"{address}/search?SearchableText={text}")
    assert searches.flush(30)
    with manager(browser, address, **SIZES[size] or {"height": 1250}) as page:
        looks.go(page, f"{address}/controlpanel/pgcatalog-search")
        page.locator(".formtabs a", has_text="Preview and searches").click()
        expect(page.locator("#pgcatalog-searches")).to_be_visible()
        yield page


def test_missed_search_becomes_a_synonym(page: Page, address: str, size: str, axe: Axe, tmp_path: Path) -> None:
    assert looks.texts(page, "#pgcatalog-searches section h3") == TITLES
    missed = page.locator("#pgcatalog-without_results li", has_text="igel")
    # Other visits are counted, too.
    expect(page.locator("#pgcatalog-top li", has_text="hedgehog").first).to_be_visible()
    missed.get_by_role("button", name="Add a synonym").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#pgcatalog-word")).to_have_value("igel")
    expect(page.locator("#pgcatalog-nothing")).to_be_visible()
    expect(page.locator("#pgcatalog-other")).to_be_focused()
    page.keyboard.type("hedgehog")
    page.keyboard.press("Enter")
    expect(page.locator(HITS)).to_have_count(10)
    expect(page.locator(HITS).first).to_contain_text("new")
    assert fits(page)
    picture(page, tmp_path / f"volto-tuning{size}.png")
    assert axe(page, TAB) == []
    page.get_by_role("button", name="Compare the most frequent searches").press("Enter")
    expect(page.locator("#pgcatalog-compared")).to_contain_text("Another first hit: 1")
    assert axe(page, TAB) == []
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").press("Enter")
    assert download.value.suggested_filename == "searches.csv"
    # Nothing is saved before the form is.
    looks.go(page, f"{address}/controlpanel/pgcatalog-search")
    assert "igel" not in page.locator("#field-synonyms").input_value()


@pytest.mark.parametrize("german_site", [""], indirect=True, ids=["one-language"])
def test_tab_is_german(browser: Browser, german: str, size: str, axe: Axe, tmp_path: Path) -> None:
    with manager(browser, german, **SIZES[size] or {"height": 1250}) as page:
        looks.go(page, f"{german}/controlpanel/pgcatalog-search")
        page.locator(".formtabs a", has_text="Vorschau und Suchen").click()
        expect(page.locator("#pgcatalog-searches")).to_be_visible()
        assert looks.texts(page, "#pgcatalog-searches section h3") == GERMAN
        assert fits(page)
        picture(page, tmp_path / f"volto-tuning-german{size}.png")
        assert axe(page, TAB) == []
