"""How the standby for searches is, for those who look after it: whether it answers, and shows what the primary does."""

from plone.pgcatalog.database import statistics
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.connections import plain
from plone.pgcatalog.database.standby import is_standby_named
from plone.pgcatalog.database.standby import named_standby
from plone.pgcatalog.database.standby import SEARCH
from plone.pgcatalog.database.standby import TRIES
from plone.pgcatalog.protocols import Connection
from psycopg.conninfo import conninfo_to_dict
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from time import sleep
from typing import Any

import psycopg


#: Seconds that a statement may take there.
SECONDS = 5.0
#: Seconds between two looks.  What the primary has just committed is there a moment later.
PAUSE = 0.1
#: What a search compares: the newest transaction, and what tells the states of catalogs from all others.
STATE = (
    "SELECT newest, catalog, relation, generation, tid FROM (SELECT max(tid) AS newest FROM transaction_log) AS log"
    " LEFT JOIN pgcatalog_state ON true ORDER BY catalog"
)


def search_standby(connection: Connection, dsn: str) -> dict[str, Any] | None:
    """Return how the standby is that the environment names for searches of the database *dsn*; None if it names none.

    ``server`` is its host and port, ``error`` why it cannot be asked (None: it answers), ``streaming`` and
    ``lag_seconds`` are as in ``statistics.standby``, and ``same_state`` says whether it shows what *connection*, to the
    primary, does.  Where that is not so, searches go to the primary.  None stands for what is not known.
    """
    if not is_standby_named():
        return None
    found: dict[str, Any] = dict.fromkeys(("server", "error", "streaming", "lag_seconds", "same_state"))
    standby = named_standby(dsn)
    if standby is None:
        return found | {"error": f"{SEARCH} is no connection string"}
    named = conninfo_to_dict(standby)
    found["server"] = make_conninfo(host=named.get("host"), port=named.get("port"))
    try:
        with connect(standby, "command", SECONDS, read_only=True, row_factory=dict_row) as other:
            # Several may be named.
            found["server"] = make_conninfo(host=other.info.host, port=other.info.port)
            if statistics.has_catalogs(connection):
                found["same_state"] = shows_the_same(connection, other)
            found |= statistics.standby(statistics.executing(other)) or {}
    except psycopg.Error as error:
        if connection.closed:
            raise
        found["error"] = plain(error)
    return found


def shows_the_same(connection: Connection, other: Connection) -> bool:
    """Return whether *other*, to a standby, shows the state of *connection*; looks as often as a transaction does."""
    for attempt in range(TRIES):
        if attempt:
            sleep(PAUSE)
        if connection.execute(STATE).fetchall() == other.execute(STATE).fetchall():
            return True
    return False
