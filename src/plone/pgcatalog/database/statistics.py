"""PostgreSQL's statistics about the catalogs of a database: sizes, use, shares of rows per value, current activity.

Reads only; connections are psycopg's, with dicts as rows.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from datetime import datetime
from datetime import UTC
from persistent.timestamp import TimeStamp
from plone.pgcatalog.database import layout
from plone.pgcatalog.database.expected import can_be_read
from plone.pgcatalog.database.expected import Execute
from plone.pgcatalog.database.expected import NamedStatement
from plone.pgcatalog.database.expected import shared_faults
from plone.pgcatalog.database.expected import values_of
from plone.pgcatalog.database.layout import is_unfilled
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.layout import load_statement
from plone.pgcatalog.sql import locks
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.shares import Shares
from plone.pgcatalog.sql.shares import UNKNOWN
from psycopg import Connection
from psycopg import sql
from time import monotonic
from typing import Any

import math


#: A search counts as slow for its site from this many milliseconds on,
LONG_MS = 100.0
#: or from this multiple of the median of its shape on.
TIMES_MEDIAN = 10.0
#: A statement reads too much if it reads this many times the rows that it returns, and at least FEW rows.
WASTEFUL = 10
FEW = 1000
#: Seconds that a session waits for a lock until the session that holds it is reported.
BLOCKING_SECONDS = 5.0
#: The number of rows without metadata, and of objects with metadata but without a row; both are 0 in a sound database.
ROWS_WITHOUT_IDX = (
    "SELECT count(*) AS n FROM {relation} c LEFT JOIN object_state o ON o.zoid = c.zoid"
    " WHERE c.idx IS NULL AND o.idx IS NULL"
)
STALE = "SELECT count(*) AS n FROM object_state o WHERE o.idx IS NOT NULL AND {nowhere}"


def overview(execute: Execute, catalog: int | None = None) -> dict[str, Any]:
    """Return statistics of the database without reading rows of catalogs; one message, two on a standby.

    Keys:

    - ``catalogs``: a list with a dict for each catalog, or only for the one with tool oid *catalog*
    - ``retired``, ``counts_bytes``, ``connections``, ``oldest`` (transaction), ``blockers``, ``replicas``: see
      statistics.sql
    - ``standby``: the result of ``standby``; None for a server that accepts writes

    Times are ISO 8601 texts.
    """
    return overview_of(execute, execute(*overview_statement(catalog)))


def overview_statement(catalog: int | None = None) -> NamedStatement:
    """Return the statement of ``overview`` and its values."""
    return load_sql("statistics"), {
        "catalog": catalog,
        "rebuild": locks.REBUILD,
        "long": LONG_MS,
        "times": TIMES_MEDIAN,
        "few": FEW,
        "wasteful": WASTEFUL,
        "blocking": BLOCKING_SECONDS,
        "hnsw_from": layout.HNSW_FROM,
        "hnsw_dimensions": layout.HNSW_DIMENSIONS,
    }


def overview_of(execute: Execute, rows: list[Any]) -> dict[str, Any]:
    """Return ``overview`` for the *rows* of ``overview_statement``; *execute* reads the lag of a standby."""
    [(found,)] = map(values_of, rows)
    for catalog_found in found["catalogs"]:
        catalog_found["unfilled"] = is_unfilled(catalog_found["relation"])
    result: dict[str, Any] = found | {"standby": standby(execute) if found["standby"] else None}
    return result


def has_catalogs(connection: Connection[Any]) -> bool:
    """Return whether the database has the tables that all catalogs share, with their columns."""
    return can_be_read(shared_faults(executing(connection)))


def standby(execute: Execute) -> dict[str, Any] | None:
    """Return ``streaming`` and ``lag_seconds`` of a standby; None for a server that accepts writes.

    The lag is the greatest possible age of the state that it shows; None if it is unknown.
    """
    for streaming, lag_seconds in map(values_of, execute(load_sql("replay"), {})):
        return {"streaming": streaming, "lag_seconds": lag_seconds}
    return None


def catalogs(connection: Connection[Any], found: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """Return the catalogs *found* by ``overview`` (default: all), each with its number of ``rows`` and its ``site``.

    ``site`` is the first path, None for an empty catalog.  ``unfilled`` is true for a catalog that only has objects saved
    since the site was copied or imported.
    """
    found = overview(executing(connection))["catalogs"] if found is None else found
    for catalog in found:
        relation = sql.Identifier(catalog["relation"])
        path = sql.SQL("NULL::text" if "path" in lost_columns(catalog) else "min(path)")
        statement = sql.SQL("SELECT count(*) AS rows, {} AS site FROM {}").format(path, relation)
        [row] = connection.execute(statement).fetchall()
        catalog.update(row)
    return found


def lost_columns(catalog: dict[str, Any]) -> list[str]:
    """Return the names of the columns that the relation of *catalog* has lost."""
    return [part["name"] for part in catalog["missing"] if part["kind"] == "column"]


def executing(connection: Connection[Any]) -> Execute:
    """Return a function that runs a statement on *connection* and returns its rows."""
    return lambda statement, values: connection.execute(statement, values).fetchall()


def saved_at(tid: int) -> datetime | None:
    """Return the time of the transaction *tid*; None for 0."""
    return datetime.fromtimestamp(TimeStamp(tid.to_bytes(8, "big")).timeTime(), UTC) if tid else None


def retired(connection: Connection[Any]) -> list[dict[str, Any]]:
    """Return the relations that wait to be dropped, with their sizes in bytes."""
    found: list[dict[str, Any]] = connection.execute(
        "SELECT relation, coalesce(pg_total_relation_size(to_regclass(quote_ident(relation))), 0) AS bytes"
        " FROM pgcatalog_retired ORDER BY relation"
    ).fetchall()
    return found


def rows_without_idx(connection: Connection[Any], relation: str) -> int:
    """Return the number of rows of *relation* without metadata."""
    statement = sql.SQL(ROWS_WITHOUT_IDX).format(relation=sql.Identifier(relation))
    [row] = connection.execute(statement).fetchall()
    return int(row["n"])


def stale_objects(connection: Connection[Any], relations: list[str]) -> int:
    """Return the number of objects with an idx and without a row in *relations*, which are all relations of the database."""
    statement = sql.SQL(STALE).format(nowhere=nowhere(relations))
    [row] = connection.execute(statement).fetchall()
    return int(row["n"])


def nowhere(relations: list[str]) -> sql.Composable:
    """Return the condition that no row of *relations* has its idx in ``o``, an alias of object_state."""
    exists = "NOT EXISTS (SELECT FROM {} c WHERE c.rid = o.zoid AND c.idx IS NULL)"
    conditions = [sql.SQL(exists).format(sql.Identifier(name)) for name in relations]
    return sql.SQL(" AND ").join(conditions) if conditions else sql.SQL("true")


#: Seconds after which shares are read again together with the states; after twice as many they are read on their own.
SHARES_SECONDS = 600.0
#: The parts of the Shares of all catalogs.
FREQUENCIES = Statement(load_statement("frequencies"))


class Selectivity:
    """The shares of rows by column and value in a database's catalogs, for all threads of a process.

    They are cached, because reading them takes nearly as long as a page of a small site.
    """

    def __init__(self) -> None:
        self._read = -math.inf
        self._shares: dict[str, Shares] = {}

    @property
    def is_old(self) -> bool:
        """True if the shares should be read together with the next statements."""
        return monotonic() > self._read + SHARES_SECONDS

    def store(self, rows: Iterable[Sequence[Any]]) -> None:
        """Store the *rows* of FREQUENCIES."""
        columns: dict[str, list[Sequence[Any]]] = {}
        for relation, *column in rows:
            columns.setdefault(relation, []).append(column)
        shares = {
            relation: Shares(
                filled={name: share for name, share, *_ in known},
                of_value={name: dict(zip(*pair, strict=False)) for name, _, *pair, _ in known if None not in pair},
                bounds={name: bounds for name, *_, bounds in known if bounds},
            )
            for relation, known in columns.items()
        }
        self._shares = shares  # assigned last: other threads read it meanwhile
        self._read = monotonic()

    def shares(self, run: Callable[[Statement], list[Any]], relation: str) -> Shares:
        """Return the shares of *relation*, as PostgreSQL's planner estimates them.

        If they are missing or old, they are read by the function of the first argument, which returns the rows of a
        statement.
        """
        if relation not in self._shares or monotonic() > self._read + 2 * SHARES_SECONDS:
            self.store(run(FREQUENCIES))
        return self._shares.setdefault(relation, UNKNOWN)
