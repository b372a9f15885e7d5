"""Short-lived connections of this room; never the storage's own."""

from typing import Any

import psycopg


def connect(dsn: str, purpose: str, seconds: float = 30) -> psycopg.Connection[Any]:
    """Return a new autocommit connection that waits no longer than *seconds* for a lock or a statement.

    Raises psycopg.OperationalError.
    """
    connection = psycopg.connect(
        dsn, autocommit=True, connect_timeout=5, application_name=f"pgcatalog: {purpose}", prepare_threshold=None
    )
    limit_ms = str(int(seconds * 1000))
    connection.execute(
        "SELECT set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false)",
        (limit_ms, limit_ms),
    )
    return connection


def dsn_of(catalog: Any) -> str:
    """Return the connection string of the database that the catalog (``tool._core``) is in."""
    # Of the storage that snapshots come from, whatever may be wrapped around it.
    dsn: str = catalog.jar._normal_storage._main._dsn
    return dsn


def plain(error: psycopg.Error) -> str:
    """Return what PostgreSQL says is wrong, in one line."""
    message = error.diag.message_primary or str(error) or type(error).__name__
    return message.strip().splitlines()[0]
