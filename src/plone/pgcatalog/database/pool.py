"""A PostgreSQL connection for code that has no ZODB snapshot at hand: scripts, workers, reports.

Inside a request or script with an open ZODB connection of zodb-pgjsonb its snapshot connection is used, so
SQL and objects agree.  Elsewhere a psycopg_pool connection serves, one per thread, until
``release_request_connection`` (at IPubEnd) gives it back.
"""

from plone.pgcatalog import storage
from plone.pgcatalog.database.connections import OWN
from plone.pgcatalog.database.connections import OwnConnection
from plone.pgcatalog.database.errors import ServiceUnavailable
from plone.pgcatalog.database.session import connection_of
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool
from psycopg_pool import PoolTimeout
from typing import Any
from weakref import WeakSet
from zope.component.hooks import getSite

import atexit
import os
import threading


#: Connections a process may have to a database by this module, and the seconds it waits for one of them.
POOL_SIZE = 4
POOL_TIMEOUT = 30.0

_local = threading.local()
_pools: dict[str, ConnectionPool[Any]] = {}
_of_databases: WeakSet[ConnectionPool[Any]] = WeakSet()
_lock = threading.Lock()


def get_request_connection(jar: Any = None, dsn: str | None = None) -> Any:
    """Return a psycopg connection to read from.

    *jar*, a ZODB connection of zodb-pgjsonb (the current site's when nothing is given), gives its own snapshot
    connection.  Otherwise *dsn*, or the environment's PGCATALOG_DSN, names the database; the connection is
    autocommit, read-only, and kept for the thread until it is released.  Rows are dicts by column name.  Nothing may be
    kept on its session, as a temporary table or a SET: a pooler may give others the same.

    Raises LookupError when there is none of them, ServiceUnavailable when no connection could be had for POOL_TIMEOUT
    seconds: all are taken, or the server accepts none.
    """
    if jar is None and dsn is None:
        jar = connection_of(getSite())
    if storage.is_supported(jar):
        return storage.connection(jar)
    dsn = dsn or os.environ.get("PGCATALOG_DSN")
    if not dsn:
        raise LookupError("no zodb-pgjsonb connection, no dsn and no PGCATALOG_DSN")
    held: dict[str, Any] = _local.__dict__.setdefault("held", {})
    connection = held.get(dsn)
    if connection is not None and connection.closed:
        pool_for(dsn).putconn(held.pop(dsn))
        connection = None
    if connection is None:
        connection = held[dsn] = _take(dsn)
    return connection


def _take(dsn: str) -> Any:
    try:
        return pool_for(dsn).getconn(POOL_TIMEOUT)
    except PoolTimeout as error:
        raise ServiceUnavailable(f"no connection to PostgreSQL: {error}") from error


def release_request_connection() -> None:
    """Give back what this thread has taken."""
    held: dict[str, Any] = _local.__dict__.pop("held", {})
    for dsn, connection in held.items():
        pool_for(dsn).putconn(connection)


def pool_for(dsn: str) -> ConnectionPool[Any]:
    """Return the process's pool for *dsn*, opened on first use."""
    with _lock:
        if dsn not in _pools:
            _pools[dsn] = ConnectionPool(
                dsn,
                connection_class=OwnConnection,
                kwargs={**OWN, "row_factory": dict_row, "application_name": "pgcatalog: pool"},
                min_size=0,
                max_size=POOL_SIZE,
                open=True,
                configure=_configure,
                check=ConnectionPool.check_connection,
            )
        return _pools[dsn]


def open_pools() -> list[ConnectionPool[Any]]:
    """Return the process's pools."""
    with _lock:
        return list(_pools.values())


def close_pools() -> None:
    """Close all pools of the process."""
    with _lock:
        for pool in _pools.values():
            pool.close()
        _pools.clear()


def close_at_exit(database: Any) -> None:
    """Close the pool of *database*, a ZODB.DB of zodb-pgjsonb, when the process ends, if it is still open.

    A pool that is not closed waits for its threads when Python ends, which Python 3.14 refuses with a traceback for each.
    """
    _of_databases.add(storage.pool_of(database))


@atexit.register
def _close_all() -> None:
    close_pools()
    for pool in list(_of_databases):
        pool.close()


def _configure(connection: OwnConnection) -> None:
    connection.read_only = True
