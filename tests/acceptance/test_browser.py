"""In a real browser: slow queries, a plan, an index and its removal; the site's search, live search and its tuning."""

from collections.abc import Iterator
from pathlib import Path
from playwright.sync_api import expect
from playwright.sync_api import Page
from plone.pgcatalog.observe.log import histogram
from plone.pgcatalog.queue.table import put
from tests.acceptance.axe import Axe
from tests.acceptance.browser import BROWSER_TESTS
from tests.acceptance.browser import fits
from tests.acceptance.browser import served
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.slow_queries import generate_rows
from tests.integration.slow_queries import slow_listing
from tests.integration.waiting import background_ended
from tests.integration.web import Site
from typing import Any

import json
import psycopg
import pytest


#: The word is in title and description, in the description, in the fewer words of a longer one, and not at all.
PAGES = {
    "hedgehogs": ("All about hedgehogs", "Hedgehogs of Europe"),
    "garden": ("Animals of the garden", "Visitors such as hedgehogs"),
    "night": ("At night", "Owls, bats, moths, cats, foxes, mice, toads and hedgehogs are awake when you are asleep"),
    "visits": ("Our rescue station", "When we are open, and how you find us"),
    "urchins": ("Urchins in old books", "They are the same animals"),
}

pytestmark = BROWSER_TESTS


def fill(portal: Any) -> None:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    portal.acl_users.userFolderAddUser("boss", "secret", ["Manager"], [])
    for name, (title, description) in PAGES.items():
        create(portal, "Document", name, title=title, description=description)


SHARED = fill


@pytest.fixture(scope="module")
def address(shared_site: Site) -> Iterator[str]:
    """Address of a site with generated rows and a slow query, served over HTTP."""
    generate_rows(shared_site.dsn)
    with shared_site.inside() as portal, pytest.MonkeyPatch.context() as patch:
        counted(shared_site.dsn, portal.portal_catalog)
        patch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
        slow_listing(portal)
        past_day(shared_site.dsn)
    with served(shared_site.db) as url:
        yield url


def past_day(dsn: str) -> None:
    """Create a history of the slow query: the 23 hours before, and the same time last week; and of the catalog sizes."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        [line] = connection.execute("SELECT catalog, operation, shape FROM pgcatalog_history").fetchall()
        for hour in range(1, 24):
            times = [12.0 + (hour * n) % 37 + (180 if hour == 9 else 0) for n in range(3 + (hour * 7) % 19)]
            for days, times_then in ((0, times), (7, times[::2])):
                connection.execute(
                    "INSERT INTO pgcatalog_history SELECT %s, date_trunc('hour', now(), 'UTC')"
                    " - %s * interval '1 hour' - %s * interval '1 day', %s, %s, %s",
                    (line[0], hour, days, *line[1:], histogram(times_then)),
                )
        connection.execute(
            "INSERT INTO pgcatalog_history SELECT %s, now() - interval '6 days', '', '', %s",
            (line[0], [3412, 10, 10, 1]),
        )


def test_from_a_slow_query_to_an_index_and_back(
    page: Page, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.goto(f"{address}/portal_catalog/manage_catalogAdvanced")
    page.get_by_role("link", name="Slow Queries").click()
    expect(page.locator("#groups tbody tr")).to_have_count(1)
    shape = page.locator("#groups tbody a")
    expect(shape).to_have_text("Creator =; portal_type =; sort modified desc; limit")
    expect(page.locator("#chart svg").first.locator("rect")).to_have_count(24)
    # The default; so slow queries from here on are recorded, and our query is the last of the list.
    monkeypatch.setenv("PGCATALOG_SLOW_QUERY_MS", "10")
    page.reload()
    page.screenshot(path=tmp_path / "slow-queries.png", full_page=True)
    page.get_by_label("Period").select_option("the last 7 days")
    page.get_by_label("new since the last start").check()
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#empty")).to_be_visible()
    page.get_by_label("new since the last start").uncheck()
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_label("Period")).to_have_value("168")

    shape.click()
    page.get_by_role("button", name="Explain").last.click()
    expect(page.locator("#plan")).to_contain_text("Time on the server")
    expect(page.locator("#then")).to_contain_text("Time on the server")
    expect(page.locator("#then")).not_to_contain_text("creator7")
    page.screenshot(path=tmp_path / "explain.png", full_page=True)

    page.get_by_role("link", name="Index Advice").first.click()
    page.get_by_role("button", name="Look for indexes").click()
    expect(page.locator("#advice")).to_contain_text("CREATE INDEX CONCURRENTLY")
    page.screenshot(path=tmp_path / "advice.png", full_page=True)
    page.get_by_role("button", name="Apply").first.click()
    made = page.locator("#made tbody tr")
    # The page reloads itself while the index is being built.
    expect(made.first).to_have_attribute("data-state", "ready")
    page.screenshot(path=tmp_path / "applied.png", full_page=True)
    made.get_by_role("button", name="Drop").click()
    assert background_ended()
    page.goto(f"{address}/portal_catalog/manage_index_advice")
    expect(made).to_have_count(0)


def hits(page: Page) -> list[str]:
    """Return the titles on the search page."""
    return [title.strip() for title in page.locator("#search-results .result-title a").all_inner_texts()]


def test_tuning_changes_the_search_page_live_search_and_facets(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/@@search?SearchableText=hedgehogs")
    found = [PAGES[name][0] for name in ("hedgehogs", "garden", "night")]
    assert hits(page) == found
    page.goto(f"{address}/@@pgcatalog-search-controlpanel")
    page.get_by_label("Pinned pages").fill("hedgehogs = /visits\nopening hours = /visits")
    page.get_by_label("Synonyms").fill("hedgehogs, urchins")
    page.get_by_label("Stop words").fill("en: the, a, of\nde: der, die, das")
    page.get_by_label("Content types").fill("News Item = 2")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".alert-info")).to_contain_text("Changes saved")
    page.screenshot(path=tmp_path / "search-tuning.png", full_page=True)

    page.goto(f"{address}/@@search?SearchableText=hedgehogs")
    expect(page.locator("#search-results-number")).to_have_text("5")
    assert hits(page)[0] == PAGES["visits"][0]
    assert [title for title in hits(page) if title in found] == found
    page.screenshot(path=tmp_path / "search-tuned.png", full_page=True)

    page.goto(address)
    page.locator("#searchGadget").press_sequentially("hedgehogs")
    live = page.locator(".livesearch-results .search-result a .heading, .livesearch-results .search-result .heading")
    expect(live).to_have_count(5)
    expect(live.first).to_have_text(PAGES["visits"][0])

    # At this path Plone answers a browser with JSON.
    query = "q=hedgehogs&facets=portal_type,Creator,review_state&rows=2"
    page.goto(f"{address}/++api++/@pgsearch?{query}")
    answer = json.loads(page.locator("pre").inner_text())
    assert answer["response"]["numFound"] == 5
    assert {field["name"]: values for field, values in answer["facet_fields"]}["portal_type"] == [["Document", 5]]
    page.set_viewport_size({"width": 1000, "height": 800})
    page.screenshot(path=tmp_path / "facets-rest.png")


def test_plones_search_page_shows_the_correction(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/@@pgcatalog-search-page-controlpanel")
    page.get_by_label("Search page with facets").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".alert-info")).to_contain_text("Changes saved")
    meant = page.locator("#did-you-mean a")
    page.goto(f"{address}/@@search?SearchableText=hegdehogs&sort_on=sortable_title")
    expect(meant).to_have_text("hedgehogs")
    page.screenshot(path=tmp_path / "did-you-mean.png", full_page=True)

    # Another search within the page replaces the results only.
    field = page.locator("#searchform input[name=SearchableText]")
    field.fill("visitors")
    field.press("Enter")
    expect(page.locator("#search-results-number")).to_have_text("1")
    expect(meant).to_have_count(0)
    field.fill("Vistiors")
    field.press("Enter")
    expect(meant).to_have_text("Visitors")
    meant.click()
    expect(page.locator("#search-results-number")).to_have_text("1")
    assert hits(page) == [PAGES["garden"][0]]
    assert "portal_type%3Alist=Document" in page.url
    expect(meant).to_have_count(0)


#: Pages that need no horizontal scrolling, even on a phone.
FITTING = {"settings", "overview", "tab-slow_queries", "plan"}
#: Tab of the catalog in the ZMI -> its picture.
TABS = {"Overview": "overview", "View": "catalog", "Indexes": "indexes", "Advanced": "tab-advanced"}


def test_control_panel_and_tabs_are_accessible(page: Page, address: str, axe: Axe, tmp_path: Path) -> None:
    """axe-core finds nothing in the control panel and in the tabs; Zope's frame around them is not ours."""
    faults = []

    def look(picture: str, inside: str = "main") -> None:
        page.screenshot(path=tmp_path / f"{picture}.png", full_page=True)
        for width in (375, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            assert fits(page) or picture not in FITTING
            faults.extend(axe(page, inside))

    page.goto(f"{address}/@@pgcatalog-controlpanel")
    expect(page.locator("#health")).to_contain_text("Healthy: nothing needs attention")
    look("settings", "#content")
    for tab, picture in TABS.items():
        page.goto(f"{address}/portal_catalog/manage_catalog{tab}")
        look(picture)
    page.goto(f"{address}/portal_catalog/manage_catalogView?filterpath=/plone/hedgehogs")
    page.locator("#rows tbody a").first.click()
    expect(page.locator("#metadata")).to_contain_text("All about hedgehogs")
    look("information")
    for tab in ("index_advice", "slow_queries"):
        page.goto(f"{address}/portal_catalog/manage_{tab}")
        look(f"tab-{tab}")
    page.locator("#groups tbody a").first.click()
    page.get_by_role("button", name="Explain").last.click()
    expect(page.locator("#plan")).to_be_visible()
    look("plan")
    assert faults == []


def test_rebuild_with_a_click(page: Page, address: str, shared_site: Site, axe: Axe, tmp_path: Path) -> None:
    """Runs after the tests that need the generated rows, which have no objects."""
    page.goto(f"{address}/portal_catalog/manage_catalogOverview")
    page.get_by_role("button", name="Verify", exact=True).click()
    # The page reloads itself during the work.
    expect(page.locator("tr[data-name=verify]")).to_have_attribute("data-state", "done")
    expect(page.locator("tr[data-name=verify]")).to_contain_text("orphaned")
    with psycopg.connect(shared_site.dsn) as connection:
        [(catalog,)] = connection.execute("SELECT catalog FROM pgcatalog_state").fetchall()
        put(connection.cursor(), "text", catalog, range(1, 4))
    page.get_by_role("button", name="Rebuild").click()
    expect(page.locator("tr[data-name=rebuild]")).to_have_attribute("data-state", "done")
    expect(page.locator("#queue tbody tr").filter(has_text="text")).to_contain_text("3")
    page.screenshot(path=tmp_path / "advanced.png", full_page=True)
    assert axe(page, "main") == []
