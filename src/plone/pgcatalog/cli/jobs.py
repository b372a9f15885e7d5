"""``pgcatalog work``, ``files`` and ``meaning``: the jobs that follow a save."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from plone.pgcatalog.cli.site import open_site
from plone.pgcatalog.cli.site import open_zope
from plone.pgcatalog.cli.target import CONF
from plone.pgcatalog.cli.target import needs_site
from plone.pgcatalog.cli.target import prints_result
from plone.pgcatalog.cli.target import Result
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.files import job as files_job
from plone.pgcatalog.files import texts
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import restored
from plone.pgcatalog.meaning import job as meaning_job
from plone.pgcatalog.meaning import table as vector_tables
from plone.pgcatalog.queue import table as queue
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


#: Seconds between two queries of the number of waiting jobs.
PAUSE = 0.5


@click.command()
@click.argument("zope_conf", type=CONF)
@click.option("--once", is_flag=True, help="Run all due jobs, and exit.")
@click.option(
    "--jobs",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Number of short jobs that run in parallel.",
)
def work(zope_conf: str, once: bool, jobs: int) -> None:
    """Run all queued jobs: extract the text of files, compute vectors, rebuild, verify, build indexes.

    On SIGTERM and SIGINT the command finishes its current jobs, and exits.  A long job, such as a rebuild, is interrupted; another
    worker continues it.

    Exit code 0: exited as requested; 1: the database is not available; 2: the site cannot be opened.
    """
    database = open_zope(zope_conf)
    dsn = database_dsn(database)
    if dsn is None:
        raise click.UsageError(f"the storage of {zope_conf} is not zodb-pgjsonb")
    workers = [Worker(database, dsn, is_long=True), *(Worker(database, dsn) for _ in range(jobs))]

    def stop(*_: Any) -> None:
        for worker in workers:
            worker.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    with ThreadPoolExecutor(len(workers)) as pool:
        results = [pool.submit(worker.run_until_empty if once else worker.run) for worker in workers]
    try:
        for result in results:
            result.result()
    except psycopg.Error as error:
        raise click.ClickException(str(error).strip()) from error


def shows_queue(backfill: str, repeat: str) -> Callable[[Callable[..., Result]], click.Command]:
    """Return the decorator of a command about a site's queue; *backfill* and *repeat* are the help of these options."""

    def decorated(function: Callable[..., Result]) -> click.Command:
        command = prints_result(function)
        wait = "Wait until workers have finished all queued jobs, and show the progress."
        for name, help in (("--wait", wait), ("--repeat", repeat), ("--backfill", backfill)):
            command = click.option(name, is_flag=True, help=help)(command)
        return click.command()(needs_site(command))

    return decorated


@shows_queue(
    "Queue a job for every file of the site; stored texts are not extracted again.",
    "Queue the failed files again.",
)
def files(zope_conf: str, site: str, backfill: bool, repeat: bool, wait: bool) -> Result:
    """Show the number of files that wait for text extraction, and the files without a text with the reasons.

    Exit code 0: no file failed, though some may have no text; 1: some did; 2: the site cannot be opened.
    """
    with open_site(zope_conf, site) as portal:
        core = portal.portal_catalog._core
        catalog, dsn = core.zoid, writable_dsn_of(core.jar)
    lines = []
    with connect(dsn, "files", 0) as connection:
        if backfill:
            lines.append(f"{files_job.put_all(connection, catalog)} files queued")
        if repeat:
            lines.append(f"{files_job.repeat_failed(connection, catalog)} files queued again")
        if wait:
            watch(connection, catalog, texts.KIND, "Files")
            watch(connection, catalog, texts.SCAN, "Scans")
        scans, of_texts = (figures(connection, catalog, kind) for kind in (texts.SCAN, texts.KIND))
        if scans.waiting:
            lines.append(f"{scans.waiting} scans waiting, behind all other jobs")
        if empty := scans.empty + of_texts.empty:
            lines.append(f"no text found in {empty} files")
        if any(each.failed + each.empty >= queue.MOST_FAILURES for each in (scans, of_texts)):
            lines.append(f"there may be more: only the last {queue.MOST_FAILURES} files without a text are stored")
        return queue_result(connection, catalog, texts.KINDS, lines, scans=scans.waiting, empty=empty)


def queue_result(connection: Any, catalog: int, kinds: tuple[str, ...], lines: list[str], **data: Any) -> Result:
    """Return *lines* and *data*, extended by the waiting jobs of the first kind, and the failed jobs of all *kinds*.

    If both saves and backfills have put waiting jobs, the line says how many were put by saves: they are done first.
    """
    counts = figures(connection, catalog, kinds[0])
    failed = sum(figures(connection, catalog, kind).failed for kind in kinds)
    failures = [
        {"zoid": zoid, "reason": english(restored(reason)), "attempts": attempts, "since": since}
        for zoid, reason, attempts, since in queue.failures(connection, catalog, *kinds)
    ]
    saved = f" ({counts.saved} after saves)" if 0 < counts.saved < counts.waiting else ""
    lines = [*lines, f"{counts.waiting} waiting{saved}, {failed} failed"]
    lines += [f"  object {f['zoid']:#x}: {f['reason']} ({f['attempts']} attempts)" for f in failures]
    data |= {"waiting": counts.waiting, "saved": counts.saved, "failed": failed, "failures": failures}
    return Result(data, lines, 1 if failed else 0)


def figures(connection: Any, catalog: int, kind: str) -> queue.QueueFigures:
    """Return the numbers of waiting and of failed jobs of *kind* for *catalog*."""
    by_kind = {figures.kind: figures for figures in queue.figures(connection, catalog)}
    return by_kind.get(kind, queue.QueueFigures(kind, 0, 0, 0, None))


def watch(connection: Any, catalog: int, kind: str, title: str) -> None:
    """Show the number of waiting jobs of *kind* for *catalog* until it is 0."""
    total = left = figures(connection, catalog, kind).waiting
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        while left:
            time.sleep(PAUSE)
            left = figures(connection, catalog, kind).waiting
            progress.update(task, total=max(total, left), completed=max(total, left) - left)


@shows_queue(
    "Queue a job for every page; only new and changed texts are sent to the embedder.",
    "Queue the failed pages again.",
)
def meaning(zope_conf: str, site: str, backfill: bool, repeat: bool, wait: bool) -> Result:
    """Show the vectors of a site, the number of pages that wait, and the failed pages with the reasons.

    Exit code 0: no page failed; 1: some did, the site has no embedder, or --wait was used without pgvector; 2: the site
    cannot be opened.
    """
    with open_site(zope_conf, site) as portal:
        core = portal.portal_catalog._core
        catalog, dsn, embedder = core.zoid, writable_dsn_of(core.jar), vector_tables.embedder_of(core.tool)
    if embedder is None:
        return Result({"embedder": None}, ["no embedder: set its URL in the control panel PostgreSQL Catalog"], 1)
    lines = [f"embedder {embedder.url}, model {embedder.model or '(none)'}"]
    with connect(dsn, "meaning", 0) as connection:
        if backfill:
            lines.append(f"{meaning_job.put_all(connection, catalog)} pages queued")
        if repeat:
            lines.append(f"{queue.repeat(connection, catalog, meaning_job.KIND)} pages queued again")
        missing = ""
        if wait:
            try:
                vector_tables.schema_of_pgvector(connection)
                watch(connection, catalog, meaning_job.KIND, "Pages")
            except vector_tables.PgvectorMissing as error:
                missing = str(error)
                lines.append(missing)
        tables = vector_tables.read(connection, catalog)
        answers = vector_tables.answering(tables)
        lines += [
            f"{vectors.name}: {vectors.answers_as or vectors.embedder.model}, {vectors.dimension} dimensions,"
            f" {max(vectors.chunks, 0)} chunks{', in use' if vectors is answers else ', being filled'}"
            for vectors in tables
        ]
        about = [vectors.about | {"name": vectors.name} for vectors in tables]
        result = queue_result(connection, catalog, (meaning_job.KIND,), lines, tables=about)
        return result._replace(code=1) if missing else result
