"""The figures about failovers in the documentation are those of the stored runs, and these kept every promise."""

from tests.soak import overview
from tests.soak import report
from tests.unit.sources import between
from tests.unit.sources import ROOT
from tests.unit.sources import text

import json
import pytest


HOW_TO = ROOT / "docs" / "how-to"


def test_the_page_on_failovers_has_the_figures_of_the_stored_runs() -> None:
    assert between(HOW_TO / "high-availability.md", overview.MARK) == overview.text()


@pytest.mark.parametrize("name", overview.RUNS.values())
def test_the_page_on_the_soak_has_the_stored_runs(name: str) -> None:
    summary = json.loads(text(overview.RESULTS / name))
    assert between(HOW_TO / "soak.md", report.mark(summary["options"])) == report.text(summary)


@pytest.mark.parametrize("name", overview.RUNS.values())
def test_the_stored_runs_kept_every_promise(name: str) -> None:
    summary = json.loads(text(overview.RESULTS / name))
    assert summary["broken"] == report.broken(summary) == []
