"""What the catalog raises when PostgreSQL goes away under it, or takes too long."""

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


#: How PostgreSQL says that a connection is lost, or that there is none to be had: too many, a server that stops or starts.
NO_CONNECTION = ("08", "53300", "57P")
#: How a standby ends a read that is in the way of what it has to replay, "conflict with recovery".  On a read nothing
#: else is a reason for these on any server.
REPLAY_CONFLICTS = (SerializationFailure, DeadlockDetected, AdminShutdown)


#: How PostgreSQL says that it has no disk space or memory left, or that a file cannot be read or written.
SHORTAGES = ("53", "58")


def is_shortage(error: psycopg.Error) -> bool:
    """Return whether *error* is about the server's disk space, memory or files, and not about its connections."""
    return (error.sqlstate or "").startswith(SHORTAGES) and not isinstance(error, TooManyConnections)


class ServiceUnavailable(psycopg.OperationalError, ConflictError):
    """The connection to PostgreSQL was lost before the commit, or a standby has ended a read.

    Zope repeats the request, as after a conflict.  When that does not help it answers 503, which is how it
    translates the name of this class.  It is a ConflictError, since Plone goes on without a portlet that raises any
    other error.
    """


class StillUnavailable(psycopg.OperationalError):
    """A read was lost while a ServiceUnavailable is handled.

    It is no conflict: the answer is made, and what Plone would add to it, such as tokens, it goes on without.
    """


class CatalogLocked(TransientError):
    """Somebody else holds, for too long, a lock that the commit needs; the transaction may be tried again."""


class HistoryChanged(TransientError):
    """The database has lost transactions that this process has seen: a failover, or a restored backup.

    What the process knew of it is forgotten; the transaction may be tried again.
    """

    def __init__(
        self, message: str = "the database has lost transactions: was it restored, has it failed over?"
    ) -> None:
        super().__init__(message)


class ClockBehind(TransientError):
    """Another machine has committed with a later time than this one's; the transaction may be tried again."""


def is_outage(error: BaseException | None) -> bool:
    """True if *error* says that a connection to PostgreSQL is lost, or that there is none to be had."""
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08").startswith(NO_CONNECTION)


def shorten_outage(record: logging.LogRecord) -> bool:
    """Leave one line of the *record* of an outage (a filter of logging), and none while one is handled.

    Its traceback may tell the error of a template.  That loads the template's variables to tell them, each of which
    fails, and is logged with a traceback that tells the same error: without end.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, StillUnavailable):
        return False
    if is_outage(error):
        record.msg, record.args, record.exc_info = f"{record.getMessage()}: {error!r}", (), None
    return True


def shorten_pack(record: logging.LogRecord) -> bool:
    """Leave one line of the *record* in which Zope's error log has a PackConflict (a filter of logging)."""
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
    """Raise ServiceUnavailable instead of the psycopg.Error with which *connection*, or a read for a standby, was lost.

    Which one depends on why the server ended it: a session that idled for too long is no OperationalError.
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
    """Raise ServiceUnavailable instead of the psycopg.Error with which a read was lost, on whichever connection.

    Neither for a time limit, nor when no connection was free: a repeated request would wait for as long again.  Nor when
    the server is short of something: it answers.  StillUnavailable while a ServiceUnavailable is handled.
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


#: The server takes no more milliseconds than that.
MOST = 2**31 - 1

#: The limit in milliseconds that the server, the database or the role has; 0 for none.
OWN_LIMIT = "(1000 * extract(epoch FROM current_setting('statement_timeout')::interval))::bigint"
#: After an error the rollback to the savepoint does it.
TAKE_BACK = "SET LOCAL statement_timeout TO DEFAULT"


class SearchTimeout(QueryCanceled):
    """A search took longer than it was given; the transaction stays usable.  Over the web it is a 503."""


def set_limit(seconds: float, server_limit: int) -> str:
    """Return the command that lets the statements behind it take *seconds* at the most; raises ValueError for 0 and less.

    A stricter *server_limit*, in milliseconds, stays; 0 is none.
    """
    if not seconds > 0:
        raise ValueError(f"a time limit is more than 0 seconds, not {seconds!r}")
    milliseconds = max(1, round(min(seconds * 1000, MOST)))
    return f"SET LOCAL statement_timeout = {min(milliseconds, server_limit or MOST):d}"
