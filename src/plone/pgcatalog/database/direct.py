"""Connections with a session of their own: for advisory locks of sessions, temporary tables, VACUUM and the like.

Behind a pooler that shares sessions none of these works: a lock excludes nobody, and stays with strangers.  So
PGCATALOG_DIRECT_DSN says how the server is reached without it.
"""

from plone.pgcatalog.database.connections import plain_connection
from plone.pgcatalog.database.connections import SET
from plone.pgcatalog.database.connections import settings_of
from plone.pgcatalog.database.pooler import is_pooled
from plone.pgcatalog.database.pooler import shares_sessions
from psycopg.conninfo import conninfo_to_dict
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from psycopg.rows import RowFactory
from psycopg.rows import tuple_row
from typing import Any

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

    # A pack takes its time, and other threads may use the storage's connection meanwhile.
    storage.pack_by(lambda dsn: connect_directly(dsn, "pack", 0, row_factory=dict_row))


def is_way_named() -> bool:
    """True if the environment says how the server is reached without a pooler."""
    return bool(os.environ.get(DIRECT))


def identity(dsn: str) -> tuple[Any, ...]:
    """Return what tells the database *dsn* from all others.  Raises psycopg.Error."""
    with plain_connection(dsn, "which database") as connection:
        [row] = connection.execute(IDENTITY).fetchall()
    return tuple(row)
