"""Begins the snapshots that ZODB connections read from."""

from plone.pgcatalog.database.prepared import PreparedStatements
from plone.pgcatalog.sql.expression import Statement
from typing import Any

import psycopg


BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ"
NEWEST = Statement("SELECT coalesce(max(tid), 0) FROM transaction_log")


def begin_snapshot(connection: Any, has_begun: bool) -> int:
    """Begin a snapshot of the psycopg *connection*, and end the one that *has_begun*; one message.

    Returns the id of its newest transaction, 0 for none.  Raises psycopg.Error.
    """
    prepared = PreparedStatements.of(connection)
    try:
        [[(newest,)]] = prepared.run([NEWEST], ["COMMIT", BEGIN] if has_begun else [BEGIN])
    except psycopg.Error:
        # A rollback may have removed what was prepared.
        prepared.forget()
        raise
    return int(newest)
