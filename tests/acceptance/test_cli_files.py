"""``pgcatalog files``, and ``pgcatalog work`` in processes of its own."""

from demo import documents as files
from pathlib import Path
from tests.acceptance.cli import answer
from tests.acceptance.cli import command
from tests.acceptance.cli import invoke
from tests.acceptance.cli import pgcatalog
from tests.acceptance.cli import write_conf
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.waiting import until
from typing import Any

import psycopg
import pytest
import signal
import subprocess
import transaction


pytestmark = pytest.mark.slow


def two_files(portal: Any) -> None:
    """Create two files that are saved while the setting is off, one of them broken."""
    portal.portal_catalog._settings = {"text_of_files": False}
    for name, data in (("minutes", files.pdf("quokka")), ("broken", b"%PDF-1.4 {broken")):
        create(portal, "File", name, file=files.blob(data))
    transaction.commit()
    portal.portal_catalog._settings = {}


CONTENT = two_files


@pytest.fixture
def conf(dsn: str, tmp_path: Path) -> str:
    return write_conf(tmp_path, dsn)


def found(dsn: str) -> list[str]:
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        return [brain.getId for brain in portal.portal_catalog(SearchableText="quokka")]


def shown(conf: str, *options: str) -> tuple[int, dict[str, Any]]:
    return answer("files", conf, "--site", "plone", *options)


def test_backfill_and_work_report_failed_files_and_saves_are_counted(conf: str, dsn: str) -> None:
    nothing: dict[str, Any] = {"waiting": 0, "saved": 0, "failed": 0, "failures": [], "scans": 0, "empty": 0}
    assert shown(conf) == (0, nothing)
    assert shown(conf, "--backfill") == (0, nothing | {"waiting": 2})
    done = pgcatalog("work", conf, "--once", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert found(dsn) == ["minutes"]
    status, data = shown(conf, "--wait")
    assert (status, data["waiting"], data["failed"]) == (1, 0, 1)
    [failure] = data["failures"]
    assert "PDF" in failure["reason"]
    assert shown(conf, "--repeat")[1]["waiting"] == 1
    # Started again, it adds a job for every file once more, and nothing is extracted twice.
    assert shown(conf, "--backfill")[1] == nothing | {"waiting": 2}
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        create(portal, "File", "saved", file=files.blob(files.pdf("wombat")))
        transaction.commit()
    text = invoke("files", conf, "--site", "plone")
    assert text.stdout.splitlines()[-1] == "3 waiting (1 after saves), 0 failed"


def status_after(number: signal.Signals, conf: str, dsn: str) -> int:
    """Return the exit status of ``pgcatalog work`` that gets the signal *number* when no job waits."""
    waiting = "SELECT FROM pgcatalog_queue WHERE due < 'infinity'"
    with (
        subprocess.Popen(command("work", conf)) as process,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        try:
            until(lambda: not connection.execute(waiting).fetchall())
            process.send_signal(number)
            assert until(lambda: process.poll() is not None)
        finally:
            process.kill()
    return process.returncode


def test_work_runs_until_it_is_ended(conf: str, dsn: str) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        assert shown(conf, "--backfill")[1]["waiting"] == 2
        assert status_after(number, conf, dsn) == 0
        assert found(dsn) == ["minutes"]


def test_missing_site_or_database_is_reported(conf: str, tmp_path: Path) -> None:
    assert invoke("files", conf, "--site", "nowhere").exit_code == 2
    (tmp_path / "other").mkdir()
    away = pgcatalog("work", write_conf(tmp_path / "other", f"host={tmp_path} dbname=nothing"), "--once")
    assert (away.returncode, "Traceback" in away.stderr) == (2, False), away.stderr
