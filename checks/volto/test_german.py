"""The add-on on a site in German: its own texts are German, and words are found in their German forms."""

from checks.volto import looks
from checks.volto.visitors import SIZES
from checks.volto.visitors import visitor
from collections.abc import Iterator
from pathlib import Path
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Page

import pytest
import re


@pytest.fixture
def page(browser: Browser, size: str) -> Iterator[Page]:
    with visitor(browser, locale="de-DE", **SIZES[size]) as page:
        yield page


def test_matched_words_are_marked_in_other_forms(page: Page, german: str, size: str, tmp_path: Path) -> None:
    looks.go(page, f"{german}/search?SearchableText=Igeln&sort_on=sortable_title")
    expect(page.locator("#page-search .tileItem .snippet")).to_have_count(12)
    assert looks.search_page(page)[0] == "12"
    assert set(looks.texts(page, ".snippet mark")) == {"Igel"}
    expect(page.locator("#page-search h1")).to_contain_text("Suchergebnisse")
    page.screenshot(path=tmp_path / f"volto-search-german{size}.png")
    assert looks.fits(page, ".pgcatalog-snippet")


def test_correction_is_shown(page: Page, german: str, size: str, tmp_path: Path) -> None:
    looks.go(page, f"{german}/search?SearchableText=Schnekcen")
    expect(page.locator(".did-you-mean")).to_have_text("Meinten Sie Schnecken?")
    page.screenshot(path=tmp_path / f"volto-did-you-mean-german{size}.png")
    assert looks.fits(page, ".did-you-mean")
    with page.expect_response(re.compile("@search")):
        page.locator(".did-you-mean a").click()
    expect(page.locator(".did-you-mean")).to_have_count(0)
    assert looks.search_page(page)[0] == "12"


def test_facets_have_counts(page: Page, german: str, size: str, tmp_path: Path) -> None:
    looks.go(page, f"{german}/finden")
    expect(page.locator(looks.ENTRIES, has_text="Nachricht")).to_have_text("Nachricht4")
    expect(page.locator(looks.ENTRIES, has_text="Tiere")).to_have_text("Tiere12")
    looks.pick(page, "Nachricht")
    expect(page.locator(looks.ENTRIES, has_text="Winter")).to_have_text("Winter2")
    assert looks.block(page)[0] == "4"
    page.screenshot(path=tmp_path / f"volto-facets-german{size}.png")
    assert looks.fits(page, ".block.search")


def test_words_of_the_language_are_suggested(page: Page, german: str) -> None:
    """An English page of the site is about gardens."""
    looks.go(page, german)
    word, *titles = looks.suggestions(page, "Gar")
    assert word == "garten"
    assert titles
    assert all(title.startswith("Garten ") for title in titles)
    assert looks.suggestions(page, "Garde") == ["garten"]
