"""``pgcatalog meaning``, in a process of its own, beside ``pgcatalog work``."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from pathlib import Path
from tests.acceptance.cli import command
from tests.acceptance.cli import pgcatalog
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.embedders import Answers
from tests.integration.embedders import NOT_OF_PAGES
from tests.integration.embedders import serving
from tests.integration.embedders import vectors
from tests.integration.meanings import setting
from tests.integration.waiting import PATIENCE
from tests.integration.waiting import until
from typing import Any

import json
import os
import psycopg
import pty
import pytest
import subprocess
import threading
import transaction


pytestmark = pytest.mark.slow

NO_PGVECTOR = """
DROP EXTENSION IF EXISTS vector CASCADE;
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION 'permission denied to create extension'; END$$;
CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE EXTENSION') EXECUTE FUNCTION refuse();
"""


@pytest.fixture
def dsn(site_template: str, postgres: Any) -> str:
    return sites.clone(postgres, site_template)


@pytest.fixture
def conf(dsn: str, tmp_path: Path) -> str:
    return write_conf(tmp_path, dsn)


@pytest.fixture
def embedder(dsn: str) -> Iterator[Answers]:
    """An embedder in the settings of a site with a few pages."""
    with serving() as answers:
        with sites.opened(dsn) as db, sites.inside(db) as portal:
            setting(embedder_url=answers.url, embedder_model="test-{kind}")
            for name in ("leave", "poison", "cars"):
                create(portal, "Document", name, title=f"About {name}")
            transaction.commit()
        yield answers


def told(conf: str, *options: str) -> tuple[int, dict[str, Any]]:
    done = pgcatalog("meaning", conf, "--site", "plone", "--json", *options)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def execute(dsn: str, statement: str) -> list[Any]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def make_due(dsn: str) -> None:
    """Make the waiting jobs due."""
    execute(dsn, "UPDATE pgcatalog_queue SET due = now() WHERE due < 'infinity'")


@contextmanager
def working(conf: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``pgcatalog work`` to the end of the block, or to its own."""
    with subprocess.Popen(command("work", conf), stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def work_once(conf: str) -> None:
    done = pgcatalog("work", conf, "--once")
    assert done.returncode == 0, done.stderr


def passages(answers: Answers) -> list[str]:
    """Return the texts sent to the embedder since the last call."""
    texts = [text for request in answers.requests for text in request["input"] if text not in NOT_OF_PAGES]
    answers.requests.clear()
    return texts


def test_all_pages_are_embedded_and_a_refused_one_is_retried(conf: str, dsn: str, embedder: Answers) -> None:
    embedder.answer = lambda request: (413, {}, b"too long") if "poison" in str(request["input"]) else vectors(request)
    status, before = told(conf)
    assert (status, before["waiting"], before["failed"], before["tables"]) == (0, 4, 0, [])
    with working(conf):
        status, done = told(conf, "--wait")
    assert (status, done["waiting"], done["failed"]) == (1, 0, 1)
    assert done["failures"][0]["reason"] == "the embedder returns 413: too long"
    [table] = done["tables"]
    assert (table["url"], table["answers_as"], table["is_complete"]) == (embedder.url, "test", True)
    embedder.answer = vectors
    passages(embedder)
    status, again = told(conf, "--repeat")
    assert (status, again["waiting"], again["failed"]) == (0, 1, 0)
    work_once(conf)
    assert passages(embedder) == ["About poison"]
    execute(dsn, f"ANALYZE {table['name']}")
    [(count,)] = execute(dsn, f"SELECT count(*) FROM {table['name']}")
    text = pgcatalog("meaning", conf, "--site", "plone", "--backfill").stdout.splitlines()
    assert text == [
        f"embedder {embedder.url}, model test-{{kind}}",
        f"{count} pages queued",
        f"{table['name']}: test, 4 dimensions, {count} chunks, in use",
        f"{count + 1} waiting, 0 failed",
    ]
    work_once(conf)
    # Stored texts are not sent again.
    assert passages(embedder) == []
    assert execute(dsn, "SELECT subject FROM pgcatalog_queue WHERE subject <> catalog") == []


def test_progress_is_shown_and_killed_work_is_repeated(conf: str, dsn: str, embedder: Answers) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def answer(request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        if "poison" in str(request["input"]):
            reached.set()
            go_on.wait(PATIENCE)
        return vectors(request)

    embedder.answer = answer
    terminal, end = pty.openpty()
    os.set_blocking(terminal, False)
    shown = bytearray()

    def is_shown() -> bool:
        with suppress(BlockingIOError):
            shown.extend(os.read(terminal, 65536))
        return b"Pages" in shown and b"%" in shown

    watch = command("meaning", conf, "--site", "plone", "--wait")
    with working(conf), subprocess.Popen(watch, stderr=end, env=os.environ | {"TERM": "xterm"}) as watching:
        try:
            until(is_shown)
            until(reached.is_set)
            assert watching.poll() is None
        finally:
            watching.kill()
            go_on.set()
    assert b"Traceback" not in shown
    for descriptor in (terminal, end):
        os.close(descriptor)
    # As if a minute were over: the jobs of a killed worker are due again.
    make_due(dsn)
    with working(conf):
        status, done = told(conf, "--wait")
    assert (status, done["waiting"], done["failed"]) == (0, 0, 0)
    [table] = done["tables"]
    assert table["is_complete"]
    [(chunks, pages)] = execute(dsn, f"SELECT count(*), count(DISTINCT zoid) FROM {table['name']}")
    [(relation,)] = execute(dsn, "SELECT relation FROM pgcatalog_state")
    assert chunks == pages == execute(dsn, f"SELECT count(DISTINCT zoid) FROM {relation}")[0][0]


def test_site_without_embedder_or_pgvector_is_reported(conf: str, dsn: str) -> None:
    done = pgcatalog("meaning", conf, "--site", "plone", "--backfill", "--wait")
    assert (done.returncode, done.stdout) == (1, "no embedder: set its URL in the control panel PostgreSQL Catalog\n")
    execute(dsn, NO_PGVECTOR)
    with serving() as answers:
        with sites.opened(dsn) as db, sites.inside(db):
            setting(embedder_url=answers.url, embedder_model="test-{kind}")
        work_once(conf)
        without = pgcatalog("meaning", conf, "--site", "plone")
        assert without.returncode == 0
        assert "1 waiting, 0 failed" in without.stdout
        assert "pgvector is missing: install it on the server" in without.stdout
        assert "Traceback" not in without.stdout + without.stderr
        waiting = pgcatalog("meaning", conf, "--site", "plone", "--backfill", "--wait")
        assert waiting.returncode == 1
        assert "pgvector is missing: install it on the server" in waiting.stdout
        execute(dsn, "DROP EVENT TRIGGER refuse")
        for _ in range(2):
            make_due(dsn)
            work_once(conf)
        status, with_it = told(conf)
    assert (status, with_it["waiting"], with_it["failed"], len(with_it["tables"])) == (0, 0, 0, 1)
