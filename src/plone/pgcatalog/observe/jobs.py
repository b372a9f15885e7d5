"""Progress of long jobs on a catalog, stored in ``pgcatalog_jobs`` so that the browser and the command line both show it.

An advisory lock marks a running job. The lock ends with its connection, so a crashed job is recognised as interrupted.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import stored
from plone.pgcatalog.sql import locks
from psycopg import Connection
from typing import Any

import logging
import psycopg


logger = logging.getLogger(__name__)

#: Background jobs, and their titles.
JOBS = {"rebuild": _("rebuild"), "verify": _("verify"), "vacuum": _("vacuum")}
STOPPED = _("Stopped.")

BEGIN = (
    "INSERT INTO pgcatalog_jobs (catalog, name) VALUES (%(catalog)s, %(name)s) ON CONFLICT (catalog, name) DO UPDATE"
    " SET done = 0, total = 0, message = '', failed = false, stop = false, started = now(), finished = NULL"
)
END = (
    "UPDATE pgcatalog_jobs SET message = %(message)s, failed = %(failed)s, finished = now()"
    " WHERE catalog = %(catalog)s AND name = %(name)s"
)
TRY_LOCK = "SELECT pg_try_advisory_lock(%(lock)s, hashtext(%(catalog)s || ' ' || %(name)s))"


def begin(connection: Connection[Any], catalog: int, name: str) -> bool:
    """Record on *connection* that the job *name* of the catalog with tool oid *catalog* starts; False if it runs already.

    The job counts as running until ``end``, or until the server sees the connection closed.  Raises psycopg.Error.
    """
    values = {"catalog": catalog, "name": name, "lock": locks.JOB}
    [(free,)] = connection.execute(TRY_LOCK, values).fetchall()
    if free:
        connection.execute(BEGIN, values)
    return bool(free)


def end(connection: Connection[Any], catalog: int, name: str, lines: Iterable[str], failed: bool) -> None:
    """Record the end of the job, with *lines*, messages about its result.  A psycopg.Error is logged."""
    message = "\n".join(map(stored, lines)).replace("\0", "")
    try:
        connection.execute(END, {"catalog": catalog, "name": name, "message": message, "failed": failed})
        connection.execute(locks.RELEASE)
    except psycopg.Error as error:
        logger.error("recording the end of %s failed: %s", name, error)


@contextmanager
def recorded(dsn: str, catalog: int, name: str) -> Iterator[list[str]]:
    """Record the job *name* of the catalog with tool oid *catalog* in the database *dsn* while the body runs.

    Yields a list for messages about the result.  The body runs unrecorded if:

    - the same job is running already,
    - the database is read-only, such as a standby, or cannot be reached,
    - a pooler shares the session that would hold the lock.
    """
    lines: list[str] = []
    with ExitStack() as stack:
        connection = None
        try:
            session = stack.enter_context(connect_directly(dsn, name))
            connection = session if begin(session, catalog, name) else None
        except psycopg.Error as error:
            logger.warning("the progress of %s is not recorded: %s", name, error)
        failure: BaseException | None = None
        try:
            yield lines
        except BaseException as error:
            failure = error
            raise
        finally:
            if connection is not None:
                end(connection, catalog, name, lines if failure is None else [reason(failure)], failure is not None)


def reason(error: BaseException) -> Any:
    """Return the message for a job that *error* has ended."""
    return STOPPED if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"


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
