"""Figures of the database: what its catalogs hold, and what goes on in it."""

from collections.abc import Iterator
from plone.pgcatalog.database import statistics
from plone.pgcatalog.metrics.metric import Metric
from plone.pgcatalog.protocols import Connection
from typing import Any

import time


CLOCK = "Seconds by which this machine's clock is ahead of the database server's; negative when it is behind"
CATALOG = {
    "rows": "Rows of a catalog: catalogued paths",
    "table_bytes": "Size of the relation of a catalog, without its SQL indexes",
    "index_bytes": "Size of the SQL indexes of a catalog",
    "dead_rows": "Rows that VACUUM has to remove",
    "generation": "Change counter of a catalog",
}
CONNECTIONS = {
    "connections": "Connections to the database",
    "active": "Connections that run a statement",
    "in_transaction": "Connections that idle in a transaction",
    "waiting": "Connections that wait for a lock",
    "oldest_transaction_seconds": "Age of the oldest transaction",
}


def database_metrics(connection: Connection, check: bool = False) -> Iterator[Metric]:
    """Yield the figures of the database of *connection*, whose rows are dicts.

    *check* adds what must be 0, for which all rows are read.
    """
    catalogs = statistics.catalogs(connection)
    for catalog in catalogs:
        labels = {"catalog": catalog["relation"].split("_")[1], "site": catalog["site"] or ""}
        for name, help in CATALOG.items():
            yield gauge(f"pgcatalog_{name}", catalog[name], help, labels)
        yield from rebuild(catalog["rebuild"], labels)
        if check:
            number = statistics.rows_without_idx(connection, catalog["relation"])
            yield gauge("pgcatalog_rows_without_metadata", number, "Rows without any metadata; must be 0", labels)
    if check:
        number = statistics.stale_objects(connection, [catalog["relation"] for catalog in catalogs])
        yield gauge("pgcatalog_stale_objects", number, "Objects with an idx that no catalog has; should be 0")
    waiting = statistics.retired(connection)
    yield gauge("pgcatalog_retired_relations", len(waiting), "Relations that wait to be dropped")
    yield gauge("pgcatalog_retired_bytes", sum(r["bytes"] for r in waiting), "Size of the relations that wait")
    state = statistics.connections(connection)
    for name, help in CONNECTIONS.items():
        yield gauge(f"pgcatalog_database_{name}", state[name], help)
    yield Metric("pgcatalog_clock_offset_seconds", clock_offset(connection), "gauge", CLOCK)


def clock_offset(connection: Connection) -> float:
    """Return by how many seconds the clock of this machine is ahead of the server's; half a round trip is in doubt."""
    sent = time.time()
    row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8 AS seconds").fetchone()
    received = time.time()
    return (sent + received) / 2 - float(row["seconds"])


def rebuild(state: dict[str, Any] | None, labels: dict[str, str]) -> Iterator[Metric]:
    """Yield how far a rebuild is; 0 of 0 when there is none."""
    state = state or {"done": 0, "total": 0, "changes": 0, "running": False}
    yield gauge("pgcatalog_rebuild_running", int(state["running"]), "1 while a rebuild runs", labels)
    yield gauge("pgcatalog_rebuild_done", state["done"], "Objects that a rebuild has catalogued", labels)
    yield gauge("pgcatalog_rebuild_expected", state["total"], "Objects that a rebuild expects", labels)
    yield gauge("pgcatalog_rebuild_changes", state["changes"], "Changes that a rebuild has to follow", labels)


def gauge(name: str, value: float, help: str, labels: dict[str, str] | None = None) -> Metric:
    """Return a gauge that all processes share."""
    return Metric(name, value, "gauge", help, labels or {}, "global")
