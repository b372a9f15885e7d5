"""In a real browser: live search by keyboard, similar pages, and the tuning of the search with a trial query."""

from pathlib import Path
from playwright.sync_api import expect
from playwright.sync_api import Page
from plone.app.textfield import RichTextValue
from plone.pgcatalog.observe import searches
from tests.acceptance.axe import Axe
from tests.acceptance.browser import BROWSER_TESTS
from tests.integration.content import create
from tests.integration.content import tune
from tests.integration.people import publish
from tests.integration.web import Site
from typing import Any

import pytest
import re


pytestmark = BROWSER_TESTS

#: id -> (title, description, text)
PAGES = {
    "hedgehogs": ("All about hedgehogs", "Hedgehogs of Europe", "They sleep through the winter under leaves."),
    "garden": ("Animals of the garden", "Visitors such as hedgehogs", "They like leaves, and sleep in the winter."),
    "night": ("At night", "Who is awake when you are asleep", "Owls, bats, moths, cats, foxes, toads and hedgehogs."),
    "visits": ("Our rescue station", "When we are open", "From April to October, and how you find us."),
    "urchins": ("Urchins in old books", "The same animals", "Another name, in tales of winter and leaves."),
    "hedges": ("Planting a hedge", "Which shrubs grow well", "A hedge of hazel, hawthorn and dogwood."),
}
PHONE = {"width": 375, "height": 740}


def fill(portal: Any) -> None:
    """Create published pages in a site with two languages; a Site Administrator is called boss."""
    portal.portal_workflow.setChainForPortalTypes(("Document",), ("simple_publication_workflow",))
    portal.acl_users.userFolderAddUser("boss", "secret", ["Site Administrator"], [])
    for name, (title, description, text) in PAGES.items():
        page = create(portal, "Document", name, title=title, description=description)
        page.text = RichTextValue(text, "text/plain")
        page.reindexObject()
        publish(page)
    tune(related_pages=3)
    portal.portal_registry["plone.available_languages"] = ["en", "de"]
    portal.portal_registry["plone.use_cookie_negotiation"] = True


SHARED = fill


@pytest.fixture(scope="module", autouse=True)
def recorded_searches(shared_site: Site) -> None:
    with shared_site.inside() as portal:
        zoid = portal.portal_catalog._core.zoid
    for words, times, found in (("hedgehogs", 41, True), ("opening hours", 17, False), ("igel", 9, False)):
        for _ in range(times):
            searches.record(shared_site.dsn, zoid, words, found)
    assert searches.flush(30)


def test_live_search_is_a_combobox(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(address)
    field = page.get_by_role("combobox", name="Search Site")
    expect(field).to_have_attribute("aria-expanded", "false")
    field.press_sequentially("hedge")
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options.last).to_have_text("Search for hedges")
    expect(options.first).to_have_attribute("dir", "auto")
    expect(field).to_have_attribute("aria-expanded", "true")
    expect(page.locator("[role=status]")).to_contain_text("results")
    page.screenshot(path=tmp_path / "live-search-words.png")

    # By keyboard to the last option, on to no option and the first one, and back.
    first, last = (option.get_attribute("id") for option in (options.first, options.last))
    for key, active in (("Up", last), ("Down", None), ("Down", first), ("Up", None), ("Up", last)):
        field.press(f"Arrow{key}")
        assert field.get_attribute("aria-activedescendant") == active
    expect(options.last).to_have_attribute("aria-selected", "true")
    assert field.evaluate("element => element === document.activeElement")
    field.press("Enter")
    page.wait_for_url("**/@@search?SearchableText=hedges")

    page.goto(address)
    field.press_sequentially("hedge")
    expect(options.first).to_be_visible()
    field.press("Escape")
    expect(field).to_have_attribute("aria-expanded", "false")
    expect(field).to_have_value("")


def test_live_search_shows_the_hits_of_the_correction(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(address)
    field = page.get_by_role("combobox", name="Search Site")
    field.press_sequentially("hegdehogs")
    options = page.get_by_role("option")
    expect(options.first).to_have_text("Showing results for hedgehogs")
    expect(options).to_have_count(4)
    expect(page.locator("[role=status]")).to_contain_text("Showing results for hedgehogs")
    page.screenshot(path=tmp_path / "live-search-corrected.png")


def test_similar_pages_are_below_the_text(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/hedgehogs")
    related = page.get_by_role("complementary", name="Similar pages")
    expect(related.get_by_role("link").first).to_have_text(PAGES["garden"][0])
    page.screenshot(path=tmp_path / "related-pages.png", full_page=True)


def test_a_query_is_tried_before_anything_is_saved(page: Page, address: str, tmp_path: Path) -> None:
    hits = page.locator("#try-hits tbody tr")
    page.goto(f"{address}/@@pgcatalog-search-controlpanel")
    page.locator("#try-text").fill("hedgehogs")
    page.get_by_role("button", name="Try", exact=True).first.click()
    expect(hits).to_have_count(3)
    expect(hits.first).to_contain_text("All about hedgehogs")
    expect(hits.first).to_contain_text("Title")
    page.get_by_label("Synonyms").fill("hedgehogs, urchins")
    page.get_by_label("Words in descriptions").fill("20")
    page.get_by_role("button", name="Try", exact=True).first.click()
    expect(hits).to_have_count(4)
    expect(hits.filter(has_text="Urchins in old books")).to_contain_text("new")

    # Plone's content browser selects the page to pin.
    page.get_by_text("Pin a page", exact=True).first.click()
    expect(page.locator("#pin-words")).to_have_value("hedgehogs")
    page.locator("#pin-a-page .content-browser-selected-items-wrapper button, #pin-a-page a.btn").first.click()
    page.locator(".content-browser-wrapper").get_by_text("Our rescue station").first.click()
    page.locator(".content-browser-wrapper").get_by_role("button", name="select").first.click()
    page.get_by_role("button", name="Add to the form and try").first.click()
    expect(hits).to_have_count(5)
    expect(hits.first).to_contain_text("Our rescue station")
    expect(hits.first).to_contain_text("pinned")
    expect(page.get_by_label("Pinned pages")).to_have_value(re.compile(r"^hedgehogs = [0-9a-f]{32}$"))
    page.screenshot(path=tmp_path / "tuning-preview.png", full_page=True)
    page.set_viewport_size(PHONE)
    page.screenshot(path=tmp_path / "tuning-preview-phone.png", full_page=True)
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".alert-info, .portalMessage").first).to_contain_text("Changes saved")
    page.goto(f"{address}/@@search?SearchableText=hedgehogs")
    expect(page.locator("#search-results .result-title a").first).to_have_text("Our rescue station")


def test_top_searches_lead_to_synonyms_and_pins(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/@@pgcatalog-search-controlpanel")
    missed = page.locator("#missed-searches li")
    expect(missed).to_have_count(2)
    expect(page.locator("#top-searches li").first).to_contain_text("hedgehogs")
    missed.filter(has_text="igel").get_by_role("button", name="Add a synonym").click()
    expect(page.locator("#synonym-word")).to_have_value("igel")
    page.locator("#synonym-other").fill("hedgehogs")
    page.get_by_role("button", name="Add to the form and try").last.click()
    expect(page.locator("#try-hits tbody tr").first).to_be_visible()
    expect(page.get_by_label("Synonyms")).to_have_value("hedgehogs, urchins\nigel, hedgehogs")
    page.screenshot(path=tmp_path / "tuning-synonym.png", full_page=True)
    missed.filter(has_text="opening hours").get_by_role("button", name="Pin a page").click()
    expect(page.locator("#pin-words")).to_have_value("opening hours")


def test_live_search_similar_pages_and_tuning_are_in_german(page: Page, address: str, tmp_path: Path) -> None:
    page.context.add_cookies([{"name": "I18N_LANGUAGE", "value": "de", "url": address}])
    page.goto(f"{address}/@@pgcatalog-search-controlpanel?try_text=hedgehogs&try=1")
    expect(page.get_by_role("heading", name="Suche abstimmen")).to_be_visible()
    expect(page.get_by_role("heading", name="Häufigste Suchen")).to_be_visible()
    expect(page.locator("#try-hits")).to_contain_text("Titel")
    page.screenshot(path=tmp_path / "tuning-preview-german.png", full_page=True)
    page.goto(f"{address}/hedgehogs")
    expect(page.get_by_role("heading", name="Ähnliche Seiten")).to_be_visible()
    page.get_by_role("combobox").press_sequentially("hegdehogs")
    expect(page.get_by_role("option").first).to_have_text("Ergebnisse für hedgehogs")


@pytest.mark.parametrize("width", [1280, 375])
def test_live_search_similar_pages_and_tuning_are_accessible(page: Page, address: str, axe: Axe, width: int) -> None:
    """axe-core finds nothing in live search, similar pages and the tuning of the search."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{address}/hedgehogs")
    assert axe(page, "#related-pages") == []
    if width < 992:
        page.locator(".navbar-toggler").click()
        # Plone's menu takes the focus when it has opened: earlier key presses are lost.
        expect(page.locator("#offcanvasNavbar")).to_be_focused()
    field = page.get_by_role("combobox", name="Search Site")
    for text in ("hegdehogs", "hedge"):
        field.fill("")
        field.press_sequentially(text)
        expect(page.get_by_role("option").first).to_be_visible()
        field.press("ArrowDown")
        assert axe(page, "#searchGadget", ".livesearch-results") == [], text
    page.goto(f"{address}/@@pgcatalog-search-controlpanel?try_text=hedgehogs&try=1")
    for summary in page.locator("#try-a-query summary").all():
        summary.click()
    expect(page.locator("#pin-a-page .content-browser-selected-items-wrapper")).to_be_visible()
    assert axe(page, "#content-core") == []
