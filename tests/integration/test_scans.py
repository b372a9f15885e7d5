"""Scanned pages are recognised if the site is set so, in its languages."""

from demo import documents as files
from io import BytesIO
from PIL import Image
from PIL import ImageDraw
from PIL import ImageFont
from plone.pgcatalog.files import scans
from plone.pgcatalog.files.job import repeat_failed
from tests.integration.uploads import site as site
from tests.integration.uploads import upload
from tests.integration.uploads import work
from typing import Any

import psycopg
import pytest
import transaction


pytestmark = pytest.mark.skipif(not scans.installed(), reason="needs Tesseract")


def scan(*texts: str) -> bytes:
    """Return a PDF whose pages are pictures of *texts*."""
    pages = []
    for text in texts:
        page = Image.new("L", (1200, 400), 255)
        ImageDraw.Draw(page).text((60, 150), text, fill=0, font=ImageFont.load_default(72))
        pages.append(page)
    out = BytesIO()
    pages[0].save(out, "PDF", save_all=True, append_images=pages[1:], resolution=150)
    return out.getvalue()


def found(portal: Any) -> list[str]:
    transaction.begin()
    return [brain.getId for brain in portal.portal_catalog(SearchableText="quokka")]


def test_scanned_pages_are_found_once_the_setting_is_on(site: Any) -> None:
    portal, worker = site
    upload(portal, "scan", scan("Wombats", "A quokka sleeps"), files.PDF)
    transaction.commit()
    work(worker)
    assert found(portal) == []
    portal.portal_catalog._settings = {"text_of_scans": True}
    transaction.commit()
    assert scans.languages_of(portal.portal_catalog) == "eng"
    with psycopg.connect(worker.dsn, autocommit=True) as connection:
        repeat_failed(connection, portal.portal_catalog._core.zoid)
    portal.scan.reindexObject()
    transaction.commit()
    work(worker)
    assert found(portal) == ["scan"]
    with psycopg.connect(worker.dsn) as connection:
        [(text, extractor)] = connection.execute("SELECT text, extractor FROM pgcatalog_file_texts").fetchall()
    assert [page.strip() for page in text.split("\f")] == ["Wombats", "A quokka sleeps"]
    assert extractor.endswith(", tesseract")
