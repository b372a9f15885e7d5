"""``pgcatalog meaning``, beside ``pgcatalog work``."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from plone.pgcatalog.queue.worker import Worker
from tests.acceptance.cli import answer
from tests.acceptance.cli import command
from tests.acceptance.cli import invoke
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration import uploads
from tests.integration.content import create
from tests.integration.embedders import Answers
from tests.integration.embedders import clear_embedder_state
from tests.integration.embedders import NOT_OF_PAGES
from tests.integration.embedders import serving
from tests.integration.embedders import vectors
from tests.integration.meanings import setting
from tests.integration.waiting import PATIENCE
from tests.integration.waiting import until
from typing import Any

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


def shown(conf: str, *options: str) -> tuple[int, dict[str, Any]]:
    return answer("meaning", conf, "--site", "plone", *options)


def execute(dsn: str, statement: str) -> list[Any]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def work(dsn: str) -> None:
    """Do all due jobs, in this process, as if it had just started."""
    clear_embedder_state()
    with sites.opened(dsn) as db:
        uploads.work(Worker(db, dsn))


def passages(answers: Answers) -> list[str]:
    """Return the texts sent to the embedder since the last call."""
    texts = [text for request in answers.requests for text in request["input"] if text not in NOT_OF_PAGES]
    answers.requests.clear()
    return texts


def test_all_pages_are_embedded_and_a_refused_one_is_retried(conf: str, dsn: str, embedder: Answers) -> None:
    embedder.answer = lambda request: (413, {}, b"too long") if "poison" in str(request["input"]) else vectors(request)
    status, before = shown(conf)
    assert (status, before["waiting"], before["failed"], before["tables"]) == (0, 4, 0, [])
    with subprocess.Popen(command("work", conf), stderr=subprocess.DEVNULL) as working:
        status, done = shown(conf, "--wait")
        working.kill()
    assert (status, done["waiting"], done["failed"]) == (1, 0, 1)
    assert done["failures"][0]["reason"] == "the embedder returns 413: too long"
    [table] = done["tables"]
    assert (table["url"], table["answers_as"], table["is_complete"]) == (embedder.url, "test", True)
    embedder.answer = vectors
    passages(embedder)
    status, again = shown(conf, "--repeat")
    assert (status, again["waiting"], again["failed"]) == (0, 1, 0)
    work(dsn)
    assert passages(embedder) == ["About poison"]
    execute(dsn, f"ANALYZE {table['name']}")
    [(count,)] = execute(dsn, f"SELECT count(*) FROM {table['name']}")
    assert invoke("meaning", conf, "--site", "plone", "--backfill").stdout.splitlines() == [
        f"embedder {embedder.url}, model test-{{kind}}",
        f"{count} pages queued",
        f"{table['name']}: test, 4 dimensions, {count} chunks, in use",
        f"{count + 1} waiting, 0 failed",
    ]
    work(dsn)
    # Stored texts are not sent again.
    assert passages(embedder) == []
    assert execute(dsn, "SELECT subject FROM pgcatalog_queue WHERE subject <> catalog") == []


def test_progress_is_shown_and_the_jobs_of_a_killed_worker_are_repeated(conf: str, dsn: str, embedder: Answers) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def answer(request: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        if "poison" in str(request["input"]):
            reached.set()
            go_on.wait(PATIENCE)
        return vectors(request)

    embedder.answer = answer
    terminal, end = pty.openpty()
    os.set_blocking(terminal, False)
    shows = bytearray()

    def shows_progress() -> bool:
        with suppress(BlockingIOError):
            shows.extend(os.read(terminal, 65536))
        return b"Pages" in shows and b"%" in shows

    watch = command("meaning", conf, "--site", "plone", "--wait")
    with (
        subprocess.Popen(command("work", conf), stderr=subprocess.DEVNULL) as working,
        subprocess.Popen(watch, stderr=end, env=os.environ | {"TERM": "xterm"}) as watching,
    ):
        try:
            until(shows_progress)
            until(reached.is_set)
            assert watching.poll() is None
        finally:
            watching.kill()
            working.kill()
            go_on.set()
    assert b"Traceback" not in shows
    for descriptor in (terminal, end):
        os.close(descriptor)
    # As if a minute were over: the jobs of a killed worker are due again.
    execute(dsn, "UPDATE pgcatalog_queue SET due = now() WHERE due < 'infinity'")
    with subprocess.Popen(command("work", conf), stderr=subprocess.DEVNULL) as working:
        status, done = shown(conf, "--wait")
        working.kill()
    assert (status, done["waiting"], done["failed"]) == (0, 0, 0)
    [table] = done["tables"]
    assert table["is_complete"]
    [(chunks, pages)] = execute(dsn, f"SELECT count(*), count(DISTINCT zoid) FROM {table['name']}")
    assert chunks == pages == 4


def test_site_without_embedder_or_pgvector_is_reported(conf: str, dsn: str) -> None:
    done = invoke("meaning", conf, "--site", "plone", "--backfill", "--wait")
    assert (done.exit_code, done.stdout) == (1, "no embedder: set its URL in the control panel PostgreSQL Catalog\n")
    execute(dsn, NO_PGVECTOR)
    with serving() as answers:
        with sites.opened(dsn) as db, sites.inside(db):
            setting(embedder_url=answers.url, embedder_model="test-{kind}")
        work(dsn)
        without = invoke("meaning", conf, "--site", "plone")
        assert without.exit_code == 0
        assert "1 waiting, 0 failed" in without.stdout
        assert "pgvector is missing: install it on the server" in without.stdout
        waiting = invoke("meaning", conf, "--site", "plone", "--backfill", "--wait")
        assert waiting.exit_code == 1
        assert "pgvector is missing: install it on the server" in waiting.stdout
        execute(dsn, "DROP EVENT TRIGGER refuse")
        for _ in range(2):
            uploads.due(dsn)
            work(dsn)
        status, with_it = shown(conf)
    assert (status, with_it["waiting"], with_it["failed"], len(with_it["tables"])) == (0, 0, 0, 1)
