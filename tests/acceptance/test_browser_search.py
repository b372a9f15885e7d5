"""The search page in a real browser: a typo finds the page, facets narrow it, with and without JavaScript, accessibly."""

from itertools import pairwise
from pathlib import Path
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Page
from tests.acceptance.axe import Axe
from tests.acceptance.browser import BROWSER_TESTS
from tests.acceptance.browser import fits
from tests.acceptance.browser import found
from tests.acceptance.browser import managed
from tests.acceptance.browser import unfold
from tests.acceptance.browser import visiting
from tests.acceptance.search_site import add_long_words
from tests.acceptance.search_site import fill
from tests.acceptance.search_site import LONG
from tests.acceptance.search_site import TAGS
from typing import Any

import pytest


pytestmark = BROWSER_TESTS


def fill_in_two_languages(portal: Any) -> None:
    fill(portal)
    add_long_words(portal)
    portal.portal_registry["plone.available_languages"] = ["en", "de"]
    portal.portal_registry["plone.use_request_negotiation"] = True
    portal.portal_registry["plone.allow_anon_views_about"] = True


SHARED = fill_in_two_languages
HEDGEHOG = "@@search?SearchableText=hedgehog"


def search(page: Page, text: str) -> None:
    page.locator("#search-text").fill(text)
    page.locator("#search-text").press("Enter")


def test_a_typo_finds_the_page_and_facets_narrow_it(visitor: Page, address: str, tmp_path: Path) -> None:
    page, chips = visitor, visitor.locator("#search-chips strong")
    page.goto(address)
    page.locator("#searchGadget").fill("hegdehog")
    page.locator("#searchGadget").press("Enter")
    expect(page.locator("#search-corrected")).to_contain_text("Showing results for hedgehog")
    found(page, 49)
    page.screenshot(path=tmp_path / "search-corrected.png")

    # No page is loaded from here on: variables of the page stay.
    page.evaluate("window.remembered = true")
    search(page, "hedgehog")
    expect(page.locator("#search-corrected")).to_have_count(0)
    for label, number in (("Event", 14), ("2025", 4), ("October 2025", 2)):
        page.get_by_label(label).check()
        found(page, number)
    expect(chips).to_have_text(["Event", "October 2025"])
    # The keyboard's focus stays where it was.
    expect(page.get_by_label("October 2025")).to_be_focused()
    page.screenshot(path=tmp_path / "search-facets.png")
    assert "facet.Date%3Alist=2025-10" in page.url

    page.locator("#search-chips a", has_text="October 2025").click()
    found(page, 4)
    expect(page.locator("#search-heading")).to_be_focused()
    page.get_by_role("link", name="Remove all filters").click()
    found(page, 49)
    page.go_back()
    found(page, 4)
    expect(page.get_by_label("Event")).to_be_checked()
    sort, title = page.locator("#search-sort"), page.locator(".result-title").first
    sort.select_option("sortable_title")
    expect(title).to_have_text("Garden: a hedgehog, part 10")
    page.go_back()
    expect(sort).to_have_value("relevance")
    page.go_forward()
    expect(sort).to_have_value("sortable_title")
    expect(title).to_have_text("Garden: a hedgehog, part 10")
    assert page.evaluate("window.remembered")

    # A bookmark shows the same page.
    page.goto(page.url)
    found(page, 4)
    expect(page.locator("#facet-Date-2025")).to_be_checked()


def test_a_visitor_with_a_typo_is_recorded(browser: Browser, address: str, tmp_path: Path) -> None:
    """A visitor's actions on a phone, and the site's answers: screenshots and a text for the documentation."""
    recorded: list[str] = []

    def said(action: str, *texts: str) -> None:
        recorded.extend([action, *("    " + " ".join(text.split()) for text in texts), ""])
        page.screenshot(path=tmp_path / f"typo-{recorded.count('')}.png")

    with visiting(browser, width=375, height=667) as page:
        page.goto(address)
        page.locator(".navbar-toggler").click()
        # Plone's menu takes the focus when it has opened: earlier key presses are lost.
        expect(page.locator("#offcanvasNavbar")).to_be_focused()
        field = page.get_by_role("combobox", name="Search Site")
        field.press_sequentially("hegdehog")
        options = page.get_by_role("option")
        expect(options.first).to_have_text("Showing results for hedgehog")
        expect(options.last).to_be_visible()
        said("A visitor types “hegdehog” into the search field.", *options.all_inner_texts()[:4])
        field.press("Enter")
        corrected = page.locator("#search-corrected")
        expect(corrected).to_contain_text("Showing results for hedgehog")
        titles = page.locator(".result-title a")
        title = titles.first.inner_text()
        count = page.locator("#results-count").inner_text()
        said("The visitor presses Enter.", count, corrected.inner_text(), *titles.all_inner_texts()[:3])
        titles.first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page.locator("#content-core")).to_contain_text("hedgehog")
        said("The visitor follows the first result.", title, page.locator("#content-core p").last.inner_text())
    (tmp_path / "typo-session.txt").write_text("\n".join(recorded).rstrip() + "\n", "utf-8")


def test_more_values_further_pages_and_similar_pages_can_be_opened(visitor: Page, address: str) -> None:
    page, chips = visitor, visitor.locator("#search-chips strong")
    page.goto(f"{address}/{HEDGEHOG}")
    page.evaluate("window.remembered = true")
    tags = page.locator("fieldset[data-facet=Subject]")
    expect(tags.locator("details")).not_to_have_attribute("open", "")
    tags.get_by_text("Show more").click()
    tags.locator("details input").last.check()
    expect(chips).to_have_count(1)
    page.locator("#search-chips a").first.click()
    found(page, 49)
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("ol.searchResults")).to_have_attribute("start", "11")
    page.get_by_role("link", name="Similar pages").first.click()
    expect(page.locator("#search-chips")).to_contain_text("Similar to")
    # The page still shows similar pages when it is narrowed.
    page.locator("fieldset input").first.check()
    expect(chips).to_have_count(2)
    # Back to the page loaded first, without loading it again.
    for _ in range(5):
        page.go_back()
    expect(chips).to_have_count(0)
    found(page, 49)
    expect(page.locator("#search-text")).to_have_value("hedgehog")
    assert page.evaluate("window.remembered")


def test_search_page_works_without_a_script(browser: Browser, address: str) -> None:
    with visiting(browser, java_script_enabled=False) as page:
        page.goto(f"{address}/{HEDGEHOG}")
        page.get_by_label("Event").check()
        page.get_by_label("Bruno Costa").check()
        page.get_by_role("button", name="Apply").click()
        expect(page.locator("#search-chips strong")).to_have_text(["Event", "Bruno Costa"])
        page.locator("#search-chips a").first.click()
        found(page, 16)
        page.locator("#search-text").fill("hegdehog")
        page.get_by_role("main").get_by_role("button", name="Search").click()
        found(page, 16)
        page.locator("#search-corrected a").click()
        found(page, 0)
        expect(page.locator("#did-you-mean a")).to_have_text("hedgehog")


def test_facets_are_behind_a_button_on_a_small_screen(browser: Browser, address: str, tmp_path: Path) -> None:
    with visiting(browser, width=375) as page:
        page.goto(f"{address}/{HEDGEHOG}")
        expect(page.get_by_label("Event")).to_be_hidden()
        page.screenshot(path=tmp_path / "search-small.png")
        unfold(page)
        page.get_by_label("Event").check()
        found(page, 14)
        # The opened part stays open.
        expect(page.get_by_label("Event")).to_be_visible()
        assert fits(page)
        page.screenshot(path=tmp_path / "search-small-facets.png")


@pytest.mark.parametrize("width", [1280, 375])
def test_results_without_facets_have_the_full_width(browser: Browser, address: str, width: int) -> None:
    with visiting(browser, width=width) as page:
        form, side, listing = map(page.locator, ("#searchform", "#search-side", "#search-listing"))

        def share() -> float:
            """Return the share of the form's width that the listing has."""
            return float(listing.bounding_box()["width"] / form.bounding_box()["width"])  # type: ignore[index]

        page.goto(f"{address}/@@search?SearchableText=xyzzyxyzzy")
        expect(side).to_be_hidden()
        assert share() >= 1
        # They appear and disappear with the hits, without a new page.
        page.evaluate("window.remembered = true")
        for text, number in (("hedgehog", 49), ("xyzzyxyzzy", 0)):
            search(page, text)
            found(page, number)
            expect(side).to_be_visible(visible=number > 0)
            if width == 1280:
                assert (share() < 0.8) == (number > 0)
            else:
                expect(page.get_by_role("button", name="Filter the results")).to_be_visible(visible=number > 0)
            assert fits(page)
        assert page.evaluate("window.remembered")


#: Numbers of lines of the elements' texts, each number once.
LINES = """elements => [...new Set(elements.map(element => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return range.getClientRects().length;
}).filter(Boolean))]"""


@pytest.mark.parametrize("width", [1280, 375])
def test_no_word_widens_the_page(browser: Browser, address: str, width: int) -> None:
    with visiting(browser, width=width) as page:
        for query in (
            f"SearchableText={LONG}&Subject:list={LONG}&path:list=/plone/long",
            f"SearchableText={LONG}&portal_type:list=Link",
            f"SearchableText={LONG}xyz&as_typed={LONG}xyz",
            "path:list=/plone/long",
            "SearchableText=steamer",
        ):
            page.goto(f"{address}/@@search?{query}")
            if width < 992 and page.locator("fieldset").count():
                unfold(page)
            for summary in page.locator("#searchform summary").all():
                summary.click()
            assert fits(page), query
            # Nor is a number beside it broken.
            assert page.locator("fieldset label .ms-2").evaluate_all(LINES) in ([], [1]), query
        page.locator("a.result-similar").first.click()
        expect(page.locator("#search-chips")).to_contain_text("Similar to")
        assert fits(page)
        page.goto(address)
        if width < 992:
            page.locator(".navbar-toggler").click()
            expect(page.locator("#offcanvasNavbar")).to_be_focused()
        page.get_by_role("combobox", name="Search Site").press_sequentially("steamer")
        expect(page.get_by_role("option").first).to_contain_text(LONG)
        assert fits(page)


def test_a_hit_shows_six_tags_and_its_place_apart(visitor: Page, address: str) -> None:
    page = visitor
    page.goto(f"{address}/@@search?SearchableText=steamer")
    hit = page.locator(".searchResults > li").first
    badges = hit.locator(".result-tags .badge")
    assert [badge for badge in badges.all_inner_texts() if badge] == list(TAGS[:6])
    boxes = [hit.locator(css).bounding_box() for css in (".result-place", ".result-tags", ".result-similar")]
    # Either above each other or side by side: parts do not overlap.
    for first, second in pairwise(boxes):
        assert first["y"] + first["height"] <= second["y"] or first["x"] + first["width"] <= second["x"]  # type: ignore[index]
    hit.get_by_text("4 more").click()
    expect(badges.last).to_be_visible()
    assert badges.all_inner_texts() == list(TAGS)
    for side in ("left", "right"):
        expect(page.locator("#search-results mark").first).to_have_css(f"padding-{side}", "0px")
    badges.first.click()
    expect(page.locator("#search-chips strong")).to_have_text([TAGS[0]])


@pytest.mark.parametrize(
    ("language", "told"), [("en", "Type at least 4 letters"), ("de", "Geben Sie mindestens 4 Buchstaben ein")]
)
def test_live_search_shows_the_minimum_number_of_letters(
    browser: Browser, address: str, language: str, told: str
) -> None:
    with visiting(browser, locale=language) as page:
        page.goto(address)
        field, results = page.locator("#searchGadget"), page.locator(".livesearch-results")
        field.press_sequentially("hed")
        expect(results).to_have_text(told)
        expect(page.locator(".livesearch-results + [role=status]")).to_have_text(told)
        field.press_sequentially("gehog")
        expect(page.get_by_role("option").first).to_be_visible()
        for _ in range(6):
            field.press("Backspace")
        expect(results).to_have_text(told)
        # A visitor who returns to a typed text need not type again.
        page.goto(f"{address}/{HEDGEHOG}")
        field.click()
        expect(page.get_by_role("option").first).to_be_visible()


def test_search_page_is_in_german(browser: Browser, address: str, tmp_path: Path) -> None:
    with visiting(browser, locale="de-DE") as page:
        page.goto(f"{address}/@@search?SearchableText=hegdehog&facet.Date:list=2025")
        expect(page.locator("#search-corrected")).to_contain_text("Ergebnisse für hedgehog")
        expect(page.locator("legend")).to_have_text(["Typ", "Schlagwörter", "Datum", "Autor", "Ort"])
        expect(page.get_by_label("Oktober 2025")).to_be_visible()
        page.screenshot(path=tmp_path / "search-german.png")
        page.goto(f"{address}/@@search?SearchableText=xyzzyxyzzy&facet.Date:list=1999")
        tried = ["Prüfen Sie die Schreibweise.", "Verwenden Sie andere oder weniger Wörter."]
        links = ["Ohne Filter suchen.", "Alle Seiten dieser Website ansehen."]
        expect(page.locator("#search-advice li")).to_have_text([*tried, *links])


def test_the_control_panel_chooses_facets(page: Page, address: str, tmp_path: Path) -> None:
    """*page* is a manager's."""
    page.goto(f"{address}/@@overview-controlpanel")
    page.locator("main, #content").get_by_role("link", name="Search Page").last.click()
    facets = page.get_by_label("Search page with facets")
    expect(facets).to_be_checked()
    page.screenshot(path=tmp_path / "search-page-settings.png")
    for is_on, shown in ((False, "#search-filter"), (True, "#search-facets")):
        page.goto(f"{address}/@@pgcatalog-search-page-controlpanel")
        facets.set_checked(is_on)
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".portalMessage, .statusmessage").first).to_contain_text("Changes saved")
        page.goto(f"{address}/{HEDGEHOG}")
        expect(page.locator(shown)).to_be_visible()


#: Name of a control panel for plone.restapi -> its screenshot.
PANELS = {"pgcatalog": "settings", "pgcatalog-search": "search-tuning", "pgcatalog-search-page": "search-page-settings"}


def texts(page: Page, address: str, panel: str, language: str) -> dict[str, str]:
    """Return the titles and helps of the fields of a control panel, as sent to Volto for a user of *language*."""
    headers = {"Accept": "application/json", "Accept-Language": language}
    answer = page.request.get(f"{address}/++api++/@controlpanels/{panel}", headers=headers)
    assert answer.ok, answer.text()
    fields = answer.json()["schema"]["properties"]
    found = {(name, key): field.get(key) for name, field in fields.items() for key in ("title", "description")}
    return {f"{name} {key}": text for (name, key), text in found.items() if text}


def test_both_interfaces_of_control_panels_have_the_same_german_texts(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    with managed(browser, address, locale="de") as page:
        for panel, picture in PANELS.items():
            shown = texts(page, address, panel, "de")
            assert not shown.items() & texts(page, address, panel, "en").items()
            page.goto(f"{address}/@@{panel}-controlpanel")
            form = " ".join(page.locator("#content").inner_text().split())
            assert [text for text in shown.values() if " ".join(text.split()) not in form] == []
            page.screenshot(path=tmp_path / f"{picture}-de.png", full_page=True)


def test_search_page_is_accessible(visitor: Page, address: str, axe: Axe) -> None:
    """axe-core finds nothing in the page; in Plone's theme around it, no more than on the front page."""
    page = visitor

    def rules() -> set[str]:
        return {line.partition(":")[0] for line in axe(page)}

    page.goto(address)
    theme = rules()
    for query in (
        "SearchableText=hedgehog&portal_type:list=Event&facet.Date:list=2025",
        "SearchableText=hegdehog",
        "",
        "SearchableText=xyzzyxyzzy",
        "SearchableText=xyzzyxyzzy&portal_type:list=Event",
        "SearchableText=steamer",
    ):
        page.goto(f"{address}/@@search?{query}")
        assert rules() <= theme, query
        assert axe(page, "#content-core") == [], query
        page.set_viewport_size({"width": 375, "height": 900})
        if page.locator("fieldset").count():
            unfold(page)
        assert axe(page, "#content-core") == [], query
        page.set_viewport_size({"width": 1280, "height": 900})
