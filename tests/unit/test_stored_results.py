"""Pages of the documentation that are written from stored results, and the conditions for these results."""

from benchmarks.report import generated
from benchmarks.report import load
from benchmarks.report import PLOT
from benchmarks.report import SITES_PLOT
from checks.matrix import __main__ as matrix
from checks.matrix import table
from checks.soak import overview
from checks.soak import report
from checks.topology import patroni
from checks.topology import standby
from checks.zodb_suites import results as zodb_suites
from pathlib import Path
from scripts import replaced
from tests.unit.sources import between
from tests.unit.sources import ROOT
from tests.unit.sources import text

import json
import pytest


HOW_TO = ROOT / "docs" / "how-to"
TOPOLOGY = ROOT / "checks" / "topology" / "results"
SOAKS = [json.loads(text(overview.RESULTS / name)) for name in (*overview.RUNS.values(), "soak-mixed.json")]
PATRONI = json.loads(text(TOPOLOGY / "patroni.json"))
STATEMENTS = json.loads(text(TOPOLOGY / "standby.json"))["statements that the primary gets"]
PAIRS = table.stored()
ZODB = json.loads(text(zodb_suites.STORED))


@pytest.mark.parametrize(
    ("page", "mark", "made"),
    [
        *((page, mark, made) for page, texts in generated(load()).items() for mark, made in texts.items()),
        *((HOW_TO / "soak.md", report.mark(run["options"]), report.text(run)) for run in SOAKS),
        (HOW_TO / "high-availability.md", overview.MARK, overview.text()),
        (HOW_TO / "high-availability.md", patroni.MARK, patroni.text(PATRONI)),
        (HOW_TO / "read-only-replicas.md", "statements", "\n".join(standby.lines(STATEMENTS))),
        (ROOT / "README.md", table.MARK, table.text(PAIRS)),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else value[:30],
)
def test_page_has_the_stored_figures(page: Path, mark: str, made: str) -> None:
    assert between(page, mark) == made


def test_lists_are_generated_from_code_and_results() -> None:
    """After a change: ``scripts/replaced.py``, ``make test-zodb``, ``make bench-page``."""
    assert replaced.with_page(text(replaced.PAGE)) == text(replaced.PAGE)
    rows = [row for each in (replaced.tool_rows, replaced.inside_rows, replaced.index_rows) for row in each()]
    rows += [*replaced.zcml_rows(), *replaced.patch_rows()]
    assert rows
    assert [row for row in rows if not row[-1]] == [], "no reason"
    assert zodb_suites.page(text(zodb_suites.PAGE), ZODB) == text(zodb_suites.PAGE)
    assert PLOT.is_file()
    assert SITES_PLOT.is_file()


def test_stored_runs_fulfilled_every_promise() -> None:
    for run in SOAKS:
        assert run["broken"] == report.broken(run) == []
    for standby_is, run in PATRONI["runs"].items():
        assert run["broken"] == []
        assert run["stale"] == 0 < run["compared"]
        assert not (patroni.SYNCHRONOUS[standby_is] and run["lost"])
    assert {numbers["reader"] for numbers in STATEMENTS.values()} == {0}
    assert {stage["status"] for result in PAIRS.values() for stage in result["stages"].values()} == {0}
    wanted = {f"{python}/{server}" for python in ("3.12", "3.13", "3.14") for server in (15, 16, 17, 18)}
    assert {matrix.name_of(pair) for pair in matrix.pairs()} == wanted >= PAIRS.keys()
    assert ZODB["fail with only"] == []
    assert len(ZODB["fail without"]) < sum(ZODB["tests"].values()) > 300


@pytest.mark.parametrize(
    ("test", "found"),
    [
        *((race, []) for race in sorted(zodb_suites.RACES)),
        ("HistoryTests.test2ZODBThreads", ["HistoryTests.test2ZODBThreads"]),
    ],
)
def test_timing_of_tests_of_zodb_is_no_finding(test: str, found: list[str]) -> None:
    """Whether a race is lost says nothing about this package; a failure of any other test does."""
    for lost in (True, False):
        outcomes = {"without": {test: True}, "with": {test: not lost}}
        assert zodb_suites.summary(outcomes)["fail with only"] == (found if lost else [])


def test_each_kind_of_observation_breaks_a_promise() -> None:
    soak = SOAKS[0]
    for change in (
        *({name: ["a line"]} for name in ("lost", "phantom", "stale", "differences", "problems")),
        {"outages": []},
        {"errors": {"503": {"inside": 1, "outside": 1}}},
        {"connections": {"zope1": soak["connections_bound"] + 1}},
        {"memory_mb": soak["memory_mb"] | {"zope1": {"start": 100, "middle": 100, "end": 200}}},
    ):
        assert len(report.broken(soak | change)) == 1, change
