"""The text of files is found after the save and after moves, and nothing is extracted twice."""

from collections.abc import Iterator
from demo import documents as files
from OFS import ObjectManager
from pathlib import Path
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.direct import direct_dsn
from plone.pgcatalog.database.retirement import clear_stale
from plone.pgcatalog.discovery.preview import preview
from plone.pgcatalog.files.job import put_all
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from plone.uuid.interfaces import IUUID
from psycopg.rows import dict_row
from tests.integration import site as sites
from tests.integration.checking import check
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.oracle import make_oracle
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.storage import assert_sound
from tests.integration.two_sites import enter
from tests.integration.uploads import Counted
from tests.integration.uploads import extractor as extractor
from tests.integration.uploads import queued
from tests.integration.uploads import upload
from tests.integration.uploads import work
from tests.integration.uploads import worker as worker
from tests.integration.web import Site
from tests.integration.web import text
from typing import Any

import pytest
import subprocess
import transaction


def ids(brains: Any) -> list[str]:
    return sorted(brain.getId for brain in brains)


def found(portal: Any, words: str) -> list[str]:
    transaction.begin()
    return ids(portal.portal_catalog(SearchableText=words))


def texts(dsn: str) -> list[Any]:
    with connect(dsn, "test") as connection:
        return connection.execute("SELECT text, error, extracted_at FROM pgcatalog_file_texts ORDER BY text").fetchall()


@pytest.mark.parametrize(("kind", "make"), [(files.PDF, files.pdf), (files.DOCX, files.docx), (files.ODT, files.odt)])
def test_worker_adds_the_words_of_a_saved_file_and_writes_no_object(
    portal: Any, worker: Any, kind: str, make: Any
) -> None:
    page = upload(portal, "minutes", make("The quokka sleeps\nand nobody minds"), kind)
    transaction.commit()
    assert found(portal, "minutes") == ["minutes"]
    assert found(portal, "quokka") == []
    serial, modified = page._p_serial, page.modified()
    assert work(worker) == 1
    assert found(portal, "quokka minutes") == ["minutes"]
    page._p_activate()
    assert (page._p_serial, page.modified()) == (serial, modified)
    assert work(worker) == 0


def test_a_changed_title_a_copy_and_a_rebuild_extract_and_read_nothing(portal: Any, worker: Any) -> None:
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
    # The words are catalogued again without a copy of the file.
    cache = Path(portal._p_jar._normal_storage._blob_cache.cache_dir)
    for copy in cache.rglob("*.blob"):
        copy.unlink()
    transaction.begin()
    portal._p_jar.cacheMinimize()
    page.title = "Minutes"
    page.reindexObject(idxs=["SearchableText", "Title"])
    transaction.commit()
    assert found(portal, "quokka protocol") == ["copy_of_minutes"]
    assert list(cache.rglob("*.blob")) == []


def test_broken_file_is_one_failure_with_its_reason(portal: Any, worker: Any) -> None:
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


def test_existing_files_are_found_after_a_backfill(portal: Any, worker: Any) -> None:
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


def test_words_of_a_private_file_are_private(portal: Any, worker: Any) -> None:
    add_users(portal)
    for name, word in (("open", "open"), ("other", "other"), ("closed", "numbatine")):
        folder = create(portal, "Folder", f"folder-{name}", title=name)
        upload(folder, name, files.pdf(f"quokka bandicoot bettong {word}"))
        if name != "closed":
            publish(folder)
    transaction.commit()
    work(worker)
    counted(worker.dsn, portal.portal_catalog)
    tool = portal.portal_catalog
    assert ids(tool(SearchableText="numbatine")) == ["closed"]
    assert tool.suggest("numba") == ["numbatine"]
    uids = {name: IUUID(portal[f"folder-{name}"][name]) for name in ("open", "closed")}
    with acting_as(portal, None):
        results = tool(SearchableText="quokka")
        assert ids(results) == ["open", "other"]
        assert "numbatine" not in repr(results.snippets(results[:10]))
        assert results.facets(["portal_type"])["portal_type"] == {"File": 2}
        assert tool.suggest("numba") == []
        assert tool.did_you_mean("numbatime") is None
        assert "closed" not in ids(tool.more_like_this(uids["open"], 10))
        assert len(tool.more_like_this(uids["closed"], 10)) == 0
        assert ids(hit.brain for hit in preview(tool, {"SearchableText": "quokka"}, {})) == ["open", "other"]


def rename(folder: Any) -> None:
    folder.manage_renameObject("minutes", "protocol")


def replace(folder: Any) -> None:
    folder.minutes.file = files.blob(files.pdf("wombat"))
    folder.minutes.reindexObject()


def unpublish(folder: Any) -> None:
    folder.portal_workflow.doActionFor(folder, "retract")


def delete_and_pack(folder: Any) -> None:
    folder.manage_delObjects(["minutes"])
    transaction.commit()
    folder._p_jar.db().pack()


@pytest.mark.parametrize(
    ("change", "expected", "visible"),
    [
        (rename, ["protocol"], ["protocol"]),
        (replace, [], []),
        (unpublish, ["minutes"], []),
        (delete_and_pack, [], []),
        (lambda folder: folder.manage_delObjects(["minutes"]), [], []),
        (lambda f: f.aq_parent.manage_pasteObjects(f.manage_cutObjects(["minutes"])), ["minutes"], ["minutes"]),
        (lambda folder: folder.minutes.reindexObject(), ["minutes"], ["minutes"]),
    ],
)
def test_changes_before_the_worker_runs_leave_no_wrong_word(
    portal: Any, worker: Any, change: Any, expected: Any, visible: Any
) -> None:
    add_users(portal)
    folder = create(portal, "Folder", "folder")
    publish(folder)
    upload(folder, "minutes", files.pdf("quokka"))
    transaction.commit()
    change(folder)
    transaction.commit()
    work(worker)
    assert queued(worker.dsn) == []
    assert found(portal, "quokka") == expected
    assert len(found(portal, "wombat")) == (change is replace)
    with acting_as(portal, None):
        assert found(portal, "quokka") == visible


def test_without_an_extractor_a_file_is_catalogued_as_plone_does(portal: Any, worker: Any, extractor: Any) -> None:
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
    for name in ("plain", "page", "minutes"):
        ours, stock = (
            set(catalog.getIndexDataForUID(f"/plone/{name}")["SearchableText"])
            for catalog in (portal.portal_catalog, oracle)
        )
        assert ours == stock
        assert ("quokka" in ours) == (name != "minutes")
    assert work(worker) == 0
    assert queued(worker.dsn) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda app: app.manage_delObjects(["plone"]),
        pytest.param(
            lambda app: app.manage_pasteObjects(app.manage_copyObjects(["plone"])), marks=pytest.mark.slow, id="copied"
        ),
    ],
)
def test_a_site_that_is_removed_or_copied_leaves_no_job(portal: Any, worker: Any, change: Any) -> None:
    upload(portal, "minutes", files.pdf("quokka"))
    transaction.commit()
    change(portal.aq_parent)
    transaction.commit()
    work(worker)
    assert queued(worker.dsn) == []


def test_undone_upload_leaves_no_job(dsn: str) -> None:
    with sites.opened(dsn, history_preserving=True) as db, sites.inside(db) as portal:
        upload(portal, "minutes", files.pdf("quokka"))
        transaction.commit()
        db.undo(db.undoInfo(0, 1)[0]["id"])
        transaction.commit()
        work(Worker(db, dsn))
        assert queued(dsn) == []
        assert found(portal, "quokka") == []


def test_texts_of_packed_files_are_deleted_by_a_vacuum(portal: Any, worker: Any) -> None:
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
    assert [row[0] for row in texts(worker.dsn)] == ["kept"]
    assert queued(worker.dsn) == []


def findings(dsn: str) -> list[str]:
    """Return the findings of ``pgcatalog check`` about files."""
    return [finding["text"] for finding in check(dsn) if "files" in finding["text"]]


def test_check_names_files_without_a_worker(portal: Any, worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    upload(portal, "minutes", files.pdf("quokka"))
    transaction.commit()
    assert findings(worker.dsn) == []
    with connect(worker.dsn, "test") as connection:
        connection.execute("UPDATE pgcatalog_queue SET put_at = now() - interval '1 hour'")
    [finding] = findings(worker.dsn)
    assert finding.startswith("/plone: 1 files wait for text extraction, the oldest for 1:00:0")
    monkeypatch.setattr("plone.pgcatalog.cli.reports.version_of", lambda name: None if name == "xberg" else "99.0")
    assert "files wait for text extraction, but xberg is not installed" in findings(worker.dsn)
    work(worker)
    assert findings(worker.dsn) == []


def test_zmi_lists_files_without_text_and_retries_them(portal: Any, worker: Any) -> None:
    web = Site(worker.database)
    upload(portal, "broken", b"%PDF-1.4 {broken")
    transaction.commit()
    rid = portal.portal_catalog.getrid("/plone/broken")
    transaction.begin()

    def figures() -> str:
        return text(web.page("/plone/portal_catalog/manage_catalogOverview").get_element_by_id("files"))

    assert figures() == "1 without a text so far, 0 failed"
    work(worker)
    assert figures() == "0 without a text so far, 1 failed"
    page = web.page("/plone/portal_catalog/manage_objectInformation", rid=rid)
    failure = page.get_element_by_id("failure").text_content()
    assert "No text could be extracted from the file:" in failure
    assert "PDF" in failure
    [_] = web.page("/plone/portal_catalog/manage_catalogOverview").xpath("//button[@name='repeat_files']")
    assert web.post("/plone/portal_catalog/manage_catalogAdvanced", repeat_files="1").status == 302
    assert figures() == "1 without a text so far, 0 failed"
    assert work(worker) == 1


@pytest.fixture
def two(two_sites_template: str, postgres: Any) -> Iterator[Any]:
    """(application with two sites, worker)."""
    with sites.opened(sites.clone(postgres, two_sites_template)) as db, sites.application(db) as app:
        sites.login(app)
        enter(app.plone)
        yield app, Worker(db, database_dsn(db))


def paths(portal: Any, word: str) -> list[str]:
    transaction.begin()
    enter(portal)
    return sorted(brain.getPath() for brain in portal.portal_catalog(SearchableText=word))


@pytest.mark.parametrize(
    "is_known", [pytest.param(True, id="text known"), pytest.param(False, id="text not known", marks=pytest.mark.slow)]
)
def test_an_exported_file_is_found_where_it_is_imported(two: Any, extractor: Any, is_known: bool) -> None:
    app, worker = two
    counted = Counted()
    extractor(counted)
    upload(app.plone, "minutes", files.pdf("quokka"))
    transaction.commit()
    assert not is_known or work(worker) == 1
    file = Path(ObjectManager.CONFIG.instancehome) / "import" / "minutes.zexp"
    file.parent.mkdir(exist_ok=True)
    transaction.begin()
    file.write_bytes(app.plone.manage_exportObject("minutes", download=1))
    for portal in (app.plone, app.second):
        enter(portal)
        portal.folder.manage_importObject(file.name)
        transaction.commit()
    file.unlink()
    work(worker)
    assert paths(app.plone, "quokka") == ["/plone/folder/minutes", "/plone/minutes"]
    assert paths(app.second, "quokka") == ["/second/folder/minutes"]
    # The bytes are the same.
    assert counted.count == 1
    assert queued(worker.dsn) == []


def test_dump_has_texts_words_and_waiting_jobs(portal: Any, worker: Any, postgres: Any, tmp_path: Path) -> None:
    for name, data in (
        ("known", files.pdf("quokka")),
        ("broken", b"%PDF-1.4 {broken"),
        ("waiting", files.pdf("wombat")),
    ):
        upload(portal, name, data)
        transaction.commit()
        assert name == "waiting" or work(worker) == 1
    failures = [reason for (reason,) in queued(worker.dsn) if reason]
    stored = texts(worker.dsn)
    dump, other = str(tmp_path / "site.dump"), postgres.createdb("restored_files")
    for program, database in (("pg_dump", worker.dsn), ("pg_restore", other)):
        options = ["-Fc", "-f", dump] if program == "pg_dump" else [dump]
        subprocess.run([postgres._binaries / program, "-d", direct_dsn(database), *options], check=True)
    with sites.opened(other) as db, sites.inside(db) as portal:
        assert found(portal, "quokka") == ["known"]
        assert found(portal, "wombat") == []
        assert work(Worker(db, other)) == 1
        assert found(portal, "wombat") == ["waiting"]
        # Nothing was extracted again, and failed files still have their reason.
        assert [row for row in texts(other) if row in stored] == stored
        assert [reason for (reason,) in queued(other)] == failures
        copies = create(portal, "Folder", "copies")
        copies.manage_pasteObjects(portal.manage_copyObjects(["known"]))
        transaction.commit()
        work(Worker(db, other))
        assert paths(portal, "quokka") == ["/plone/copies/known", "/plone/known"]
        assert_sound(portal)
