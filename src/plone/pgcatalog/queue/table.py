"""The table of jobs: all work outside of requests.

A job is one kind of work on one subject of one catalog: an object, the whole catalog, or a number that the kind chooses.  A
worker claims a job by postponing the time when it is due, in a statement of its own: the job of a dead worker becomes due
again.  A job that a later commit puts again during the work remains in the table.

Long jobs take minutes, and are about a whole catalog or an SQL index.  The session of their worker holds a lock during the
work: all processes see it, and none does the same work twice.  Those that people have requested remain in the table when they
have ended, with their result or the reason of their failure.

Workers claim jobs by priority, then by due time.  They claim a fair share by due time alone: so each job is claimed, no
matter how many are put after it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.sql.values import storable
from psycopg import Connection
from psycopg.types.json import Jsonb
from typing import Any


#: The channel that notifies workers.
CHANNEL = "pgcatalog_queue"
#: One of so many jobs that a worker claims is the job that has been due longest, whatever its priority.
FAIR_SHARE = 10
#: Maximum number of jobs of a kind in one commit that count as a save's; more of them are a backfill, such as an import.
MOST_SAVED = 100
#: The kind of jobs that goes before other kinds: most searches are for words, and vectors are computed from the text.
FIRST_KIND = "text"
#: The kind of jobs that goes after all others: it needs a processor for seconds, and may need it again and again.
LAST_KIND = "scan"
#: Seconds until a job that was claimed for the n-th time is due again; the last number applies to all later times.
BACK_OFF = (60, 300, 1800, 7200, 28800, 86400)
#: Maximum number of attempts at a job.
MOST_ATTEMPTS = 8
#: Number of failed jobs per kind and catalog that are stored, for users to see.
MOST_FAILURES = 10_000
#: Maximum length of a stored reason.
LONGEST_REASON = 500

PUT = read_statement("queue", "put")
NOTIFY = "SELECT pg_notify(%s, '')"
PUT_LONG = read_statement("queue", "put_long")
CLAIM = read_statement("queue", "claim")
CLAIM_FIRST = CLAIM.format(order="priority, due", free="", lock="")
CLAIM_OLDEST = CLAIM.format(order="due", free="", lock="")
CLAIM_LONG = CLAIM.format(
    order="priority, due",
    free="AND pgcatalog_session_of_job(kind, catalog, subject) IS NULL",
    lock="AND pgcatalog_lock_job(next.kind, next.catalog, next.subject)",
)
CLAIM_ONE = read_statement("queue", "claim_one")
LOCK = "SELECT pgcatalog_lock_job(%(kind)s, %(catalog)s, %(subject)s)"
SAME = "kind = %(kind)s AND catalog = %(catalog)s AND subject = %(subject)s AND put_by = %(put_by)s::xid8"
DONE = f"DELETE FROM pgcatalog_queue WHERE {SAME}"
FINISH = (
    f"UPDATE pgcatalog_queue SET due = 'infinity', finished = now(), reason = '', message = %(message)s WHERE {SAME}"
)
RELEASE = f"UPDATE pgcatalog_queue SET due = now(), attempts = attempts - 1 WHERE {SAME}"
REPORT = (
    "UPDATE pgcatalog_queue SET done = %(done)s, total = %(total)s, message = %(message)s"
    f" WHERE {SAME} RETURNING coalesce(stop, false)"
)
STOP = read_statement("queue", "stop")
LONG_JOBS = read_statement("queue", "long_jobs")
HAS_WORKER = (
    "SELECT EXISTS (SELECT FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name = 'pgcatalog: ' || %s)"
)
FAILED = read_statement("queue", "failed").format(same=SAME)
FORGET = read_statement("queue", "forget")
FIGURES = read_statement("queue", "figures")
FAILURES = """
SELECT subject, reason, attempts, put_at FROM pgcatalog_queue
WHERE catalog = %(catalog)s AND kind = ANY(%(kinds)s) AND reason <> '' ORDER BY put_at DESC, subject LIMIT %(limit)s
"""
FAILURE = (
    "SELECT reason FROM pgcatalog_queue WHERE kind = ANY(%(kinds)s) AND catalog = %(catalog)s AND subject = %(subject)s"
    " AND reason <> ''"
)
#: Deletes the job of a kind that has failed for good.
DROP_FAILED = (
    "DELETE FROM pgcatalog_queue"
    " WHERE kind = %(kind)s AND catalog = %(catalog)s AND subject = %(subject)s AND due = 'infinity'"
)
REPEAT = """
UPDATE pgcatalog_queue SET put_by = DEFAULT, put_at = DEFAULT, due = DEFAULT, attempts = DEFAULT, reason = DEFAULT
WHERE catalog = %(catalog)s AND kind = %(kind)s AND reason <> ''
"""
NEXT_DUE = (
    "SELECT extract(epoch FROM min(due) - now())::float FROM pgcatalog_queue WHERE due < 'infinity' AND kind = ANY(%s)"
)


class Priority(IntEnum):
    """The order in which workers claim jobs, the lowest value first."""

    SAVED_TEXT = 0
    SAVED = 1
    BACKFILL_TEXT = 2
    BACKFILL = 3
    LAST = 4

    @classmethod
    def of(cls, kind: str, is_backfill: bool) -> "Priority":
        """Return the priority of a job of *kind*, put by a save or, if *is_backfill*, for an object saved earlier."""
        if kind == LAST_KIND:
            return cls.LAST
        if kind == FIRST_KIND:
            return cls.BACKFILL_TEXT if is_backfill else cls.SAVED_TEXT
        return cls.BACKFILL if is_backfill else cls.SAVED


@dataclass(frozen=True, slots=True)
class Job:
    """Work of a *kind* on a *subject* for the catalog with tool oid *catalog*, claimed *attempts* times.

    - *subject*: the oid of an object, that of the tool for the whole catalog, or a number that the kind chooses
    - *put_by*: the id of the transaction that was the last to put the job
    - *priority*: a Priority
    - *arguments*: values that the kind needs, as it has put them; None without any
    """

    kind: str
    catalog: int
    subject: int
    attempts: int
    put_by: str
    priority: int
    arguments: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The kind and the subject, for the log."""
        return f"{self.kind} {self.subject:#x}"

    @property
    def is_backfill(self) -> bool:
        return self.priority >= Priority.BACKFILL_TEXT

    @property
    def is_last_attempt(self) -> bool:
        return self.attempts >= MOST_ATTEMPTS

    @property
    def back_off(self) -> int:
        """Seconds from the time when the job was claimed until it is due again."""
        return BACK_OFF[min(self.attempts, len(BACK_OFF)) - 1]

    @property
    def values(self) -> dict[str, Any]:
        return {"kind": self.kind, "catalog": self.catalog, "subject": self.subject, "put_by": self.put_by}


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """The numbers of waiting and failed jobs of a *kind*, and the time when the *oldest* waiting job was put.

    *saved* of the waiting jobs were put by saves, the others by backfills.  *empty* is the number of jobs that have found nothing.
    """

    kind: str
    waiting: int
    saved: int
    failed: int
    oldest: datetime | None
    empty: int = 0


def put(
    cursor: Any, kind: str, catalog: int, subjects: Iterable[int], is_backfill: bool = False, delay: float = 0.0
) -> None:
    """Put jobs of *kind* about *subjects* of *catalog*; the commit of *cursor*'s transaction notifies workers.

    *is_backfill*: the objects were saved earlier.  More than MOST_SAVED jobs are a backfill in any case.  A backfill does
    not lower the priority of a job that a save has put, and a save raises the priority of a job of a backfill.  The jobs are
    due after *delay* seconds.
    """
    subjects = sorted(set(subjects))
    if subjects:
        priority = Priority.of(kind, is_backfill or len(subjects) > MOST_SAVED)
        values = {"kind": kind, "catalog": catalog, "subjects": subjects, "priority": priority}
        cursor.execute(PUT, values | {"delay": delay, "channel": CHANNEL})


def put_long(
    connection: Connection[Any], kind: str, catalog: int, subject: int, arguments: dict[str, Any] | None = None
) -> bool:
    """Put the long job of *kind* about *subject*, which a person has requested; return False if a session does it now.

    A job that waits, or has ended, is put again with the new *arguments*.
    """
    values = {"kind": kind, "catalog": catalog, "subject": subject, "priority": Priority.SAVED, "channel": CHANNEL}
    values["arguments"] = None if arguments is None else Jsonb(arguments)
    return connection.execute(PUT_LONG, values).fetchone() is not None


def claim_long(connection: Connection[Any], kinds: Iterable[str]) -> Job | None:
    """Claim the next due long job of one of *kinds*, and lock it for the session of the autocommit *connection*."""
    row = connection.execute(CLAIM_LONG, {"kinds": list(kinds), "back_off": list(BACK_OFF)}).fetchone()
    return None if row is None else Job(*row)


def claim_one(
    connection: Connection[Any], kind: str, catalog: int, subject: int, *, and_lock: bool = False
) -> Job | None:
    """Claim the job of *kind* about *subject* before it is due; return None if it has been claimed or is done.

    *and_lock*: it is a long job, to be locked for the session of the autocommit *connection*.
    """
    values = {"kind": kind, "catalog": catalog, "subject": subject, "back_off": list(BACK_OFF)}
    row = connection.execute(CLAIM_ONE, values).fetchone()
    if row is None or (and_lock and connection.execute(LOCK, values).fetchone() != (True,)):
        return None
    return Job(*row)


def begin_long(
    connection: Connection[Any], kind: str, catalog: int, subject: int, arguments: dict[str, Any] | None = None
) -> Job | None:
    """Put a long job, and claim it for the session of the autocommit *connection*; None if a session does it now."""
    with connection.transaction():
        is_put = put_long(connection, kind, catalog, subject, arguments)
        return claim_one(connection, kind, catalog, subject, and_lock=True) if is_put else None


def claim(connection: Connection[Any], kinds: Iterable[str], number: int = 1) -> Job | None:
    """Claim the next due job of one of *kinds*, on the autocommit *connection*; None if no job is due.

    Jobs are claimed by priority, then by due time.  *number* counts the jobs that a worker claims: at each multiple of
    FAIR_SHARE, the job that has been due longest is claimed, whatever its priority.
    """
    statement = CLAIM_FIRST if number % FAIR_SHARE else CLAIM_OLDEST
    row = connection.execute(statement, {"kinds": list(kinds), "back_off": list(BACK_OFF)}).fetchone()
    return None if row is None else Job(*row)


def done(connection: Connection[Any], job: Job) -> None:
    """Delete *job*, unless a commit has put it again since it was claimed."""
    connection.execute(DONE, job.values)


def finish(connection: Connection[Any], job: Job, message: str) -> None:
    """Store *message*, the result of the long *job*, unless the job was put again since it was claimed."""
    connection.execute(FINISH, job.values | {"message": message.replace("\0", "")})


def release(connection: Connection[Any], job: Job) -> None:
    """Make *job* due at once for another worker, because this one has to end."""
    connection.execute(RELEASE, job.values)


def report(connection: Connection[Any], job: Job, done: int, total: int, message: str) -> bool:
    """Store the progress of the long *job*: *done* of *total*, and its current step; return whether it is to stop."""
    values = job.values | {"done": done, "total": total, "message": message.replace("\0", "")}
    return connection.execute(REPORT, values).fetchone() == (True,)


def stop(connection: Connection[Any], kind: str, catalog: int, subject: int, reason: str) -> int | None:
    """Request the end of a long job; return the process id of the session that does it, None if there is none.

    A job that waits ends at once, for *reason*.
    """
    values = {"kind": kind, "catalog": catalog, "subject": subject, "reason": reason}
    row = connection.execute(STOP, values).fetchone()
    return None if row is None else row[0]


def failed(
    connection: Connection[Any],
    job: Job,
    reason: str,
    for_good: bool,
    pause: float | None = None,
    is_empty: bool = False,
) -> None:
    """Save the *reason* why *job* has failed; it is due again according to its attempts, or never if *for_good*.

    With a *pause* it is due again after this number of seconds, and the attempt does not count.  *is_empty*: the job has
    found nothing, which is no fault.
    """
    reason = storable(reason)[:LONGEST_REASON]
    for_good = for_good or (pause is None and job.is_last_attempt)
    values = {"reason": reason, "for_good": for_good, "pause": pause, "backfill": Priority.of(job.kind, True)}
    connection.execute(FAILED, job.values | values | {"is_empty": is_empty})
    connection.execute(FORGET, {"kind": job.kind, "catalog": job.catalog, "most": MOST_FAILURES})


def repeat(connection: Connection[Any], catalog: int, kind: str) -> int:
    """Make all failed jobs of *kind* due again, on the autocommit *connection*; return their number."""
    cursor = connection.execute(REPEAT, {"catalog": catalog, "kind": kind})
    connection.execute(NOTIFY, (CHANNEL,))
    return int(cursor.rowcount)


def figures(connection: Connection[Any], catalog: int | None = None) -> list[QueueFigures]:
    """Return the figures of each kind that has jobs, of *catalog* or of all catalogs; rows of *connection* are tuples."""
    return figures_of(lambda *statement: connection.execute(*statement).fetchall(), catalog)


def figures_of(execute: Any, catalog: int | None) -> list[QueueFigures]:
    """Return the same as ``figures``, read with *execute*."""
    values = {"catalog": catalog, "backfill": Priority.BACKFILL_TEXT}
    return [QueueFigures(*row) for row in execute(FIGURES, values)]


def failures(
    connection: Connection[Any], catalog: int, *kinds: str, limit: int = 100
) -> list[tuple[int, str, int, datetime]]:
    """Return (subject, reason, attempts, time when put) of jobs that have failed, once or for good, the newest first."""
    return connection.execute(FAILURES, {"catalog": catalog, "kinds": list(kinds), "limit": limit}).fetchall()


def failure(execute: Any, catalog: int, zoid: int, *kinds: str) -> str:
    """Return the reason why a job of *kinds* for the object *zoid* has failed, "" if none has; reads with *execute*."""
    rows = execute(FAILURE, {"catalog": catalog, "kinds": list(kinds), "subject": zoid})
    return str(rows[0][0]) if rows else ""


def seconds_to_next(connection: Connection[Any], kinds: Iterable[str]) -> float | None:
    """Return the seconds until the next job of *kinds* is due, negative if it is overdue; None if no job is waiting."""
    [(seconds,)] = connection.execute(NEXT_DUE, (list(kinds),)).fetchall()
    return None if seconds is None else float(seconds)
