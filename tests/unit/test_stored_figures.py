"""The figures in the documentation are those of the stored runs, which fulfilled every promise."""

from benchmarks.report import generated
from benchmarks.report import load
from benchmarks.report import PLOT
from benchmarks.report import SITES_PLOT
from checks.soak import overview
from checks.soak import report
from checks.topology import patroni
from checks.topology import standby
from pathlib import Path
from tests.unit.sources import between
from tests.unit.sources import ROOT
from tests.unit.sources import text
from typing import Any

import json
import pytest


HOW_TO = ROOT / "docs" / "how-to"
TOPOLOGY = ROOT / "checks" / "topology" / "results"
SOAKS = [json.loads(text(overview.RESULTS / name)) for name in overview.RUNS.values()]
SOAK = SOAKS[0]
PATRONI = json.loads(text(TOPOLOGY / "patroni.json"))
STATEMENTS = json.loads(text(TOPOLOGY / "standby.json"))["statements that the primary gets"]


@pytest.mark.parametrize(
    ("page", "mark", "made"),
    [
        *((page, mark, made) for page, texts in generated(load()).items() for mark, made in texts.items()),
        *((HOW_TO / "soak.md", report.mark(run["options"]), report.text(run)) for run in SOAKS),
        (HOW_TO / "high-availability.md", overview.MARK, overview.text()),
        (HOW_TO / "high-availability.md", patroni.MARK, patroni.text(PATRONI)),
        (HOW_TO / "read-only-replicas.md", "statements", "\n".join(standby.lines(STATEMENTS))),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else value[:30],
)
def test_page_has_the_stored_figures(page: Path, mark: str, made: str) -> None:
    assert between(page, mark) == made


def test_plots_exist() -> None:
    assert [path for path in (PLOT, SITES_PLOT) if not path.is_file()] == []


def test_stored_runs_fulfilled_every_promise() -> None:
    for run in SOAKS:
        assert run["broken"] == report.broken(run) == []
    for standby_is, run in PATRONI["runs"].items():
        assert run["broken"] == []
        assert run["stale"] == 0 < run["compared"]
        assert not (patroni.SYNCHRONOUS[standby_is] and run["lost"])
    assert {numbers["reader"] for numbers in STATEMENTS.values()} == {0}


@pytest.mark.parametrize(
    "change",
    [
        *({name: ["a line"]} for name in ("lost", "phantom", "stale", "differences", "problems")),
        {"outages": []},
        {"errors": {"503": {"inside": 1, "outside": 1}}},
        {"connections": {"zope1": SOAK["connections_bound"] + 1}},
        {"memory_mb": SOAK["memory_mb"] | {"zope1": {"start": 100, "middle": 100, "end": 200}}},
    ],
    ids=lambda change: "".join(change),
)
def test_each_kind_of_observation_breaks_a_promise(change: dict[str, Any]) -> None:
    assert len(report.broken(SOAK | change)) == 1
