"""``pgcatalog vacuum``: clears what is left over, and lets PostgreSQL tidy up."""

from plone.pgcatalog.cli.target import connected
from plone.pgcatalog.cli.target import needs_database
from plone.pgcatalog.database import schema
from plone.pgcatalog.database import statistics
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.protocols import Connection
from plone.pgcatalog.sql import locks
from psycopg import sql
from rich.console import Console

import click
import json


#: Objects in one transaction; commits of the storage wait for it.
BATCH = 1000
CLEAR = (
    "WITH batch AS (SELECT o.zoid FROM object_state o WHERE o.zoid > %s AND o.idx IS NOT NULL AND {nowhere}"
    " ORDER BY o.zoid LIMIT %s)"
    " UPDATE object_state o SET idx = NULL FROM batch WHERE o.zoid = batch.zoid RETURNING o.zoid"
)


@click.command()
@needs_database
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def vacuum(dsn: str, as_json: bool) -> None:
    """Drop retired relations, clear the idx of objects that no catalog has, VACUUM ANALYZE the catalogs, count words.

    Exit code 0: done; 2: there is no catalog.
    """
    console = Console(stderr=True)
    with connected(dsn, read_only=False) as connection:
        catalogs = statistics.catalogs(connection)
        relations = [c["relation"] for c in catalogs]
        with console.status("Dropping retired relations"):
            dropped = drop_retired(connection)
        with console.status("Clearing the idx of objects that no catalog has"):
            cleared = clear_stale(connection)
        for relation in relations:
            with console.status(f"VACUUM ANALYZE {relation}"):
                connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(relation)))
        with console.status("Counting the words of texts"):
            counted = [c["catalog"] for c in catalogs if count_words(connection, c["catalog"])]
        waiting = [row["relation"] for row in statistics.retired(connection)]
    result = {"dropped": dropped, "waiting": waiting, "cleared": cleared, "vacuumed": relations, "counted": counted}
    if as_json:
        click.echo(json.dumps(result))
    else:
        click.echo(f"{len(dropped)} retired relations dropped, {len(waiting)} still in use")
        click.echo(f"{cleared} objects had an idx and no row")
        click.echo(f"vacuumed: {', '.join(relations) or 'nothing'}")
        click.echo(f"words counted: {len(counted)} catalogs")


def drop_retired(connection: Connection) -> list[str]:
    """Drop the relations that no snapshot can need; return the names of those that are gone."""
    with connection.transaction(), connection.cursor() as cursor:
        names = schema.drop_retired(cursor)
    still = {row["relation"] for row in statistics.retired(connection)}
    return [name for name in names if name not in still]


def clear_stale(connection: Connection) -> int:
    """Clear the idx of objects without a row, batch by batch; return how many there were."""
    cleared, last = 0, -1
    while True:
        with connection.transaction(), connection.cursor() as cursor:
            # No commit may be about to write the row, or to point to another table.
            cursor.execute(locks.HOLD_COMMITS)
            relations = [c["relation"] for c in cursor.execute("SELECT relation FROM pgcatalog_state").fetchall()]
            query = sql.SQL(CLEAR).format(nowhere=statistics.nowhere(relations))
            zoids = [row["zoid"] for row in cursor.execute(query, [last, BATCH]).fetchall()]
        cleared += len(zoids)
        if len(zoids) < BATCH:
            return cleared
        last = max(zoids)
