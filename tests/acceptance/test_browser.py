"""In a real browser: slow queries, a plan, an index and its removal; the site's search, live search and its tuning."""

from collections.abc import Iterator
from pathlib import Path
from playwright.sync_api import expect
from playwright.sync_api import Page
from plone.pgcatalog.observe.log import histogram
from tests.acceptance.axe import Axe
from tests.acceptance.browser import BROWSER_TESTS
from tests.acceptance.browser import fits
from tests.acceptance.browser import served
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.slow_queries import generate_rows
from tests.integration.slow_queries import slow_listing
from tests.integration.waiting import background_ended
from typing import Any

import json
import psycopg
import pytest
import transaction


#: The word is in title and description, in the description, in the fewer words of a longer one, and not at all.
PAGES = {
    "hedgehogs": ("All about hedgehogs", "Hedgehogs of Europe"),
    "garden": ("Animals of the garden", "Visitors such as hedgehogs"),
    "night": ("At night", "Owls, bats, moths, cats, foxes, mice, toads and hedgehogs are awake when you are asleep"),
    "visits": ("Our rescue station", "When we are open, and how you find us"),
    "urchins": ("Urchins in old books", "They are the same animals"),
}

pytestmark = BROWSER_TESTS


@pytest.fixture(scope="module")
def address(site_template: str, postgres: Any) -> Iterator[str]:
    """Address of a site with rows, users and a slow query, served over HTTP."""
    dsn = sites.clone(postgres, site_template)
    generate_rows(dsn)
    with sites.opened(dsn) as db:
        with sites.inside(db) as portal, pytest.MonkeyPatch.context() as patch:
            portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
            portal.acl_users.userFolderAddUser("boss", "secret", ["Manager"], [])
            for name, (title, description) in PAGES.items():
                create(portal, "Document", name, title=title, description=description)
            transaction.commit()
            counted(dsn, portal.portal_catalog)
            patch.setenv("PGCATALOG_SLOW_QUERY_MS", "0.000001")
            slow_listing(portal)
            past_day(dsn)
        with served(db) as url:
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


def narrow(page: Page, path: Path) -> None:
    """Show the page at a phone's size, and take a screenshot."""
    page.set_viewport_size({"width": 375, "height": 800})
    page.screenshot(path=path, full_page=True)
    assert fits(page)
    page.set_viewport_size({"width": 1280, "height": 900})


def test_from_a_slow_query_to_an_index_and_back(
    page: Page,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
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
    narrow(page, tmp_path / "slow-queries-narrow.png")
    page.get_by_label("Period").select_option("the last 7 days")
    page.get_by_label("new since the last start").check()
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#empty")).to_be_visible()
    page.get_by_label("new since the last start").uncheck()
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_label("Period")).to_have_value("168")

    shape.click()
    page.screenshot(path=tmp_path / "shape.png", full_page=True)
    page.get_by_role("button", name="Explain").last.click()
    expect(page.locator("#plan")).to_contain_text("Time on the server")
    expect(page.locator("#then")).to_contain_text("Time on the server")
    expect(page.locator("#then")).not_to_contain_text("creator7")
    page.screenshot(path=tmp_path / "explain.png", full_page=True)
    narrow(page, tmp_path / "explain-narrow.png")

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
    page.screenshot(path=tmp_path / "dropped.png", full_page=True)


def test_the_tabs_of_the_catalog(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/portal_catalog/manage_catalogView")
    expect(page.locator("#rows tbody tr")).to_have_count(50)
    page.screenshot(path=tmp_path / "catalog.png", full_page=True)
    first = page.locator("#rows tbody a").first.inner_text()
    page.locator("#next").click()
    page.locator("#previous").click()
    expect(page.locator("#rows tbody a").first).to_have_text(first)
    page.fill("input[name=filterpath]", "/plone/hedgehogs")
    page.get_by_role("button", name="Set path filter").click()
    expect(page.locator("#total")).to_have_text("1")
    page.locator("#rows tbody a").click()
    expect(page.locator("#metadata")).to_contain_text("All about hedgehogs")
    page.screenshot(path=tmp_path / "information.png", full_page=True)

    page.get_by_role("link", name="Indexes & Metadata").click()
    expect(page.locator("tr[data-index=Subject]")).to_contain_text("USING gin")
    page.screenshot(path=tmp_path / "indexes.png", full_page=True)


def test_the_control_panel_changes_settings(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/@@overview-controlpanel")
    page.locator("main, #content").get_by_role("link", name="PostgreSQL Catalog").last.click()
    field = page.locator("input[name='form.widgets.slow_query_ms']")
    expect(field).to_have_value("10.0")
    expect(page.locator("#health")).to_contain_text("Healthy: nothing needs attention")
    page.screenshot(path=tmp_path / "settings.png", full_page=True)
    narrow(page, tmp_path / "settings-narrow.png")
    field.fill("25")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("input[name='form.widgets.slow_query_ms']")).to_have_value("25.0")
    expect(page.locator(".portalMessage, .statusmessage").first).to_contain_text("Changes saved")
    field.fill("-1")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".error, .invalid-feedback, .alert-danger").first).to_be_visible()


def hits(page: Page) -> list[str]:
    """Return the titles on the search page."""
    return [title.strip() for title in page.locator("#search-results .result-title a").all_inner_texts()]


def test_the_search_page_shows_ranked_hits_and_what_editors_want(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/@@search?SearchableText=hedgehogs")
    expect(page.locator("#search-results-number")).to_have_text("3")
    found = [PAGES[name][0] for name in ("hedgehogs", "garden", "night")]
    assert hits(page) == found
    page.screenshot(path=tmp_path / "search.png", full_page=True)

    page.goto(f"{address}/@@pgcatalog-search-controlpanel")
    page.get_by_label("Pinned pages").fill("hedgehogs = nowhere")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#content")).to_contain_text("Line 1: 'nowhere' is neither a path in the site")
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
    page.screenshot(path=tmp_path / "live-search.png")

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


@pytest.mark.parametrize("width", [1280, 375])
def test_control_panel_and_tabs_are_accessible(page: Page, address: str, axe: Axe, width: int) -> None:
    """axe-core finds nothing in the control panel and in the tabs; Zope's frame around them is not ours."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{address}/@@pgcatalog-controlpanel")
    assert axe(page, "#content") == []
    wrong = []
    for tab in ("catalogOverview", "slow_queries", "index_advice", "catalogView", "catalogIndexes", "catalogAdvanced"):
        page.goto(f"{address}/portal_catalog/manage_{tab}")
        wrong += axe(page, "main")
    page.goto(f"{address}/portal_catalog/manage_slow_queries")
    page.locator("#groups tbody a").first.click()
    page.get_by_role("button", name="Explain").last.click()
    expect(page.locator("#plan")).to_be_visible()
    wrong += axe(page, "main")
    assert wrong == []


def test_rebuild_with_a_click(page: Page, address: str, tmp_path: Path) -> None:
    """Runs after the tests that need the generated rows, which have no objects."""
    page.goto(f"{address}/portal_catalog/manage_catalogAdvanced")
    page.screenshot(path=tmp_path / "advanced.png", full_page=True)
    page.get_by_role("link", name="Overview").click()
    expect(page.locator("#figures")).to_contain_text("SQL indexes")
    page.screenshot(path=tmp_path / "overview.png", full_page=True)
    narrow(page, tmp_path / "overview-narrow.png")
    page.get_by_role("button", name="Verify", exact=True).click()
    # The page reloads itself during the work.
    expect(page.locator("tr[data-name=verify]")).to_have_attribute("data-state", "done")
    expect(page.locator("tr[data-name=verify]")).to_contain_text("orphaned")
    page.get_by_role("button", name="Rebuild").click()
    expect(page.locator("tr[data-name=rebuild]")).to_have_attribute("data-state", "done")
    page.screenshot(path=tmp_path / "rebuilt.png", full_page=True)
