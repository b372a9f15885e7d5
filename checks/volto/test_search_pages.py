"""Abilities of a visitor on the search page: the same in Classic UI and in Volto, as the guide lists them."""

from checks.volto import looks
from checks.volto.visitors import FrontEnds
from checks.volto.visitors import SIZES
from checks.volto.visitors import visitor
from dataclasses import dataclass
from demo.documents import WORD
from pathlib import Path
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Locator
from playwright.sync_api import Page
from tests.acceptance.browser import fits

import pytest
import re


HEDGEHOG = "SearchableText=hedgehog"


@dataclass(frozen=True)
class Ability:
    """An ability of a visitor, at an address with *query*, by the elements *classic* and *volto* of the two pages.

    Both pages have at least one element, with the same texts if *is_same*.
    """

    title: str
    query: str
    classic: str
    volto: str
    is_same: bool = True


ABILITIES = (
    Ability("See how many hits each value of a facet has", HEDGEHOG, "#search-facets label", "fieldset label"),
    Ability(
        "Select several values of a facet",
        f"{HEDGEHOG}&Subject:list=Winter&Subject:list=Summer",
        "#search-facets li:has(> div > input:checked) label",
        "fieldset li:has(> label > input:checked) > label",
    ),
    Ability(
        "Select years, then months",
        f"{HEDGEHOG}&facet.Date:list=2025",
        "[data-facet=Date] ul ul label",
        "[data-facet=Date] ul ul label",
    ),
    Ability("Select places, then the folders in them", HEDGEHOG, "[data-facet=path] label", "[data-facet=path] label"),
    Ability("See more values of a facet", "SearchableText=badger", "fieldset details label", "fieldset details label"),
    Ability(
        "Find a value in a long facet",
        "SearchableText=badger",
        ".search-values",
        "fieldset details input[type=search]",
        False,
    ),
    Ability(
        "See the selected values, and remove one",
        f"{HEDGEHOG}&Subject:list=Winter",
        "#search-chips strong",
        ".pgcatalog-chips strong",
    ),
    Ability(
        "Remove all selected values",
        f"{HEDGEHOG}&Subject:list=Winter&portal_type:list=Document",
        "#search-chips li:last-child > a:not(.btn)",
        ".pgcatalog-chips li:last-child > a:not(.label)",
    ),
    Ability("Choose the order", HEDGEHOG, "#search-sort option", "#pgcatalog-sort option"),
    Ability("Choose the number of hits of a page", HEDGEHOG, "#search-size option", "#pgcatalog-size option"),
    Ability(
        "Turn the pages",
        f"{HEDGEHOG}&b_start:int=10",
        ".pagination a[rel=prev], .pagination a[rel=next]",
        ".pgcatalog-pages a[rel=prev], .pgcatalog-pages a[rel=next]",
    ),
    Ability("See the number of hits", HEDGEHOG, "#search-results-number", "[role=status]", False),
    Ability("See the words in titles and texts", HEDGEHOG, "#search-results mark", ".pgcatalog-hits mark"),
    Ability("See the type of a hit", HEDGEHOG, ".result-type", ".pgcatalog-about", False),
    Ability("See the place of a hit", f"{HEDGEHOG}&path:list=/plone/meadows", ".result-place a", ".pgcatalog-place a"),
    Ability("Search for a tag of a hit", HEDGEHOG, ".result-tags a", ".pgcatalog-tags a"),
    Ability("Find similar pages", HEDGEHOG, ".result-similar", ".pgcatalog-similar", False),
    Ability("See the image of a hit", "SearchableText=badger", "#search-results img", ".pgcatalog-hits img", False),
    Ability("Open the page of a file that has the words", f"SearchableText={WORD}", ".result-page a", ".file-page a"),
    Ability("See the pages that an editor recommends", "SearchableText=slugs", ".result-pinned", ".pgcatalog-pinned"),
    Ability(
        "Correct a typing error, and search for the text as typed",
        "SearchableText=hegdehog",
        "#search-corrected",
        ".pgcatalog-corrected",
    ),
    Ability("Read tips if nothing is found", "SearchableText=zzzzzz", "#search-advice li", ".pgcatalog-tips li"),
    Ability("Read how a word is excluded", HEDGEHOG, "#search-help", "#pgcatalog-help"),
    Ability("Subscribe to the search", HEDGEHOG, "#rss-subscription a", ".pgcatalog-rss a", False),
)


def contents(found: Locator) -> list[str]:
    """Return the texts of the elements *found*, without blanks."""
    return [re.sub(r"\s", "", text) for text in found.all_text_contents()]


@pytest.mark.parametrize("ability", ABILITIES, ids=lambda ability: ability.title)
def test_both_search_pages_can_do_the_same(
    browser: Browser, front_ends: FrontEnds, ability: Ability, size: str, tmp_path: Path
) -> None:
    def seen(page: Page, address: str, selector: str) -> list[str]:
        looks.go(page, f"{address}?{ability.query}")
        assert fits(page)
        page.screenshot(path=tmp_path / f"{address.rpartition('/')[2]}{size}.png")
        return contents(page.locator(selector))

    with visitor(browser, **SIZES[size]) as page:
        classic = seen(page, f"{front_ends.classic}/@@search", ability.classic)
        volto = seen(page, f"{front_ends.search_page}/search", ability.volto)
    assert classic
    assert volto
    if ability.is_same:
        assert classic == volto


@pytest.mark.parametrize("page_of", ["classic", "search_page"])
def test_value_of_a_long_facet_is_found_by_typing(
    browser: Browser, front_ends: FrontEnds, page_of: str, size: str
) -> None:
    with visitor(browser, **SIZES[size]) as page:
        looks.go(page, f"{getattr(front_ends, page_of)}/search?SearchableText=badger")
        if size:
            page.get_by_role("button", name="Filter the results").click()
        more = page.locator("fieldset[data-facet=Subject] details")
        more.locator("summary").click()
        more.locator("input[type=search]").press_sequentially("ER 13")
        expect(more.locator("label:visible")).to_have_count(1)
        more.locator("input[type=search]").press("Enter")
        assert "13" not in page.url


def test_guide_lists_them() -> None:
    guide = (Path(__file__).parents[2] / "docs/how-to/volto.md").read_text("utf-8")
    rows = re.findall(r"^\| (.*) \| yes \| yes \|$", guide, re.MULTILINE)
    assert rows == [ability.title for ability in ABILITIES]
    assert len(rows) == 24
