"""``pgcatalog vacuum``: clears what is left over, and lets PostgreSQL tidy up."""

from contextlib import ExitStack
from plone.pgcatalog.cli.target import connected
from plone.pgcatalog.cli.target import needs_database
from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.retirement import clear_stale
from plone.pgcatalog.database.retirement import drop_retired
from plone.pgcatalog.database.retirement import vacuum_analyze
from plone.pgcatalog.fulltext.term_statistics import count_words
from plone.pgcatalog.observe.jobs import told
from plone.pgcatalog.observe.jobs import vacuumed
from rich.console import Console

import click
import json


@click.command()
@needs_database
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def vacuum(dsn: str, as_json: bool) -> None:
    """Drop retired relations, clear the idx of objects that no catalog has, VACUUM ANALYZE the catalogs, count words.

    Exit code 0: done; 2: there is no catalog.
    """
    console = Console(stderr=True)
    with connected(dsn, read_only=False) as connection, ExitStack() as tellings:
        catalogs = statistics.catalogs(connection)
        relations = [c["relation"] for c in catalogs]
        results = [tellings.enter_context(told(dsn, c["catalog"], "vacuum")) for c in catalogs]
        with console.status("Dropping retired relations"):
            dropped = drop_retired(connection.cursor())
        with console.status("Clearing the idx of objects that no catalog has"):
            cleared = clear_stale(connection)
        for relation in (*relations, "pgcatalog_sets"):
            with console.status(f"VACUUM ANALYZE {relation}"):
                vacuum_analyze(connection, relation)
        with console.status("Counting the words of texts"):
            counted = [c["catalog"] for c in catalogs if count_words(connection, c["catalog"])]
        waiting = [row["relation"] for row in statistics.retired(connection)]
        for lines in results:
            lines.append(vacuumed(len(dropped), cleared))
    result = {"dropped": dropped, "waiting": waiting, "cleared": cleared, "vacuumed": relations, "counted": counted}
    if as_json:
        click.echo(json.dumps(result))
    else:
        click.echo(f"{len(dropped)} retired relations dropped, {len(waiting)} still in use")
        click.echo(f"{cleared} objects had an idx and no row")
        click.echo(f"vacuumed: {', '.join(relations) or 'nothing'}")
        click.echo(f"words counted: {len(counted)} catalogs")
