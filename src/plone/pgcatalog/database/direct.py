"""Connections with a server session of their own: for advisory locks of sessions, temporary tables, VACUUM and the like.

Behind a pooler that shares sessions none of these works: a session lock excludes no other client, and stays with the next
one.  PGCATALOG_DIRECT_DSN leads to the server without the pooler.
"""

from plone.pgcatalog.database.connections import plain_connection
from plone.pgcatalog.database.connections import SET
from plone.pgcatalog.database.connections import settings_of
from plone.pgcatalog.database.prepared import FollowedConnection
from psycopg import capabilities
from psycopg.conninfo import conninfo_to_dict
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from psycopg.rows import RowFactory
from psycopg.rows import tuple_row
from typing import Any

import logging
import os
import psycopg


#: Environment variable with connection parameters that lead past a pooler.
DIRECT = "PGCATALOG_DIRECT_DSN"
#: Identifies a database among all others.
IDENTITY = "SELECT (SELECT system_identifier FROM pg_control_system()), oid FROM pg_database WHERE datname = current_database()"

#: Pairs of connection strings that lead to the same database.
_same: set[tuple[str, str]] = set()


class SharedSession(psycopg.OperationalError):
    """A pooler shares the sessions of the server, and PGCATALOG_DIRECT_DSN does not bypass it."""

    def __init__(self) -> None:
        super().__init__(
            "this needs a server session of its own, but a pooler shares the sessions:"
            f" set {DIRECT} to connect to the server without the pooler"
        )


def connect_directly(
    dsn: str,
    purpose: str,
    seconds: float = 30,
    *,
    lock_seconds: float | None = None,
    durable: bool = True,
    prepare_threshold: int | None = None,
    row_factory: RowFactory[Any] = tuple_row,
) -> psycopg.Connection[Any]:
    """Return a new autocommit connection to the database *dsn* that has a session of the server for itself.

    Statements are prepared after *prepare_threshold* executions, never if None; see ``connections.connect`` for the other
    arguments.  Raises psycopg.OperationalError; SharedSession if a pooler cannot be avoided.
    """
    target = direct_dsn(dsn)
    connection = plain_connection(target, purpose, prepare_threshold=prepare_threshold, row_factory=row_factory)
    try:
        if is_pooled(connection) and shares_sessions(target):
            raise SharedSession
        settings = settings_of(seconds, lock_seconds, durable)
        connection.execute(SET, (False, list(settings), list(settings.values())))
    except psycopg.Error:
        connection.close()
        raise
    return connection


def direct_dsn(dsn: str) -> str:
    """Return the connection string that reaches the database *dsn* without a pooler.

    The parameters of PGCATALOG_DIRECT_DSN override those of *dsn*.  If it is unset, or leads to another database, the result
    is *dsn* itself.  Raises psycopg.Error.
    """
    other = os.environ.get(DIRECT)
    if not other:
        return dsn
    direct = make_conninfo(dsn, **conninfo_to_dict(other))
    if direct != dsn and (dsn, direct) not in _same:
        if identity(dsn) != identity(direct):
            return dsn
        _same.add((dsn, direct))
    return direct


def pack_directly() -> None:
    """Make packs of zodb-pgjsonb in this process connect past a pooler; they raise SharedSession if that is impossible."""
    # Imported here, because it imports the ZODB, which a command with a DSN does not need.
    from plone.pgcatalog import storage
    from plone.pgcatalog.database.errors import shorten_pack

    # A pack takes long, and other threads may use the storage's connection meanwhile.
    storage.pack_by(lambda dsn: connect_directly(dsn, "pack", 0, row_factory=dict_row))
    logging.getLogger("Zope.SiteErrorLog").addFilter(shorten_pack)


def is_way_named() -> bool:
    """Return whether the environment has connection parameters that lead past a pooler."""
    return bool(os.environ.get(DIRECT))


def identity(dsn: str) -> tuple[Any, ...]:
    """Return system identifier and oid, which identify the database *dsn*.  Raises psycopg.Error."""
    with plain_connection(dsn, "which database") as connection:
        [row] = connection.execute(IDENTITY).fetchall()
    return tuple(row)


logger = logging.getLogger(__name__)

#: How often two connections are compared: usually a pooler assigns both the same session at once.
ROUNDS = 4
#: Name of a statement that is prepared for a moment, to see whether the pooler renames it.
PROBE = b"pgcatalog_probe"


def session_of(connection: Any) -> int:
    """Return the pid of the server process that answers on *connection* now."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        [(pid,)] = cursor.execute("SELECT pg_backend_pid()").fetchall()
    return int(pid)


def is_pooled(connection: Any) -> bool:
    """Return whether *connection* leads to a pooler: the process that answers is not the one reported when it connected."""
    return session_of(connection) != int(connection.info.backend_pid)


def shares_sessions(dsn: str) -> bool:
    """Return whether a pooler assigns clients of *dsn* a session of the server per transaction; False is not certain.

    True if two connected clients reach the same process of the server, or one of them reaches several.  Raises
    psycopg.OperationalError.
    """
    with plain_connection(dsn, "pooler") as one, plain_connection(dsn, "pooler") as other:
        for _ in range(ROUNDS):
            first, second = ({session_of(client), session_of(client)} for client in (one, other))
            if first & second or len(first) > 1 or len(second) > 1:
                return True
    return False


def follows_statements(connection: Any) -> bool:
    """Return whether the pooler of *connection* provides prepared statements in whichever session it assigns.

    Such a pooler gives the statements names of its own, and needs a protocol message when one is closed (libpq 17).
    """
    if not capabilities.has_send_close_prepared():
        return False
    with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        connection.pgconn.prepare(PROBE, b"SELECT 1")
        cursor.execute("SELECT FROM pg_prepared_statements WHERE name = %s", [PROBE.decode()])
        exists = bool(cursor.fetchall())
        connection.pgconn.close_prepared(PROBE)
    return not exists


def adapt_to_pooler(database: Any) -> None:
    """Limit prepared statements, of the storage of *database* (a ZODB.DB) and ours, to those its pooler can track.

    psycopg itself prepares nothing then: its DEALLOCATE ALL would reach a session of other clients.
    """
    # Imported here, because it imports the ZODB, which a command with a DSN does not need.
    from plone.pgcatalog import storage

    with storage.pooled_connection(database) as connection:
        if not is_pooled(connection):
            return
        follows = follows_statements(connection)
    storage.renew_connections(database, FollowedConnection if follows else psycopg.Connection, prepare_threshold=None)
    logger.info("PostgreSQL is reached through a pooler; prepared statements: %s", "ours only" if follows else "none")
