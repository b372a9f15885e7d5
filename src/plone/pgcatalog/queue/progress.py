"""The progress and result of long jobs: stored with the job, so that the browser and the command line both show it."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from contextlib import contextmanager
from contextlib import ExitStack
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import restored
from plone.pgcatalog.i18n import stored
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.sql import locks
from psycopg import Connection
from time import monotonic
from typing import Any

import logging
import psycopg


logger = logging.getLogger(__name__)

#: Seconds between two reports of the progress of a job.
PAUSE = 0.5
#: The reason of a job that was stopped.
STOPPED = _("Stopped.")


class Stopped(Exception):
    """A manager has stopped the job, or its process ends."""


class Progress:
    """Reports the progress of the long *job* on *connection*, the session of its worker.

    Without a job nothing is reported: the work is not in the queue, or its table cannot be written.
    """

    def __init__(self, connection: Connection[Any] | None = None, job: Job | None = None) -> None:
        self._connection = connection
        self.job = job
        #: messages about the result
        self.lines: list[str] = []
        self.is_cancelled = False
        self._reported = 0.0
        self._message = ""

    @property
    def connection(self) -> Connection[Any]:
        """The session of the worker, for a job that is one statement."""
        assert self._connection is not None
        return self._connection

    def report(self, done: int, total: int, message: str) -> None:
        """Report the progress every PAUSE seconds, a new *message* at once; raises Stopped if the job is to end."""
        if self.is_cancelled:
            raise Stopped("stopped")
        if self._connection is None or self.job is None:
            return
        if monotonic() < self._reported + PAUSE and message == self._message:
            return
        self._reported, self._message = monotonic(), message
        if table.report(self._connection, self.job, done, max(done, total), stored(message)):
            raise Stopped("stopped")

    def cancel(self) -> None:
        """Have the next report raise Stopped, and cancel the current statement; another thread calls this."""
        self.is_cancelled = True
        if self._connection is not None and not self._connection.closed:
            with suppress(psycopg.Error):  # a server that cannot be reached does nothing
                self._connection.cancel()


#: The long jobs that people start for a whole catalog, and their titles.
TITLES = {"rebuild": _("rebuild"), "verify": _("verify"), "vacuum": _("vacuum")}
#: Names of the states of jobs and of indexes, listed here for translation.
STATES = (
    *(_("waiting"), _("working"), _("stopping"), _("done"), _("failed"), _("interrupted")),
    *(_("ready"), _("missing")),
)


@dataclass(frozen=True, slots=True)
class LongJob:
    """The state of a long job: a row of ``long_jobs.sql``."""

    name: str
    done: int
    total: int
    message: str
    reason: str
    stop: bool
    attempts: int
    put_at: datetime
    finished: datetime | None
    has_ended: bool
    is_running: bool

    @property
    def state(self) -> str:
        """Return "waiting" for a worker, "working", "stopping", "done", "failed", or "interrupted" by a crash."""
        if self.is_running:
            return "stopping" if self.stop else "working"
        if self.has_ended:
            return "failed" if self.reason else "done"
        return "interrupted" if self.attempts else "waiting"

    @property
    def is_open(self) -> bool:
        """Whether the job waits or runs."""
        return not self.has_ended

    @property
    def lines(self) -> list[str]:
        """Return its current step or, when it has ended, the lines about its result."""
        return [restored(line) for line in (self.reason or self.message).splitlines()]

    @property
    def part(self) -> float:
        return min(1.0, self.done / self.total) if self.total > 0 else 0.0


def long_jobs(execute: Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]], catalog: int) -> dict[str, LongJob]:
    """Return the jobs of TITLES of the catalog with tool oid *catalog* by name, read with *execute*."""
    rows = execute(table.LONG_JOBS, {"catalog": catalog, "kinds": list(TITLES)})
    return {job.name: job for job in (LongJob(*row) for row in rows)}


@contextmanager
def recorded(dsn: str, kind: str, catalog: int, arguments: dict[str, Any] | None = None) -> Iterator[Progress]:
    """Yield the progress of the job of *kind* for the whole *catalog*, which the body does instead of a worker.

    If its process dies, a worker continues the job with *arguments*.

    The body runs without being recorded if:

    - the same job is being done already,
    - the database *dsn* is read-only, such as a standby, or cannot be reached,
    - a pooler shares the session that would hold the lock.
    """
    with ExitStack() as stack:
        progress = Progress()
        try:
            session = stack.enter_context(connect_directly(dsn, kind))
            if (job := table.begin_long(session, kind, catalog, catalog, arguments)) is not None:
                progress = Progress(session, job)
        except psycopg.Error as error:
            logger.warning("the progress of %s is not recorded: %s", kind, error)
        failure: BaseException | None = None
        try:
            yield progress
        except BaseException as error:
            failure = error
            raise
        finally:
            if progress.job is not None:
                _record_end(progress, failure)


def _record_end(progress: Progress, failure: BaseException | None) -> None:
    """Store the result of the job of *progress*, or the reason of its *failure*.  A psycopg.Error is logged."""
    assert progress.job is not None
    try:
        if failure is None:
            table.finish(progress.connection, progress.job, "\n".join(map(stored, progress.lines)))
        else:
            table.failed(progress.connection, progress.job, reason(failure), for_good=True)
        progress.connection.execute(locks.RELEASE)
    except psycopg.Error as error:
        logger.error("recording the end of %s failed: %s", progress.job.kind, error)


def reason(error: BaseException) -> str:
    """Return the reason of a job that *error* has ended."""
    is_stop = isinstance(error, KeyboardInterrupt | Stopped)
    return stored(STOPPED) if is_stop else f"{type(error).__name__}: {error}"


# -- messages about the result of a job


def rebuilt(objects: int) -> str:
    return _("${number} objects catalogued.", {"number": f"{objects:,}"})


def compared(objects: int, different: int, left: int | None) -> str:
    """Return the message of a comparison of *objects*, *different* of them; *left* remain different, None without repair."""
    numbers = {
        "objects": f"{objects:,}",
        "number": f"{different if left is None else different - left:,}",
        "left": f"{left:,}" if left else "0",
    }
    if left is None:
        return _("${objects} objects compared, ${number} differences found.", numbers)
    if left:
        return _("${objects} objects compared, ${number} differences repaired, ${left} left.", numbers)
    return _("${objects} objects compared, ${number} differences repaired.", numbers)


def vacuumed(tables: int, objects: int) -> str:
    """Return the message of a vacuum that dropped *tables* retired tables and cleared *objects* objects."""
    numbers = {"tables": str(tables), "objects": str(objects)}
    return _("Vacuumed; ${tables} retired tables dropped, ${objects} objects cleared.", numbers)
