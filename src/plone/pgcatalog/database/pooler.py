"""Is there a pooler between us and the server, such as PgBouncer, and what does it do to connections?"""

from plone.pgcatalog.database.connections import plain_connection
from plone.pgcatalog.database.prepared import FollowedConnection
from psycopg import capabilities
from psycopg.rows import tuple_row
from typing import Any

import logging
import psycopg


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


def adapt(database: Any) -> None:
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
