"""The text of files moves with them: by an export into another folder or site, by a dump into another database."""

from collections.abc import Iterator
from demo import documents as files
from OFS import ObjectManager
from pathlib import Path
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.storage import assert_sound
from tests.integration.two_sites import enter
from tests.integration.uploads import Counted
from tests.integration.uploads import extractor as extractor
from tests.integration.uploads import queued
from tests.integration.uploads import upload
from tests.integration.uploads import work
from typing import Any

import psycopg
import pytest
import subprocess
import transaction


@pytest.fixture
def two(two_sites_template: str, postgres: Any) -> Iterator[Any]:
    """(application with two sites, worker)."""
    with sites.opened(sites.clone(postgres, two_sites_template)) as db, sites.application(db) as app:
        sites.login(app)
        enter(app.plone)
        yield app, Worker(db, database_dsn(db))


def found(site: Any, word: str) -> list[str]:
    transaction.begin()
    enter(site)
    return sorted(brain.getPath() for brain in site.portal_catalog(SearchableText=word))


@pytest.mark.parametrize("is_known", [True, False], ids=["text known", "text not known"])
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
    for site in (app.plone, app.second):
        enter(site)
        site.folder.manage_importObject(file.name)
        transaction.commit()
    file.unlink()
    work(worker)
    assert found(app.plone, "quokka") == ["/plone/folder/minutes", "/plone/minutes"]
    assert found(app.second, "quokka") == ["/second/folder/minutes"]
    # The bytes are the same.
    assert counted.count == 1
    assert queued(worker.dsn) == []


def test_dump_has_texts_words_and_waiting_jobs(site_template: str, postgres: Any, tmp_path: Path) -> None:
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        for name, data in (("known", files.pdf("quokka")), ("broken", b"no PDF"), ("waiting", files.pdf("wombat"))):
            upload(portal, name, data)
            transaction.commit()
            assert name == "waiting" or work(Worker(db, dsn)) == 1
        failures = [reason for (reason,) in queued(dsn) if reason]
        kept = texts(dsn)
    dump = tmp_path / "site.dump"
    with dump.open("wb") as output:
        subprocess.run([postgres._binaries / "pg_dump", "-Fc", "-d", dsn], stdout=output, check=True)
    other = postgres.createdb("restored_files")
    with dump.open("rb") as stream:
        subprocess.run([postgres._binaries / "pg_restore", "-d", other], stdin=stream, check=True)
    with sites.opened(other) as db, sites.inside(db) as portal:
        assert found(portal, "quokka") == ["/plone/known"]
        assert found(portal, "wombat") == []
        assert work(Worker(db, other)) == 1
        assert found(portal, "wombat") == ["/plone/waiting"]
        # Nothing was extracted again, and failed files still have their reason.
        assert [text for text in texts(other) if text in kept] == kept
        assert [reason for (reason,) in queued(other)] == failures
        copy = create(portal, "Folder", "copies")
        copy.manage_pasteObjects(portal.manage_copyObjects(["known"]))
        transaction.commit()
        work(Worker(db, other))
        assert found(portal, "quokka") == ["/plone/copies/known", "/plone/known"]
        assert_sound(portal)


def texts(dsn: str) -> list[Any]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "SELECT digest, text, error, extracted_at FROM pgcatalog_file_texts ORDER BY 1"
        ).fetchall()
