"""Workers: threads of a Zope process, or of ``pgcatalog work``, that do the jobs of one database.

A process has any number of workers for short jobs, and one for long jobs, which would make short ones wait.
"""

from App.config import getConfiguration
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database import background
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.direct import SharedSession
from plone.pgcatalog.database.expected import values_of
from plone.pgcatalog.database.needed import NeededJobs
from plone.pgcatalog.database.restored import path_above
from plone.pgcatalog.database.statistics import executing
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import restored
from plone.pgcatalog.i18n import stored
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.kind import IJobKind
from plone.pgcatalog.queue.kind import JobFailed
from plone.pgcatalog.queue.kind import NothingFound
from plone.pgcatalog.queue.progress import Progress
from plone.pgcatalog.queue.progress import STOPPED
from plone.pgcatalog.queue.progress import Stopped
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.settings import number
from plone.pgcatalog.sql import locks
from plone.pgcatalog.storage import database_dsn
from plone.pgcatalog.storage import processors
from psycopg import Connection
from psycopg.errors import QueryCanceled
from psycopg.rows import dict_row
from threading import Event
from time import monotonic
from typing import Any
from weakref import WeakSet
from ZODB.POSException import ConflictError
from zope.component import getUtilitiesFor
from zope.component import getUtility

import atexit
import logging
import psycopg


logger = logging.getLogger(__name__)

#: The section of zope.conf.
SECTION = "plone.pgcatalog"
#: The name of the session of a worker for long jobs.
LONG = "queue of long jobs"
#: Maximum number of threads per database.
MOST_WORKERS = 64
#: Maximum seconds that a worker sleeps: a notification may get lost, and a database may become available again.
LONGEST_SLEEP = 30.0
#: Seconds between two queries to a database that cannot notify workers, because a pooler shares its sessions.
POLL = 2.0
#: Maximum seconds until a sleeping worker notices that it is to end.
STOP_SECONDS = 0.5
#: Seconds before the next attempt to connect to an unavailable database.
PAUSE = 5.0


CATALOGS = "SELECT catalog FROM pgcatalog_state WHERE %(catalog)s::bigint IS NULL OR catalog = %(catalog)s"


#: The workers of this process, for ``stop_threads``.
_workers: WeakSet["Worker"] = WeakSet()


def start_threads(main: Any) -> list["Worker"]:
    """Start threads that do jobs for each writable database that belongs to *main*, a ZODB.DB; return their workers.

    ``threads_of_a_database`` is the number of those for short jobs; one more does long jobs.  0 starts none.
    """
    workers: list[Worker] = []
    count = threads_of_a_database()
    for database in (main.databases or {"": main}).values() if count else ():
        dsn = database_dsn(database)
        if dsn is not None and processors(database) is not None and not database.storage.isReadOnly():
            for is_long in (True, *[False] * count):
                workers.append(Worker(database, dsn, is_long))
                background.start("long jobs" if is_long else "queue", workers[-1].run)
    return workers


def stop_threads() -> None:
    """Stop all workers, and wait up to EXIT_SECONDS for their jobs: the database may be closed then."""
    for worker in list(_workers):
        worker.stop()
    background.wait(background.EXIT_SECONDS)


# A long job would otherwise use its connections while the process ends.
atexit.register(stop_threads)


def put_needed(connection: Connection[Any], catalog: int | None = None, is_long: bool = False) -> None:
    """Put the jobs that *catalog*, or all catalogs, need and do not have, on the autocommit *connection*.

    *is_long*: long jobs instead of short ones.
    """
    execute = executing(connection)
    for (zoid,) in map(values_of, execute(CATALOGS, {"catalog": catalog})):
        jobs = NeededJobs(execute, zoid)
        for name, kind in getUtilitiesFor(IJobKind):
            if kind.is_long == is_long:
                with connection.transaction(), connection.cursor() as cursor:
                    table.put(cursor, name, zoid, kind.needed(jobs), is_backfill=True)


def tool_path(database: Any, catalog: int) -> str | None:
    """Return the path of the catalog tool with oid *catalog*; None if it no longer exists."""
    dsn = database_dsn(database)
    if dsn is None:
        return None
    with connect(dsn, "queue", 30, row_factory=dict_row) as connection:
        path = path_above(connection, catalog)
    return None if path is None else f"{path.rstrip('/')}/portal_catalog"


def threads_of_a_database() -> int:
    """Return the number ``workers`` of zope.conf's ``<product-config plone.pgcatalog>``, 1 if it is missing or invalid."""
    config = (getattr(getConfiguration(), "product_config", None) or {}).get(SECTION, {})
    count = number(f"workers of <product-config {SECTION}>", config.get("workers"), whole=True)
    return 1 if count is None else min(int(count), MOST_WORKERS)


def kinds(is_long: bool = False) -> dict[str, Any]:
    """Return the kinds of short or, if *is_long*, of long jobs that this process can do, by name."""
    return {name: kind for name, kind in getUtilitiesFor(IJobKind) if kind.is_long == is_long and kind.is_ready}


def kind_of(name: str) -> Any:
    """Return the kind of jobs with this *name*."""
    return getUtility(IJobKind, name)


def do_now(database: Any, dsn: str, kind: str, catalog: int, subject: int) -> None:
    """Do a short job, in this thread, before it is due; not if a worker has claimed it.  A psycopg.Error is logged."""
    try:
        with connect(dsn, f"queue: {kind}", 30) as connection:
            job = table.claim_one(connection, kind, catalog, subject)
            if job is not None:
                _note(connection, job, _outcome(job, kind_of(kind), database, Progress()))
    except psycopg.Error as error:  # the job is due again
        logger.warning("the queue is waiting for the database: %s", str(error).strip())


def do_claimed(connection: Connection[Any], job: Job, database: Any) -> JobFailed | None:
    """Do the long *job*, claimed by the session of the autocommit *connection*, to its end; return why it has failed."""
    progress = Progress(connection, job)
    outcome = _outcome(job, kind_of(job.kind), database, progress)
    _note(connection, job, outcome, progress.lines)
    connection.execute(locks.RELEASE)
    return outcome


class Worker:
    """Does the short or long jobs of *database*, a ZODB.DB with the PostgreSQL database *dsn*, one after the other."""

    def __init__(self, database: Any, dsn: str, is_long: bool = False) -> None:
        self.database = database
        self.dsn = dsn
        self.is_long = is_long
        self._stopped = Event()
        #: number of jobs claimed
        self._claimed = 0
        #: progress of the current job
        self._progress = Progress()
        _workers.add(self)

    def stop(self) -> None:
        """End the worker after its current job; a long job is interrupted, and another worker continues it."""
        self._stopped.set()
        if self.is_long:
            self._progress.cancel()

    def run(self) -> None:
        """Do jobs until ``stop``; after an error of the database, or while it is unavailable, wait and connect again."""
        while not self._stopped.is_set():
            try:
                with self._connected() as (connection, is_notified):
                    self._put_needed()
                    while not self._stopped.is_set():
                        if not self.run_one(connection):
                            self._sleep(connection, is_notified)
            except SharedSession as error:
                logger.warning("no worker for long jobs: %s", error)
                return
            except psycopg.Error as error:
                logger.warning("the queue is waiting for the database: %s", str(error).strip())
                self._stopped.wait(PAUSE)

    def run_until_empty(self) -> int:
        """Do all jobs that are due, to their end; return their number. Raises psycopg.Error."""
        count = 0
        self._put_needed()
        with self._connected() as (connection, _):
            while not self._stopped.is_set() and self.run_one(connection):
                count += 1
        return count

    def run_once(self) -> None:
        """Do all jobs that are due; a psycopg.Error is logged."""
        try:
            # Jobs that are put meanwhile need another worker: this one may be about to end.
            with self._connected(f"{LONG}, once") as (connection, _):
                while self.run_one(connection):
                    pass
        except psycopg.Error as error:  # the job is due again
            logger.warning("the queue is waiting for the database: %s", str(error).strip())

    def run_one(self, connection: Connection[Any]) -> bool:
        """Take a job, do it, and save its outcome on the autocommit *connection*; return False if no job is due."""
        ready = kinds(self.is_long)
        if self.is_long:
            job = table.claim_long(connection, ready)
        else:
            job = table.claim(connection, ready, self._claimed + 1) if ready else None
        if job is None:
            return False
        self._claimed += 1
        if not self.is_long:
            _note(connection, job, _outcome(job, ready[job.kind], self.database, Progress()))
            return True
        self._progress = Progress(connection, job)
        outcome = _outcome(job, ready[job.kind], self.database, self._progress)
        if self._stopped.is_set() and outcome is not None:
            table.release(connection, job)
        else:
            _note(connection, job, outcome, self._progress.lines)
        connection.execute(locks.RELEASE)
        return True

    def _put_needed(self) -> None:
        """Put the jobs that catalogs still need, without a time limit for finding them."""
        with connect(self.dsn, "queue", 0) as connection:
            put_needed(connection, is_long=self.is_long)

    @contextmanager
    def _connected(self, purpose: str = "") -> Iterator[tuple[Connection[Any], bool]]:
        """Yield a connection for claims, and whether commits that put jobs notify it; *purpose* is the name of its session.

        Long jobs need a session: raises SharedSession if a pooler shares it.  Raises psycopg.Error.
        """
        # Health reads from the name of the session which kinds have a worker.
        purpose = purpose or (LONG if self.is_long else " ".join(["queue of", *sorted(kinds())]))
        try:
            # A long job may be one statement on this connection.
            own = connect_directly(self.dsn, purpose, 0 if self.is_long else 30)
        except SharedSession:
            if self.is_long:
                raise
            with connect(self.dsn, purpose, 30) as shared:
                yield shared, False
        else:
            with own:
                own.execute(f"LISTEN {table.CHANNEL}")
                yield own, True

    def _sleep(self, connection: Connection[Any], is_notified: bool) -> None:
        """Wait until a job is put or due, but no longer than LONGEST_SLEEP."""
        if self.is_long:
            put_needed(connection, is_long=True)
        seconds = self.pause(table.seconds_to_next(connection, kinds(self.is_long)), is_notified)
        if not is_notified:
            self._stopped.wait(seconds)
            return
        end = monotonic() + seconds
        while not self._stopped.is_set() and (left := end - monotonic()) > 0:
            if list(connection.notifies(timeout=min(left, STOP_SECONDS), stop_after=1)):
                return

    def pause(self, due: float | None, is_notified: bool) -> float:
        """Return the seconds to sleep before the next job, which is *due* after so many seconds; None if no job waits."""
        longest = LONGEST_SLEEP if is_notified else POLL
        # A long job that is overdue is being done by another worker.
        shortest = POLL if self.is_long else 0.0
        return longest if due is None else min(max(due, shortest), longest)


def _outcome(job: Job, kind: Any, database: Any, progress: Progress) -> JobFailed | None:
    """Have *kind* do *job*; return a JobFailed if it fails in any way."""
    try:
        kind.work(database, job, progress)
        return None
    except JobFailed as failure:
        if str(failure):
            level = logging.INFO if isinstance(failure, NothingFound) else logging.WARNING
            logger.log(level, "job %s failed: %s", job.name, english(restored(str(failure))))
        return failure
    except Stopped:
        return JobFailed(stored(STOPPED))
    except (ConflictError, psycopg.OperationalError) as error:
        if isinstance(error, QueryCanceled) and kind.is_one_statement:
            return JobFailed(stored(STOPPED))
        reason = f"{type(error).__name__}: {error}".strip()
        again = "not retried" if job.is_last_attempt else f"retried after {job.back_off} seconds"
        logger.info("job %s is %s: %s", job.name, again, reason)
        return JobFailed(reason, False)
    except Exception as error:  # a kind may be an add-on's: whatever it raises, the worker continues
        logger.exception("job %s failed", job.name)
        return JobFailed(f"{type(error).__name__}: {error}", kind.is_long)


def _note(connection: Connection[Any], job: Job, outcome: JobFailed | None, lines: Iterable[str] = ()) -> None:
    """Save the *outcome* of *job* on the autocommit *connection*, and the *lines* about its result."""
    if outcome is not None:
        is_empty = isinstance(outcome, NothingFound)
        table.failed(connection, job, str(outcome), outcome.for_good, outcome.pause, is_empty)
    elif lines:
        table.finish(connection, job, "\n".join(map(stored, lines)))
    else:
        table.done(connection, job)
