"""Long jobs on a catalog that a manager starts in the browser: run by a thread, recorded by ``observe.jobs``."""

from collections.abc import Callable
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from plone.pgcatalog.core.catalog import Catalog
from plone.pgcatalog.database import background
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import errors_as
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import MessageError
from plone.pgcatalog.i18n import restored
from plone.pgcatalog.i18n import stored
from plone.pgcatalog.observe.jobs import begin
from plone.pgcatalog.observe.jobs import end
from plone.pgcatalog.observe.jobs import JOBS
from plone.pgcatalog.observe.jobs import reason
from plone.pgcatalog.observe.jobs import STOPPED
from plone.pgcatalog.request import opened_at
from plone.pgcatalog.sql import locks
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.storage import writable_dsn_of
from time import monotonic
from typing import Any

import logging


logger = logging.getLogger(__name__)

#: Seconds between two records of the progress of a job.
PAUSE = 0.5

NOTE = (
    "UPDATE pgcatalog_jobs SET done = %(done)s, total = %(total)s, message = %(message)s"
    " WHERE catalog = %(catalog)s AND name = %(name)s RETURNING stop"
)
STOP = "UPDATE pgcatalog_jobs SET stop = true WHERE catalog = %(catalog)s AND name = %(name)s"

#: Records the progress of a job: done, total, current step; raises Stopped if the job is to end.
ReportProgress = Callable[[int, int, str], None]
#: The function of a job: takes the catalog tool, returns lines about its result.
Work = Callable[[Any, ReportProgress], list[str]]


#: Names of the states of jobs and of indexes, listed here for translation.
WORDS = (
    *(_("working"), _("stopping"), _("done"), _("failed"), _("interrupted")),
    *(_("ready"), _("missing")),
)


class JobError(MessageError):
    """A job cannot be started; the message says why."""


class Stopped(Exception):
    """A manager has stopped the job."""


@dataclass(frozen=True, slots=True)
class JobProgress:
    """A row of ``pgcatalog_jobs``."""

    name: str
    done: int
    total: int
    message: str
    failed: bool
    stop: bool
    started: datetime
    finished: datetime | None
    is_running: bool

    @property
    def state(self) -> str:
        """Return "working", "stopping", "done", "failed", or "interrupted" by a crash."""
        if self.is_running:
            return "stopping" if self.stop else "working"
        if self.finished is None:
            return "interrupted"
        return "failed" if self.failed else "done"

    @property
    def lines(self) -> list[str]:
        """Return its current step or, when it has ended, the lines about its result."""
        return [restored(line) for line in self.message.splitlines()]

    @property
    def part(self) -> float:
        return min(1.0, self.done / self.total) if self.total > 0 else 0.0


def jobs_of(execute: Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]], zoid: int) -> dict[str, JobProgress]:
    """Return the jobs of the catalog with tool oid *zoid* by name, read with *execute*."""
    jobs = [JobProgress(*row) for row in execute(read_statement("zmi", "jobs"), {"catalog": zoid, "lock": locks.JOB})]
    return {job.name: job for job in jobs}


def stop(catalog: Catalog, name: str) -> None:
    """Request the job *name* of *catalog* to end.  Raises JobError."""
    with errors_as(JobError), connect(writable_dsn_of(catalog.jar), f"stop {name}") as connection:
        connection.execute(STOP, {"catalog": catalog.zoid, "name": name})


def start(tool: Any, name: str, work: Work) -> None:
    """Start a thread that does *work* with the catalog *tool*.  Raises JobError, also if such a job is running already."""
    catalog = tool._core
    values = {"catalog": catalog.zoid, "name": name}
    with errors_as(JobError):
        connection = connect_directly(writable_dsn_of(catalog.jar), name)
        with ExitStack() as unless_begun:
            unless_begun.callback(connection.close)
            if not begin(connection, catalog.zoid, name):
                raise JobError(_("a ${job} is running already", {"job": JOBS.get(name, name)}))
            unless_begun.pop_all()
    runner = Runner(catalog.jar.db(), "/".join(tool.getPhysicalPath()), connection, values, work)
    background.start(name, runner.run)


class Runner:
    """Runs a job in its thread, with its own connections to ZODB and to the database."""

    def __init__(self, database: Any, path: str, connection: Any, values: dict[str, Any], work: Work) -> None:
        self.database = database
        self.path = path
        self.connection = connection
        self.values = values
        self.work = work
        self._reported = 0.0
        self._message = ""

    def run(self) -> None:
        name = self.values["name"]
        try:
            with opened_at(self.database, self.path) as tool:
                lines, failed = self.work(tool, self.report), False
        except Stopped:
            lines, failed = [STOPPED], True
        except Exception as error:  # any error: only the table and the log show it to the manager
            logger.exception("%s of %s failed", name, self.path)
            lines, failed = [reason(error)], True
        end(self.connection, self.values["catalog"], name, lines, failed)
        self.connection.close()

    def report(self, done: int, total: int, message: str) -> None:
        """Record the progress every PAUSE seconds, a new *message* at once; raises Stopped if the job is to end."""
        if monotonic() < self._reported + PAUSE and message == self._message:
            return
        self._reported, self._message = monotonic(), message
        values = self.values | {"done": done, "total": max(done, total), "message": stored(message)}
        if self.connection.execute(NOTE, values).fetchone() == (True,):
            raise Stopped
