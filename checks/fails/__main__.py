"""Makes each message of some operations to PostgreSQL fail once: ``python -m checks.fails``."""

from benchmarks.marks import put_between
from checks.fails.operations import OPERATIONS
from checks.fails.relay import Relay
from checks.fails.trial import make_template
from checks.fails.trial import Result
from checks.fails.trial import trials
from collections.abc import Sequence
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from tests.integration import site as sites

import click
import logging
import os
import sys


MARK = "messages that fail"
HEAD = "| operation | messages | acknowledged | error, not done | error, but done | violations |\n|---|--:|--:|--:|--:|--:|\n"


def row(name: str, results: Sequence[Result]) -> str:
    """Return the row of the table for the operation *name*."""
    met = [result for result in results if result.has_failed]
    failed = [result for result in met if result.outcome != "acknowledged"]
    figures = (
        len({result.message for result in met}),
        len(met) - len(failed),
        sum(result.state == "before" for result in failed),
        sum(result.state == "after" for result in failed),
        sum(bool(result.wrong) for result in results),
    )
    return f"| {name} | {' | '.join(map(str, figures))} |\n"


def rows_of(page: Path) -> dict[str, str]:
    """Return the rows of the table in *page*, by operation."""
    table = page.read_text("utf-8").partition(f"<!-- {MARK} -->")[2].partition(f"<!-- end of {MARK} -->")[0]
    rows = [line for line in table.splitlines(keepends=True) if line.startswith("| ")]
    return {row.split("|")[1].strip(): row for row in rows}


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--operation", "names", multiple=True, type=click.Choice(list(OPERATIONS)), help="By default all.")
@click.option("--messages", default=0, help="How many messages around the COMMIT of each; 0: all.")
@click.option(
    "--page", type=click.Path(dir_okay=False, path_type=Path), help="Renew the rows of these operations in this page."
)
def main(names: Sequence[str], messages: int, page: Path | None) -> None:
    """Make each message of some operations fail, before it is sent and after it was done.

    The exit status is 1 if acknowledged data are lost, catalog and content differ, or the next request fails.
    """
    # The recorder of slow queries sends messages at any time.
    os.environ.setdefault("PGCATALOG_SLOW_QUERY_MS", "0")
    sites.start_zope()
    logging.disable(logging.ERROR)
    rows, is_wrong = rows_of(page) if page else {}, False
    with EmbeddedPostgres(settings=TEST_SETTINGS) as server, Relay(server.dsn()) as relay:
        make_template(server)
        for name in names or OPERATIONS:
            results = []
            for result in trials(server, relay, OPERATIONS[name](), messages):
                click.echo(str(result))
                results.append(result)
                is_wrong = is_wrong or bool(result.wrong)
            rows[name] = row(name, results)
    table = HEAD + "".join(rows[name] for name in OPERATIONS if name in rows)
    click.echo(table)
    if page:
        put_between(page, MARK, table.rstrip())
    sys.exit(is_wrong)


if __name__ == "__main__":
    main(prog_name="python -m checks.fails")
