"""In a real browser: a copied site says that its catalog was not filled, and a manager fills it with one click."""

from collections.abc import Iterator
from pathlib import Path
from playwright.sync_api import expect
from playwright.sync_api import Page
from plone.pgcatalog.database import background
from tests.acceptance.browser import CHROMIUM
from tests.integration import site as sites
from tests.integration.content import populate
from tests.integration.web import application
from typing import Any
from waitress.server import create_server
from zope.component.hooks import setSite

import pytest
import threading
import transaction


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no browser is installed"),
]


@pytest.fixture(scope="module")
def address(site_template: str, postgres: Any) -> Iterator[str]:
    """Address of the copy of a site, served over HTTP."""
    with sites.opened(sites.clone(postgres, site_template)) as db:
        with sites.application(db) as app:
            sites.login(app)
            setSite(app.plone)
            app.plone.acl_users.userFolderAddUser("boss", "secret", ["Manager"], [])
            populate(app.plone)
            transaction.commit()
            setSite(None)
            app.manage_pasteObjects(app.manage_copyObjects(["plone"]))
            transaction.commit()
        server = create_server(application(db), host="127.0.0.1", port=0)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield f"http://localhost:{server.effective_port}/copy_of_plone"
        finally:
            server.close()
            thread.join(30)
            assert background.wait(60)


def test_a_manager_fills_the_catalog_of_a_copied_site(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/portal_catalog/manage_catalogView")
    expect(page.locator("#unfilled")).to_contain_text("This catalog has not been filled")
    expect(page.locator("#empty")).to_be_visible()
    page.screenshot(path=tmp_path / "zmi.png", full_page=True)

    page.goto(f"{address}/@@pgcatalog-controlpanel")
    expect(page.locator("#unfilled")).to_contain_text("This catalog has not been filled")
    page.screenshot(path=tmp_path / "panel.png", full_page=True)
    page.get_by_role("button", name="Fill the catalog").click()
    expect(page.locator(".portalMessage, .alert-info").first).to_contain_text("The catalog is being filled.")
    page.screenshot(path=tmp_path / "filling.png", full_page=True)

    assert background.wait(60)
    page.reload()
    expect(page.locator("#unfilled")).to_have_count(0)
    page.goto(f"{address}/portal_catalog/manage_catalogView")
    expect(page.locator("#unfilled")).to_have_count(0)
    expect(page.locator("#rows")).to_contain_text("/copy_of_plone/my_folder/page")
