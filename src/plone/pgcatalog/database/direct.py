"""Connections with a session of their own: for advisory locks of sessions, temporary tables, VACUUM and the like.

Behind a pooler that shares sessions none of these works: a lock excludes nobody, and stays with strangers.  So
PGCATALOG_DIRECT_DSN says how the server is reached without it.
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


#: The environment variable that says how.
DIRECT = "PGCATALOG_DIRECT_DSN"
#: Tells a database from all others.
IDENTITY = "SELECT (SELECT system_identifier FROM pg_control_system()), oid FROM pg_database WHERE datname = current_database()"

#: Pairs of connection strings that lead to the same database.
_same: set[tuple[str, str]] = set()


class SharedSession(psycopg.OperationalError):
    """A pooler shares the sessions of the server, and PGCATALOG_DIRECT_DSN does not lead past it."""

    def __init__(self) -> None:
        super().__init__(
            "this needs a session of the server for itself, and a pooler shares them:"
            f" let {DIRECT} lead to the server past the pooler"
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

    Statements are prepared when they have run *prepare_threshold* times, None for never; the other arguments are those of
    ``connections.connect``.  Raises psycopg.OperationalError, SharedSession if there is no such way.
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
    """Return the connection string by which the database *dsn* is reached without a pooler.

    That is *dsn* but for what PGCATALOG_DIRECT_DSN says otherwise, and *dsn* itself if that leads to another database, or
    there is none.  Raises psycopg.Error.
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
    """Have packs of zodb-pgjsonb in this process take the way past a pooler; they raise SharedSession if there is none."""
    # It imports the ZODB, which a command with a DSN does not need.
    from plone.pgcatalog import storage
    from plone.pgcatalog.database.errors import shorten_pack

    # A pack takes its time, and other threads may use the storage's connection meanwhile.
    storage.pack_by(lambda dsn: connect_directly(dsn, "pack", 0, row_factory=dict_row))
    logging.getLogger("Zope.SiteErrorLog").addFilter(shorten_pack)


def is_way_named() -> bool:
    """True if the environment says how the server is reached without a pooler."""
    return bool(os.environ.get(DIRECT))


def identity(dsn: str) -> tuple[Any, ...]:
    """Return what tells the database *dsn* from all others.  Raises psycopg.Error."""
    with plain_connection(dsn, "which database") as connection:
        [row] = connection.execute(IDENTITY).fetchall()
    return tuple(row)


logger = logging.getLogger(__name__)

#: How often two connections are compared: as a rule a pooler gives both the same session at once.
ROUNDS = 4
#: A statement that is prepared for a moment, to see what becomes of its name.
PROBE = b"pgcatalog_probe"


def session_of(connection: Any) -> int:
    """Return the process of the server that answers on *connection* now."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        [(pid,)] = cursor.execute("SELECT pg_backend_pid()").fetchall()
    return int(pid)


def is_pooled(connection: Any) -> bool:
    """True if *connection* is to a pooler: it has told another process than the one that answers."""
    return session_of(connection) != int(connection.info.backend_pid)


def shares_sessions(dsn: str) -> bool:
    """True if a pooler gives clients of *dsn* a session of the server for a transaction only; sure when it says so.

    Two clients that are both connected then meet the same process of the server, or one of them meets several.
    Raises psycopg.OperationalError.
    """
    with plain_connection(dsn, "pooler") as one, plain_connection(dsn, "pooler") as other:
        for _ in range(ROUNDS):
            first, second = ({session_of(client), session_of(client)} for client in (one, other))
            if first & second or len(first) > 1 or len(second) > 1:
                return True
    return False


def follows_statements(connection: Any) -> bool:
    """True if the pooler of *connection* sees to it that prepared statements are there, in whichever session.

    It gives them names of its own then, and has to be told by the protocol when one is closed (libpq 17).
    """
    if not capabilities.has_send_close_prepared():
        return False
    with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        connection.pgconn.prepare(PROBE, b"SELECT 1")
        cursor.execute("SELECT FROM pg_prepared_statements WHERE name = %s", [PROBE.decode()])
        is_there = bool(cursor.fetchall())
        connection.pgconn.close_prepared(PROBE)
    return not is_there


def adapt_to_pooler(database: Any) -> None:
    """Have the storage of *database*, a ZODB.DB of zodb-pgjsonb, and us prepare only what its pooler can follow.

    psycopg itself prepares nothing then: it forgets by DEALLOCATE ALL, which a pooler passes on to a session of others.
    """
    # It imports the ZODB, which a command with a DSN does not need.
    from plone.pgcatalog import storage

    with storage.pooled_connection(database) as connection:
        if not is_pooled(connection):
            return
        follows = follows_statements(connection)
    storage.renew_connections(database, FollowedConnection if follows else psycopg.Connection, prepare_threshold=None)
    logger.info("PostgreSQL is reached through a pooler; prepared statements: %s", "ours only" if follows else "none")
