"""Workers: threads of a Zope process, or of ``pgcatalog work``, that do the jobs of one database."""

from App.config import getConfiguration
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database import background
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.database.direct import SharedSession
from plone.pgcatalog.database.needed import NeededJobs
from plone.pgcatalog.database.needed import values_of
from plone.pgcatalog.database.restored import path_above
from plone.pgcatalog.database.statistics import executing
from plone.pgcatalog.queue import table
from plone.pgcatalog.queue.table import Job
from plone.pgcatalog.settings import number
from plone.pgcatalog.storage import database_dsn
from plone.pgcatalog.storage import processors
from psycopg import Connection
from psycopg.rows import dict_row
from threading import Event
from threading import Thread
from time import monotonic
from typing import Any
from weakref import WeakSet
from ZODB.POSException import ConflictError
from zope.component import getUtilitiesFor
from zope.interface import Attribute
from zope.interface import Interface

import logging
import psycopg


logger = logging.getLogger(__name__)

#: The section of zope.conf.
SECTION = "plone.pgcatalog"
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


class IJobKind(Interface):
    """A kind of job: a utility whose name is the name of the kind in the table."""

    is_ready = Attribute("False if this process lacks a requirement of the kind; its jobs wait for another process")

    def work(database: Any, job: Job) -> Callable[[], None] | None:
        """Do *job* with *database*, a ZODB.DB, and commit.

        Work of several minutes may be returned as a function: it runs in parallel to the next jobs, and *job* ends with
        it.  In the meantime the job may become due again, and be claimed.

        - A job about an object that is gone counts as done.
        - JobFailed, raised here or by the function, is a failure that users see.
        - Any other exception is a failure after which the job is tried again.
        """

    def needed(jobs: NeededJobs) -> Iterable[int]:  # type: ignore[empty-body]
        """Return the zoids of the objects in the catalog of *jobs* that need a job of this kind and have none."""


class JobFailed(Exception):
    """A job has failed for a reason that users should see; *for_good* if another attempt would fail, too.

    With a *pause* the job itself is not the cause: it is tried again after this number of seconds, any number of times.
    """

    def __init__(self, reason: str, for_good: bool = True, pause: float | None = None) -> None:
        super().__init__(reason)
        self.for_good = for_good
        self.pause = pause


#: The workers of ``start_threads``, for ``stop_threads``.
_started: WeakSet["Worker"] = WeakSet()


def start_threads(main: Any) -> list["Worker"]:
    """Start threads that do jobs for each writable database that belongs to *main*, a ZODB.DB; return their workers.

    ``threads_of_a_database`` is their number per database; a process that can do no kind of job starts none.
    """
    if not kinds():
        return []
    workers = []
    count = threads_of_a_database()
    for database in (main.databases or {"": main}).values():
        dsn = database_dsn(database)
        if dsn is not None and processors(database) is not None and not database.storage.isReadOnly():
            for _ in range(count):
                workers.append(Worker(database, dsn))
                background.start("queue", workers[-1].run)
    _started.update(workers)
    return workers


def stop_threads() -> None:
    """Stop the workers of ``start_threads``, and wait up to EXIT_SECONDS for their jobs: the database may be closed then."""
    for worker in list(_started):
        worker.stop()
    background.wait(background.EXIT_SECONDS)


def put_needed(connection: Connection[Any], catalog: int | None = None) -> None:
    """Put the jobs that objects of *catalog*, or of all catalogs, need and do not have, on the autocommit *connection*."""
    execute = executing(connection)
    for (zoid,) in map(values_of, execute(CATALOGS, {"catalog": catalog})):
        jobs = NeededJobs(execute, zoid)
        for name, kind in getUtilitiesFor(IJobKind):
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


def kinds() -> dict[str, Any]:
    """Return the kinds of jobs that this process can do, by name."""
    return {name: kind for name, kind in getUtilitiesFor(IJobKind) if kind.is_ready}


class Worker:
    """Does the jobs of *database*, a ZODB.DB with the PostgreSQL database *dsn*, one after the other, until ``stop``."""

    def __init__(self, database: Any, dsn: str) -> None:
        self.database = database
        self.dsn = dsn
        self._stopped = Event()
        #: number of jobs claimed
        self._claimed = 0
        self._beside: list[Thread] = []
        self._waking: psycopg.Connection[Any] | None = None

    def stop(self) -> None:
        """End the worker after its current jobs."""
        self._stopped.set()

    def run(self) -> None:
        """Do jobs until ``stop``; after an error of the database, or while it is unavailable, wait and connect again."""
        while not self._stopped.is_set():
            try:
                # Health reads from the name of the session which kinds have a worker.
                purpose = " ".join(["queue of", *sorted(kinds())])
                with connect(self.dsn, purpose, 30) as connection, self._woken():
                    self._put_needed()
                    while not self._stopped.is_set():
                        if not self.run_one(connection):
                            self._sleep(connection)
            except psycopg.Error as error:
                logger.warning("the queue is waiting for the database: %s", str(error).strip())
                self._stopped.wait(PAUSE)
        self._end_beside()

    def run_until_empty(self) -> int:
        """Do all jobs that are due, to their end; return their number. Raises psycopg.Error."""
        count = 0
        self._put_needed()
        with connect(self.dsn, "queue", 30) as connection:
            while not self._stopped.is_set() and self.run_one(connection):
                count += 1
        self._end_beside()
        return count

    def _put_needed(self) -> None:
        """Put the jobs that objects still need, without a time limit for finding them."""
        with connect(self.dsn, "queue", 0) as connection:
            put_needed(connection)

    def run_one(self, connection: Connection[Any]) -> bool:
        """Take a job, do it, and save its outcome on the autocommit *connection*; return False if no job is due.

        A job with a rest that runs in parallel has no outcome yet.
        """
        ready = kinds()
        job = table.claim(connection, ready, self._claimed + 1) if ready else None
        if job is None:
            return False
        self._claimed += 1
        outcome = _outcome(job, lambda: ready[job.kind].work(self.database, job))
        if callable(outcome):
            self._do_beside(job, outcome)
        else:
            _note(connection, job, outcome)
        return True

    def _do_beside(self, job: Job, rest: Callable[[], None]) -> None:
        """Do the *rest* of *job* in a separate thread."""

        def run() -> None:
            outcome = _outcome(job, rest)
            try:
                with connect(self.dsn, "queue", 30) as connection:
                    _note(connection, job, outcome)
            except psycopg.Error as error:  # the job is due again
                logger.warning("the queue is waiting for the database: %s", str(error).strip())

        self._beside = [thread for thread in self._beside if thread.is_alive()]
        self._beside.append(background.start("queue beside", run))

    def _end_beside(self) -> None:
        """Wait for the jobs that run in parallel."""
        while self._beside:
            self._beside.pop().join()

    @contextmanager
    def _woken(self) -> Iterator[None]:
        """Listen for commits that put jobs, if the database can notify this worker."""
        try:
            with connect_directly(self.dsn, "queue wakes", 0) as connection:
                connection.execute(f"LISTEN {table.CHANNEL}")
                self._waking = connection
                yield
        except SharedSession:
            yield
        finally:
            self._waking = None

    def _sleep(self, connection: Connection[Any]) -> None:
        """Wait until a job is put or due, but no longer than LONGEST_SLEEP."""
        due = table.seconds_to_next(connection, kinds())
        longest = LONGEST_SLEEP if self._waking is not None else POLL
        seconds = longest if due is None else max(0.0, min(due, longest))
        if self._waking is None:
            self._stopped.wait(seconds)
            return
        end = monotonic() + seconds
        while not self._stopped.is_set() and (left := end - monotonic()) > 0:
            if list(self._waking.notifies(timeout=min(left, STOP_SECONDS), stop_after=1)):
                return


def _outcome(job: Job, work: Callable[[], Any]) -> Any:
    """Return the result of *work*, which belongs to *job*; a JobFailed if it fails in any way."""
    try:
        return work()
    except JobFailed as failure:
        if str(failure):
            logger.warning("%s of object %#x failed: %s", job.kind, job.zoid, failure)
        return failure
    except (ConflictError, psycopg.OperationalError) as error:
        reason = f"{type(error).__name__}: {error}".strip()
        again = "not retried" if job.is_last_attempt else f"retried after {job.back_off} seconds"
        logger.info("%s of object %#x is %s: %s", job.kind, job.zoid, again, reason)
        return JobFailed(reason, False)
    except Exception as error:  # a kind may be an add-on's: whatever it raises, the worker continues
        logger.exception("%s of object %#x failed", job.kind, job.zoid)
        return JobFailed(f"{type(error).__name__}: {error}", False)


def _note(connection: Connection[Any], job: Job, outcome: JobFailed | None) -> None:
    """Save the *outcome* of *job* on the autocommit *connection*."""
    if outcome is None:
        table.done(connection, job)
    else:
        table.failed(connection, job, str(outcome), outcome.for_good, outcome.pause)
