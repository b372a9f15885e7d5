"""Long work on a catalog that a manager begins in the browser: done by a thread, told as ``observe.jobs`` says."""

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
from plone.pgcatalog.database.layout import load_sql
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
from plone.pgcatalog.storage import writable_dsn_of
from time import monotonic
from typing import Any

import logging


logger = logging.getLogger(__name__)

#: Seconds between two notes of how far a job is.
PAUSE = 0.5

NOTE = (
    "UPDATE pgcatalog_jobs SET done = %(done)s, total = %(total)s, message = %(message)s"
    " WHERE catalog = %(catalog)s AND name = %(name)s RETURNING stop"
)
STOP = "UPDATE pgcatalog_jobs SET stop = true WHERE catalog = %(catalog)s AND name = %(name)s"

#: Tells how far a job is: done, total, what it does now; raises Stopped when it is to end.
Report = Callable[[int, int, str], None]
#: What a job does with the catalog tool; returns what came out, line by line.
Work = Callable[[Any, Report], list[str]]


#: How the states of jobs and of indexes are called; pages show them translated.
WORDS = (
    *(_("working"), _("stopping"), _("done"), _("failed"), _("interrupted")),
    *(_("ready"), _("missing")),
)


class JobError(MessageError):
    """A job cannot be begun; the message says why."""


class Stopped(Exception):
    """Somebody has stopped the job."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the table has it."""

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
        """Return what it does now, or what came out, line by line."""
        return [restored(line) for line in self.message.splitlines()]

    @property
    def part(self) -> float:
        return min(1.0, self.done / self.total) if self.total > 0 else 0.0


def jobs_of(execute: Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]], zoid: int) -> dict[str, Job]:
    """Return the jobs of the catalog with tool oid *zoid* by name, read with *execute*."""
    jobs = [Job(*row) for row in execute(load_sql("jobs"), {"catalog": zoid, "lock": locks.JOB})]
    return {job.name: job for job in jobs}


def stop(catalog: Catalog, name: str) -> None:
    """Have the job *name* of *catalog* end soon.  Raises JobError."""
    with errors_as(JobError), connect(writable_dsn_of(catalog.jar), f"stop {name}") as connection:
        connection.execute(STOP, {"catalog": catalog.zoid, "name": name})


def start(tool: Any, name: str, work: Work) -> None:
    """Have a thread do *work* with the catalog *tool*.  Raises JobError, also when such a job is running already."""
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
    """Does a job in its thread, on ZODB and database connections of its own."""

    def __init__(self, database: Any, path: str, connection: Any, values: dict[str, Any], work: Work) -> None:
        self.database = database
        self.path = path
        self.connection = connection
        self.values = values
        self.work = work
        self._told = 0.0
        self._message = ""

    def run(self) -> None:
        name = self.values["name"]
        try:
            with opened_at(self.database, self.path) as tool:
                lines, failed = self.work(tool, self.report), False
        except Stopped:
            lines, failed = [STOPPED], True
        except Exception as error:  # whatever it is, nobody but the table and the log can tell the manager
            logger.exception("%s of %s failed", name, self.path)
            lines, failed = [reason(error)], True
        end(self.connection, self.values["catalog"], name, lines, failed)
        self.connection.close()

    def report(self, done: int, total: int, message: str) -> None:
        """Note how far the job is, now and then, and what it does at once; raises Stopped when it is to end."""
        if monotonic() < self._told + PAUSE and message == self._message:
            return
        self._told, self._message = monotonic(), message
        values = self.values | {"done": done, "total": max(done, total), "message": stored(message)}
        if self.connection.execute(NOTE, values).fetchone() == (True,):
            raise Stopped
