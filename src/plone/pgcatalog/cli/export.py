"""``pgcatalog export``: the rows of a catalog, one line each, however many there are."""

from collections.abc import Generator
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import closing
from contextlib import contextmanager
from plone.pgcatalog.cli.target import connected
from plone.pgcatalog.cli.target import needs_database
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.layout import view_name
from psycopg import Connection
from psycopg import sql
from rich.console import Console
from rich.progress import BarColumn
from rich.progress import MofNCompleteColumn
from rich.progress import Progress
from rich.progress import TimeRemainingColumn
from typing import Any
from typing import TextIO

import click
import csv
import json
import sys


#: Rows in one round trip.
BATCH = 1000
METADATA = "metadata"


@click.command()
@needs_database
@click.option("--site", help="First path of the catalog, such as /Plone; needed when there are several.")
@click.option(
    "--format", "kind", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True, help="Output format."
)
@click.option(
    "--columns", help="Columns, separated by commas; by default all except those of type tsvector, and metadata."
)
@click.option(
    "--output", type=click.Path(dir_okay=False, writable=True), help="Write to this file instead of standard output."
)
def export(dsn: str, site: str | None, kind: str, columns: str | None, output: str | None) -> None:
    """Write all rows of a catalog as JSON lines or CSV, read on one snapshot, in constant memory.

    Everything is written, whoever may see it in the site.  Exit code 0: done; 2: there is no such catalog or column.
    """
    with connected(dsn) as connection:
        catalog = choose(statistics.catalogs(connection), site)
        relation = readable(connection, catalog["relation"])
        names = choose_columns(connection, relation, columns)
        # Closed also when nobody reads the output any more: its transaction ends before its connection.
        with (
            closing(rows(connection, relation, names)) as found,
            opened(output) as file,
            Progress(
                BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True
            ) as progress,
        ):
            task = progress.add_task("Exporting", total=catalog["rows"])
            for _ in write(file, kind, names, found):
                progress.advance(task)


def choose(catalogs: list[dict[str, Any]], site: str | None) -> dict[str, Any]:
    """Return the catalog of *site*, or the only one; raises click.UsageError."""
    found = [c for c in catalogs if site is None or c["site"] == f"/{site.strip('/')}"]
    if len(found) == 1:
        return found[0]
    known = ", ".join(str(c["site"]) for c in catalogs) or "none"
    raise click.UsageError(f"which catalog? --site is one of: {known}")


def readable(connection: Connection[Any], relation: str) -> str:
    """Return the view of *relation* that shows lists as such; a relation from before there were views is its own."""
    view = view_name(relation)
    [row] = connection.execute("SELECT to_regclass(quote_ident(%s)) IS NOT NULL AS found", [view]).fetchall()
    return view if row["found"] else relation


def choose_columns(connection: Connection[Any], relation: str, wanted: str | None) -> list[str]:
    """Return the names of the columns to write; raises click.UsageError for one that is not there."""
    found = connection.execute(
        "SELECT attname, format_type(atttypid, NULL) AS type FROM pg_attribute"
        " WHERE attrelid = to_regclass(quote_ident(%s)) AND attnum > 0 AND NOT attisdropped AND attname <> 'idx'"
        " ORDER BY attnum",
        [relation],
    ).fetchall()
    known = {row["attname"]: row["type"] for row in found} | {METADATA: "jsonb"}
    if wanted is None:
        return [name for name, kind in known.items() if kind != "tsvector"]
    names = [name.strip() for name in wanted.split(",")]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(f"no such column: {', '.join(unknown)}; there are {', '.join(known)}")
    return names


def rows(connection: Connection[Any], relation: str, names: Sequence[str]) -> Generator[dict[str, Any]]:
    """Yield the rows of *relation* by path, each a dict of JSON values, fetched batch by batch."""
    fields = [
        sql.SQL("'metadata', coalesce(c.idx, o.idx)")
        if name == METADATA
        else sql.SQL("{}, c.{}").format(sql.Literal(name), sql.Identifier(name))
        for name in names
    ]
    query = sql.SQL(
        "SELECT jsonb_build_object({}) AS row FROM {} c LEFT JOIN object_state o ON o.zoid = c.zoid ORDER BY c.path"
    ).format(sql.SQL(", ").join(fields), sql.Identifier(relation))
    with connection.transaction(), connection.cursor("pgcatalog_export") as cursor:
        cursor.itersize = BATCH
        for row in cursor.execute(query):
            yield {name: row["row"][name] for name in names}


def write(file: TextIO, kind: str, names: list[str], rows: Iterator[dict[str, Any]]) -> Iterator[None]:
    """Write *rows* to *file*; yields after each."""
    table = csv.writer(file)
    if kind == "csv":
        table.writerow(names)
    for row in rows:
        if kind == "csv":
            table.writerow([text_of(row[name]) for name in names])
        else:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        yield


def text_of(value: Any) -> str:
    """Return a JSON *value* for a cell: strings as they are, nothing for null, else JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@contextmanager
def opened(output: str | None) -> Iterator[TextIO]:
    """Yield the file *output*, or the standard output."""
    if output is None:
        yield sys.stdout
        return
    try:
        file = open(output, "w", encoding="utf-8", newline="")  # noqa: SIM115 - closed below
    except OSError as error:
        raise click.UsageError(f"{output} cannot be written: {error.strerror}") from error
    with file:
        yield file
