"""PostgreSQL connections for code without a ZODB snapshot: scripts, workers, reports.

With an open ZODB connection of zodb-pgjsonb, its snapshot connection is used, so that SQL and objects agree.  Otherwise each
thread uses a connection of a psycopg_pool, until ``release_request_connection`` (at IPubEnd) returns it.
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


#: Connections of a process to one database through this module, and the seconds to wait for one of them.
POOL_SIZE = 4
POOL_TIMEOUT = 30.0

_local = threading.local()
_pools: dict[str, ConnectionPool[Any]] = {}
_of_databases: WeakSet[ConnectionPool[Any]] = WeakSet()
_lock = threading.Lock()


def get_request_connection(jar: Any = None, dsn: str | None = None) -> Any:
    """Return a psycopg connection for reading.

    - With *jar*, a ZODB connection of zodb-pgjsonb (by default the current site's): its snapshot connection.
    - Otherwise with *dsn* (by default PGCATALOG_DSN of the environment): an autocommit, read-only connection, which belongs
      to the thread until it is released.

    Rows are dicts by column name.  Leave no state on the session, such as temporary tables or SET: a pooler may share it
    with other clients.

    Raises LookupError if there is no such jar and no dsn; ServiceUnavailable if no connection is free within POOL_TIMEOUT
    seconds, or the server accepts none.
    """
    if jar is None and dsn is None:
        jar = connection_of(getSite())
    if storage.is_supported(jar):
        return storage.connection(jar)
    dsn = dsn or os.environ.get("PGCATALOG_DSN")
    if not dsn:
        raise LookupError("no database: neither a zodb-pgjsonb connection, a dsn nor PGCATALOG_DSN")
    held: dict[str, Any] = _local.__dict__.setdefault("held", {})
    connection = held.get(dsn)
    if connection is not None and connection.closed:
        pool_for(dsn).putconn(held.pop(dsn))
        connection = None
    if connection is None:
        try:
            connection = held[dsn] = pool_for(dsn).getconn(POOL_TIMEOUT)
        except PoolTimeout as error:
            raise ServiceUnavailable(f"no connection to PostgreSQL: {error}") from error
    return connection


def release_request_connection() -> None:
    """Return the connections of this thread to their pools."""
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
    """Close the pool of *database*, a ZODB.DB of zodb-pgjsonb, at the end of the process, if it is still open.

    A pool left open waits for its threads when Python ends, which Python 3.14 refuses with a traceback for each thread.
    """
    _of_databases.add(storage.pool_of(database))


@atexit.register
def _close_all() -> None:
    close_pools()
    for pool in list(_of_databases):
        pool.close()


def _configure(connection: OwnConnection) -> None:
    connection.read_only = True
