"""The search page of a site that searches all sites, in a browser."""

from collections.abc import Iterator
from pathlib import Path
from playwright.sync_api import Browser
from playwright.sync_api import expect
from tests.acceptance.axe import Axe
from tests.acceptance.browser import BROWSER_TESTS
from tests.acceptance.browser import fits
from tests.acceptance.browser import found
from tests.acceptance.browser import opened
from tests.acceptance.browser import served
from tests.acceptance.browser import unfold
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.people import publish
from tests.integration.two_sites import enter
from typing import Any

import pytest
import transaction


pytestmark = BROWSER_TESTS

TITLES = {"plone": "Town", "second": "Museum"}


@pytest.fixture(scope="module")
def address(two_sites_template: str, postgres: Any) -> Iterator[str]:
    """The address of a site that searches another one, too."""
    with sites.opened(sites.clone(postgres, two_sites_template)) as db:
        with sites.application(db) as app:
            sites.login(app)
            for name, title in TITLES.items():
                site = app[name]
                enter(site)
                site.title = title
                for record in ("all_sites", "offered_to_sites"):
                    site.portal_registry[f"plone.pgcatalog.{record}"] = True
                for number in range(3):
                    text = f"A hedgehog in the garden of the {title}."
                    publish(create(site, "Document", f"page-{number}", title=f"Hedgehog {number}", description=text))
                transaction.commit()
                counted(db.storage._dsn, site.portal_catalog)
        with served(db) as address:
            yield address


@pytest.mark.parametrize("width", [1280, 375])
def test_hits_of_all_sites_are_shown_and_one_is_chosen(
    browser: Browser, address: str, axe: Axe, tmp_path: Path, width: int
) -> None:
    with opened(browser, width, 740) as context:
        page = context.new_page()
        page.goto(f"{address}/@@search?SearchableText=hedgehog")
        found(page, 6)
        assert fits(page)
        page.screenshot(path=tmp_path / f"search-sites{'' if width > 1000 else '-small'}.png", full_page=True)
        assert axe(page, "#content") == []
        if width < 1000:
            unfold(page)
        page.locator("#search-facets").get_by_label("Museum").check()
        found(page, 3)
        expect(page.locator("#search-results")).not_to_contain_text("Town")
