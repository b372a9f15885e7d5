"""``pgcatalog rebuild``: the catalog anew, beside the live one."""

from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.target import needs_site
from plone.pgcatalog.database.direct import SharedSession
from plone.pgcatalog.indexing.rebuild import BrokenObject
from plone.pgcatalog.indexing.rebuild import PHASES
from plone.pgcatalog.indexing.rebuild import Rebuild
from plone.pgcatalog.indexing.rebuild import RebuildGone
from plone.pgcatalog.indexing.rebuild import RebuildRunning
from plone.pgcatalog.indexing.rebuild_relation import read
from plone.pgcatalog.indexing.rebuild_relation import RebuildBusy
from plone.pgcatalog.indexing.rebuild_relation import RebuildTarget
from plone.pgcatalog.indexing.rebuild_worker import default_workers
from plone.pgcatalog.indexing.rebuild_worker import helpers
from plone.pgcatalog.indexing.rebuild_worker import rebuild_connection
from plone.pgcatalog.indexing.rebuild_worker import StartOver
from plone.pgcatalog.indexing.rebuild_worker import Worker
from plone.pgcatalog.observe.jobs import rebuilt
from plone.pgcatalog.observe.jobs import told
from plone.pgcatalog.storage import dsn_of
from psycopg import Connection
from rich.console import Console
from rich.progress import BarColumn
from rich.progress import MofNCompleteColumn
from rich.progress import Progress
from rich.progress import TextColumn
from rich.progress import TimeElapsedColumn
from rich.progress import TimeRemainingColumn
from typing import Any

import click
import json
import time


STOPPED = (BrokenObject, RebuildGone, RebuildRunning, RebuildBusy, SharedSession)


@click.command()
@needs_site
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that visit objects; by default one for each core, and one only for few objects.",
)
@click.option("--skip-broken", is_flag=True, help="Leave out objects that cannot be catalogued, and name them.")
@click.option("--abandon", is_flag=True, help="Drop the table of an interrupted rebuild, and stop.")
@click.option("--worker", is_flag=True, hidden=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def rebuild(
    zope_conf: str, site: str, workers: int | None, skip_broken: bool, abandon: bool, worker: bool, as_json: bool
) -> None:
    """Rebuild the catalog beside the live one, and let it take its place in one commit.

    Searches and changes continue meanwhile.  An interrupted rebuild is resumed.  Exit code 0: done; 2: it
    cannot be done now, the live catalog is as it was.
    """
    try:
        with open_site(zope_conf, site) as portal:
            if worker:
                help_out(portal.portal_catalog, skip_broken)
                return
            runner = Rebuild(portal.portal_catalog, skip_broken)
            try:
                if abandon:
                    report_abandoned(runner.abandon(), as_json)
                    return
                count = workers or default_workers(len(portal.portal_catalog))
                with helpers(count - 1, zope_conf, site, skip_broken):
                    core = portal.portal_catalog._core
                    with told(dsn_of(core.jar), core.zoid, "rebuild") as lines:
                        target, seconds = run(runner)
                        lines.append(rebuilt(target.done))
                    report(target, seconds, as_json)
            finally:
                runner.close()
    except STOPPED as error:
        raise click.UsageError(str(error)) from error


def run(runner: Rebuild) -> tuple[RebuildTarget, float]:
    """Run the rebuild with a progress bar; return its last state, and the seconds it took."""
    started = time.monotonic()
    columns = (TextColumn("{task.description:34}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        task = bars.add_task(PHASES["walk"], total=None)
        for state in runner.steps():
            target = state
            total = max(target.total, target.done) or None
            bars.update(task, description=PHASES[target.phase], completed=target.done, total=total)
    return target, time.monotonic() - started


def report(target: RebuildTarget, seconds: float, as_json: bool) -> None:
    """Print what was done."""
    rate = target.done / seconds if seconds else 0.0
    if as_json:
        result = {"relation": target.relation, "objects": target.done, "seconds": round(seconds, 3)}
        click.echo(json.dumps(result))
    else:
        click.echo(f"{target.done} objects catalogued into {target.relation} in {seconds:.1f} s, {rate:.0f} per second")


def report_abandoned(relation: str | None, as_json: bool) -> None:
    """Print which table is dropped, if there was one."""
    if as_json:
        click.echo(json.dumps({"abandoned": relation}))
    else:
        click.echo(f"{relation} is dropped" if relation else "no rebuild was interrupted")


def help_out(catalog: Any, skip_broken: bool) -> None:
    """Visit objects for a rebuild that another process has begun, or is about to."""
    connection = rebuild_connection(catalog)
    try:
        wait_for(connection, catalog)
        Worker(catalog, connection, skip_broken).run()
    except StartOver:
        pass  # the process that began the rebuild begins anew
    finally:
        connection.close()


def wait_for(connection: Connection[Any], catalog: Any, seconds: float = 30.0) -> None:
    """Return when there is a rebuild of *catalog* with objects to visit; raises RebuildGone after *seconds*."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with connection.cursor() as cursor:
            target = read(cursor, catalog._core.zoid)
        if target is not None:
            return
        time.sleep(0.1)
    raise RebuildGone(RebuildGone.__doc__)
