"""Starts and stops long jobs for people."""

from plone.pgcatalog.database import background
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import errors_as
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import MessageError
from plone.pgcatalog.i18n import restored
from plone.pgcatalog.i18n import stored
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue import worker
from plone.pgcatalog.queue.progress import STOPPED
from plone.pgcatalog.storage import writable_dsn_of
from typing import Any


class JobError(MessageError):
    """A job cannot be started or stopped; the message says why."""


def start(
    database: Any, dsn: str, kind: str, catalog: int, subject: int, arguments: dict[str, Any] | None = None
) -> None:
    """Put the long job of *kind* about *subject* of *catalog*; do it in this process if no worker for long jobs runs.

    *database* is the ZODB.DB with the PostgreSQL database *dsn*.  Raises JobError, also if the job is being done already.
    """
    with errors_as(JobError), connect_directly(dsn, kind) as connection:
        if not table.put_long(connection, kind, catalog, subject, arguments):
            raise JobError(_("the job is running already"))
        if connection.execute(table.HAS_WORKER, (worker.LONG,)).fetchone() == (True,):
            return
    background.start(kind, worker.Worker(database, dsn, is_long=True).run_once)


def start_for(tool: Any, kind: str, arguments: dict[str, Any] | None = None) -> None:
    """Start the job of *kind* for the whole catalog *tool*, see ``start``.  Raises JobError."""
    catalog = tool._core
    start(catalog.jar.db(), writable_dsn_of(catalog.jar), kind, catalog.zoid, catalog.zoid, arguments)


def do(database: Any, dsn: str, kind: str, catalog: int, subject: int, arguments: dict[str, Any] | None = None) -> None:
    """Do the long job of *kind* about *subject* of *catalog* in this thread; raises JobError if it fails, or runs already."""
    with errors_as(JobError), connect_directly(dsn, kind, 0) as connection:
        job = table.begin_long(connection, kind, catalog, subject, arguments)
        if job is None:
            raise JobError(_("the job is running already"))
        failure = worker.do_claimed(connection, job, database)
        if failure is not None:
            raise JobError(restored(str(failure)))


def stop(dsn: str, kind: str, catalog: int, subject: int) -> None:
    """Request the end of a long job in the database *dsn*.  Raises JobError."""
    with errors_as(JobError), connect(dsn, f"stop {kind}") as connection:
        session = table.stop(connection, kind, catalog, subject, stored(STOPPED))
        if session is not None and worker.kind_of(kind).is_one_statement:
            connection.execute("SELECT pg_cancel_backend(%s)", (session,))
