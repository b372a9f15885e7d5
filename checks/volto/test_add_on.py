"""The additions of the add-on to Volto: counts, tags for visitors, corrections, snippets, suggestions."""

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
from tests.acceptance.browser import fits

import pytest
import re
import scripts.volto
import subprocess


#: The numbers of a facet.
COUNTS = ".pgcatalog-count"
TYPO = "/search?SearchableText=hegdehog"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with visitor(browser) as page:
        yield page


@pytest.fixture
def small(browser: Browser) -> Iterator[Page]:
    with visitor(browser, **SIZES["-small"]) as page:
        yield page


def test_add_on_passes_its_own_tests() -> None:
    done = subprocess.run(["npm", "test"], cwd=scripts.volto.FRONTEND, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_facets_have_counts(page: Page, front_ends: FrontEnds, tmp_path: Path) -> None:
    looks.go(page, f"{front_ends.ours}/find")
    expect(page.locator(COUNTS).first).to_be_visible()
    offered = looks.facets(page)
    assert offered["Type"] == ["Page (27)", "News Item (6)", "File (1)", "Folder (1)", "Image (1)"]
    assert offered["Tags"][:3] == ["Animals (30)", "Summer (15)", "Winter (15)"]
    page.screenshot(path=tmp_path / "volto-facets.png")

    # Another facet is counted in the remaining hits; its own values have the same numbers.
    looks.pick(page, "News Item")
    expect(page.locator(looks.ENTRIES, has_text="Animals")).to_have_text("Animals6")
    assert looks.block(page)[0] == "6"
    assert looks.facets(page)["Type"] == offered["Type"]
    page.screenshot(path=tmp_path / "volto-facet-picked.png")


def test_authors_are_hidden_from_anonymous_visitors(page: Page, browser: Browser, front_ends: FrontEnds) -> None:
    looks.go(page, f"{front_ends.ours}/find")
    expect(page.locator(COUNTS).first).to_be_visible()
    assert "Author" not in looks.facets(page)
    with manager(browser, front_ends.ours) as member:
        looks.go(member, f"{front_ends.ours}/find")
        expect(member.locator(looks.ENTRIES, has_text="boss")).to_have_text("boss15")


def test_tags_are_there_for_visitors(page: Page, front_ends: FrontEnds) -> None:
    """Plone 6.2 shows its tags to members only, so Volto alone has no facet for visitors."""
    for address in (front_ends.without_add_on, front_ends.zcatalog):
        looks.go(page, f"{address}/find")
        looks.block(page)
        assert "Tags" not in looks.facets(page)
    looks.go(page, f"{front_ends.ours}/find")
    expect(page.locator(looks.ENTRIES, has_text="Winter")).to_have_text("Winter15")
    looks.pick(page, "Winter")
    assert looks.block(page)[0] == "15"
    assert not page.get_by_text("Hidden tag").count()


def test_each_block_of_a_page_has_its_own_counts(page: Page, front_ends: FrontEnds) -> None:
    looks.go(page, f"{front_ends.ours}/two")
    expect(page.locator(looks.ENTRIES, has_text="Animals")).to_have_text(["Animals30", "Animals6"])


def test_the_editor_shows_counts(browser: Browser, front_ends: FrontEnds) -> None:
    with manager(browser, front_ends.ours) as page:
        looks.go(page, f"{front_ends.ours}/find/edit")
        expect(page.locator(looks.ENTRIES, has_text="Animals")).to_have_text("Animals30")


def test_correction_is_shown(page: Page, front_ends: FrontEnds, tmp_path: Path) -> None:
    looks.go(page, front_ends.ours + TYPO)
    expect(page.locator(".did-you-mean")).to_have_text("Did you mean hedgehog?")
    page.screenshot(path=tmp_path / "volto-did-you-mean.png")
    with page.expect_response(re.compile("@search")):
        page.locator(".did-you-mean a").click()
    expect(page.locator("#page-search h1")).to_contain_text("hedgehog")
    expect(page.locator(".did-you-mean")).to_have_count(0)
    assert looks.search_page(page)[0] == "30"


def test_matched_words_are_marked(page: Page, front_ends: FrontEnds, tmp_path: Path) -> None:
    looks.go(page, f"{front_ends.ours}/search?SearchableText=hedgehog&sort_on=sortable_title")
    snippets = page.locator("#page-search .tileItem .snippet")
    expect(snippets).to_have_count(25)
    assert set(looks.texts(page, ".snippet mark")) == {"hedgehog"}
    page.screenshot(path=tmp_path / "volto-search.png")
    looks.turn(page, 2)
    expect(snippets).to_have_count(5)


def test_words_are_suggested(page: Page, small: Page, front_ends: FrontEnds) -> None:
    for shown in (page, small):
        looks.go(shown, front_ends.ours)
        assert looks.suggestions(shown, "small hedg")[0] == "small hedgehog"
        assert fits(shown)


@pytest.mark.parametrize("name", ["without_add_on", "zcatalog"])
def test_pages_without_the_add_on_or_our_catalog_are_volto_s_own(page: Page, front_ends: FrontEnds, name: str) -> None:
    address = getattr(front_ends, name)
    looks.go(page, f"{address}/search?SearchableText=hedgehog")
    assert looks.search_page(page)[0] == "30"
    assert not page.locator(".snippet").count()
    looks.go(page, address + TYPO)
    expect(page.get_by_text("No results found")).to_be_visible()
    assert not page.locator(".did-you-mean").count()
    looks.go(page, f"{address}/find")
    looks.block(page)
    assert looks.facets(page)["Type"]
    assert "(" not in str(looks.facets(page))


@pytest.mark.parametrize(
    ("name", "path"), [("facets", "/find"), ("search", "/search?SearchableText=hedgehog"), ("did-you-mean", TYPO)]
)
def test_page_fits_a_phone(small: Page, front_ends: FrontEnds, tmp_path: Path, name: str, path: str) -> None:
    looks.go(small, front_ends.ours + path)
    expect(small.locator(".did-you-mean, .snippet, .pgcatalog-count").first).to_be_visible()
    small.screenshot(path=tmp_path / f"volto-{name}-small.png")
    assert fits(small)
