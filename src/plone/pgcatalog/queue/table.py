"""The table of jobs: work that takes long is done after the commit that requires it.

A job is one kind of work on one object of one catalog.  A worker claims a job by postponing the time when it is due, in
a statement of its own: no lock and no session is held during the work, and the job of a dead worker becomes due again.
A job that a later commit puts again during the work remains in the table.

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
from typing import Any


#: The channel that notifies workers.
CHANNEL = "pgcatalog_queue"
#: One of so many jobs that a worker claims is the job that has been due longest, whatever its priority.
FAIR_SHARE = 10
#: Maximum number of jobs of a kind in one commit that count as a save's; more of them are a backfill, such as an import.
MOST_SAVED = 100
#: The kind of jobs that goes before other kinds: most searches are for words, and vectors are computed from the text.
FIRST_KIND = "text"
#: Seconds until a job that was claimed for the n-th time is due again; the last number applies to all later times.
BACK_OFF = (60, 300, 1800, 7200, 28800, 86400)
#: Maximum number of attempts at a job.
MOST_ATTEMPTS = 8
#: Number of failed jobs per kind that are stored, for users to see.
MOST_FAILURES = 10_000
#: Maximum length of a stored reason.
LONGEST_REASON = 500

PUT = read_statement("queue", "put")
NOTIFY = "SELECT pg_notify(%s, '')"
CLAIM = read_statement("queue", "claim")
CLAIM_FIRST = CLAIM.format(order="priority, due")
CLAIM_OLDEST = CLAIM.format(order="due")
SAME = "kind = %(kind)s AND catalog = %(catalog)s AND zoid = %(zoid)s AND put_by = %(put_by)s::xid8"
DONE = f"DELETE FROM pgcatalog_queue WHERE {SAME}"
FAILED = read_statement("queue", "failed").format(same=SAME)
FORGET = read_statement("queue", "forget")
FIGURES = read_statement("queue", "figures")
FAILURES = """
SELECT zoid, reason, attempts, put_at FROM pgcatalog_queue
WHERE catalog = %(catalog)s AND kind = %(kind)s AND reason <> '' ORDER BY put_at DESC, zoid LIMIT %(limit)s
"""
FAILURE = "SELECT reason FROM pgcatalog_queue WHERE kind = %(kind)s AND catalog = %(catalog)s AND zoid = %(zoid)s"
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

    @classmethod
    def of(cls, kind: str, is_backfill: bool) -> "Priority":
        """Return the priority of a job of *kind*, put by a save or, if *is_backfill*, for an object saved earlier."""
        if kind == FIRST_KIND:
            return cls.BACKFILL_TEXT if is_backfill else cls.SAVED_TEXT
        return cls.BACKFILL if is_backfill else cls.SAVED


@dataclass(frozen=True, slots=True)
class Job:
    """Work of a *kind* on the object *zoid* for the catalog with tool oid *catalog*, claimed *attempts* times.

    *put_by* is the id of the transaction that was the last to put the job; *priority* is a Priority.
    """

    kind: str
    catalog: int
    zoid: int
    attempts: int
    put_by: str
    priority: int

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
        return {"kind": self.kind, "catalog": self.catalog, "zoid": self.zoid, "put_by": self.put_by}


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """The numbers of waiting and failed jobs of a *kind*, and the time when the *oldest* waiting job was put.

    *saved* of the waiting jobs were put by saves, the others by backfills.
    """

    kind: str
    waiting: int
    saved: int
    failed: int
    oldest: datetime | None


def put(cursor: Any, kind: str, catalog: int, zoids: Iterable[int], is_backfill: bool = False) -> None:
    """Put jobs of *kind* for the objects *zoids* of *catalog*; the commit of *cursor*'s transaction notifies workers.

    *is_backfill*: the objects were saved earlier.  More than MOST_SAVED jobs are a backfill in any case.  A backfill does
    not lower the priority of a job that a save has put, and a save raises the priority of a job of a backfill.
    """
    zoids = sorted(set(zoids))
    if zoids:
        priority = Priority.of(kind, is_backfill or len(zoids) > MOST_SAVED)
        values = {"kind": kind, "catalog": catalog, "zoids": zoids, "priority": priority, "channel": CHANNEL}
        cursor.execute(PUT, values)


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


def failed(connection: Connection[Any], job: Job, reason: str, for_good: bool, pause: float | None = None) -> None:
    """Save the *reason* why *job* has failed; it is due again according to its attempts, or never if *for_good*.

    With a *pause* it is due again after this number of seconds, and the attempt does not count.
    """
    reason = storable(reason)[:LONGEST_REASON]
    for_good = for_good or (pause is None and job.is_last_attempt)
    values = {"reason": reason, "for_good": for_good, "pause": pause, "backfill": Priority.of(job.kind, True)}
    connection.execute(FAILED, job.values | values)
    connection.execute(FORGET, {"kind": job.kind, "most": MOST_FAILURES})


def repeat(connection: Connection[Any], catalog: int, kind: str) -> int:
    """Make all failed jobs of *kind* due again, on the autocommit *connection*; return their number."""
    cursor = connection.execute(REPEAT, {"catalog": catalog, "kind": kind})
    connection.execute(NOTIFY, (CHANNEL,))
    return int(cursor.rowcount)


def figures(connection: Connection[Any], catalog: int | None = None) -> list[QueueFigures]:
    """Return the figures of each kind that has jobs, of *catalog* or of all catalogs; rows of *connection* are tuples."""
    values = {"catalog": catalog, "backfill": Priority.BACKFILL_TEXT}
    return [QueueFigures(*row) for row in connection.execute(FIGURES, values).fetchall()]


def failures(
    connection: Connection[Any], catalog: int, kind: str, limit: int = 100
) -> list[tuple[int, str, int, datetime]]:
    """Return (zoid, reason, attempts, time when put) of jobs that have failed, once or for good, the newest first."""
    return connection.execute(FAILURES, {"catalog": catalog, "kind": kind, "limit": limit}).fetchall()


def failure(execute: Any, catalog: int, kind: str, zoid: int) -> str:
    """Return the reason why the job of *kind* for the object *zoid* has failed, "" if it has not; reads with *execute*."""
    rows = execute(FAILURE, {"catalog": catalog, "kind": kind, "zoid": zoid})
    return str(rows[0][0]) if rows else ""


def seconds_to_next(connection: Connection[Any], kinds: Iterable[str]) -> float | None:
    """Return the seconds until the next job of *kinds* is due, negative if it is overdue; None if no job is waiting."""
    [(seconds,)] = connection.execute(NEXT_DUE, (list(kinds),)).fetchall()
    return None if seconds is None else float(seconds)
