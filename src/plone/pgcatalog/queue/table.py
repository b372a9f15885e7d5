"""The table of jobs: what takes long is done after the commit that makes it necessary.

A job is one kind of work on one object of one catalog.  A worker takes it by putting off when it is due, in a statement of its
own: no lock and no session is held while it works, and a job whose worker has died is due again.  A job that a later commit
puts once more while somebody works at it stays.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from plone.pgcatalog.sql.values import storable
from psycopg import Connection
from typing import Any


#: The channel on which workers are woken.
CHANNEL = "pgcatalog_queue"
#: Seconds until a job is due again that was taken for the n-th time; the last one counts for all later times.
BACK_OFF = (60, 300, 1800, 7200, 28800, 86400)
#: Times that a job is tried.
MOST_ATTEMPTS = 8
#: Failed jobs of a kind that are kept for people to see.
KEPT_FAILURES = 10_000
#: Characters of a reason that are kept.
LONGEST_REASON = 500

# Of jobs that are put together, those of the newest objects are due first.
PUT = """
WITH put AS (
    INSERT INTO pgcatalog_queue (kind, catalog, zoid, due)
    SELECT %(kind)s, %(catalog)s, zoid, now() - number * interval '1 microsecond'
    FROM unnest(%(zoids)s::bigint[]) WITH ORDINALITY AS objects (zoid, number)
    ON CONFLICT (kind, catalog, zoid) DO UPDATE
    SET put_by = EXCLUDED.put_by, put_at = EXCLUDED.put_at, due = EXCLUDED.due, attempts = 0, reason = ''
)
SELECT pg_notify(%(channel)s, '')
"""
NOTIFY = "SELECT pg_notify(%s, '')"
# The row is chosen by a CTE, which runs once.  As a table of FROM the planner may have it run again for each row of another scan,
# and it finds another row each time: all jobs would be taken, and only the first be done.
TAKE = """
WITH next AS MATERIALIZED (
    SELECT kind, catalog, zoid FROM pgcatalog_queue
    WHERE due <= now() AND kind = ANY(%(kinds)s)
    ORDER BY due LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE pgcatalog_queue AS job
SET attempts = attempts + 1,
    due = now() + make_interval(secs => (%(back_off)s::int[])[least(attempts + 1, cardinality(%(back_off)s::int[]))])
FROM next
WHERE (job.kind, job.catalog, job.zoid) = (next.kind, next.catalog, next.zoid)
RETURNING job.kind, job.catalog, job.zoid, job.attempts, job.put_by::text
"""
SAME = "kind = %(kind)s AND catalog = %(catalog)s AND zoid = %(zoid)s AND put_by = %(put_by)s::xid8"
DONE = f"DELETE FROM pgcatalog_queue WHERE {SAME}"
FAILED = f"""
UPDATE pgcatalog_queue
SET reason = %(reason)s, attempts = attempts - (%(pause)s::float IS NOT NULL)::int,
    due = CASE WHEN %(for_good)s THEN 'infinity' ELSE coalesce(now() + make_interval(secs => %(pause)s::float), due) END
WHERE {SAME}
"""
# Who asks for a bound that is hardly ever reached need not sort what is below it.
FORGET = """
DELETE FROM pgcatalog_queue AS job USING (
    SELECT catalog, zoid FROM pgcatalog_queue
    WHERE kind = %(kind)s AND due = 'infinity' ORDER BY put_at DESC OFFSET %(kept)s
) AS old
WHERE job.kind = %(kind)s AND (job.catalog, job.zoid) = (old.catalog, old.zoid) AND due = 'infinity'
"""
FIGURES = """
SELECT kind, count(*) FILTER (WHERE due < 'infinity'), count(*) FILTER (WHERE due = 'infinity'),
    min(put_at) FILTER (WHERE due < 'infinity')
FROM pgcatalog_queue WHERE %(catalog)s::bigint IS NULL OR catalog = %(catalog)s GROUP BY kind ORDER BY kind
"""
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


@dataclass(frozen=True, slots=True)
class Job:
    """Work of a *kind* on the object *zoid* for the catalog with tool oid *catalog*, taken *attempts* times.

    *put_by* is the transaction that has put it last.
    """

    kind: str
    catalog: int
    zoid: int
    attempts: int
    put_by: str

    @property
    def is_last_attempt(self) -> bool:
        return self.attempts >= MOST_ATTEMPTS

    @property
    def back_off(self) -> int:
        """Seconds from the time it was taken until it is due again."""
        return BACK_OFF[min(self.attempts, len(BACK_OFF)) - 1]

    @property
    def values(self) -> dict[str, Any]:
        return {"kind": self.kind, "catalog": self.catalog, "zoid": self.zoid, "put_by": self.put_by}


@dataclass(frozen=True, slots=True)
class Figures:
    """How many jobs of a *kind* wait and have failed for good; *oldest* is since when the oldest one waits, if any does."""

    kind: str
    waiting: int
    failed: int
    oldest: datetime | None


def put(cursor: Any, kind: str, catalog: int, zoids: Iterable[int]) -> None:
    """Put jobs of *kind* for the objects *zoids* of *catalog*, in the transaction of *cursor*; workers are woken by its commit."""
    zoids = sorted(set(zoids))
    if zoids:
        cursor.execute(PUT, {"kind": kind, "catalog": catalog, "zoids": zoids, "channel": CHANNEL})


def take(connection: Connection[Any], kinds: Iterable[str]) -> Job | None:
    """Take the job of one of *kinds* that is due longest, on the autocommit *connection*; None if none is due."""
    row = connection.execute(TAKE, {"kinds": list(kinds), "back_off": list(BACK_OFF)}).fetchone()
    return None if row is None else Job(*row)


def done(connection: Connection[Any], job: Job) -> None:
    """Remove *job*, unless a commit has put it again since it was taken."""
    connection.execute(DONE, job.values)


def failed(connection: Connection[Any], job: Job, reason: str, for_good: bool, pause: float | None = None) -> None:
    """Note why *job* has failed; it is due again as its attempts say, or never *for_good*.

    With a *pause* it is due again after as many seconds, and the attempt does not count.
    """
    reason = storable(reason)[:LONGEST_REASON]
    for_good = for_good or (pause is None and job.is_last_attempt)
    connection.execute(FAILED, job.values | {"reason": reason, "for_good": for_good, "pause": pause})
    connection.execute(FORGET, {"kind": job.kind, "kept": KEPT_FAILURES})


def repeat(connection: Connection[Any], catalog: int, kind: str) -> int:
    """Have the failed jobs of *kind* tried anew, on the autocommit *connection*; return how many there are."""
    cursor = connection.execute(REPEAT, {"catalog": catalog, "kind": kind})
    connection.execute(NOTIFY, (CHANNEL,))
    return int(cursor.rowcount)


def figures(connection: Connection[Any], catalog: int | None = None) -> list[Figures]:
    """Return the figures of each kind that has jobs, of *catalog* or of all; rows of *connection* are tuples."""
    return [Figures(*row) for row in connection.execute(FIGURES, {"catalog": catalog}).fetchall()]


def failures(
    connection: Connection[Any], catalog: int, kind: str, limit: int = 100
) -> list[tuple[int, str, int, datetime]]:
    """Return (zoid, reason, attempts, since when) of jobs that have failed once or for good, the newest first."""
    return connection.execute(FAILURES, {"catalog": catalog, "kind": kind, "limit": limit}).fetchall()


def failure(execute: Any, catalog: int, kind: str, zoid: int) -> str:
    """Return why the job of *kind* for the object *zoid* has failed, "" if it has not; read with *execute*."""
    rows = execute(FAILURE, {"catalog": catalog, "kind": kind, "zoid": zoid})
    return str(rows[0][0]) if rows else ""


def seconds_to_next(connection: Connection[Any], kinds: Iterable[str]) -> float | None:
    """Return in how many seconds the next job of *kinds* is due, below 0 for one that is; None if none waits."""
    [(seconds,)] = connection.execute(NEXT_DUE, (list(kinds),)).fetchall()
    return None if seconds is None else float(seconds)
