"""Patroni manages the primary: its leader is killed, stopped and cut off under load; prints the cost."""

from benchmarks.marks import put_between
from checks.soak import report
from checks.soak.__main__ import run
from checks.soak.__main__ import SETTINGS
from checks.soak.probe import KINDS
from checks.topology.cluster import Cluster
from checks.topology.cluster import CUT
from checks.topology.cluster import KILLED
from checks.topology.cluster import missing
from checks.topology.cluster import PAUSED
from checks.topology.cluster import SWITCHED
from collections.abc import Sequence
from pathlib import Path
from rich.console import Console
from statistics import median
from typing import Any

import click
import datetime
import json
import sys
import tempfile


MARK = "cost of Patroni"
FILE = click.Path(dir_okay=False, path_type=Path)
SYNCHRONOUS = {"synchronous": True, "asynchronous": False}
#: Seconds of load for each failure, which takes most of them.
EACH = 45
WAYS = {"kills": KILLED, "pauses": PAUSED, "cuts": CUT, "switchovers": SWITCHED}


def measured(synchronous: bool, ways: Sequence[str], options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Let the leader fail in each of *ways*; return the cost, and the versions of the programs."""
    more: dict[str, Any] = {"synchronous": synchronous, "kills": 0, "failovers": len(ways), "seconds": EACH * len(ways)}
    more |= {"seed": 1, "max_growth": 100.0}
    with (
        tempfile.TemporaryDirectory(prefix="pgcatalog-topology-") as folder,
        Cluster(synchronous, SETTINGS, ways) as cluster,
    ):
        summary = report.summary(run(Path(folder).resolve(), options | more, cluster))
        versions = cluster.versions() | {"Python": summary["versions"]["python"]}
    silent = summary["seconds_without_answers"]
    return {
        "failures": [failure | silence for failure, silence in zip(cluster.failures, silent, strict=True)],
        "requests": summary["requests"],
        "acknowledged": summary["acknowledged_writes"],
        "lost": len(summary["lost_by_failovers"]),
        "compared": summary["compared_answers"],
        "stale": len(summary["stale"]),
        "broken": summary["broken"],
    }, versions


def spread(seconds: Sequence[float]) -> str:
    """Return minimum, maximum and median of *seconds*."""
    if len(seconds) < 3:
        return " and ".join(f"{one:.0f} s" for one in sorted(seconds))
    return f"{min(seconds):.0f} to {max(seconds):.0f} s, median {median(seconds):.0f}"


def text(result: dict[str, Any]) -> str:
    """Return the how-to's text about a stored *result*, as Markdown."""
    runs, options = result["runs"], result["options"]
    totals = [
        (
            standby,
            len(found["failures"]),
            f"{found['lost']:,} of {found['acknowledged']:,}",
            f"{found['stale']:,} of {found['compared']:,}",
            "; ".join(found["broken"]) or "none",
        )
        for standby, found in runs.items()
    ]
    failures = [failure for found in runs.values() for failure in found["failures"]]
    costs = []
    for way in dict.fromkeys(failure["way"] for failure in failures):
        these = [failure for failure in failures if failure["way"] == way]
        seconds = [spread([failure[name] for failure in these]) for name in ("promoted", "led", *KINDS, "rejoined")]
        costs.append((way, len(these), *seconds, sum(failure["by"] == "pg_rewind" for failure in these)))
    names = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return "\n".join(
        [
            f"Two Zopes of {options['threads']} threads, {options['clients']} users; {names} ({result['date']}):",
            "",
            *report.table(
                ("standby", "failovers", "acknowledged saves lost", "stale answers", "other promises broken"), totals
            ),
            "",
            *report.table(
                (
                    "the leader fails by",
                    "times",
                    "the other takes writes after",
                    "HAProxy leads to it after",
                    *(f"no answer to {kind}s for" for kind in KINDS),
                    "a standby again after",
                    "of these by pg_rewind",
                ),
                costs,
            ),
        ]
    )


@click.command()
@click.option("--kills", default=4, show_default=True, help="How often the leader is killed, with each standby.")
@click.option("--pauses", default=3, show_default=True, help="How often it is stopped.")
@click.option("--cuts", default=3, show_default=True, help="How often it is cut off from etcd.")
@click.option("--switchovers", default=0, show_default=True, help="How often it is asked to step down.")
@click.option("--standby", type=click.Choice(list(SYNCHRONOUS)), help="Only with this kind of standby.")
@click.option("--processes", default=2, show_default=True, help="Zope processes.")
@click.option("--threads", default=4, show_default=True, help="Threads of each.")
@click.option("--clients", default=4, show_default=True, help="Users at the same time.")
@click.option("--objects", default=60, show_default=True, help="Content of the site.")
@click.option("--output", type=FILE, help="Write the result as JSON; one standby's beside that of the other.")
@click.option("--page", type=FILE, help="Renew the tables of this page.")
def main(standby: str | None, output: Path | None, page: Path | None, **options: Any) -> None:
    """Let Patroni replace a leader that is killed, stopped, or cut off from etcd, under load on two Zopes.

    A failure takes about a minute, 20 seconds of it for the ttl.  The exit status is 1 if a promise is broken: a stale
    answer, an unanswered request, a save lost by a synchronous standby.
    """
    if programs := missing():
        raise click.ClickException(f"not installed: {programs}")
    times = {name: options.pop(name) for name in WAYS}
    ways = [WAYS[name] for turn in range(max(times.values())) for name in WAYS if turn < times[name]]
    stored = json.loads(output.read_text("utf-8")) if standby and output and output.is_file() else {}
    runs: dict[str, Any] = stored["runs"] if stored.get("options") == times | options else {}
    versions: dict[str, str] = {}
    for name in [standby] if standby else SYNCHRONOUS:
        Console(stderr=True).print(f"Standby: {name}")
        runs[name], versions = measured(SYNCHRONOUS[name], ways, options)
    result = {
        "date": datetime.date.today().isoformat(),
        "versions": versions,
        "options": times | options,
        "runs": runs,
    }
    if output:
        output.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if page:
        put_between(page, MARK, text(result))
    click.echo(text(result))
    sys.exit(any(found["broken"] for found in runs.values()))
