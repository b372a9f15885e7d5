"""Workers and PostgreSQL are killed at each step of a file: each file is found in the end, and its text stored once.

A lock of the test stops a step where the server writes, so that the kill certainly happens there.
"""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from demo import documents as files
from pathlib import Path
from plone.pgcatalog.database import background
from plone.pgcatalog.queue import worker as worker_module
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from plone.pgcatalog.testing.embedded import dsn_of
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from plone.pgcatalog.testing.embedded import with_standby
from tests.acceptance.cli import command
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.extractions import COUNTING
from tests.integration.extractions import TWICE
from tests.integration.storage import assert_sound
from tests.integration.uploads import due
from tests.integration.uploads import queued
from tests.integration.uploads import upload
from tests.integration.waiting import background_ended
from tests.integration.waiting import until
from typing import Any

import hashlib
import psycopg
import pytest
import subprocess
import transaction


pytestmark = pytest.mark.slow


#: Acknowledged commits survive a kill.
SETTINGS = with_standby(TEST_SETTINGS | {"synchronous_commit": "local", "max_wal_senders": "8"})
#: The key of the lock that stops a step.
KEY = 4711
HOLD = f"""
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock({KEY});
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END $$
"""
LOCK = "SELECT pg_advisory_lock(%s)"
HELD = "SELECT FROM pg_stat_activity WHERE pg_backend_pid() <> pid AND %s = ANY(pg_blocking_pids(pid))"
OTHERS = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
#: Two of these have the same bytes.
FILES = {"minutes": files.pdf("quokka"), "same": files.pdf("quokka"), "other": files.pdf("wombat")}
#: The first file to be processed has these bytes.
FIRST = hashlib.sha256(FILES["minutes"]).digest()
#: Step -> the write before which it is stopped; the extractor writes nothing, and waits for the lock of its file's bytes.
STEPS = {
    "a job is taken": "UPDATE ON pgcatalog_queue",
    "before the extractor": "",
    "after the extractor": "INSERT ON pgcatalog_file_texts",
    "after the text is written": "INSERT ON pgcatalog_file_blobs",
    "before the reindex": "INSERT OR UPDATE ON {relation}",
    "after the reindex": "DELETE ON pgcatalog_queue",
}


@pytest.fixture(scope="module")
def server(zope: None) -> Iterator[EmbeddedPostgres]:
    """A server of our own, with a site as template."""
    with EmbeddedPostgres(settings=SETTINGS) as server:
        sites.create_site(server.createdb("template"), profiles=("plone.pgcatalog:default",))
        yield server


@pytest.fixture
def dsn(server: EmbeddedPostgres) -> str:
    """A site whose files wait for a worker."""
    server.start()
    dsn = sites.clone(server, "template")
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        for name, data in FILES.items():
            upload(portal, name, data)
            transaction.commit()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(COUNTING)
        connection.execute(HOLD)
    return dsn


@contextmanager
def held(dsn: str, step: str) -> Iterator[Callable[[], Any]]:
    """Stop any worker at *step* until ``release`` of the yielded function, which returns whether one waits there."""
    with psycopg.connect(dsn, autocommit=True) as holder:
        if written := STEPS[step]:
            [(relation,)] = holder.execute("SELECT relation FROM pgcatalog_state").fetchall()
            place = written.format(relation=relation)
            holder.execute(f"CREATE TRIGGER hold BEFORE {place} FOR EACH ROW EXECUTE FUNCTION hold()")
            holder.execute(LOCK, (KEY,))
        else:
            holder.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (FIRST.hex(),))
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield lambda: connection.execute(HELD, (holder.info.backend_pid,)).fetchall()


def assert_done(dsn: str) -> None:
    """Check that each file is found once, by its word; each text was stored once; no job waits or has failed."""
    assert queued(dsn) == []
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        for word, names in (("quokka", ["minutes", "same"]), ("wombat", ["other"])):
            assert sorted(brain.getId for brain in portal.portal_catalog(SearchableText=word)) == names
        assert_sound(portal)
    with psycopg.connect(dsn) as connection:
        assert connection.execute(TWICE).fetchall() == [(0,)]
        assert sorted(connection.execute("SELECT text FROM pgcatalog_file_texts")) == [("quokka",), ("wombat",)]


@pytest.mark.parametrize("step", STEPS)
def test_work_of_a_killed_worker_is_finished_by_the_next(dsn: str, tmp_path: Path, step: str) -> None:
    """Its session ends with it, and the next worker does all remaining jobs."""
    conf = write_conf(tmp_path, dsn)
    with held(dsn, step) as somebody:
        process = subprocess.Popen(command("work", conf), stderr=subprocess.DEVNULL)
        try:
            until(somebody)
        finally:
            process.kill()
            process.wait()
    with psycopg.connect(dsn, autocommit=True) as connection:
        until(lambda: connection.execute(OTHERS).fetchall() == [])
    due(dsn)
    with sites.opened(dsn) as db:
        Worker(db, dsn).run_until_empty()
    assert_done(dsn)


@contextmanager
def working(dsn: str, step: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a worker of a Zope up to *step*, yield for an action on the server, and check that the worker finishes."""
    monkeypatch.setattr(worker_module, "PAUSE", 0.05)
    with sites.opened(dsn) as db:
        worker = Worker(db, database_dsn(db))
        # The server ends the holder's session, too.
        with suppress(psycopg.OperationalError), held(dsn, step) as somebody:
            background.start("queue", worker.run)
            until(somebody)
            yield
        try:
            until(lambda: empty(dsn))
        finally:
            worker.stop()
            assert background_ended()
    assert_done(dsn)


def empty(dsn: str) -> bool:
    """Return whether no job waits; make jobs of dead workers due at once."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE pgcatalog_queue SET due = now() WHERE due < 'infinity' AND attempts > 0")
        connection.execute("SELECT pg_notify('pgcatalog_queue', '')")
        return connection.execute("SELECT FROM pgcatalog_queue").fetchall() == []


@pytest.mark.parametrize("step", STEPS)
def test_worker_finishes_after_its_server_was_killed(
    server: EmbeddedPostgres, dsn: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with working(dsn, step, monkeypatch):
        server.kill()
        server.start()


@pytest.mark.parametrize("step", ["before the extractor", "before the reindex"])
def test_worker_finishes_on_the_promoted_standby(
    server: EmbeddedPostgres, dsn: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    name = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
    with server.standby() as standby, working(dsn_of(server, standby, dbname=name), step, monkeypatch):
        standby.catch_up()
        server.kill()
        standby.promote()
