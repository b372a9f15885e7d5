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


def stored(path: Path) -> Any:
    return json.loads(text(path))


SOAKS = {name: stored(overview.RESULTS / name) for name in overview.RUNS.values()}
PATRONI = stored(TOPOLOGY / "patroni.json")
STATEMENTS = stored(TOPOLOGY / "standby.json")["statements that the primary gets"]


@pytest.mark.parametrize(
    ("page", "mark", "made"),
    [
        *((page, mark, made) for page, texts in generated(load()).items() for mark, made in texts.items()),
        *((HOW_TO / "soak.md", report.mark(run["options"]), report.text(run)) for run in SOAKS.values()),
        (HOW_TO / "high-availability.md", overview.MARK, overview.text()),
        (HOW_TO / "high-availability.md", patroni.MARK, patroni.text(PATRONI)),
        (HOW_TO / "read-only-replicas.md", "statements", "\n".join(standby.lines(STATEMENTS))),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else value[:30],
)
def test_page_has_the_stored_figures(page: Path, mark: str, made: str) -> None:
    assert between(page, mark) == made


def test_plots_exist() -> None:
    assert PLOT.is_file()
    assert SITES_PLOT.is_file()


@pytest.mark.parametrize("name", SOAKS)
def test_stored_soaks_fulfilled_every_promise(name: str) -> None:
    assert SOAKS[name]["broken"] == report.broken(SOAKS[name]) == []


def test_reader_sends_the_primary_nothing_in_stored_soaks() -> None:
    assert {numbers["reader"] for numbers in STATEMENTS.values()} == {0}


def test_patronis_failovers_lost_and_showed_only_permitted_commits() -> None:
    for standby_is, found in PATRONI["runs"].items():
        assert found["broken"] == []
        assert found["stale"] == 0 < found["compared"]
        assert not (patroni.SYNCHRONOUS[standby_is] and found["lost"])
