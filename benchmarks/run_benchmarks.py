"""The benchmark: ZCatalog and plone.pgcatalog side by side on one PostgreSQL server.

``level2`` makes a real Plone site on zodb-pgjsonb twice, each in its own process and fresh database: with
Plone's catalog and with ours.  Same documents (seeded), same queries through ``searchResults()``.
"""

from pathlib import Path
from plone.pgcatalog.database.embedded import DEMO_SETTINGS
from plone.pgcatalog.database.embedded import EmbeddedPostgres
from rich.console import Console
from rich.table import Table
from typing import Any

import click
import json
import platform
import subprocess
import sys
import tempfile


BACKENDS = ("zcatalog", "pgcatalog")


@click.group()
def main() -> None:
    """Compare the catalogs."""


@main.command()
@click.option("--docs", default=500, show_default=True, help="Documents to create.")
@click.option("--iterations", default=50, show_default=True, help="Counted repetitions of each query.")
@click.option("--warmup", default=5, show_default=True, help="Repetitions that do not count.")
@click.option("--cache-size", default=400, show_default=True, help="Objects in the ZODB cache.")
@click.option("--output", type=click.Path(dir_okay=False), help="Write the whole result as JSON.")
def level2(docs: int, iterations: int, warmup: int, cache_size: int, output: str | None) -> None:
    """A real Plone site: creation, modification, and the seeds' query scenarios."""
    results: dict[str, Any] = {}
    with EmbeddedPostgres(settings=DEMO_SETTINGS) as server:
        for backend in BACKENDS:
            dsn = server.createdb(backend)
            options = {"docs": docs, "iterations": iterations, "warmup": warmup, "cache_size": cache_size}
            results[backend] = run(backend, dsn, options)
        versions = {"python": platform.python_version(), "postgresql": str(server.version)}
    report = {"machine": platform.platform(), "versions": versions, "options": options, "results": results}
    if output:
        Path(output).write_text(json.dumps(report, indent=1))
    Console().print(table(report))


def run(backend: str, dsn: str, options: dict[str, int]) -> dict[str, Any]:
    """Return what the worker process for *backend* measured; raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        worker = Path(__file__).with_name("level2.py")
        arguments = json.dumps({"backend": backend, "dsn": dsn, "folder": folder, **options})
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(worker), arguments], stdout=subprocess.PIPE, check=True
        )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def table(report: dict[str, Any]) -> Table:
    """Return both backends' figures and their ratio; medians, in milliseconds."""
    ours, theirs = report["results"]["pgcatalog"], report["results"]["zcatalog"]
    title = f"{report['options']['docs']} documents, {report['versions']}, median of {report['options']['iterations']}"
    result = Table(title=title)
    for name in ("", "ZCatalog ms", "ours ms", "ours / ZCatalog"):
        result.add_column(name, justify="left" if not name else "right")
    for name, figures in theirs.items():
        mine = ours[name]
        result.add_row(
            name, f"{figures['median']:.2f}", f"{mine['median']:.2f}", f"{mine['median'] / figures['median']:.2f}"
        )
    return result


if __name__ == "__main__":
    main()
