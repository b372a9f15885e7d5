"""Files in a site are read by what they are, once for each kind of the same bytes, for each row; and an empty text is listed."""

from demo import documents as files
from itertools import permutations
from plone.namedfile.file import NamedBlobFile
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.extractor import KINDS
from plone.pgcatalog.files.job import repeat_failed
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import restored
from plone.registry.interfaces import IRegistry
from tests.integration.content import create
from tests.integration.oracle import make_oracle
from tests.integration.uploads import Counted
from tests.integration.uploads import extractor as extractor
from tests.integration.uploads import queued
from tests.integration.uploads import site as site
from tests.integration.uploads import work
from tests.integration.uploads import worker as worker
from tests.integration.web import Site
from tests.integration.web import text
from typing import Any
from zope.component import getUtility
from zope.event import notify
from zope.lifecycleevent import ObjectModifiedEvent

import pytest
import transaction


XLS, DOC, CSV = "application/vnd.ms-excel", "application/msword", "text/csv"
TABLE = b"Name;Ort\nAnna;Wombat\n"
HTML = b"<html><body><table><tr><td>Wombat</td></tr></table></body></html>"


def upload(portal: Any, name: str, data: bytes, kind: str = "", filename: str = "file.bin") -> None:
    create(portal, "File", name, title=name, file=NamedBlobFile(data, contentType=kind, filename=filename))
    transaction.commit()


def found(portal: Any, words: str) -> list[str]:
    transaction.begin()
    return sorted(brain.getPath() for brain in portal.portal_catalog.unrestrictedSearchResults(SearchableText=words))


def reasons(worker: Any) -> list[str]:
    return [english(restored(reason)) for (reason,) in queued(worker.dsn)]


def test_the_words_of_a_shared_file_are_found_in_each_language(site: Any) -> None:
    """plone.app.multilingual catalogues the content of *Assets* once for each language."""
    from plone.app.multilingual.browser.setup import SetupMultilingualSite

    portal, worker = site
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.app.multilingual:default")
    getUtility(IRegistry)["plone.available_languages"] = ["en", "de"]
    SetupMultilingualSite().setupSite(portal)
    upload(portal.en.assets, "report", files.pdf("The quokka sleeps"), files.PDF)
    assert found(portal, "report") == ["/plone/de/assets/report", "/plone/en/assets/report"]
    work(worker)
    assert found(portal, "quokka") == ["/plone/de/assets/report", "/plone/en/assets/report"]


def test_a_row_at_a_place_that_cannot_be_traversed_costs_no_text(portal: Any, worker: Any) -> None:
    """The first row of the object leads nowhere."""
    upload(portal, "report", files.pdf("The quokka sleeps"), files.PDF)
    portal.portal_catalog.catalog_object(portal.report, "/plone/alias/report")
    transaction.commit()
    # The row of the true place is rewritten, and so comes second.
    portal.report.file = NamedBlobFile(files.pdf("A quokka woke up"), contentType=files.PDF, filename="a.pdf")
    notify(ObjectModifiedEvent(portal.report))
    transaction.commit()
    work(worker)
    assert "/plone/report" in found(portal, "quokka")


def test_each_row_of_an_object_gets_the_text_in_any_order(portal: Any, worker: Any) -> None:
    """One to four rows: the place of the object, the same one through an index page, and two that lead nowhere."""
    create(portal, "Folder", "folder")
    catalog, expected = portal.portal_catalog, []
    places = ("/plone/folder/{0}", "/plone/folder/folder/{0}", "/plone/nowhere/{0}", "/plone/folder/{0}/file/none")
    orders = [order for n in range(1, 5) for order in permutations(places, n) if places[0] in order]
    for number, order in enumerate(orders):
        name = f"f{number}"
        create(portal.folder, "File", name, file=files.blob(files.pdf("quokka")))
        transaction.commit()
        catalog.uncatalog_object(f"/plone/folder/{name}")
        for place in order:
            catalog.catalog_object(portal.folder[name], place.format(name))
            transaction.commit()
        expected += [place.format(name) for place in order]
    work(worker)
    assert found(portal, "quokka") == sorted(expected)
    assert queued(worker.dsn) == []


@pytest.mark.parametrize("again", [False, True], ids=["uploaded", "tried-again"])
def test_a_file_uploaded_again_with_its_right_type_is_found(portal: Any, worker: Any, again: bool) -> None:
    upload(portal, "wrong", TABLE, XLS, "list.csv")
    work(worker)
    upload(portal, "right", TABLE, CSV, "list.csv")
    work(worker)
    if again:
        with connect(worker.dsn, "test") as connection:
            repeat_failed(connection, portal.portal_catalog._core.zoid)
        work(worker)
    assert "/plone/right" in found(portal, "wombat")


class Picky(Counted):
    """An extractor that fails for all kinds but one."""

    def extract(self, path: str, kind: str) -> str:
        self.count += 1
        if kind != CSV:
            raise ExtractionError(f"{self.name} does not read it")
        return "wombat"


def test_a_failure_is_one_of_the_kind_and_of_the_extractor(portal: Any, worker: Any, extractor: Any) -> None:
    picky, other = Picky(), Counted()
    extractor(picky)
    for name, filename in (("one", "a.md"), ("same", "a.md"), ("right", "a.csv"), ("copy", "a.csv")):
        upload(portal, name, TABLE, "application/octet-stream", filename)
        work(worker)
    assert picky.count == 2
    assert found(portal, "wombat") == ["/plone/copy", "/plone/right"]
    assert reasons(worker) == ["counted does not read it"] * 2
    work(worker)
    assert picky.count == 2
    other.name = "counted 2"
    extractor(other)
    work(worker)
    assert other.count == 1
    assert found(portal, "quokka") == ["/plone/one", "/plone/same"]
    assert queued(worker.dsn) == []


def test_nor_is_a_text_of_the_wrong_type_kept(portal: Any, worker: Any) -> None:
    data = files.docx("The quokka sleeps")
    upload(portal, "wrong", data, "application/zip", "p.docx")
    work(worker)
    upload(portal, "right", data, files.DOCX, "p.docx")
    work(worker)
    assert "/plone/right" in found(portal, "quokka")
    assert "/plone/right" not in found(portal, "content_types")


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (
            "csv",
            "text/comma-separated-values",
        ),  # Products.MimetypesRegistry's mime.types: in a process that has made a site
        ("csv", "application/csv"),
        ("odp", "application/vnd.oasis.opendocument.presentation"),
        ("ott", "application/vnd.oasis.opendocument.text-template"),
        ("ots", "application/vnd.oasis.opendocument.spreadsheet-template"),
        ("ppsm", "application/vnd.ms-powerpoint.slideshow.macroenabled.12"),
        ("rtf", "application/x-rtf"),
    ],
)
def test_what_plone_and_browsers_call_a_file_is_known(end: str, kind: str) -> None:
    assert kind in KINDS


@pytest.mark.parametrize(
    ("data", "kind", "name"),
    [
        (TABLE, XLS, "list.csv"),  # Windows with Excel: PapaParse#18
        (HTML, XLS, "export.xls"),  # Salesforce and others: sheetjs#1178, xlrd#350
        (rb"{\rtf1\ansi Wombat\par}", DOC, "letter.doc"),
        (files.docx("Wombat"), DOC, "letter.doc"),
        (files.docx("Wombat"), "application/zip", "letter.docx"),
        (files.docx("Wombat"), "application/x-nobody-knows", "letter"),
        (TABLE, "application/csv", "list.csv"),
        (files.pdf("Wombat"), "application/pdf; charset=binary", "a.pdf"),
        (files.pdf("Wombat"), "application/octet-stream", "a.bin"),
        (files.pdf("Wombat"), "text/plain", "a.txt"),
        (files.odt("Wombat"), "application/vnd.oasis.opendocument.text-template", "a.ott"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_is_read_by_what_it_is(portal: Any, worker: Any, data: bytes, kind: str, name: str) -> None:
    upload(portal, "report", data, kind, name)
    work(worker)
    assert found(portal, "wombat") == ["/plone/report"]


WORDS = "Bücher über Käse – naïve Straße"
PAGE = f"<html><head><title>x</title></head><body><p>{WORDS}</p></body></html>"


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("text/plain", WORDS),
        ("text/html", PAGE),
        ("text/html", PAGE.replace("<title>", '<meta charset="CODING"><title>')),
        ("text/xml", f'<?xml version="1.0" encoding="CODING"?><a>{WORDS}</a>'),
        (CSV, f"a;b\n{WORDS};c\n"),
    ],
)
def test_a_text_is_found_in_its_encoding(portal: Any, worker: Any, coding: str, kind: str, content: str) -> None:
    upload(portal, "letter", content.replace("CODING", coding[:6]).encode(coding), kind, "a.bin")
    is_found_at_once = coding.startswith("utf-8") and kind in ("text/plain", "text/html")
    assert found(portal, "bücher straße") == ["/plone/letter"] * is_found_at_once
    work(worker)
    assert found(portal, "bücher über käse naïve straße") == ["/plone/letter"]
    assert found(portal, "cher OR stra") == []


def test_a_long_text_is_found_to_its_end_as_in_plone(portal: Any, worker: Any) -> None:
    upload(portal, "long", b"Lorem ipsum " * 60_000 + b"wombat", "text/plain", "a.txt")
    for _ in range(2):
        assert found(portal, "wombat") == ["/plone/long"]
        work(worker)


def test_words_of_a_text_in_utf8_are_those_of_plone_before_and_after_the_job(portal: Any, worker: Any) -> None:
    oracle = make_oracle(portal)
    texts = {
        "text/plain": [WORDS, "", "<b>x</b>"],
        "text/html": [PAGE, "a<b>b</b>c &uuml; &#228; <p title='t'>d<p>e", "<!-- x -->"],
    }
    paths = {f"/plone/f{n}-{kind[5:]}": (kind, text) for kind, each in texts.items() for n, text in enumerate(each)}
    for path, (kind, content) in paths.items():
        upload(portal, path[7:], content.encode(), kind, "a.txt")
        oracle.catalog_object(portal[path[7:]], path)
    for _ in range(2):
        for path in paths:
            ours, stock = (c.getIndexDataForUID(path)["SearchableText"] for c in (portal.portal_catalog, oracle))
            assert sorted(ours) == sorted(stock)
        work(worker)
        transaction.begin()


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        (files.PDF, files.pdf(""), "no page has a text; perhaps it is a scan"),
        (files.PDF, files.pdf_of([""], b"/Subtype /Image"), "its pages are pictures, as in a scan"),
        (files.PDF, files.pdf_of([""], b"/Subtype/Type3"), "its fonts (Type 3) draw letters without saying which"),
        (files.DOCX, files.docx(""), "it has no text, perhaps only pictures"),
        ("application/octet-stream", b"\0\1\2\3", "files of this format are not read: application/octet-stream"),
    ],
)
def test_a_file_without_a_word_is_listed_with_the_likely_reason(
    portal: Any, worker: Any, extractor: Any, kind: str, data: bytes, reason: str
) -> None:
    upload(portal, "empty", data, kind)
    work(worker)
    assert reasons(worker) == [reason]


def test_the_reason_for_an_empty_text_is_shown_in_the_language_of_the_page(portal: Any, worker: Any) -> None:
    upload(portal, "empty", files.docx(""), files.DOCX)
    work(worker)
    rid, web = portal.portal_catalog.getrid("/plone/empty"), Site(worker.database)
    for language, reason in (("en", "only pictures"), ("de", "nur Bilder")):
        getUtility(IRegistry)["plone.default_language"] = language
        transaction.commit()
        overview = web.page("/plone/portal_catalog/manage_catalogOverview").get_element_by_id("files-failed")
        page = web.page("/plone/portal_catalog/manage_objectInformation", rid=rid).get_element_by_id("failure")
        assert reason in text(overview)
        assert reason in text(page)


@pytest.mark.parametrize(("kind", "data"), [("text/plain", b""), ("application/octet-stream", b"\x89PNG\r\n\x1a\n")])
def test_a_file_that_has_no_text_is_not_listed(portal: Any, worker: Any, kind: str, data: bytes) -> None:
    upload(portal, "empty", data, kind)
    assert work(worker) == 1
    assert reasons(worker) == []
