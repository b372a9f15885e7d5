"""``pgcatalog work`` and ``pgcatalog files``: what is done after a save."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.site import open_zope
from plone.pgcatalog.cli.target import CONF
from plone.pgcatalog.cli.target import needs_site
from plone.pgcatalog.cli.target import prints_result
from plone.pgcatalog.cli.target import Result
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.files import texts
from plone.pgcatalog.files.job import put_all
from plone.pgcatalog.files.job import repeat_failed
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.worker import kinds
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.storage import database_dsn
from plone.pgcatalog.storage import writable_dsn_of
from rich.console import Console
from rich.progress import Progress
from typing import Any

import click
import psycopg
import signal
import time


#: Seconds between two looks at how much waits.
PAUSE = 0.5


@click.command()
@click.argument("zope_conf", type=CONF)
@click.option("--once", is_flag=True, help="Do what is due, and end.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1, 64), help="Jobs done side by side.")
def work(zope_conf: str, once: bool, jobs: int) -> None:
    """Do the work that saves have left: find the text of files, have vectors made of pages.

    Ends on SIGTERM and SIGINT, after the jobs that it is doing.

    Exit code 0: ended as it was told; 1: nothing here can do a job, or the database does not answer; 2: it cannot be opened.
    """
    database = open_zope(zope_conf)
    dsn = database_dsn(database)
    if dsn is None:
        raise click.UsageError(f"the storage of {zope_conf} is not zodb-pgjsonb")
    if not kinds():
        raise click.ClickException(
            "nothing here does a job: install plone.pgcatalog[files] or plone.pgcatalog[meaning]"
        )
    workers = [Worker(database, dsn) for _ in range(jobs)]

    def stop(*_: Any) -> None:
        for worker in workers:
            worker.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    with ThreadPoolExecutor(jobs) as pool:
        results = [pool.submit(worker.run_until_empty if once else worker.run) for worker in workers]
    try:
        for result in results:
            result.result()
    except psycopg.Error as error:
        raise click.ClickException(str(error).strip()) from error


def shows_queue(backfill: str, repeat: str) -> Callable[[Callable[..., Result]], click.Command]:
    """Return the decorator of a command about a site's queue, with the helps of the options that such commands have."""

    def decorated(function: Callable[..., Result]) -> click.Command:
        command = prints_result(function)
        wait = "Wait until workers have done what waits, and show how far they are."
        for name, help in (("--wait", wait), ("--repeat", repeat), ("--backfill", backfill)):
            command = click.option(name, is_flag=True, help=help)(command)
        return click.command()(needs_site(command))

    return decorated


@shows_queue(
    "Put a job for every file of the site; known texts are not extracted again.",
    "Try the files again that have no text.",
)
def files(zope_conf: str, site: str, backfill: bool, repeat: bool, wait: bool) -> Result:
    """Show how many files wait for their text, and which have none, and why.

    Exit code 0: no file failed; 1: some did; 2: the site cannot be opened.
    """
    with open_site(zope_conf, site) as portal:
        core = portal.portal_catalog._core
        catalog, dsn = core.zoid, writable_dsn_of(core.jar)
    lines = []
    with connect(dsn, "files", 0) as connection:
        if backfill:
            lines.append(f"{put_all(connection, catalog)} files were put into the queue")
        if repeat:
            lines.append(f"{repeat_failed(connection, catalog)} files are tried again")
        if wait:
            watch(connection, catalog, texts.KIND, "Files")
        return queue_result(connection, catalog, texts.KIND, "without a text", lines)


def queue_result(connection: Any, catalog: int, kind: str, failed: str, lines: list[str], **data: Any) -> Result:
    """Return *lines* and *data* with what waits of the jobs of a *kind* behind, and with those that have *failed*, and why."""
    counts = figures(connection, catalog, kind)
    failures = [
        {"zoid": zoid, "reason": reason, "attempts": attempts, "since": since}
        for zoid, reason, attempts, since in table.failures(connection, catalog, kind)
    ]
    lines = [*lines, f"{counts.waiting} waiting, {counts.failed} {failed}"]
    lines += [f"  object {f['zoid']:#x}: {f['reason']} ({f['attempts']} attempts)" for f in failures]
    data |= {"waiting": counts.waiting, "failed": counts.failed, "failures": failures}
    return Result(data, lines, 1 if counts.failed else 0)


def figures(connection: Any, catalog: int, kind: str) -> table.Figures:
    """Return how many jobs of a *kind* wait, and have failed, for *catalog*."""
    by_kind = {figures.kind: figures for figures in table.figures(connection, catalog)}
    return by_kind.get(kind, table.Figures(kind, 0, 0, None))


def watch(connection: Any, catalog: int, kind: str, title: str) -> None:
    """Show how many jobs of a *kind* wait for *catalog*, until none does."""
    total = left = figures(connection, catalog, kind).waiting
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        while left:
            time.sleep(PAUSE)
            left = figures(connection, catalog, kind).waiting
            progress.update(task, total=max(total, left), completed=max(total, left) - left)
