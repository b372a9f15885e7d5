"""``pgcatalog rebuild``: with workers, killed and continued."""

from pathlib import Path
from plone.pgcatalog.indexing.verify import Verifier
from plone.pgcatalog.queue.progress import long_jobs
from tests.acceptance.cli import command
from tests.acceptance.cli import pgcatalog
from tests.acceptance.cli import write_conf
from tests.integration.content import create
from tests.integration.relation import damage
from typing import Any

import json
import psycopg
import pytest
import signal
import subprocess
import time
import transaction


pytestmark = pytest.mark.slow


@pytest.fixture
def portal(app: Any) -> Any:
    """A site with 12 folders of 15 documents."""
    for number in range(12):
        folder = create(app.plone, "Folder", f"f{number}")
        for i in range(15):
            folder.invokeFactory("Document", f"d{i}", title=f"Document {i}")
    transaction.commit()
    return app.plone


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_killed_rebuild_is_continued_by_workers(portal: Any, dsn: str, tmp_path: Path, sent: signal.Signals) -> None:
    """Ctrl-C does no more harm than a kill, and is not reported as an error."""
    conf = write_conf(tmp_path, dsn)
    damage(dsn, "DELETE FROM {} WHERE get_id = 'd3'")
    said = tmp_path / "stderr"
    with said.open("w") as stderr:
        process = subprocess.Popen(
            command("rebuild", conf, "--site", "plone"),
            stderr=stderr,
            # A shell may have started the tests with Ctrl-C ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not connection.execute("SELECT FROM pgcatalog_rebuild WHERE done > 0").fetchall():
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(sent)
        process.wait()
        # ZODB logs the object that it was about to load, wherever that was.
        assert said.read_text("utf-8").rstrip().endswith("Aborted!") == (sent == signal.SIGINT)
        interrupted = connection.execute("SELECT relation, done FROM pgcatalog_rebuild").fetchall()
        job = connection.execute("SELECT finished IS NOT NULL FROM pgcatalog_queue WHERE kind = 'rebuild'").fetchall()
        assert job == [(sent == signal.SIGINT,)]
    assert pgcatalog("status", "--dsn", dsn).returncode == 1
    # Searches and edits still work.
    transaction.begin()
    assert len(portal.portal_catalog.unrestrictedSearchResults(getId="d4")) == 12
    portal.f1.d4.title = "Changed"
    portal.f1.d4.reindexObject()
    transaction.commit()
    result = pgcatalog("rebuild", conf, "--site", "plone", "--workers", "2", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert [report["relation"]] == [relation for relation, _ in interrupted]
    assert report["objects"] > 12 * 16
    transaction.begin()
    assert list(Verifier(portal.portal_catalog).differences()) == []
    assert len(portal.portal_catalog.unrestrictedSearchResults(getId="d3")) == 12
    assert pgcatalog("status", "--dsn", dsn).returncode == 0
    [job] = long_jobs(portal.portal_catalog._core.session.execute, portal.portal_catalog._core.zoid).values()
    assert (job.name, job.state) == ("rebuild", "done")
    nothing = pgcatalog("rebuild", conf, "--site", "plone", "--abandon", "--json")
    assert json.loads(nothing.stdout) == {"abandoned": None}
