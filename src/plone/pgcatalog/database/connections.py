"""Connections of our own: every one that is not the storage's is opened here.

Each begins autocommit, says in ``pg_stat_activity`` what it is for, and is closed by whoever has opened it.
"""

from psycopg.rows import RowFactory
from psycopg.rows import tuple_row
from typing import Any

import psycopg


#: Longest wait for a connection, in seconds.
CONNECT_SECONDS = 5


def connect(
    dsn: str,
    purpose: str,
    seconds: float = 30,
    *,
    lock_seconds: float | None = None,
    read_only: bool = False,
    durable: bool = True,
    prepare_threshold: int | None = None,
    row_factory: RowFactory[Any] = tuple_row,
) -> psycopg.Connection[Any]:
    """Return a new autocommit connection to the database *dsn*, its rows made by *row_factory*.

    A statement may take *seconds*, and wait *lock_seconds* for a lock, as long as it may take if None; 0 is any time.
    *read_only* makes it refuse writes.  Without *durable* a crash of the server may lose its last commits.  Statements
    are prepared when they have run *prepare_threshold* times, None for never.

    Raises psycopg.OperationalError.
    """
    settings = {
        "statement_timeout": milliseconds(seconds),
        "lock_timeout": milliseconds(seconds if lock_seconds is None else lock_seconds),
    }
    if read_only:
        settings["default_transaction_read_only"] = "on"
    if not durable:
        settings["synchronous_commit"] = "off"
    connection = psycopg.connect(
        dsn,
        autocommit=True,
        connect_timeout=CONNECT_SECONDS,
        application_name=f"pgcatalog: {purpose}",
        prepare_threshold=prepare_threshold,
        row_factory=row_factory,
    )
    connection.execute(
        "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS setting (name, value)",
        (list(settings), list(settings.values())),
    )
    return connection


def milliseconds(seconds: float) -> str:
    """Return *seconds* as PostgreSQL's settings of times take them."""
    return str(int(seconds * 1000))


def plain(error: psycopg.Error) -> str:
    """Return what PostgreSQL says is wrong, in one line."""
    message = error.diag.message_primary or str(error) or type(error).__name__
    return message.strip().splitlines()[0]
