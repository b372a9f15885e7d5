"""``pgcatalog install``: the catalog of a site moves to PostgreSQL, in batches."""

from plone.pgcatalog.cli.rebuild import report
from plone.pgcatalog.cli.rebuild import run
from plone.pgcatalog.cli.rebuild import STOPPED
from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.target import needs_site
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild_worker import default_workers
from plone.pgcatalog.indexing.rebuild_worker import helpers
from plone.pgcatalog.indexing.transition import is_unfilled
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.migration.tools import filling_later
from plone.pgcatalog.migration.tools import refused_names
from plone.pgcatalog.migration.tools import unknown_indexes
from plone.pgcatalog.storage import is_supported
from Products.CMFCore.indexing import processQueue
from typing import Any

import click
import json
import transaction


PROFILE = "profile-plone.pgcatalog:default"


@click.command()
@needs_site
@click.option("--dry-run", is_flag=True, help="Only say what would be done, and what is in the way.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that visit objects; by default one for each core, and one only for few objects.",
)
@click.option("--skip-broken", is_flag=True, help="Leave out objects that cannot be catalogued, and name them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def install(zope_conf: str, site: str, dry_run: bool, workers: int | None, skip_broken: bool, as_json: bool) -> None:
    """Install the catalog in a site: switch to it in a short transaction, then fill it in batches.

    Searches find nothing, and then what was saved since, until it is filled: do it while nobody visits the site.
    An interrupted installation is resumed by the same command.

    Exit code 0: done, or the catalog was there; 1: the dry run has found something in the way; 2: it cannot be done.
    """
    try:
        with open_site(zope_conf, site, ours=None) as portal:
            paths = None
            if IPGCatalogTool.providedBy(portal.portal_catalog):
                if not is_unfilled(portal.portal_catalog._core):
                    say({"installed": True, "objects": 0}, "the catalog is installed, there is nothing to do", as_json)
                    return
            else:
                tool = portal.portal_catalog
                reasons = obstacles(tool)
                if dry_run:
                    rehearse(tool, reasons, as_json)
                if reasons:
                    raise click.UsageError("; ".join(reasons))
                paths = switch(portal)
            if dry_run:
                text = "the catalog is installed and was not filled: pgcatalog install fills it"
                say({"installed": True, "filled": False}, text, as_json)
                raise SystemExit(1)
            runner = Rebuild(portal.portal_catalog, skip_broken, paths)
            try:
                count = workers or default_workers(None if paths is None else len(paths))
                with helpers(count - 1, zope_conf, site, skip_broken):
                    report(*run(runner), as_json)
            finally:
                runner.close()
    except STOPPED as error:
        raise click.UsageError(str(error)) from error


def obstacles(tool: Any) -> list[str]:
    """Return why our catalog cannot take the place of *tool*, a ZCatalog."""
    if not is_supported(tool._p_jar):
        return ["the objects are not in zodb-pgjsonb: move them first"]
    types = [
        f"the type of the index {name}, {kind}, cannot be kept in PostgreSQL" for name, kind in unknown_indexes(tool)
    ]
    return types + refused_names(tool)


def rehearse(tool: Any, reasons: list[str], as_json: bool) -> None:
    """Say what would become of *tool*, a ZCatalog, and what *reasons* are in the way; exits."""
    catalog = tool._catalog
    counts = {"objects": len(catalog), "indexes": len(catalog.indexes), "columns": len(catalog.names)}
    text = "would catalogue {objects} objects, with {indexes} indexes and {columns} metadata columns".format(**counts)
    say({**counts, "obstacles": reasons}, "\n".join([text, *(f"in the way: {reason}" for reason in reasons)]), as_json)
    raise SystemExit(1 if reasons else 0)


def switch(portal: Any) -> list[str]:
    """Put our catalog, empty, into the place of the one of *portal*, and commit; return the paths that that one knew."""
    processQueue()
    paths = list(portal.portal_catalog._catalog.uids)
    with filling_later():
        portal.portal_setup.runAllImportStepsFromProfile(PROFILE)
    transaction.get().note("catalog: installed, to be filled")
    transaction.commit()
    return paths


def say(data: dict[str, Any], text: str, as_json: bool) -> None:
    """Print *data* as JSON, or *text*."""
    click.echo(json.dumps(data) if as_json else text)
