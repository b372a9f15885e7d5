"""Scanned pages and pictures are recognised behind all other jobs, once per bytes, if the site is set so."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from demo import documents as files
from demo.documents import picture
from demo.documents import scan
from functools import partial
from io import BytesIO
from pathlib import Path
from PIL import Image
from PIL import ImageFile
from plone.namedfile.file import NamedBlobImage
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.files import extractor as extractors
from plone.pgcatalog.files import scans
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.extractor import Xberg
from plone.pgcatalog.files.formats import scan as scanning
from plone.pgcatalog.files.formats.parts import Parts
from plone.pgcatalog.files.formats.parts import Postponed
from plone.pgcatalog.files.formats.parts import Unreadable
from plone.pgcatalog.files.job import put_all
from plone.pgcatalog.files.job import repeat_failed
from plone.pgcatalog.metrics.database import database_metrics
from plone.pgcatalog.observe import health
from plone.pgcatalog.queue import table
from plone.registry.interfaces import IRegistry
from psycopg.rows import dict_row
from struct import pack
from tests.integration.content import create
from tests.integration.uploads import due
from tests.integration.uploads import recogniser as recogniser
from tests.integration.uploads import site as site
from tests.integration.uploads import upload
from tests.integration.uploads import work
from tests.integration.web import Site
from tests.integration.web import text
from typing import Any
from zlib import crc32
from zope.component import getUtility

import pytest
import transaction


needs_tesseract = pytest.mark.skipif(not scans.installed(), reason="needs Tesseract")
ON = {"text_of_scans": True}
PAGES = ("Wombats", "A quokka sleeps")


def switch(portal: Any, **settings: bool) -> None:
    portal.portal_catalog._settings = settings
    transaction.commit()


def found(portal: Any, words: str = "quokka") -> list[str]:
    transaction.begin()
    return sorted(brain.getId for brain in portal.portal_catalog(SearchableText=words))


def sql(site: Any, statement: str) -> list[Any]:
    with connect(site[1].dsn, "test") as connection:
        return connection.execute(statement).fetchall()


def queued(site: Any) -> list[tuple[str, int, str]]:
    """Return kind, priority and reason of all jobs for objects."""
    return sql(
        site, "SELECT kind, priority, reason FROM pgcatalog_queue WHERE kind <> 'retired' ORDER BY kind, subject"
    )


def one(site: Any) -> str:
    """Have the worker do one job; return its kind."""
    before = dict(sql(site, "SELECT (kind, subject)::text, attempts FROM pgcatalog_queue"))
    with ThreadPoolExecutor(1) as pool, connect(site[1].dsn, "test") as connection:
        assert pool.submit(site[1].run_one, connection).result()
    after = dict(sql(site, "SELECT (kind, subject)::text, attempts FROM pgcatalog_queue"))
    [changed] = [name for name in before if before[name] != after.get(name)]
    return changed.strip("(").split(",")[0]


# -- with Tesseract


@needs_tesseract
def test_scanned_pages_are_found_once_the_setting_is_on(site: Any) -> None:
    portal, worker = site
    upload(portal, "scan", scan(*PAGES), files.PDF)
    transaction.commit()
    work(worker)
    assert found(portal) == []
    assert [row[:2] for row in queued(site)] == [("text", table.Priority.BACKFILL_TEXT)]
    switch(portal, **ON)
    assert scans.languages_of(portal.portal_catalog) == ["eng"]
    # The start of a worker finds the file, which has failed before.
    assert work(worker) == 1
    assert found(portal) == ["scan"]
    assert queued(site) == []
    [(text, languages, pages)] = sql(site, "SELECT text, languages, pages FROM pgcatalog_file_texts")
    assert [page.strip() for page in text.split("\f")] == list(PAGES)
    assert (languages, pages) == (["eng"], [])
    assert work(worker) == 0


def tiff() -> bytes:
    out = BytesIO()
    first, second = (Image.open(BytesIO(picture(text))) for text in PAGES)
    first.save(out, "TIFF", save_all=True, append_images=[second])
    return out.getvalue()


def png(change: Callable[[Any], Any]) -> bytes:
    """Return the PNG of the picture that *change* returns, of one of letters in shades of grey."""
    out = BytesIO()
    change(Image.open(BytesIO(picture(PAGES[1]))).convert("L")).save(out, "PNG")
    return out.getvalue()


def transparent(grey: Any) -> Any:
    """Black letters on nothing."""
    black = Image.new("RGBA", grey.size, "black")
    black.putalpha(grey.point(lambda value: 255 - value))
    return black


def deep(grey: Any) -> Any:
    """Letters of two shades of grey, with 16 bits."""
    deep = Image.new("I;16", grey.size)
    deep.putdata([20_000 + value * 170 for value in grey.get_flattened_data()])
    return deep


def small(grey: Any) -> Any:
    return grey.resize((grey.width // 2, grey.height // 2), Image.Resampling.LANCZOS)


PICTURES = {
    "scan.png": ("image/png", lambda: picture(PAGES[1])),
    "scan.jpg": ("image/jpeg", lambda: picture(PAGES[1], "JPEG")),
    "scan.tiff": ("image/tiff", tiff),
    "scan.webp": ("image/webp", lambda: picture(PAGES[1], "WEBP")),
    **{f"{change.__name__}.png": ("image/png", partial(png, change)) for change in (transparent, deep, small)},
    "mail.pdf": ("application/octet-stream", lambda: picture(PAGES[1])),
}


@needs_tesseract
def test_pictures_are_recognised_if_the_setting_is_on_and_are_on_no_list_otherwise(site: Any) -> None:
    portal, worker = site
    for name, (kind, make) in PICTURES.items():
        file = NamedBlobImage(make(), contentType=kind, filename=name)
        create(portal, "Image" if kind.startswith("image/") else "File", name, title="a", image=file, file=file)
    create(portal, "Image", "blank", title="a", image=NamedBlobImage(picture(""), filename="blank.png"))
    upload(portal, "broken.png", picture("x")[:90], "image/png")
    transaction.commit()
    work(worker)
    assert (found(portal), queued(site)) == ([], [])
    switch(portal, **ON)
    work(worker)
    assert found(portal) == sorted(PICTURES)
    # A picture without words is no failure.
    [(kind, _, reason)] = queued(site)
    assert (kind, reason.partition(":")[0]) == ("scan", "not a picture")
    assert work(worker) == 0


def bomb() -> bytes:
    """Return a PNG of 50,000 times 50,000 pixels in few bytes."""
    head = b"IHDR" + pack(">2I5B", 50_000, 50_000, 8, 0, 0, 0, 0)
    return picture("")[:12] + head + pack(">I", crc32(head)) + picture("")[33:]


@pytest.mark.parametrize(
    "data",
    [b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", b"", picture("x")[:90], bomb()],
    ids=["a program of PostScript", "empty", "damaged", "too many pixels"],
)
def test_hostile_picture_is_a_failure_whose_reason_names_no_path(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Plone changes it in its own process.
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", False)
    (tmp_path / "picture").write_bytes(data)
    with pytest.raises(Unreadable, match=r"\Anot a picture: \w+\Z"):
        scanning.read_picture(str(tmp_path / "picture"), "", Parts(lambda *_: "", 100, "eng"))


@needs_tesseract
def test_pages_are_recognised_in_parts_and_each_part_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractors, "SCAN_SECONDS", 0.0)
    (tmp_path / "scan").write_bytes(scan("one", "two", "three"))
    reader = Xberg()
    assert reader.extract(str(tmp_path / "scan"), files.PDF).scans == 3
    first = reader.recognise(str(tmp_path / "scan"), files.PDF, ["eng"], [])
    assert (first.pages, first.is_complete) == (["one"], False)
    last = reader.recognise(str(tmp_path / "scan"), files.PDF, ["eng"], ["ONE", "TWO"])
    assert (last.text.split(), last.is_complete) == (["ONE", "TWO", "three"], True)
    reader.end()


TESSERACTS = {
    "a page that it cannot read": ("exit 1", True),
    "a page that takes too much of the processor": ("while :; do :; done", True),
    "a busy machine": ("sleep 9", False),
    "short memory": ("kill -9 $$", False),
}


@pytest.mark.parametrize("case", [*TESSERACTS, "no Tesseract"])
def test_page_has_no_text_only_if_the_page_is_the_reason(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, is_reason = TESSERACTS.get(case, ("", False))
    if script:
        (tmp_path / "tesseract").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "tesseract").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) if not script else f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(scanning, "PAGE_SECONDS", 1)
    if case == "a busy machine":
        monkeypatch.setattr(scanning, "WAITED_SECONDS", 0.1)
    parts = Parts(lambda *_: "", 100, "eng")
    with nullcontext() if is_reason else pytest.raises(Postponed):
        assert scanning.recognised(b"P5 1 1 255\n ", parts) == ""
    assert bool(parts.errors) == is_reason


# -- the queue


def test_scan_waits_for_all_other_jobs(site: Any, recogniser: Any) -> None:
    portal, _ = site
    recogniser("quokka")
    switch(portal, **ON, embedder_url="http://127.0.0.1:9/v1")
    upload(portal, "scan", scan("x"))
    transaction.commit()
    assert one(site) == "text"
    assert {kind for kind, *_ in queued(site)} == {"embed", "scan"}
    assert max(queued(site), key=lambda row: row[1])[:2] == ("scan", table.Priority.LAST)
    upload(portal, "later", files.pdf("x"))
    transaction.commit()
    assert one(site) == "text"


@pytest.mark.parametrize("is_backfill", [False, True])
def test_scans_have_the_last_priority_however_they_are_put(is_backfill: bool) -> None:
    assert table.Priority.of("scan", is_backfill) == max(table.Priority)


def test_same_bytes_are_recognised_once_for_all_objects(site: Any, recogniser: Any) -> None:
    portal, worker = site
    upload(portal, "old", scan("x"))
    transaction.commit()
    work(worker)
    made = recogniser("quokka")
    switch(portal, **ON)
    # The old object is in no job: the new one puts it.
    upload(portal, "new", scan("x"))
    transaction.commit()
    with ThreadPoolExecutor(1) as pool, connect(worker.dsn, "test") as connection:
        while pool.submit(worker.run_one, connection).result():
            pass
    assert found(portal) == ["new", "old"]
    portal.manage_pasteObjects(portal.manage_copyObjects(["old"]))
    upload(portal, "third", scan("x"))
    transaction.commit()
    work(worker)
    assert found(portal) == ["copy_of_old", "new", "old", "third"]
    assert len(made.calls) == 1
    assert queued(site) == []


def test_setting_that_is_off_puts_no_scan(site: Any, recogniser: Any) -> None:
    portal, worker = site
    made = recogniser()
    upload(portal, "scan", scan("x"))
    upload(portal, "picture", picture("x"), "image/png")
    transaction.commit()
    assert work(worker) == 1
    with connect(worker.dsn, "test") as connection:
        assert put_all(connection, portal.portal_catalog._core.zoid) == 2
    work(worker)
    [(kind, _, reason)] = queued(site)
    assert (kind, "as in a scan" in reason) == ("text", True)
    assert made.calls == []


def rebuild(site: Any) -> None:
    transaction.begin()
    site[0].portal_catalog.clearFindAndRebuild()
    transaction.commit()


def backfill(site: Any) -> None:
    with connect(site[1].dsn, "test") as connection:
        put_all(connection, site[0].portal_catalog._core.zoid)


def repeat(site: Any) -> None:
    with connect(site[1].dsn, "test") as connection:
        repeat_failed(connection, site[0].portal_catalog._core.zoid)


def save(site: Any) -> None:
    transaction.begin()
    site[0].scan.title = "other"
    site[0].scan.reindexObject()
    transaction.commit()


def update_reader(site: Any) -> None:
    sql(site, "UPDATE pgcatalog_file_texts SET extractor = 'old' RETURNING 1")


@pytest.mark.parametrize("way", [rebuild, backfill, repeat, save, update_reader])
def test_text_job_behind_a_scan_keeps_its_words(site: Any, recogniser: Any, way: Any) -> None:
    portal, worker = site
    made = recogniser("quokka")
    switch(portal, **ON)
    upload(portal, "scan", scan("x"))
    transaction.commit()
    work(worker)
    for setting in (ON, {}):
        switch(portal, **setting)
        way(site)
        work(worker)
        assert found(portal) == ["scan"]
    assert len(made.calls) == 1


def test_languages_that_are_added_are_recognised_by_a_backfill_once(site: Any, recogniser: Any) -> None:
    portal, worker = site
    made = recogniser("quokka")
    switch(portal, **ON)
    upload(portal, "scan", scan("x"))
    transaction.commit()
    work(worker)
    transaction.begin()
    getUtility(IRegistry)["plone.available_languages"] = ["en", "fr"]
    switch(portal, **ON)
    for _ in range(2):
        made.texts = ["wombat"]
        backfill(site)
        work(worker)
    assert [languages for languages, _ in made.calls] == [["eng"], ["eng", "fra"]]
    assert (found(portal), found(portal, "wombat")) == ([], ["scan"])


LOST = ExtractionError("the extraction process was killed", for_good=False)


def test_killed_scan_continues_with_the_pages_that_it_has(site: Any, recogniser: Any) -> None:
    portal, worker = site
    made = recogniser("Wombats", LOST, "quokka")
    switch(portal, **ON)
    upload(portal, "scan", scan("x"))
    transaction.commit()
    work(worker)
    assert [row[0] for row in queued(site)] == ["scan"]
    due(worker.dsn)
    work(worker)
    assert [pages for _, pages in made.calls] == [[], ["Wombats"], ["Wombats"]]
    assert found(portal, "quokka wombats") == ["scan"]
    assert queued(site) == []


@pytest.mark.parametrize("failure", [LOST, ExtractionError("no text after 150 seconds")])
def test_scan_that_fails_for_good_keeps_its_words_and_is_not_repeated_until_requested(
    site: Any, recogniser: Any, failure: ExtractionError
) -> None:
    portal, worker = site
    made = recogniser("quokka", *[failure] * table.MOST_ATTEMPTS)
    switch(portal, **ON)
    upload(portal, "scan", scan("x"))
    transaction.commit()
    for _ in range(table.MOST_ATTEMPTS + 1):
        work(worker)
        due(worker.dsn)
    assert [(kind, reason) for kind, _, reason in queued(site)] == [("scan", str(failure))]
    assert found(portal) == ["scan"]
    calls = len(made.calls)
    for way in (backfill, rebuild):
        way(site)
        work(worker)
    assert len(made.calls) == calls
    assert found(portal) == ["scan"]
    made.texts = ["wombat"]
    repeat(site)
    work(worker)
    assert (found(portal, "wombat"), queued(site)) == (["scan"], [])


def test_scan_without_words_is_listed_once_with_the_likely_reason(
    site: Any, recogniser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal, worker = site
    upload(portal, "scan", scan("x"))
    transaction.commit()
    work(worker)
    made = recogniser("")
    switch(portal, **ON)
    work(worker)
    [(kind, _, reason)] = queued(site)
    assert (kind, "as in a scan" in reason) == ("scan", True)
    assert figures(site) == ["0 without a text so far, 0 failed", "No text was found in 1 files", "1"]
    monkeypatch.setattr(health, "MOST_FAILURES", 1)
    assert figures(site)[2].startswith("There may be more: ")
    assert {m.name: m.value for m in metrics(site)}["pgcatalog_files_empty"] == 1
    made.texts = ["quokka"]
    repeat(site)
    work(worker)
    assert (found(portal), queued(site)) == (["scan"], [])


def figures(site: Any) -> list[str]:
    """Return the lines about files without a text on the tab Overview, and the number of those that are listed."""
    page = Site(site[1].database).page("/plone/portal_catalog/manage_catalogOverview")
    lines = page.xpath("//div[@id='files' or @id='files-empty' or @id='files-limited']")
    return [*map(text, lines), str(len(page.xpath("//ul[@id='files-failed']/li")))]


def metrics(site: Any) -> list[Any]:
    with connect(site[1].dsn, "test", row_factory=dict_row) as connection:
        return list(database_metrics(connection))


def test_replaced_file_loses_the_failure_of_its_scan(site: Any, recogniser: Any) -> None:
    portal, worker = site
    recogniser("")
    switch(portal, **ON)
    obj = upload(portal, "scan", scan("x"))
    transaction.commit()
    work(worker)
    assert len(queued(site)) == 1
    transaction.begin()
    obj.file = files.blob(files.pdf("quokka"))
    obj.reindexObject()
    transaction.commit()
    work(worker)
    assert (found(portal), queued(site)) == (["scan"], [])


def test_words_of_a_lost_text_come_back(site: Any, recogniser: Any) -> None:
    """The table of texts may be emptied at any time."""
    portal, worker = site
    made = recogniser("quokka")
    switch(portal, **ON)
    upload(portal, "scan", scan("x"))
    transaction.commit()
    assert one(site) == "text"
    sql(site, "DELETE FROM pgcatalog_file_texts RETURNING 1")
    work(worker)
    assert found(portal) == ["scan"]
    assert len(made.calls) == 1
