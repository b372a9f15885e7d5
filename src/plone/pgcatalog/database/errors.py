"""Errors of the catalog for lost connections, lost transactions, locks and time limits."""

from collections.abc import Iterator
from contextlib import contextmanager
from psycopg import Connection
from psycopg.errors import AdminShutdown
from psycopg.errors import DeadlockDetected
from psycopg.errors import IdleInTransactionSessionTimeout
from psycopg.errors import InFailedSqlTransaction
from psycopg.errors import LockNotAvailable
from psycopg.errors import QueryCanceled
from psycopg.errors import SerializationFailure
from psycopg.errors import TooManyConnections
from psycopg_pool import PoolTimeout
from transaction.interfaces import TransientError
from typing import Any
from ZODB.POSException import ConflictError

import logging
import psycopg
import sys


#: SQLSTATE prefixes of a lost or refused connection: connection failure, too many connections, a server that stops or
#: starts.
NO_CONNECTION = ("08", "53300", "57P")
#: Errors with which a standby cancels a read that conflicts with replay ("conflict with recovery").  On any server, a read
#: gets these errors for no other reason.
REPLAY_CONFLICTS = (SerializationFailure, DeadlockDetected, AdminShutdown)


#: SQLSTATE prefixes of missing disk space or memory, and of files that cannot be read or written.
SHORTAGES = ("53", "58")


def is_shortage(error: psycopg.Error) -> bool:
    """Return whether *error* is about the server's disk space, memory or files; too many connections do not count."""
    return (error.sqlstate or "").startswith(SHORTAGES) and not isinstance(error, TooManyConnections)


class ServiceUnavailable(psycopg.OperationalError, ConflictError):
    """The connection to PostgreSQL was lost before the commit, or a standby has cancelled a read.

    Zope repeats the request, as after a conflict.  If that does not help it answers 503, its status for the name of this
    class.  It is a ConflictError because Plone swallows any other error of a portlet and renders the page without it.
    """


class StillUnavailable(psycopg.OperationalError):
    """A read failed while a ServiceUnavailable is handled.

    It is no conflict: the response already exists, and Plone omits the additions to it, such as tokens, that raise this
    error.
    """


class CatalogLocked(TransientError):
    """Another transaction has held a lock that the commit needs for too long; the transaction may be tried again."""


class HistoryChanged(TransientError):
    """The database has lost transactions that this process has seen, by a failover or a restored backup.

    The process's caches of the database are emptied; the transaction may be tried again.
    """

    def __init__(self, message: str = "the database has lost transactions, by a restore or a failover") -> None:
        super().__init__(message)


class ClockBehind(TransientError):
    """This machine's clock is behind that of another machine, which has committed; the transaction may be tried again."""


def is_outage(error: BaseException | None) -> bool:
    """Return whether *error* means that a connection to PostgreSQL is lost, or cannot be opened."""
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08").startswith(NO_CONNECTION)


def shorten_outage(record: logging.LogRecord) -> bool:
    """Shorten the *record* of an outage to one line; drop it while an outage is handled (a filter of logging).

    Its traceback may format the error of a template.  Formatting loads the template's variables, each of which fails and is
    logged with a traceback that formats the same error, without end.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, StillUnavailable):
        return False
    if is_outage(error):
        record.msg, record.args, record.exc_info = f"{record.getMessage()}: {error!r}", (), None
    return True


def shorten_pack(record: logging.LogRecord) -> bool:
    """Shorten the *record* of a PackConflict in Zope's error log to one line (a filter of logging)."""
    first, _, traceback = record.getMessage().partition("\n")
    last = traceback.rpartition("\n")[2].strip()
    if last.partition(":")[0].endswith("PackConflict"):
        record.msg, record.args = f"{first} {last}", ()
    return True


@contextmanager
def transient_when_locked() -> Iterator[None]:
    """Raise CatalogLocked instead of the psycopg.Error with which PostgreSQL ends a wait for a lock."""
    try:
        yield
    except (LockNotAvailable, DeadlockDetected, SerializationFailure) as error:
        raise CatalogLocked(str(error)) from error


@contextmanager
def transient_when_lost(connection: Connection[Any]) -> Iterator[None]:
    """Raise ServiceUnavailable instead of the psycopg.Error of a lost *connection*, or of a read cancelled by a standby.

    The class of the psycopg.Error depends on the server's reason: the error of a session that idled for too long is no
    OperationalError.
    """
    try:
        yield
    except psycopg.Error as error:
        lost = connection.closed or isinstance(error, REPLAY_CONFLICTS)
        if lost and not isinstance(error, ServiceUnavailable):
            raise ServiceUnavailable(str(error)) from error
        raise


@contextmanager
def transient_reads() -> Iterator[None]:
    """Raise ServiceUnavailable instead of the psycopg.Error of a lost read, on any connection.

    While a ServiceUnavailable is handled, raise StillUnavailable.  Unchanged are:

    - time limits and exhausted pools, because a repeated request would wait for as long again
    - shortages of the server, because it does answer
    """
    is_handled = isinstance(sys.exception(), ServiceUnavailable)
    try:
        yield
    except (PoolTimeout, QueryCanceled, ServiceUnavailable):
        raise
    except (psycopg.OperationalError, InFailedSqlTransaction, IdleInTransactionSessionTimeout) as error:
        if is_shortage(error):
            raise
        kind = StillUnavailable if is_handled else ServiceUnavailable
        raise kind(str(error)) from error


#: The most milliseconds that the server accepts.
MOST_MILLISECONDS = 2**31 - 1

#: SQL expression: the statement_timeout of the server, database or role in milliseconds; 0 if there is none.
OWN_LIMIT = "(1000 * extract(epoch FROM current_setting('statement_timeout')::interval))::bigint"
#: Resets the limit; after an error the rollback to the savepoint resets it.
RESET_LIMIT = "SET LOCAL statement_timeout TO DEFAULT"


class SearchTimeout(QueryCanceled):
    """A search exceeded its time limit; the transaction stays usable.  Over the web it is a 503."""


def set_limit(seconds: float, server_limit: int) -> str:
    """Return the command that limits each statement behind it to *seconds*; raise ValueError for 0 and less.

    A stricter *server_limit*, in milliseconds, stays in force; 0 means no limit.
    """
    if not seconds > 0:
        raise ValueError(f"a time limit must be more than 0 seconds, not {seconds!r}")
    milliseconds = max(1, round(min(seconds * 1000, MOST_MILLISECONDS)))
    return f"SET LOCAL statement_timeout = {min(milliseconds, server_limit or MOST_MILLISECONDS):d}"
