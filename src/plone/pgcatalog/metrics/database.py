"""Figures of the database: the contents of its catalogs, and the activity in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field
from datetime import datetime
from plone.pgcatalog.meaning.embedder import check_embedders
from plone.pgcatalog.observe.health import collect
from plone.pgcatalog.observe.health import of_files
from psycopg import Connection
from typing import Any

import time


@dataclass(frozen=True)
class Metric:
    """A value with its Prometheus name, its kind (``gauge`` or ``counter``), one sentence of help, and its labels.

    *scope* is ``instance`` for a figure of one process, ``global`` for a figure shared by all processes.
    """

    name: str
    value: float
    kind: str
    help: str
    labels: dict[str, str] = field(default_factory=dict)
    scope: str = "instance"


CLOCK = "Seconds by which the clock of this machine is ahead of that of the database server; negative if it is behind"
CATALOG = {
    "rows": "Rows of a catalog, one for each catalogued path",
    "table_bytes": "Size of the relation of a catalog, without its SQL indexes",
    "index_bytes": "Size of the SQL indexes of a catalog",
    "dead_rows": "Rows that VACUUM has to remove",
    "generation": "Change counter of a catalog",
    "slow_queries": "Slow queries recorded in the last 24 hours, by all processes",
    "long_queries": "Slow queries in the last 24 hours that took 100 ms, or ten times the usual time of their shape",
    "searches": "Counted searches of visitors and members today, by all processes",
    "searches_without_results": "Counted searches of today that found nothing",
    "advice_waiting": "Shapes of slow queries that read far more rows than they return, and have no index of their own",
}
#: Jobs that can be started in the ZMI.
JOBS = ("rebuild", "vacuum", "verify")
REPLICA = {
    "lag_bytes": "Bytes of the write-ahead log that a replica has not replayed",
    "lag_seconds": "Seconds by which a replica is behind",
}
ATTENTION = "Problems that pgcatalog status lists; should be 0"
BLOCKERS = "Sessions that have blocked others for more than 5 seconds"
EMBEDDER = "1 if the embedder of a site returns vectors"
CONNECTIONS = {
    "connections": "Connections to the database",
    "active": "Connections that run a statement",
    "in_transaction": "Connections that are idle in a transaction",
    "waiting": "Connections that wait for a lock",
    "oldest_transaction_seconds": "Age of the oldest transaction",
}


def database_metrics(connection: Connection[Any], check: bool = False) -> Iterator[Metric]:
    """Yield the figures of the database of *connection*, whose rows are dicts.

    *check* adds numbers of faults, which should be 0; this reads all rows.
    """
    overview = collect(connection, check, check_embedders)
    catalogs = overview["catalogs"]
    yield gauge("pgcatalog_attention", len(overview["attention"]), ATTENTION)
    if overview["connections"] is None:
        return
    for catalog in catalogs:
        labels = {"catalog": catalog["relation"].split("_")[1], "site": catalog["site"] or ""}
        for name, help in CATALOG.items():
            yield gauge(f"pgcatalog_{name}", catalog[name], help, labels)
        yield from rebuild(catalog["rebuild"], labels)
        yield from work(catalog, labels)
        yield from jobs("files", catalog, "text", labels)
        yield from vectors(catalog, labels)
        if "embedder_fault" in catalog:
            yield gauge("pgcatalog_embedder_up", int(not catalog["embedder_fault"]), EMBEDDER, labels)
        lost = len(catalog["missing"])
        yield gauge("pgcatalog_missing_parts", lost, "SQL indexes, columns and triggers that a table lacks", labels)
        if "rows_without_idx" in catalog:
            number = catalog["rows_without_idx"]
            yield gauge("pgcatalog_rows_without_metadata", number, "Rows without any metadata; must be 0", labels)
    if "stale_objects" in overview:
        number = overview["stale_objects"]
        yield gauge("pgcatalog_stale_objects", number, "Objects with an idx but without a row; should be 0")
    waiting = overview["retired"]
    yield gauge("pgcatalog_retired_relations", len(waiting), "Retired relations that are not dropped yet")
    yield gauge("pgcatalog_retired_bytes", sum(r["bytes"] for r in waiting), "Size of the retired relations")
    for name, help in CONNECTIONS.items():
        yield gauge(f"pgcatalog_database_{name}", overview["connections"][name], help)
    yield gauge("pgcatalog_database_blockers", len(overview["blockers"]), BLOCKERS)
    yield from replicas(overview["replicas"])
    yield from of_standby(overview["standby"])
    yield Metric("pgcatalog_clock_offset_seconds", clock_offset(connection), "gauge", CLOCK)


def of_standby(standby: dict[str, Any] | None) -> Iterator[Metric]:
    yield gauge("pgcatalog_standby", int(standby is not None), "1 if the database server is a standby")
    if standby is not None:
        yield gauge(
            "pgcatalog_standby_streaming", int(standby["streaming"]), "1 while the standby is connected to its primary"
        )
        lag = float("inf") if standby["lag_seconds"] is None else standby["lag_seconds"]
        yield gauge("pgcatalog_standby_lag_seconds", lag, "Maximum age of the data of the standby, in seconds")


def clock_offset(connection: Connection[Any]) -> float:
    """Return the seconds by which the clock of this machine is ahead of the server's, accurate to half a round trip."""
    sent = time.time()
    [row] = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8 AS seconds").fetchall()
    received = time.time()
    return (sent + received) / 2 - float(row["seconds"])


def rebuild(state: dict[str, Any] | None, labels: dict[str, str]) -> Iterator[Metric]:
    """Yield the progress of a rebuild; 0 of 0 if there is none."""
    state = state or {"done": 0, "total": 0, "changes": 0, "running": False}
    yield gauge("pgcatalog_rebuild_running", int(state["running"]), "1 while a rebuild runs", labels)
    yield gauge("pgcatalog_rebuild_done", state["done"], "Objects that a rebuild has catalogued", labels)
    yield gauge("pgcatalog_rebuild_expected", state["total"], "Objects that a rebuild expects", labels)
    yield gauge("pgcatalog_rebuild_changes", state["changes"], "Changes that a rebuild has to apply", labels)


def work(catalog: dict[str, Any], labels: dict[str, str]) -> Iterator[Metric]:
    """Yield for each kind of maintenance when it ran last, in seconds since 1970, and whether it failed."""
    for name, help in (("vacuum", "VACUUM"), ("analyze", "ANALYZE")):
        yield gauge(
            f"pgcatalog_last_{name}_seconds", seconds(catalog[f"last_{name}"]), f"Time of the last {help}", labels
        )
    for name in JOBS:
        job = catalog["jobs"].get(name) or {"finished": None, "failed": False}
        of_job = labels | {"work": name}
        yield gauge(
            "pgcatalog_job_finished_seconds", seconds(job["finished"]), "End of a job started in the ZMI", of_job
        )
        yield gauge("pgcatalog_job_failed", int(job["failed"]), "1 if the job failed", of_job)


#: Help for the figures of jobs: a kind of jobs -> figure -> help.  Objects that need a job and have none are processed by no
#: worker; there are some after tables were lost.
JOB_FIGURES = {
    "text": {
        "needed": "Files that have neither a text nor a job",
        "waiting": "Files that wait for text extraction",
        "failed": "Files whose text extraction failed",
        "empty": "Files in which no text was found",
        "scans": "Files that wait for the recognition of scanned pages",
        "oldest_seconds": "Seconds that the oldest job of a file has waited; above 600, no worker is running",
    },
    "embed": {
        "needed": "Pages that have neither vectors nor a job",
        "waiting": "Pages that wait for vectors",
        "failed": "Pages that an embedder has rejected",
        "oldest_seconds": "Seconds that the oldest job of a page has waited; above 600, the embedder is down or no worker is"
        " running",
    },
}


def jobs(name: str, catalog: dict[str, Any], kind: str, labels: dict[str, str]) -> Iterator[Metric]:
    """Yield the figures of the jobs of *kind* as metrics whose names contain *name*."""
    figures = {"waiting": 0, "failed": 0, "oldest_seconds": 0.0} | (catalog["queue"].get(kind) or {})
    if kind == "text":
        figures |= of_files(catalog) | {"waiting": figures["waiting"]}
    figures["needed"] = catalog["needed"][kind]
    for figure, help in JOB_FIGURES[kind].items():
        yield gauge(f"pgcatalog_{name}_{figure}", figures[figure], help, labels)


def vectors(catalog: dict[str, Any], labels: dict[str, str]) -> Iterator[Metric]:
    """Yield the figures of search by meaning; nothing for a catalog that never used it."""
    pages, tables, needed = catalog["queue"].get("embed"), catalog["vectors"], catalog["needed"]["embed"]
    if pages is None and not tables and not needed:
        return
    yield from jobs("vectors", catalog, "embed", labels)
    yield gauge("pgcatalog_vectors_chunks", sum(t["chunks"] for t in tables), "Chunks of texts with vectors", labels)
    yield gauge(
        "pgcatalog_vectors_bytes", sum(t["bytes"] for t in tables), "Bytes of the tables and indexes of vectors", labels
    )


def seconds(time: str | None) -> float:
    """Return a *time*, as ISO 8601, in seconds since 1970; 0.0 for None."""
    return datetime.fromisoformat(time).timestamp() if time else 0.0


def replicas(replicas_seen: list[dict[str, Any]]) -> Iterator[Metric]:
    """Yield the number of replicas, and the lag of those whose lag the user may see."""
    yield gauge("pgcatalog_replicas", len(replicas_seen), "Connected replicas of the database server")
    for number, replica in enumerate(replicas_seen):
        # Several replicas may have the same name, and labels must be unique.
        labels = {"replica": replica["name"] or str(number), "number": str(number)}
        for name, help in REPLICA.items():
            if replica[name] is not None:
                yield gauge(f"pgcatalog_replica_{name}", float(replica[name]), help, labels)


def gauge(name: str, value: float, help: str, labels: dict[str, str] | None = None) -> Metric:
    return Metric(name, value, "gauge", help, labels or {}, "global")
