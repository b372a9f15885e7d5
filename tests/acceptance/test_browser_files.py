"""Files in a real browser: a text in a file is found with a snippet, and a manager sees waiting and failed files."""

from demo import documents as files
from pathlib import Path
from playwright.sync_api import Browser
from playwright.sync_api import expect
from playwright.sync_api import Page
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from tests.acceptance.axe import Axe
from tests.acceptance.browser import BROWSER_TESTS
from tests.acceptance.browser import fits
from tests.acceptance.browser import managed
from tests.integration.uploads import upload
from tests.integration.uploads import work
from typing import Any

import pytest
import transaction


pytestmark = BROWSER_TESTS


def fill(portal: Any) -> None:
    """Upload a file that is found, three without a text, and one that waits, to a site with two languages."""
    portal.acl_users.userFolderAddUser("boss", "secret", ["Manager"], [])
    portal.portal_registry["plone.available_languages"] = ["en", "de"]
    portal.portal_registry["plone.use_request_negotiation"] = True
    upload(
        portal,
        "minutes.pdf",
        files.pdf_of([f"Item {n} of the agenda" for n in range(1, 12)] + [files.TEXT]),
    )
    upload(portal, "scan.pdf", files.pdf_of([""], b"/Subtype /Image"))
    upload(portal, "annual-report.pdf", files.pdf(files.TEXT)[:100])
    upload(portal, "budget.docx", b"not a document", files.DOCX)
    transaction.commit()
    database = portal._p_jar.db()
    work(Worker(database, database_dsn(database)))
    transaction.begin()
    upload(portal, "waits.odt", files.odt("bilby"), files.ODT)


SHARED = fill


@pytest.mark.parametrize(
    ("picture", "language", "width", "word"),
    [
        ("files-overview", "en-US", 1280, "without a text so far"),
        ("files-german", "de-DE", 1280, "noch ohne Text"),
        ("files-phone", "en-US", 375, "without a text so far"),
    ],
)
def test_manager_sees_waiting_and_failed_files(
    browser: Browser, address: str, axe: Axe, tmp_path: Path, picture: str, language: str, width: int, word: str
) -> None:
    with managed(browser, address, locale=language, width=width) as page:
        page.goto(f"{address}/portal_catalog/manage_catalogOverview")
        expect(page.locator("#files")).to_contain_text(word)
        expect(page.locator("#files-failed li")).to_have_count(3)
        expect(page.locator("#files-failed")).to_contain_text("/plone/annual-report.pdf")
        assert fits(page)
        assert axe(page, "main") == []
        page.screenshot(path=tmp_path / f"{picture}.png", full_page=True)
        if picture == "files-overview":
            page.get_by_role("link", name="/plone/annual-report.pdf").click()
            expect(page.locator("#failure")).to_contain_text("No text could be extracted from the file:")
            page.screenshot(path=tmp_path / "files-failed.png")


def test_text_in_a_file_is_found_with_a_snippet_and_its_page(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(f"{address}/@@search?SearchableText={files.WORD}")
    expect(page.locator(".result-title")).to_have_text(["minutes.pdf"])
    expect(page.locator("#search-results mark")).to_have_text(files.WORD)
    link = page.get_by_role("link", name="Page 12")
    expect(link).to_have_attribute("href", f"{address}/minutes.pdf/@@display-file/#page=12")
    page.screenshot(path=tmp_path / "file-page.png")
