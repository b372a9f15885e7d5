"""The content of a page of Volto, in numbers and titles that are the same over any catalog."""

from playwright.sync_api import expect
from playwright.sync_api import Page
from typing import Any
from urllib.parse import quote

import re


HITS = "#page-search .tileHeadline"
LISTED = ".listing-item h3, .listing-item h4"
#: The values of a search block: Volto's, or those of the add-on.
ENTRIES = ".checkbox-facet .entry label, fieldset[data-facet] label"
#: The link of a facet that shows its other values.
CLOSED = ".pgcatalog-more-values:not([open]) > summary"


def texts(page: Page, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def settled(page: Page) -> Page:
    """Return *page* when all its requests are finished."""
    page.wait_for_load_state("networkidle")
    return page


def go(page: Page, address: str) -> Page:
    page.goto(address)
    return settled(page)


def search_page(page: Page) -> tuple[str, list[str]]:
    """Return the number of results and the titles on the search page."""
    expect(page.locator("#page-search .items_total")).to_be_visible()
    [total] = re.findall(r"^\d+", page.locator("#page-search .items_total").inner_text().strip())
    return total, texts(page, HITS)


def block(page: Page, number: int = 0) -> tuple[str, list[str]]:
    """Return the number of results and the titles in a search block."""
    found = page.locator(".block.search").nth(number)
    # Before the answer the block is empty and shows 0.
    expect(found.locator(".search-details")).to_contain_text(re.compile(r"[1-9]"))
    [total] = re.findall(r"\d+$", found.locator(".search-details").inner_text().strip())
    return total, [text.strip() for text in found.locator(LISTED).all_inner_texts()]


def facets(page: Page, number: int = 0) -> dict[str, list[str]]:
    """Return facet -> offered values of a search block, as ``Page (26)``."""
    counted = """labels => labels.map(label => {
        const [value, count] = label.querySelectorAll("span");
        return count ? `${value.textContent} (${count.textContent})` : label.textContent;
    })"""
    found = page.locator(".block.search").nth(number).locator(".checkbox-facet, fieldset")
    return {
        facet.locator(".header, legend").inner_text(): facet.locator("label").evaluate_all(counted)
        for facet in found.all()
    }


def without_counts(offered: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the offered values as in Volto alone: without numbers, in alphabetical order."""
    return {facet: sorted(re.sub(r" \(\d+\)$", "", text) for text in values) for facet, values in offered.items()}


def pick(page: Page, text: str, number: int = 0) -> None:
    """Choose a value of a facet, behind *Show more* if it is there, and wait for the resulting hits."""
    block = page.locator(".block.search").nth(number)
    for _ in range(block.locator(CLOSED).count()):
        block.locator(CLOSED).first.click()
    with page.expect_response(re.compile("@querystring-search")):
        block.locator(ENTRIES, has_text=text).first.click()
    settled(page)


#: The panel below the search field of the header, and the field.
PANEL = "#pgcatalog-panel"
FIELD = ".searchbox input[name=SearchableText]"


def suggestions(page: Page, text: str) -> list[str]:
    """Type *text* into the search field of the header, and return the words and pages of the panel."""
    field = page.locator(FIELD)
    field.clear()
    with page.expect_response(re.compile(f"@pgsuggest.*={re.escape(quote(text))}$")) as answer:
        field.press_sequentially(text)
    words = [word for word in answer.value.json()["terms"] if not text.endswith(word)][:3]
    count = len(words) + min(len(answer.value.json()["suggestions"]), 5)
    expect(page.locator(f"{PANEL} [role=option]")).to_have_count(count + 1)
    return texts(page, f"{PANEL} .pgcatalog-word, {PANEL} .pgcatalog-page span[dir]")


def fits(page: Page, selector: str) -> bool:
    """Return whether the elements *selector* need no horizontal scrolling; Volto's own may be wider than a phone."""
    script = """places => places.every(place => {
        const text = document.createRange();
        text.selectNodeContents(place);
        return text.getBoundingClientRect().right <= document.documentElement.clientWidth;
    })"""
    return bool(page.locator(selector).evaluate_all(script))


def turn(page: Page, number: int) -> None:
    """Turn to the page with that number."""
    with page.expect_response(re.compile("@search|@querystring-search")):
        page.locator(".pagination a.item", has_text=re.compile(f"^{number}$")).first.click()
    settled(page)


def save_panel(page: Page, address: str, **values: Any) -> None:
    """Send a control panel with *values* in its fields."""
    go(page, address)
    for name, value in values.items():
        page.locator(f"#field-{name}").fill(str(value))
    page.locator("#toolbar-save").click()
