"""``pgcatalog status``: what the catalogs of a database are like now."""

from datetime import datetime
from plone.pgcatalog.cli.target import connected
from plone.pgcatalog.cli.target import needs_database
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.missing import sites_without_table
from plone.pgcatalog.fulltext.pg_textsearch_index import index_name
from plone.pgcatalog.protocols import Connection
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
    """Sizes, generation, indexes, connections and rebuilds of the catalogs of a database.

    Exit code 0: all is well; 1: something needs attention, and is named; 2: there is no catalog.
    """
    with connected(dsn) as connection:
        found = collect(connection, check)
    if as_json:
        click.echo(json.dumps(found, default=datetime.isoformat))
    else:
        show(found, indexes)
    raise SystemExit(1 if found["attention"] else 0)


def collect(connection: Connection, check: bool = False) -> dict[str, Any]:
    """Return everything ``status`` shows, as JSON data."""
    catalogs = statistics.catalogs(connection)
    for catalog in catalogs:
        catalog["indexes"] = statistics.indexes(connection, catalog["relation"])
        catalog["ranked_by_textsearch"] = statistics.has_textsearch(connection, catalog["catalog"])
    found: dict[str, Any] = {
        "pg_textsearch": statistics.textsearch_version(connection),
        "catalogs": catalogs,
        "without_table": [{"catalog": zoid, "site": site} for zoid, site in sites_without_table(connection).items()],
        "retired": statistics.retired(connection),
        "connections": statistics.connections(connection),
    }
    if check:
        for catalog in catalogs:
            catalog["rows_without_idx"] = statistics.rows_without_idx(connection, catalog["relation"])
        relations = [catalog["relation"] for catalog in catalogs]
        found["stale_objects"] = statistics.stale_objects(connection, relations)
    found["attention"] = attention(found)
    return found


def attention(found: dict[str, Any]) -> list[str]:
    """Return a sentence for everything that somebody should look at."""
    sentences = [
        f"{tool['site']}: the catalog has no table, as after the site was copied or imported; pgcatalog rebuild fills it"
        for tool in found["without_table"]
    ]
    for catalog in found["catalogs"]:
        name = catalog["site"] or catalog["relation"]
        rebuild = catalog["rebuild"]
        if catalog["unfilled"] and not (rebuild and rebuild["running"]):
            sentences.append(
                f"{name}: the catalog has only what was saved since the site was copied or imported;"
                " pgcatalog rebuild fills it"
            )
        if rebuild is not None and not rebuild["running"]:
            sentences.append(f"{name}: a rebuild was interrupted; pgcatalog rebuild resumes it")
        invalid = [index["name"] for index in catalog["indexes"] if not index["valid"]]
        sentences += [f"{name}: the index {index} was not built to its end" for index in invalid]
        if catalog["ranked_by_textsearch"]:
            sentences += [f"{name}: {sentence}" for sentence in textsearch_attention(catalog, found["pg_textsearch"])]
        if catalog.get("rows_without_idx"):
            sentences.append(f"{name}: {catalog['rows_without_idx']} rows have no metadata; see pgcatalog verify")
    if found.get("stale_objects"):
        sentences.append(f"{found['stale_objects']} objects have an idx and no row; pgcatalog vacuum clears it")
    return sentences


def textsearch_attention(catalog: dict[str, Any], version: str | None) -> list[str]:
    """Return what is to say of the index of pg_textsearch that *catalog* is to have."""
    wanted = index_name(catalog["relation"])
    if version is None or wanted not in [index["name"] for index in catalog["indexes"]]:
        return [f"the index {wanted} is not there; pgcatalog bm25 builds it, --drop forgets it"]
    return [f"pg_textsearch {version} {statistics.UNSAFE}"] if statistics.is_unsafe(version) else []


def show(found: dict[str, Any], with_indexes: bool) -> None:
    """Print *found* as tables."""
    console = Console()
    table = Table("catalog", "relation", title="Catalogs")
    for heading in ("rows", "table", "indexes", "SQL indexes", "generation", "dead rows"):
        table.add_column(heading, justify="right")
    for c in found["catalogs"]:
        sizes = decimal(c["table_bytes"]), decimal(c["index_bytes"])
        counts = str(len(c["indexes"])), str(c["generation"]), str(c["dead_rows"])
        table.add_row(c["site"] or "–", c["relation"], str(c["rows"]), *sizes, *counts)
    console.print(table)
    if with_indexes:
        for catalog in found["catalogs"]:
            console.print(index_table(catalog))
    for catalog in found["catalogs"]:
        if rebuild := catalog["rebuild"]:
            state = "running" if rebuild["running"] else "interrupted"
            progress = f"{rebuild['done']} of {rebuild['total']}"
            console.print(
                f"rebuild {state}: phase {rebuild['phase']}, {progress}, {rebuild['changes']} changes to follow"
            )
    for relation in found["retired"]:
        console.print(f"waits to be dropped: {relation['relation']}, {decimal(relation['bytes'])}")
    c = found["connections"]
    console.print(
        f"connections: {c['connections']} of {c['max_connections']}, {c['active']} active,"
        f" {c['in_transaction']} idle in a transaction, {c['waiting']} waiting for a lock"
    )
    for sentence in found["attention"]:
        console.print(f"[bold red]{sentence}")


def index_table(catalog: dict[str, Any]) -> Table:
    """Return the SQL indexes of *catalog* as a table."""
    table = Table("index", "method", title=f"SQL indexes of {catalog['relation']}")
    for heading in ("size", "scans"):
        table.add_column(heading, justify="right")
    for index in catalog["indexes"]:
        table.add_row(index["name"], index["method"], decimal(index["bytes"]), str(index["scans"]))
    return table
