"""The programs in ``checks``, small: failovers under load, Patroni, ZODB's own tests; the verdict on Plone's suites."""

from checks.plone_suites.compare import compare
from checks.plone_suites.compare import load_bound
from checks.plone_suites.compare import regressions
from checks.plone_suites.results import stored_controls
from checks.plone_suites.results import updated
from checks.soak import mixed
from checks.topology import cluster
from checks.zodb_suites import results as zodb_suites
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.conftest import memory_folder
from tests.integration.bouncer import find_pgbouncer
from tests.integration.bouncer import FOLLOWS
from tests.integration.bouncer import version_of
from typing import Any

import json
import os
import pytest
import re
import subprocess
import sys
import tempfile


ROOT = Path(__file__).parents[2]
SMALL = "--clients 3 --threads 2 --processes 2 --objects 40"


def run(folder: Path, mark: str, module: str, options: str) -> tuple[Any, str]:
    """Run a module of ``checks``; return its results, and the page with the text that it has put at *mark*."""
    output, page = folder / "results.json", folder / "page.md"
    page.write_text(f"<!-- {mark} -->\nthe former table\n<!-- end of {mark} -->\n")
    command = [sys.executable, "-W", "ignore", "-m", *module.split(), *SMALL.split(), *options.split()]
    command += ["--output", str(output), "--page", str(page)]
    # On a slow disk, beside other tests, etcd answers too late for Patroni, whose leader then steps down.
    environment = os.environ | {"TMPDIR": str(memory_folder() or tempfile.gettempdir())}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(output.read_text()), page.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mark", "options"),
    [
        ("soak", "--seconds 15 --kills 1"),
        ("failovers", "--seconds 30 --failovers 2"),
        ("synchronous failovers", "--seconds 12 --failovers 1 --synchronous"),
    ],
)
def test_soak_fulfils_every_promise(mark: str, options: str, tmp_path: Path) -> None:
    """A killed server loses unfinished writes, and nothing that was acknowledged."""
    report, page = run(tmp_path, mark, "checks.soak", options)
    assert report["broken"] == []
    assert report["requests"] > report["acknowledged_writes"] > 0
    assert report["compared" if mark == "soak" else "compared_answers"] > 0
    # An asynchronous standby lacks commits, from which no Zope may answer.
    assert bool(report["lost_by_failovers"]) == (mark == "failovers")
    assert f"| requests | {report['requests']} |" in page


@pytest.mark.slow
@pytest.mark.skipif(find_pgbouncer() is None, reason="PgBouncer is not installed")
def test_mixed_soak_fulfils_every_promise_and_draws_its_course(tmp_path: Path) -> None:
    """Files, vectors, a pooler and a standby; each kind of event happens once at least."""
    drawing = tmp_path / "mixed.svg"
    report, page = run(tmp_path, "mixed", "checks.soak", f"--seconds 60 --mixed --drawing {drawing}")
    assert report["broken"] == []
    assert report["compared"] > 0
    assert {event["kind"] for event in report["events"]} >= mixed.PERIODS.keys() - {"reader"}
    assert {line["points"][0][0] >= 0 for by_name in report["levels"].values() for line in by_name.values()} == {True}
    assert "| rebuild | 1 |" in page
    assert drawing.read_text("utf-8").startswith("<?xml")


@pytest.mark.slow
@pytest.mark.skipif(find_pgbouncer() is None, reason="PgBouncer is not installed")
def test_users_behind_a_pooler_see_no_stale_answer(tmp_path: Path) -> None:
    """An older PgBouncer is refused, when the figures without it are measured."""
    command = [sys.executable, "-m", "checks.topology", "pgbouncer", *SMALL.split(), "--seconds", "3"]
    output = tmp_path / "results.json"
    command += ["--output", str(output)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    program = find_pgbouncer()
    assert program is not None
    if version_of(program) < FOLLOWS:
        assert "follows no prepared statements" in done.stderr
        return
    assert done.returncode == 0, done.stdout + done.stderr
    for figures in json.loads(output.read_text())["figures"].values():
        assert figures["requests"] > 0
        assert figures["stale answers"] == 0
        assert figures["problems"] == "none"


@pytest.mark.slow
@pytest.mark.skipif(bool(cluster.missing()), reason=f"not installed: {cluster.missing()}")
def test_new_leader_has_the_saved_objects_and_the_former_one_follows(tmp_path: Path) -> None:
    """Under Patroni, with etcd, HAProxy and Zopes."""
    options = "--standby synchronous --kills 1 --pauses 0 --cuts 0 --switchovers 1"
    results, page = run(tmp_path, "cost of Patroni", "checks.topology patroni", options)
    found = results["runs"]["synchronous"]
    assert [failure["way"] for failure in found["failures"]] == [cluster.KILLED, cluster.SWITCHED]
    assert found["lost"] == found["stale"] == 0 < found["acknowledged"]
    assert found["compared"] > 0
    assert "| synchronous | 2 | 0 of " in page


@pytest.mark.slow
@pytest.mark.direct("the tests create databases of their own")
def test_same_tests_of_zodb_fail_with_this_package_and_without(postgres: EmbeddedPostgres) -> None:
    """As stored; after a change: ``make test-zodb``."""
    found = zodb_suites.summary(zodb_suites.run(postgres.createdb("zodb_suites")))
    assert found == json.loads(zodb_suites.STORED.read_text("utf-8"))


def result(tests: dict[str, str]) -> dict[str, Any]:
    found = {name: {"status": status, "secs": 1, "err": "ValueError: x"} for name, status in tests.items()}
    return {"profile": "x", "versions": {}, "suites": {"s": {"seconds": 1.5, "tests": found}}}


@pytest.mark.parametrize(
    ("changes", "excused", "counts"),
    [
        ({"b": "error"}, "", False),
        ({"c": "fail"}, "", True),
        ({"c": "fail"}, "c", False),
        ({"a": None}, "", True),
    ],
)
def test_only_failures_with_the_candidate_alone_and_tests_not_run_count(
    changes: dict[str, Any], excused: str, counts: bool
) -> None:
    control = {"a": "ok", "b": "fail", "c": "ok"}
    candidate = {name: status for name, status in (control | changes).items() if status}
    [suite] = compare(result(control), result(candidate), {re.compile(excused): "because"} if excused else {})
    assert suite.passed is not counts


@pytest.mark.parametrize(("today", "counts"), [("fail", False), ("ok", True)])
def test_failures_that_the_control_has_on_the_same_day_do_not_count(today: str, counts: bool) -> None:
    """Such as those of tests about "this month" in the last hour of one."""
    control, candidate = result({"a": "ok", "b": "ok"}), result({"a": "ok", "b": "fail"})
    suspects = regressions(compare(control, candidate, {}))
    assert list(suspects["suites"]["s"]["tests"]) == ["b"]
    [suite] = compare(updated(control, result({"b": today})), candidate, {})
    assert suite.passed is not counts


def test_every_excuse_has_a_reason_and_a_test() -> None:
    assert all(load_bound().values())
    suites = stored_controls()["suites"].values()
    ids = [test for suite in suites for test, result in suite["tests"].items() if result["status"] == "ok"]
    assert [pattern.pattern for pattern in load_bound() if not any(pattern.search(test) for test in ids)] == []
