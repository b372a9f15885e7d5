"""Writes the effects of failovers in the stored runs into the page on them:

.venv/bin/python -m checks.soak.overview docs/how-to/high-availability.md
"""

from benchmarks.marks import put_between
from checks.soak import report
from checks.soak.probe import KINDS
from pathlib import Path
from typing import Any

import click
import json


RESULTS = Path(__file__).parent / "results"
RUNS = {"synchronous": "soak-synchronous.json", "asynchronous, cut off 0.5 s and more before": "soak-failovers.json"}
MARK = "cost of failovers"


def row(standby: str, summary: dict[str, Any]) -> tuple[str, ...]:
    """Return the table row of a run with *standby*, whose *summary* was stored."""
    down = [outage["down"] for outage in summary["outages"]]
    return (
        standby,
        f"{len(summary['lost_by_failovers'])} of {summary['acknowledged_writes']:,}",
        f"{len(summary['stale'])} of {summary['compared_answers']:,}",
        *(report.spread(summary, kind) for kind in KINDS),
        f"{min(down)} to {max(down)} s",
    )


def text() -> str:
    """Return the table of the stored runs, as Markdown."""
    found = {standby: json.loads((RESULTS / name).read_text("utf-8")) for standby, name in RUNS.items()}
    head = ("standby", "acknowledged saves lost", "stale answers", "reads", "writes", "the promotion itself")
    return "\n".join(report.table(head, [row(standby, summary) for standby, summary in found.items()]))


@click.command()
@click.argument("page", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(page: Path) -> None:
    """Renew the table of PAGE."""
    put_between(page, MARK, text())


if __name__ == "__main__":
    main(prog_name="python -m checks.soak.overview")
