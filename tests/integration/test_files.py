"""The text of files is found after the save, and nothing is extracted twice."""

from click.testing import CliRunner
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from demo import documents as files
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
from lxml import html
from pathlib import Path
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.retirement import clear_stale
from plone.pgcatalog.discovery.preview import preview
from plone.pgcatalog.files.extractor import ExtractionError
from plone.pgcatalog.files.extractor import Kreuzberg
from plone.pgcatalog.files.job import put_all
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.worker import Worker
from plone.uuid.interfaces import IUUID
from psycopg.rows import dict_row
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.oracle import make_oracle
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.uploads import Counted
from tests.integration.uploads import due
from tests.integration.uploads import extractor as extractor
from tests.integration.uploads import queued
from tests.integration.uploads import site as site
from tests.integration.uploads import upload
from tests.integration.uploads import work
from tests.integration.waiting import until
from tests.integration.web import MANAGER
from tests.integration.web import Site
from typing import Any

import json
import os
import pytest
import re
import signal
import threading
import tracemalloc
import transaction


def found(portal: Any, words: str) -> list[str]:
    transaction.begin()
    return sorted(brain.getId for brain in portal.portal_catalog(SearchableText=words))


def texts(dsn: str) -> list[Any]:
    with connect(dsn, "test") as connection:
        return connection.execute("SELECT text, error, extracted_at FROM pgcatalog_file_texts ORDER BY text").fetchall()


@pytest.mark.parametrize(("kind", "make"), [(files.PDF, files.pdf), (files.DOCX, files.docx), (files.ODT, files.odt)])
def test_the_words_of_a_file_are_found_after_the_save(site: Any, kind: str, make: Any) -> None:
    portal, worker = site
    upload(portal, "minutes", make("The quokka sleeps\nand nobody minds"), kind)
    transaction.commit()
    assert found(portal, "minutes") == ["minutes"]
    assert found(portal, "quokka") == []
    assert work(worker) == 1
    assert found(portal, "quokka minutes") == ["minutes"]
    assert work(worker) == 0


def test_an_aborted_save_leaves_no_job(site: Any) -> None:
    portal, worker = site
    upload(portal, "minutes", files.pdf("quokka"))
    transaction.abort()
    assert work(worker) == 0


def test_a_changed_title_a_copy_and_a_rebuild_extract_nothing(site: Any) -> None:
    portal, worker = site
    page = upload(portal, "minutes", files.pdf("quokka"))
    transaction.commit()
    work(worker)
    before = texts(worker.dsn)
    transaction.begin()
    page.title = "Protocol"
    page.reindexObject()
    transaction.commit()
    assert found(portal, "quokka protocol") == ["minutes"]
    portal.manage_pasteObjects(portal.manage_copyObjects(["minutes"]))
    upload(portal, "same", files.pdf("quokka"))
    transaction.commit()
    work(worker)
    assert found(portal, "quokka") == ["copy_of_minutes", "minutes", "same"]
    portal.portal_catalog.clearFindAndRebuild()
    transaction.commit()
    assert found(portal, "quokka") == ["copy_of_minutes", "minutes", "same"]
    assert texts(worker.dsn) == before


def test_the_worker_writes_no_object(site: Any) -> None:
    portal, worker = site
    page = upload(portal, "minutes", files.pdf("quokka"))
    transaction.commit()
    serial, modified = page._p_serial, page.modified()
    work(worker)
    assert found(portal, "quokka") == ["minutes"]
    page._p_activate()
    assert (page._p_serial, page.modified()) == (serial, modified)


def test_broken_file_is_one_failure_with_its_reason(site: Any) -> None:
    portal, worker = site
    page = upload(portal, "broken", files.pdf("quokka")[:100])
    transaction.commit()
    assert work(worker) == 1
    with connect(worker.dsn, "test") as connection:
        [failure] = table.failures(connection, portal.portal_catalog._core.zoid, "text")
        assert "PDF" in failure[1]
    transaction.begin()
    page.title = "still broken"
    page.reindexObject()
    transaction.commit()
    assert work(worker) == 0
    assert found(portal, "broken") == ["broken"]


def test_deleted_file_is_no_failure(site: Any) -> None:
    portal, worker = site
    for name in ("deleted", "moved", "kept"):
        upload(portal, name, files.pdf(f"quokka {name}"))
    create(portal, "Folder", "folder")
    transaction.commit()
    portal.manage_delObjects(["deleted"])
    portal.folder.manage_pasteObjects(portal.manage_cutObjects(["moved"]))
    transaction.commit()
    work(worker)
    assert found(portal, "quokka") == ["kept", "moved"]
    with connect(worker.dsn, "test") as connection:
        assert table.figures(connection) == []


def test_existing_files_are_found_after_a_backfill(site: Any) -> None:
    portal, worker = site
    portal.portal_catalog._settings = {"text_of_files": False}
    upload(portal, "old", files.docx("quokka"), files.DOCX)
    transaction.commit()
    assert work(worker) == 0
    portal.portal_catalog._settings = {}
    transaction.commit()
    with connect(worker.dsn, "test") as connection:
        assert put_all(connection, portal.portal_catalog._core.zoid) == 1
    work(worker)
    assert found(portal, "quokka") == ["old"]


def test_words_of_a_private_file_are_private(site: Any) -> None:
    portal, worker = site
    add_users(portal)
    for name, words in (("open", "quokka wombat"), ("closed", "quokka numbatine")):
        folder = create(portal, "Folder", f"folder-{name}", title=name)
        upload(folder, name, files.pdf(words))
    publish(portal["folder-open"])
    transaction.commit()
    work(worker)
    transaction.begin()
    counted(worker.dsn, portal.portal_catalog)
    tool = portal.portal_catalog
    assert [brain.getId for brain in tool(SearchableText="numbatine")] == ["closed"]
    assert tool.suggest("numba") == ["numbatine"]
    with acting_as(portal, None):
        assert [brain.getId for brain in tool(SearchableText="quokka")] == ["open"]
        assert tool.suggest("numba") == []
        assert tool.did_you_mean("numbatime") is None
        results = tool(SearchableText="quokka")
        assert "numbatine" not in repr(results.snippets(results[:10]))
        assert results.facets(["portal_type"])["portal_type"] == {"File": 1}


def test_words_of_a_private_file_are_in_no_preview_or_similar_page(site: Any) -> None:
    portal, worker = site
    add_users(portal)
    words = "quokka numbatine bandicoot bettong"
    for name in ("open", "closed", "other"):
        upload(create(portal, "Folder", f"folder-{name}", title=name), name, files.pdf(f"{words} {name}"))
    for name in ("open", "other"):
        publish(portal[f"folder-{name}"])
    transaction.commit()
    work(worker)
    transaction.begin()
    counted(worker.dsn, portal.portal_catalog)
    tool = portal.portal_catalog
    closed = IUUID(portal["folder-closed"]["closed"])
    with acting_as(portal, None):
        assert "closed" not in [brain.getId for brain in tool.more_like_this(IUUID(portal["folder-open"]["open"]), 10)]
        assert len(tool.more_like_this(closed, 10)) == 0
        hits = preview(tool, {"SearchableText": "quokka"}, {})
        assert sorted(hit.brain.getId for hit in hits) == ["open", "other"]


@pytest.mark.parametrize("change", ["renamed", "replaced", "unpublished", "packed", "titled"])
def test_changes_before_the_worker_runs_leave_no_wrong_word(site: Any, change: str) -> None:
    portal, worker = site
    add_users(portal)
    folder = create(portal, "Folder", "folder")
    publish(folder)
    page = upload(folder, "minutes", files.pdf("quokka"))
    transaction.commit()
    expected, visible = {"minutes"}, {"minutes"}
    if change == "renamed":
        folder.manage_renameObject("minutes", "protocol")
        expected = visible = {"protocol"}
    elif change == "replaced":
        page.file = files.blob(files.pdf("wombat"))
        page.reindexObject()
        expected = visible = set()
    elif change == "unpublished":
        portal.portal_workflow.doActionFor(folder, "retract")
        visible = set()
    elif change == "packed":
        folder.manage_delObjects(["minutes"])
        transaction.commit()
        worker.database.pack()
        expected = visible = set()
    else:
        page.title = "changed"
        page.reindexObject()
    transaction.commit()
    work(worker)
    assert queued(worker.dsn) == []
    assert set(found(portal, "quokka")) == expected
    assert len(found(portal, "wombat")) == (change == "replaced")
    with acting_as(portal, None):
        assert {brain.getId for brain in portal.portal_catalog(SearchableText="quokka")} == visible


def test_without_an_extractor_a_file_is_catalogued_as_plone_does(site: Any, extractor: Any) -> None:
    portal, worker = site
    absent = Counted()
    absent.is_ready = False
    extractor(absent)
    oracle = make_oracle(portal)
    for name, data, kind in (
        ("plain", b"the quokka sleeps", "text/plain"),
        ("page", b"<p>the <b>quokka</b> sleeps</p>", "text/html"),
        ("minutes", files.pdf("wombat"), files.PDF),
    ):
        oracle.catalog_object(upload(portal, name, data, kind), f"/plone/{name}")
    transaction.commit()
    words = oracle.getIndexDataForUID("/plone/plain")["SearchableText"]
    assert "quokka" in words
    for name in ("plain", "page", "minutes"):
        ours, stock = (
            catalog.getIndexDataForUID(f"/plone/{name}")["SearchableText"]
            for catalog in (portal.portal_catalog, oracle)
        )
        assert sorted(set(ours)) == sorted(set(stock))
    assert work(worker) == 0
    assert queued(worker.dsn) == []


def test_two_workers_extract_a_file_once(site: Any, extractor: Any) -> None:
    portal, worker = site
    counted = Counted()
    extractor(counted)
    for number in range(6):
        upload(portal, f"file-{number}", b"same")
    transaction.commit()
    workers = [Worker(worker.database, worker.dsn) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(Worker.run_until_empty, workers)) == 6
    assert counted.count == 1
    assert len(found(portal, "quokka")) == 6
    assert queued(worker.dsn) == []


@pytest.mark.parametrize("size", [16 << 20, pytest.param(200 << 20, marks=pytest.mark.slow)])
def test_large_file_is_never_in_memory_as_a_whole(site: Any, extractor: Any, size: int) -> None:
    portal, worker = site
    sizes: list[int] = []

    class Sized(Counted):
        def extract(self, path: str, kind: str) -> str:
            sizes.append(os.path.getsize(path))
            return super().extract(path, kind)

    extractor(Sized())
    for name in ("first", "large"):
        upload(portal, name, os.urandom(size) if name == "large" else b"x")
        transaction.commit()
        tracemalloc.start()
        assert work(worker) == 1
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 8 << 20
    assert (sizes, found(portal, "quokka")) == ([1, size], ["first", "large"])


def test_stored_words_are_catalogued_without_reading_the_file(site: Any) -> None:
    portal, worker = site
    page = upload(portal, "minutes", files.pdf("quokka"))
    transaction.commit()
    work(worker)
    cache = Path(portal._p_jar._normal_storage._blob_cache.cache_dir)
    [copy] = cache.rglob("*.blob")
    copy.unlink()
    transaction.begin()
    portal._p_jar.cacheMinimize()
    page.title = "Protocol"
    page.reindexObject(idxs=["SearchableText", "Title"])
    transaction.commit()
    assert found(portal, "quokka protocol") == ["minutes"]
    assert list(cache.rglob("*.blob")) == []


def test_temporary_failure_is_retried(site: Any, extractor: Any) -> None:
    portal, worker = site
    counted = Counted(ExtractionError("away", for_good=False))
    extractor(counted)
    upload(portal, "minutes", b"x")
    transaction.commit()
    work(worker)
    assert queued(worker.dsn) == [("away",)]
    counted.fails = None
    assert work(worker) == 0
    due(worker.dsn)
    work(worker)
    assert found(portal, "quokka") == ["minutes"]
    assert queued(worker.dsn) == []


def test_file_whose_extracting_process_is_killed_is_retried(site: Any, extractor: Any, tmp_path: Path) -> None:
    portal, worker = site
    kreuzberg = Kreuzberg()
    extractor(kreuzberg)
    (tmp_path / "a").write_bytes(files.pdf("x"))
    kreuzberg.extract(str(tmp_path / "a"), files.PDF)
    [child] = kreuzberg._idle
    # A stopped process is in the middle of a file for as long as needed.
    os.kill(child._process.pid, signal.SIGSTOP)
    upload(portal, "minutes", files.pdf("quokka"))
    transaction.commit()
    thread = threading.Thread(target=worker.run_until_empty)
    thread.start()
    until(lambda: child.files == 2)
    os.kill(child._process.pid, signal.SIGKILL)
    until(lambda: not thread.is_alive())
    [(reason,)] = queued(worker.dsn)
    assert reason == "the extraction process was killed"
    due(worker.dsn)
    assert work(worker) == 1
    assert found(portal, "quokka") == ["minutes"]
    kreuzberg.end()


def test_a_site_that_is_removed_and_one_that_is_copied_leave_no_job(site: Any) -> None:
    portal, worker = site
    upload(portal, "minutes", files.pdf("quokka"))
    transaction.commit()
    app = portal.aq_parent
    app.manage_pasteObjects(app.manage_copyObjects(["plone"]))
    transaction.commit()
    work(worker)
    assert queued(worker.dsn) == []
    upload(portal, "other", files.pdf("wombat"))
    upload(portal, "broken", b"x")
    transaction.commit()
    app.manage_delObjects(["plone"])
    transaction.commit()
    work(worker)
    assert queued(worker.dsn) == []


def test_undone_upload_leaves_no_job(postgres: Any, site_template: str) -> None:
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn, history_preserving=True) as db, sites.inside(db) as portal:
        upload(portal, "minutes", files.pdf("quokka"))
        transaction.commit()
        db.undo(db.undoInfo(0, 1)[0]["id"])
        transaction.commit()
        work(Worker(db, dsn))
        assert queued(dsn) == []
        assert found(portal, "quokka") == []


def test_texts_of_packed_files_are_deleted_by_a_vacuum(site: Any) -> None:
    portal, worker = site
    for name in ("kept", "gone"):
        upload(portal, name, files.pdf(name))
    upload(portal, "broken", b"x")
    transaction.commit()
    work(worker)
    portal.manage_delObjects(["gone", "broken"])
    transaction.commit()
    worker.database.pack()
    with connect(worker.dsn, "test", row_factory=dict_row) as connection:
        clear_stale(connection)
    assert [text for text, _, _ in texts(worker.dsn)] == ["kept"]
    assert queued(worker.dsn) == []


def check(dsn: str) -> list[str]:
    found = CliRunner().invoke(main, ["check", "--dsn", dsn, "--json"], catch_exceptions=False)
    findings = json.loads(found.stdout)["findings"]
    return [finding["text"] for finding in findings if "files" in finding["text"]]


def test_check_names_files_without_a_worker(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    portal, worker = site
    upload(portal, "minutes", files.pdf("quokka"))
    transaction.commit()
    assert check(worker.dsn) == []
    with connect(worker.dsn, "test") as connection:
        connection.execute("UPDATE pgcatalog_queue SET put_at = now() - interval '1 hour'")
    [text] = check(worker.dsn)
    assert text.startswith("/plone: 1 files wait for text extraction, the oldest for 1:00:0")
    monkeypatch.setattr("plone.pgcatalog.cli.reports.version_of", lambda name: None if name == "kreuzberg" else "99.0")
    assert "files wait for text extraction, but kreuzberg is not installed" in check(worker.dsn)
    work(worker)
    assert check(worker.dsn) == []


def test_zmi_lists_files_without_text_and_retries_them(site: Any) -> None:
    portal, worker = site
    web = Site(worker.database).web
    upload(portal, "broken", b"no PDF")
    transaction.commit()
    rid = portal.portal_catalog.getrid("/plone/broken")
    transaction.begin()

    def page(name: str, **query: Any) -> Any:
        response = web.get(f"/plone/portal_catalog/{name}", MANAGER, accept="text/html", **query)
        return html.fromstring(response.body)

    def figures() -> str:
        return " ".join(page("manage_catalogOverview").get_element_by_id("files").text_content().split())

    assert figures() == "1 without a text so far, 0 failed"
    work(worker)
    assert figures() == "0 without a text so far, 1 failed"
    failure = page("manage_objectInformation", rid=rid).get_element_by_id("failure").text_content()
    assert "No text could be extracted from the file:" in failure
    assert "PDF" in failure
    [form] = [form for form in page("manage_catalogOverview").forms if form.xpath(".//button[@name='repeat_files']")]
    address = "/plone/portal_catalog/manage_catalogAdvanced"
    assert web.post(address, MANAGER, repeat_files="1").status == 403
    token = form.fields["_authenticator"]
    assert web.post(address, MANAGER, _authenticator=token, repeat_files="1").status == 302
    assert figures() == "1 without a text so far, 0 failed"
    assert work(worker) == 1


@pytest.fixture
def tika() -> Iterator[Any]:
    """Yield (class of the page, a server that answers as Tika does)."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(422 if b"broken" in data else 200)
            self.end_headers()
            self.wfile.write(f"{data.decode()} {self.headers['Content-Type']}".encode())

    page = Path(__file__).parents[2] / "docs" / "how-to" / "files.md"
    [code] = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)
    assert len(code.splitlines()) <= 33
    names: dict[str, Any] = {"__name__": "tika"}
    exec(code, names)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    names["Tika"].url = f"http://127.0.0.1:{server.server_port}/tika"
    yield names["Tika"], server
    server.shutdown()


def test_the_page_about_tika_works(site: Any, extractor: Any, tika: Any) -> None:
    portal, worker = site
    Tika, server = tika
    extractor(Tika())
    upload(portal, "minutes", b"quokka")
    upload(portal, "broken", b"broken")
    transaction.commit()
    assert work(worker) == 2
    assert found(portal, "quokka") == ["minutes"]
    assert [reason for (reason,) in queued(worker.dsn)] == [f"Tika: 422 {HTTPStatus(422).phrase}"]
    server.shutdown()
    server.server_close()
    upload(portal, "later", b"wombat")
    transaction.commit()
    assert work(worker) == 1
    assert len(queued(worker.dsn)) == 2
    due(worker.dsn)
    assert work(worker) == 1
