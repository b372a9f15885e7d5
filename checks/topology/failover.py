"""A primary, its standby, two Zopes and users: kills the primary, promotes the standby, and prints the cost."""

from checks.soak import report
from checks.soak.__main__ import run
from checks.soak.__main__ import SETTINGS
from checks.soak.failover import Pair
from checks.soak.probe import KINDS
from pathlib import Path
from rich.console import Console
from rich.table import Table
from typing import Any

import click
import json
import sys
import tempfile


KEPT = "none"
STANDBYS = {"asynchronous, cut off before": False, "synchronous": True}


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the cost of failovers, as texts."""
    return {
        "failovers": len(summary["outages"]),
        "acknowledged writes": summary["acknowledged_writes"],
        "of these lost": len(summary["lost_by_failovers"]),
        "answers compared with SQL": summary["compared_answers"],
        "of these stale": len(summary["stale"]),
        **{f"seconds without an answer to {kind}s": report.spread(summary, kind) for kind in KINDS},
        "promises broken": "; ".join(summary["broken"]) or KEPT,
    }


@click.command()
@click.option("--seconds", default=60, show_default=True, help="How long users act, with each standby.")
@click.option("--failovers", default=2, show_default=True, help="How often the primary is killed meanwhile.")
@click.option("--processes", default=2, show_default=True, help="Zope processes.")
@click.option("--threads", default=4, show_default=True, help="Threads of each.")
@click.option("--clients", default=6, show_default=True, help="Users at the same time.")
@click.option("--objects", default=60, show_default=True, help="Content of the site.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the result as JSON.")
def main(output: Path | None, **options: Any) -> None:
    """Let a standby replace a killed primary, and print lost saves, stale answers, and the time without answers.

    The exit status is 1 if a promise is broken: an unanswered request breaks one, also in an outage.
    """
    found = {}
    for name, synchronous in STANDBYS.items():
        Console(stderr=True).print(f"Standby: {name}")
        with tempfile.TemporaryDirectory(prefix="pgcatalog-topology-") as folder, Pair(SETTINGS, synchronous) as pair:
            more = {"synchronous": synchronous, "kills": 0, "seed": 1, "max_growth": 100.0}
            found[name] = figures(report.summary(run(Path(folder).resolve(), options | more, pair)))
    table = Table("", *found)
    for row in next(iter(found.values())):
        table.add_row(row, *(str(values[row]) for values in found.values()))
    Console().print(table)
    if output:
        result = {"command": "make topology T=failover", "options": options, "found": found}
        output.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    sys.exit(any(values["promises broken"] != KEPT for values in found.values()))
