"""In a real browser: a copied site shows that its catalog was not filled, and a manager fills it with one click."""

from collections.abc import Iterator
from playwright.sync_api import expect
from playwright.sync_api import Page
from tests.acceptance.browser import BROWSER_TESTS
from tests.acceptance.browser import served
from tests.integration import site as sites
from tests.integration.content import populate
from tests.integration.waiting import background_ended
from tests.integration.web import Site
from zope.component.hooks import setSite

import pytest
import transaction


pytestmark = BROWSER_TESTS


@pytest.fixture(scope="module")
def address(shared_site: Site) -> Iterator[str]:
    """Address of the copy of a site, served over HTTP."""
    with sites.application(shared_site.db) as app:
        sites.login(app)
        setSite(app.plone)
        app.plone.acl_users.userFolderAddUser("boss", "secret", ["Manager"], [])
        populate(app.plone)
        transaction.commit()
        setSite(None)
        app.manage_pasteObjects(app.manage_copyObjects(["plone"]))
        transaction.commit()
    with served(shared_site.db, "copy_of_plone") as url:
        yield url


def test_a_manager_fills_the_catalog_of_a_copied_site(page: Page, address: str) -> None:
    page.goto(f"{address}/portal_catalog/manage_catalogView")
    expect(page.locator("#unfilled")).to_contain_text("This catalog has not been filled")
    expect(page.locator("#empty")).to_be_visible()

    page.goto(f"{address}/@@pgcatalog-controlpanel")
    expect(page.locator("#unfilled")).to_contain_text("This catalog has not been filled")
    page.get_by_role("button", name="Fill the catalog").click()
    expect(page.locator(".portalMessage, .alert-info").first).to_contain_text("The catalog is being filled.")

    assert background_ended()
    page.reload()
    expect(page.locator("#unfilled")).to_have_count(0)
    page.goto(f"{address}/portal_catalog/manage_catalogView")
    expect(page.locator("#unfilled")).to_have_count(0)
    expect(page.locator("#rows")).to_contain_text("/copy_of_plone/my_folder/page")
