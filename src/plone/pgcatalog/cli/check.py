"""``pgcatalog check``: what keeps a site from working well with the catalog, before and after it is installed."""

from collections.abc import Iterator
from plone.pgcatalog.cli.target import CONF
from plone.pgcatalog.cli.target import Configured
from plone.pgcatalog.cli.target import configured_databases
from plone.pgcatalog.cli.target import connected
from plone.pgcatalog.database.direct import is_pooled
from plone.pgcatalog.database.findings import connection_findings
from plone.pgcatalog.database.findings import database_findings
from plone.pgcatalog.database.findings import ERROR
from plone.pgcatalog.database.findings import Finding
from plone.pgcatalog.database.findings import pooler_findings
from plone.pgcatalog.database.findings import reference_findings
from plone.pgcatalog.database.restored import is_expected
from plone.pgcatalog.database.statistics import has_catalogs
from plone.pgcatalog.distribution import mixture
from plone.pgcatalog.distribution import version_of
from plone.pgcatalog.observe.health import collect
from psycopg import Connection
from typing import Any

import click
import dataclasses
import json


#: The oldest version of the storage that has what the catalog needs.
STORAGE = (1, 19)


@click.command()
@click.argument("zope_conf", type=CONF, required=False)
@click.option("--dsn", envvar="PGCATALOG_DSN", help="The database, instead of that of the ZOPE_CONF.")
@click.option("--site", help="Path of a site below the Zope root; by default all sites.")
@click.option("--processes", default=1, show_default=True, type=click.IntRange(min=1), help="Zope processes in use.")
@click.option("--threads", default=4, show_default=True, type=click.IntRange(min=1), help="Threads of each.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def check(
    zope_conf: str | None, dsn: str | None, site: str | None, processes: int, threads: int, as_json: bool
) -> None:
    """Look for what keeps a site from working well, before and after the catalog is installed.

    Reads only.  With a ZOPE_CONF its storage and its sites are looked at, too.

    Exit code 0: nothing was found; 1: something was, one line each with what to do; 2: nothing could be looked at.
    """
    if zope_conf is None and not dsn:
        raise click.UsageError("give a ZOPE_CONF, or the database with --dsn")
    found = list(distribution_findings())
    configured = [] if zope_conf is None else configured_databases(zope_conf)
    found += storage_findings(configured)
    ours = next((database for database in configured if database.dsn), None)
    target = dsn or (ours.dsn if ours else None)
    answers = target is None
    if target is not None:
        try:
            with connected(target) as connection:
                found += database_findings(connection)
                if is_pooled(connection):
                    found += pooler_findings(connection, target)
                elif ours is not None and ours.pool_max is not None:
                    sizes = ours.pool_size, ours.pool_max
                    found += connection_findings(connection, processes, threads, *sizes)
                found += catalog_findings(connection)
                found += reference_findings(connection)
            answers = True
        except click.ClickException as error:
            found.append(Finding(ERROR, "database", error.message, "Start the server, or mend the connection string."))
    if zope_conf is not None and answers:
        from plone.pgcatalog.cli.check_site import site_findings

        found += site_findings(zope_conf, site)
    if as_json:
        click.echo(json.dumps({"findings": [dataclasses.asdict(finding) for finding in found]}))
    else:
        for finding in found:
            click.echo(str(finding))
        click.echo(f"{len(found)} findings" if found else "nothing was found")
    raise SystemExit(1 if found else 0)


def distribution_findings() -> Iterator[Finding]:
    """Yield what is wrong with the installed packages."""
    sentence = mixture()
    if sentence is not None:
        text, _, remedy = sentence.partition(". ")
        yield Finding(ERROR, "packages", text, remedy)
    version = version_of("zodb-pgjsonb")
    if version is None or numbers(version) < STORAGE:
        oldest = ".".join(map(str, STORAGE))
        text = f"zodb-pgjsonb {version or 'is not installed'}"
        yield Finding(ERROR, "packages", text, f"Install zodb-pgjsonb {oldest} or newer.")


def numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of *version*."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def storage_findings(databases: list[Configured]) -> Iterator[Finding]:
    """Yield a finding if the main storage of a zope.conf is none that the catalog works with."""
    for database in databases:
        if database.is_main and not database.dsn:
            text = f"the database {database.name} has the storage {database.storage}"
            remedy = "Move the objects to zodb-pgjsonb first: docs/how-to/from-your-site.md."
            yield Finding(ERROR, "storage", text, remedy)


def catalog_findings(connection: Connection[Any]) -> Iterator[Finding]:
    """Yield what ``pgcatalog status`` calls attention to."""
    if not has_catalogs(connection) and not is_expected(connection):
        return
    for sentence in collect(connection)["attention"]:
        text, _, remedy = sentence.rpartition("; ")
        yield Finding(ERROR, "catalog", text or remedy, f"{remedy[:1].upper()}{remedy[1:]}." if text else "See above.")
