"""``pgcatalog slow``: the log of slow queries."""

from datetime import datetime
from plone.pgcatalog.cli.target import connected
from plone.pgcatalog.cli.target import needs_database
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.log import SlowQueryLog
from psycopg.rows import tuple_row
from rich.console import Console
from rich.table import Table

import click
import dataclasses
import json


#: Every catalog that has slow queries, with the path of its tool.
CATALOGS = "SELECT catalog, max(path) FROM pgcatalog_slow_queries GROUP BY catalog ORDER BY max(path), catalog"


@click.command()
@needs_database
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(min=1),
    help="Number of shapes shown for each catalog.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def slow(dsn: str, limit: int, as_json: bool) -> None:
    """Slow queries by shape, those first that are slow for the site.

    Exit code 0: there are none; 1: there are; 2: there is no catalog.
    """
    with connected(dsn) as connection:
        cursor = connection.cursor(row_factory=tuple_row)
        found = [
            (path, SlowQueryLog(lambda query, values: cursor.execute(query, values).fetchall(), zoid).groups(limit))
            for zoid, path in cursor.execute(CATALOGS).fetchall()
        ]
    if as_json:
        data = {path: [dataclasses.asdict(group) for group in groups] for path, groups in found}
        click.echo(json.dumps(data, default=datetime.isoformat))
    else:
        show(found)
    raise SystemExit(1 if found else 0)


def show(found: list[tuple[str, list[Group]]]) -> None:
    """Print a table for each catalog."""
    console = Console()
    for path, groups in found:
        table = Table("shape", "part", title=f"Slow queries of {path}", title_justify="left")
        for heading in ("count", "mean ms", "95 % ms", "max ms", "share"):
            table.add_column(heading, justify="right")
        for g in groups:
            times = [f"{ms:.1f}" for ms in (g.mean_ms, g.p95_ms, g.max_ms)]
            table.add_row(g.shape or "(everything)", g.operation, str(g.count), *times, f"{g.share:.0%}")
        console.print(table)
    if not found:
        console.print("No slow query is recorded.")
