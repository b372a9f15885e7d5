"""``pgcatalog status``: what the catalogs of a database are like now."""

from collections.abc import Iterator
from datetime import datetime
from plone.pgcatalog.cli.target import connected
from plone.pgcatalog.cli.target import needs_database
from plone.pgcatalog.database.statistics import saved_at
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import when
from plone.pgcatalog.observe import health
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from typing import Any

import click
import json


@click.command()
@needs_database
@click.option("--indexes", is_flag=True, help="List the SQL indexes, the largest first.")
@click.option("--check", is_flag=True, help="Also count damaged rows (reads all rows).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def status(dsn: str, indexes: bool, check: bool, as_json: bool) -> None:
    """Sizes, generation, indexes, connections and rebuilds of the catalogs of a database, and their health in one line.

    Exit code 0: all is well; 1: something needs attention, and is named; 2: there is no catalog.
    """
    with connected(dsn) as connection:
        found = health.collect(connection, check)
    if as_json:
        click.echo(json.dumps(found, default=datetime.isoformat))
    else:
        show(found, indexes)
    raise SystemExit(1 if found["attention"] else 0)


def show(found: dict[str, Any], with_indexes: bool) -> None:
    """Print *found* as tables."""
    console = Console()
    for catalog in found["catalogs"]:
        for line in block(catalog):
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        if with_indexes:
            console.print(index_table(catalog))
    for relation in found["retired"]:
        console.print(f"waits to be dropped: {relation['relation']}, {decimal(relation['bytes'])}")
    if c := found["connections"]:
        console.print(
            f"connections: {c['connections']} of {c['max_connections']}, {c['active']} active,"
            f" {c['in_transaction']} idle in a transaction, {c['waiting']} waiting for a lock"
        )
    for sentence in found["attention"]:
        console.print(f"[bold red]{sentence}")
    console.print(english(health.line(found)), soft_wrap=True)


def block(catalog: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about one *catalog*."""
    yield f"catalog of {catalog['site'] or '(nothing)'}"
    yield f"  {catalog['rows']} rows in {catalog['relation']}, {decimal(catalog['table_bytes'])}"
    yield f"  {len(catalog['indexes'])} SQL indexes, {decimal(catalog['index_bytes'])}"
    yield f"  last change: {last_change(catalog)}; {catalog['dead_rows']} dead rows"
    yield f"  {english(health.slow_queries(catalog))}"
    if rebuild := catalog["rebuild"]:
        state = "running" if rebuild["running"] else "interrupted"
        progress = f"{rebuild['done']} of {rebuild['total']}"
        yield f"  rebuild {state}: phase {rebuild['phase']}, {progress}, {rebuild['changes']} changes to follow"


def last_change(catalog: dict[str, Any]) -> str:
    """Return number and time of the last change of *catalog*."""
    time = saved_at(catalog["tid"])
    return f"number {catalog['generation']}{f', {when(time)}' if time else ''}"


def index_table(catalog: dict[str, Any]) -> Table:
    """Return the SQL indexes of *catalog* as a table."""
    table = Table("index", "method", title=f"SQL indexes of {catalog['relation']}")
    for heading in ("size", "scans"):
        table.add_column(heading, justify="right")
    for index in catalog["indexes"]:
        table.add_row(index["name"], index["method"], decimal(index["bytes"]), str(index["scans"]))
    return table
