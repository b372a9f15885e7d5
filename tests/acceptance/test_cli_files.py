"""``pgcatalog files`` and ``pgcatalog work``, in processes of their own."""

from demo import documents as files
from pathlib import Path
from tests.acceptance.cli import command
from tests.acceptance.cli import pgcatalog
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.waiting import until
from typing import Any

import json
import psycopg
import pytest
import signal
import subprocess
import transaction


pytestmark = pytest.mark.slow


@pytest.fixture
def dsn(site_template: str, postgres: Any) -> str:
    """A site with two files that were saved while the setting was off, one of them broken."""
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        portal.portal_catalog._settings = {"text_of_files": False}
        for name, data in (("minutes", files.pdf("quokka")), ("broken", b"no PDF")):
            create(portal, "File", name, file=files.blob(data))
        transaction.commit()
        portal.portal_catalog._settings = {}
        transaction.commit()
    return dsn


@pytest.fixture
def conf(dsn: str, tmp_path: Path) -> str:
    return write_conf(tmp_path, dsn)


def found(dsn: str) -> list[str]:
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        return [brain.getId for brain in portal.portal_catalog(SearchableText="quokka")]


def told(conf: str, *options: str) -> tuple[int, dict[str, Any]]:
    done = pgcatalog("files", conf, "--site", "plone", "--json", *options)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_backfill_and_work_report_failed_files(conf: str, dsn: str) -> None:
    assert told(conf) == (0, {"waiting": 0, "saved": 0, "failed": 0, "failures": []})
    assert told(conf, "--backfill") == (0, {"waiting": 2, "saved": 0, "failed": 0, "failures": []})
    done = pgcatalog("work", conf, "--once", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert found(dsn) == ["minutes"]
    status, data = told(conf, "--wait")
    assert (status, data["waiting"], data["failed"]) == (1, 0, 1)
    [failure] = data["failures"]
    assert "PDF" in failure["reason"]
    assert told(conf, "--repeat")[1]["waiting"] == 1
    # Started again, it adds a job for every file once more, and nothing is extracted twice.
    assert told(conf, "--backfill")[1]["waiting"] == 2
    text = pgcatalog("files", conf, "--site", "plone")
    assert text.stdout.splitlines()[-1] == "2 waiting, 0 without a text"


def test_waiting_jobs_of_saves_are_counted(conf: str, dsn: str) -> None:
    assert told(conf, "--backfill")[1]["saved"] == 0
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        create(portal, "File", "saved", file=files.blob(files.pdf("wombat")))
        transaction.commit()
    assert told(conf) == (0, {"waiting": 3, "saved": 1, "failed": 0, "failures": []})
    text = pgcatalog("files", conf, "--site", "plone")
    assert text.stdout.splitlines()[-1] == "3 waiting (1 after saves), 0 without a text"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_work_runs_until_it_is_ended(conf: str, dsn: str, number: signal.Signals) -> None:
    assert told(conf, "--backfill")[1]["waiting"] == 2
    process = subprocess.Popen(command("work", conf))
    try:
        with psycopg.connect(dsn, autocommit=True) as connection:
            texts = "SELECT count(*) FROM pgcatalog_queue WHERE due < 'infinity'"
            until(lambda: connection.execute(texts).fetchall() == [(0,)])
        process.send_signal(number)
        assert until(lambda: process.poll() is not None)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
    assert found(dsn) == ["minutes"]


def test_killed_work_is_done_by_the_next_process(conf: str, dsn: str) -> None:
    told(conf, "--backfill")
    with psycopg.connect(dsn, autocommit=True) as connection:
        process = subprocess.Popen(command("work", conf))
        try:
            taken = "SELECT count(*) > 0 FROM pgcatalog_queue WHERE attempts > 0"
            until(lambda: connection.execute(taken).fetchall() == [(True,)])
        finally:
            process.kill()
            process.wait()
        connection.execute("UPDATE pgcatalog_queue SET due = now() WHERE due < 'infinity'")
    assert pgcatalog("work", conf, "--once").returncode == 0
    assert found(dsn) == ["minutes"]
    assert told(conf)[1]["waiting"] == 0


def test_missing_site_or_database_is_reported(conf: str, tmp_path: Path) -> None:
    assert pgcatalog("files", conf, "--site", "nowhere").returncode == 2
    other = tmp_path / "other"
    other.mkdir()
    away = pgcatalog("work", write_conf(other, f"host={tmp_path} dbname=nothing"), "--once")
    assert (away.returncode, "Traceback" in away.stderr) == (2, False), away.stderr
