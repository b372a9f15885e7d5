"""Files in a real browser: a text in a file is found with a snippet, and a manager sees waiting and failed files."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from demo import documents as files
from pathlib import Path
from playwright.sync_api import Browser
from playwright.sync_api import expect
from plone import api
from plone.pgcatalog.queue.worker import Worker
from tests.acceptance.axe import Axe
from tests.acceptance.browser import BROWSER_TESTS
from tests.acceptance.browser import fits
from tests.acceptance.browser import managed
from tests.acceptance.browser import served
from tests.integration import site as sites
from tests.integration.uploads import upload
from typing import Any

import pytest
import transaction


pytestmark = BROWSER_TESTS


@pytest.fixture(scope="module")
def address(site_template: str, postgres: Any) -> Iterator[str]:
    """Address of a site with a file that is found, two without a text, and one that waits."""
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db:
        with sites.inside(db) as portal:
            portal.acl_users.userFolderAddUser("boss", "secret", ["Manager"], [])
            api.portal.set_registry_record("plone.available_languages", ["en", "de"])
            api.portal.set_registry_record("plone.use_request_negotiation", True)
            upload(portal, "minutes.pdf", files.pdf(files.TEXT))
            upload(portal, "annual-report.pdf", files.pdf(files.TEXT)[:100])
            upload(portal, "budget.docx", b"not a document", files.DOCX)
            transaction.commit()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(Worker(db, dsn).run_until_empty).result()
            upload(portal, "waits.odt", files.odt("bilby"), files.ODT)
            transaction.commit()
        with served(db) as url:
            yield url


@pytest.mark.parametrize(
    ("language", "width", "word"),
    [
        ("en-US", 1280, "without a text so far"),
        ("de-DE", 1280, "noch ohne Text"),
        ("en-US", 375, "without a text so far"),
    ],
)
def test_manager_sees_waiting_and_failed_files(
    browser: Browser, address: str, axe: Axe, tmp_path: Path, language: str, width: int, word: str
) -> None:
    name = {"de-DE": "files-german"}.get(language, "files-overview" if width == 1280 else "files-phone")
    with managed(browser, address, locale=language, width=width) as page:
        page.goto(f"{address}/portal_catalog/manage_catalogOverview")
        expect(page.locator("#files")).to_contain_text(word)
        expect(page.locator("#files-failed li")).to_have_count(2)
        expect(page.locator("#files-failed")).to_contain_text("/plone/annual-report.pdf")
        assert fits(page)
        assert axe(page, "main") == []
        page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
        if name == "files-overview":
            page.get_by_role("link", name="/plone/annual-report.pdf").click()
            expect(page.locator("#failure")).to_contain_text("No text could be extracted from the file:")
            page.screenshot(path=tmp_path / "files-failed.png")


def test_text_in_a_file_is_found_with_a_snippet(browser: Browser, address: str, tmp_path: Path) -> None:
    with managed(browser, address) as page:
        page.goto(f"{address}/@@search?SearchableText={files.WORD}")
        expect(page.locator(".result-title")).to_have_text(["minutes.pdf"])
        expect(page.locator("#search-results mark")).to_have_text(files.WORD)
        page.screenshot(path=tmp_path / "files-found.png")
        page.goto(f"{address}/@@pgcatalog-controlpanel")
        expect(page.get_by_label("Index the text of files")).to_be_checked()
        page.screenshot(path=tmp_path / "files-panel.png", full_page=True)
