"""The search page of the add-on: facets, chips, pages, corrections and the panel, on two sizes, with and without scripts."""

from checks.volto import looks
from checks.volto.visitors import FrontEnds
from checks.volto.visitors import SIZES
from checks.volto.visitors import visitor
from collections.abc import Iterator
from demo.documents import WORD
from pathlib import Path
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Page
from tests.acceptance.axe import Axe
from tests.acceptance.browser import fits
from urllib.parse import parse_qsl
from urllib.parse import urlsplit

import pytest
import re


PAGE = "#pgcatalog-search"
HEDGEHOG = "/search?SearchableText=hedgehog"
TITLES = f"{PAGE} .tileHeadline a"
DRAWER = ".pgcatalog-opener"


@pytest.fixture
def address(front_ends: FrontEnds) -> str:
    return front_ends.search_page


@pytest.fixture
def page(browser: Browser, size: str) -> Iterator[Page]:
    with visitor(browser, **SIZES[size]) as page:
        yield page


def total(page: Page, number: int) -> None:
    """Wait until the page has *number* hits, and then fits."""
    expect(page.locator(f"{PAGE} [role=status]")).to_have_text(f"{number} result{'' if number == 1 else 's'}")
    assert fits(page)


def choose(page: Page, value: str) -> None:
    """Choose the *value* of a facet; on a phone in the drawer."""
    opener = page.locator(DRAWER)
    if opener.is_visible():
        opener.click()
    page.locator("fieldset label", has_text=value).click()
    if page.locator("[role=dialog]").count():
        page.get_by_role("button", name="Show the results").click()


def parameters(page: Page) -> list[tuple[str, str]]:
    return [pair for pair in parse_qsl(urlsplit(page.url).query) if pair[0] not in ("b_size", "sort_on")]


def test_facets_narrow_the_search_and_the_address_is_the_state(
    page: Page, address: str, size: str, axe: Axe, tmp_path: Path
) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url) if "@pgsearch" in request.url else None)
    looks.go(page, address + HEDGEHOG)
    total(page, 30)
    expect(page.locator(TITLES)).to_have_count(10)
    assert set(looks.texts(page, f"{PAGE} .snippet mark")) == {"hedgehog"}
    # The server has searched for the browser.
    assert requests == []
    page.screenshot(path=tmp_path / f"volto-page{size}.png")
    assert axe(page, PAGE) == []

    choose(page, "News Item")
    total(page, 6)
    choose(page, "Winter")
    total(page, 3)
    assert len(requests) == 2
    assert parameters(page) == [
        ("SearchableText", "hedgehog"),
        ("portal_type:list", "News Item"),
        ("Subject:list", "Winter"),
    ]
    assert looks.texts(page, ".pgcatalog-chips strong") == ["News Item", "Winter"]
    page.screenshot(path=tmp_path / f"volto-page-chosen{size}.png")
    page.go_back()
    total(page, 6)
    page.go_forward()
    total(page, 3)
    looks.settled(page).reload()
    total(page, 3)
    page.get_by_role("link", name="Remove the filter: Type: News Item").click()
    total(page, 15)
    choose(page, "News Item")
    total(page, 3)
    page.get_by_role("link", name="Remove all filters").click()
    total(page, 30)
    expect(page.locator(".pgcatalog-chips")).to_have_count(0)


def test_drawer_has_the_number_of_chosen_filters(browser: Browser, address: str, axe: Axe, tmp_path: Path) -> None:
    with visitor(browser, **SIZES["-small"]) as page:
        looks.go(page, f"{address}{HEDGEHOG}&Subject:list=Winter")
        opener = page.locator(DRAWER)
        expect(opener).to_have_text("Filter the results1")
        opener.press("Enter")
        expect(page.locator("[role=dialog] legend").first).to_be_visible()
        assert axe(page, "[role=dialog]") == []
        page.screenshot(path=tmp_path / "volto-page-drawer-small.png")
        page.keyboard.press("Escape")
        expect(page.locator("[role=dialog]")).to_have_count(0)
        expect(opener).to_be_focused()


def test_order_size_and_pages(page: Page, address: str) -> None:
    looks.go(page, address + HEDGEHOG)
    page.get_by_label("Sort by").select_option("sortable_title")
    expect(page.locator(TITLES).first).to_have_text("Garden 01")
    page.get_by_role("link", name="Next page").click()
    expect(page.locator(f"{PAGE} [aria-current=page]")).to_have_text("2")
    expect(page.locator(f"{PAGE} ol")).to_have_attribute("start", "11")
    assert page.get_by_role("link", name="Previous page").get_attribute("rel") == "prev"
    page.get_by_label("Results per page").select_option("50")
    expect(page.locator(TITLES)).to_have_count(30)
    expect(page.locator(".pgcatalog-pages")).to_have_count(0)
    assert fits(page)


def test_similar_pages_and_tags_are_searches(page: Page, address: str) -> None:
    looks.go(page, address + HEDGEHOG)
    title = page.locator(TITLES).first.inner_text()
    page.locator(".pgcatalog-similar").first.click()
    expect(page.locator(".pgcatalog-chips strong")).to_have_text(title)
    expect(page.locator(TITLES).first).not_to_have_text(title)
    page.locator(".pgcatalog-tags a", has_text="Animals").first.click()
    expect(page.locator(".pgcatalog-chips strong")).to_have_text("Animals")
    total(page, 30)


def test_typing_errors_are_corrected(page: Page, address: str, size: str, tmp_path: Path) -> None:
    looks.go(page, f"{address}/search?SearchableText=hegdehog")
    total(page, 30)
    expect(page.locator(".pgcatalog-corrected")).to_have_text(
        "Showing results for hedgehog – search instead for hegdehog"
    )
    page.screenshot(path=tmp_path / f"volto-page-corrected{size}.png")
    page.locator(".pgcatalog-corrected a").click()
    total(page, 0)
    expect(page.locator(".did-you-mean")).to_have_text("Did you mean hedgehog?")
    expect(page.locator(".pgcatalog-tips li")).to_have_count(3)
    page.locator(".did-you-mean a").click()
    total(page, 30)


def test_text_in_a_file_is_found_with_its_page(page: Page, address: str, size: str, tmp_path: Path) -> None:
    looks.go(page, f"{address}/search?SearchableText={WORD}")
    total(page, 1)
    expect(page.locator(".pgcatalog-about")).to_have_text("File · PDF")
    expect(page.locator(f"{PAGE} mark")).to_have_text(WORD)
    link = page.get_by_role("link", name="Page 12")
    expect(link).to_have_attribute("href", "/minutes.pdf/@@display-file/#page=12")
    answer = page.request.get(f"{address}/minutes.pdf/@@display-file/")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/pdf")
    page.screenshot(path=tmp_path / f"volto-page-file{size}.png")


def test_refused_search_says_why(page: Page, address: str) -> None:
    looks.go(page, f"{address}{HEDGEHOG}&sort_on=allowedRolesAndUsers")
    expect(page.locator(f"{PAGE} [role=alert]")).to_contain_text("cannot be sorted")


def test_page_works_without_scripts(browser: Browser, address: str, size: str) -> None:
    with visitor(browser, java_script_enabled=False, **SIZES[size]) as page:
        page.goto(address + HEDGEHOG)
        status = page.locator(f"{PAGE} [role=status]")
        expect(status).to_have_text("30 results")
        page.locator("fieldset label", has_text="News Item").click()
        page.get_by_role("button", name="Apply").click()
        expect(status).to_have_text("6 results")
        page.locator(f"{PAGE} input[name=SearchableText]").fill("beetles")
        page.locator(f"{PAGE} .pgcatalog-text button").click()
        expect(page.locator(f"{PAGE} h1")).to_have_text("Search results for beetles")
        expect(status).to_have_text("6 results")
        page.locator(".pgcatalog-chips a").click()
        expect(status).to_have_text("30 results")
        page.get_by_role("link", name="Next page").click()
        expect(page.locator(f"{PAGE} [aria-current=page]")).to_have_text("2")


def test_panel_is_a_combobox(page: Page, address: str, size: str, axe: Axe, tmp_path: Path) -> None:
    looks.go(page, address)
    for number, text in enumerate(("h", "hedg", "small hedg", "the hedg")):
        looks.suggestions(page, text)
        page.screenshot(path=tmp_path / f"volto-panel-{number}{size}.png")
    assert axe(page, ".searchbox") == []
    assert fits(page)
    field = page.get_by_role("combobox")
    expect(field).to_have_attribute("aria-expanded", "true")
    options = page.locator(f"{looks.PANEL} [role=option]")
    page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.screenshot(path=tmp_path / f"volto-panel{size}.png")
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    assert looks.suggestions(page, "garden 0")
    page.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.locator(f"{PAGE} h1")).to_contain_text("garden 0")
    looks.suggestions(page, "garden 0")
    options.locator("..").locator(".pgcatalog-page").first.click()
    page.wait_for_url(re.compile("/page-0"))
    expect(page.locator(looks.PANEL)).to_have_count(0)


@pytest.mark.parametrize("german", ["on"], indirect=True)
def test_page_and_panel_are_german(browser: Browser, german: str, size: str, tmp_path: Path) -> None:
    with visitor(browser, locale="de-DE", **SIZES[size]) as page:
        looks.go(page, f"{german}/search?SearchableText=Igeln&Subject:list=Tiere")
        expect(page.locator(f"{PAGE} [role=status]")).to_have_text("12 Ergebnisse")
        expect(page.locator(f"{PAGE} h1")).to_contain_text("Suchergebnisse für Igeln")
        expect(page.locator(".pgcatalog-chips a")).to_have_text("Filter entfernen: Schlagwörter: Tiere ×")
        assert set(looks.texts(page, ".snippet mark")) == {"Igel"}
        assert looks.texts(page, "#pgcatalog-sort option")[0] == "Relevanz"
        expect(page.locator(".pgcatalog-similar").first).to_contain_text("Ähnliche Seiten")
        page.screenshot(path=tmp_path / f"volto-page-german{size}.png")
        assert looks.fits(page, f"{PAGE} h1, .pgcatalog-chips strong, .snippet, .pgcatalog-status")
        assert looks.suggestions(page, "Gar")[0] == "garten"
        expect(page.locator(f"{looks.PANEL} .pgcatalog-all")).to_have_text("Alle Ergebnisse für Gar")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/search"))
        expect(page.locator(f"{PAGE} h1")).to_contain_text("Gar")
