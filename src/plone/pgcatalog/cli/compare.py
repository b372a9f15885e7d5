"""``pgcatalog compare``: a rehearsal of the migration, on a copy."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.cli.copy import counting
from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.target import needs_site
from plone.pgcatalog.migration import copying
from plone.pgcatalog.request import opened_at
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import EmbeddedPostgresError
from rich.console import Console
from rich.progress import track
from rich.table import Table
from time import monotonic
from typing import Any

import click
import json
import os
import transaction


PROFILE = "profile-plone.pgcatalog:default"
#: So many paths of a difference are named.
NAMED = 5


@click.command()
@needs_site
@click.option(
    "--scratch",
    metavar="DSN",
    help="An empty database for the copy; by default one of an embedded server, deleted at the end.",
)
@click.option(
    "--limit", default=200, show_default=True, type=click.IntRange(min=1), help="Number of queries of each kind."
)
@click.option("--repeats", default=3, show_default=True, type=click.IntRange(min=1), help="Times each query is timed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def compare(zope_conf: str, site: str, scratch: str | None, limit: int, repeats: int, as_json: bool) -> None:
    """Rehearse the migration of a site with Plone's own catalog, and compare the answers before and after.

    The site's database is copied, and the profile installed in the copy; the site itself is only read.  The queries are
    those of its navigation, listings, collections and listing blocks.

    Exit code 0: all answers are the same; 1: some differ, and are shown; 2: it cannot be done.
    """
    console = Console(stderr=True)
    # Slow ones are in the table; nobody wants each in the log, or in the log of the copy.
    os.environ["PGCATALOG_SLOW_QUERY_MS"] = "0"
    try:
        with database_for(scratch) as dsn:
            comparisons, seconds = rehearse(zope_conf, site, dsn, limit, repeats, console)
    except (EmbeddedPostgresError, RuntimeError) as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        click.echo(json.dumps(as_data(comparisons, seconds)))
    else:
        show(comparisons, seconds)
    raise SystemExit(0 if all(c.is_fine for c in comparisons) else 1)


@contextmanager
def database_for(dsn: str | None) -> Iterator[str]:
    """Yield *dsn*, or that of an embedded server; ScratchError at once for a database that is not empty, or out of reach."""
    if dsn:
        copying.check_empty(dsn)
        yield dsn
        return
    with EmbeddedPostgres() as server:
        yield server.createdb("scratch")


def rehearse(
    zope_conf: str, site: str, dsn: str, limit: int, repeats: int, console: Console
) -> tuple[list[Any], dict[str, float]]:
    """Ask, copy, install, ask again; return the comparisons, and how long each step took in seconds."""
    with open_site(zope_conf, site, ours=False) as portal:
        # These import Plone, which needs the configuration of Zope.
        from plone.pgcatalog.migration.compare import ask
        from plone.pgcatalog.migration.compare import compare
        from plone.pgcatalog.migration.compare import site_queries

        queries = list(track(site_queries(portal, limit), "Looking for the site's own queries", console=console))
        asked = track(queries, "Asking Plone's own catalog", console=console)
        before = [ask(portal.portal_catalog, query, repeats) for query in asked]
        storage, path = portal._p_jar.db().storage, portal.getPhysicalPath()
    started = monotonic()
    with counting(console) as count:
        copying.copy_to_scratch(storage, dsn, count("Copying the objects"))
    copied = monotonic()
    with copying.opened(dsn) as database, opened_at(database, "/".join(path)) as portal:
        console.print("Installing the catalog")
        portal.portal_setup.runAllImportStepsFromProfile(PROFILE)
        transaction.commit()
        copying.analyze(dsn)
        installed = monotonic()
        asked = track(queries, "Asking the new catalog", console=console)
        after = [ask(portal.portal_catalog, query, repeats) for query in asked]
    seconds = {"copy": round(copied - started, 3), "install": round(installed - copied, 3)}
    return [compare(*three) for three in zip(queries, before, after, strict=True)], seconds


def as_data(comparisons: list[Any], seconds: dict[str, float]) -> dict[str, Any]:
    """Return everything as JSON data."""
    return {
        "seconds": seconds,
        "queries": [
            {
                "kind": c.query.kind,
                "path": c.query.path,
                "verdict": c.verdict,
                "missing": c.missing,
                "additional": c.additional,
                "before_ms": round(c.before_ms, 3),
                "after_ms": round(c.after_ms, 3),
                "cached_ms": round(c.cached_ms, 3),
            }
            for c in comparisons
        ],
    }


def show(comparisons: list[Any], seconds: dict[str, float]) -> None:
    """Print a table of the kinds, and what differs."""
    console = Console()
    table = Table("queries", title="The site's own queries before and after, in ms", title_justify="left")
    for heading in ("number", "same", "ties", "order", "differ", "before", "after", "cached"):
        table.add_column(heading, justify="right")
    for kind in dict.fromkeys(c.query.kind for c in comparisons):
        those = [c for c in comparisons if c.query.kind == kind]
        verdicts = [sum(c.verdict == v for c in those) for v in ("same", "ties", "order", "different")]
        times = [sum(getattr(c, name) for c in those) for name in ("before_ms", "after_ms", "cached_ms")]
        table.add_row(kind, str(len(those)), *map(str, verdicts), *(f"{ms:.1f}" for ms in times))
    console.print(table)
    for c in comparisons:
        if not c.is_fine:
            console.print(f"{c.verdict}: {c.query.kind} of {c.query.path}: {c.query.query}", markup=False)
            for word, paths in (("missing", c.missing), ("additional", c.additional)):
                if paths:
                    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
                    console.print(f"  {word}: {', '.join(paths[:NAMED])}{more}", markup=False)
    console.print(
        f"{seconds['copy']:.1f} s to copy the objects, {seconds['install']:.1f} s to install the catalog;"
        " the site is as it was"
    )
    console.print(verdict(comparisons))


def verdict(comparisons: list[Any]) -> str:
    """Return one sentence about all *comparisons*."""
    wrong = sum(not c.is_fine for c in comparisons)
    before, after, cached = (
        sum(getattr(c, name) for c in comparisons) for name in ("before_ms", "after_ms", "cached_ms")
    )
    answers = (
        f"{wrong} of {len(comparisons)} answers differ" if wrong else f"All {len(comparisons)} answers are the same"
    )
    if not before or not after or not cached:
        return f"{answers}."
    return (
        f"{answers}, and without the cache PostgreSQL is {speed(before, after)} Plone's own catalog,"
        f" with the cache {speed(before, cached)} it."
    )


def speed(before: float, after: float) -> str:
    """Return how fast something is that takes *after* ms, beside something that takes *before* ms."""
    return f"{before / after:.1f} times as fast as" if after <= before else f"{after / before:.1f} times slower than"
