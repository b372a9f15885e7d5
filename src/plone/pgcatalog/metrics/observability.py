"""Figures of the process, and plone.observability's endpoint and probes, if that is installed."""

from collections.abc import Iterator
from itertools import accumulate
from plone.observability.interfaces import IMetricProvider
from plone.observability.interfaces import IReadinessCheck
from plone.observability.metric import Metric as ObservabilityMetric
from plone.pgcatalog.database import pool
from plone.pgcatalog.database.pool import pool_for
from plone.pgcatalog.database.statistics import executing
from plone.pgcatalog.database.statistics import standby
from plone.pgcatalog.i18n import english
from plone.pgcatalog.meaning import question
from plone.pgcatalog.metrics.database import database_metrics
from plone.pgcatalog.metrics.database import Metric
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe import trace
from plone.pgcatalog.observe.health import MAX_REPLAY_LAG
from plone.pgcatalog.observe.health import standby_attention
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.storage import database_dsn
from plone.pgcatalog.storage import max_replay_lag
from typing import Any
from zope.component import adapter
from zope.interface import implementer
from zope.interface import Interface
from zope.processlifetime import IDatabaseOpenedWithRoot

import psycopg
import psycopg_pool


HISTOGRAM = "pgcatalog_query_seconds"
#: Searches by meaning; ``failed`` are those answered by words alone.
QUESTIONS = "pgcatalog_questions_total"
HELP = "Time of the statements of searches, by kind of search and by operation"
#: Fields of psycopg_pool's statistics -> help.
POOL = {
    "pool_size": "Connections in a pool",
    "pool_available": "Idle connections in a pool",
    "requests_waiting": "Threads that wait for a connection of a pool",
}


def process_metrics(database: Any = None) -> Iterator[Metric]:
    """Yield the figures of this process; *database*, a ZODB.DB, adds the pool of its storage."""
    yield from searches()
    yield from cache()
    for name, number in recorder.totals().items():
        yield Metric(f"pgcatalog_slow_queries_{name}_total", number, "counter", f"Slow queries that were {name}")
    for outcome in ("answered", "failed"):
        yield Metric(QUESTIONS, question.counts[outcome], "counter", "Searches by meaning", {"outcome": outcome})
    yield from pools(database)


def searches() -> Iterator[Metric]:
    """Yield the latency histograms; their counts are the numbers of round trips."""
    for kind, operation, seconds, counts in trace.totals():
        labels = {"kind": kind, "operation": operation}
        for end, number in zip((*trace.BUCKETS, float("inf")), accumulate(counts), strict=True):
            le = "+Inf" if end == float("inf") else str(end)
            yield Metric(f"{HISTOGRAM}_bucket", number, "counter", HELP, labels | {"le": le})
        yield Metric(f"{HISTOGRAM}_sum", seconds, "counter", HELP, labels)
        yield Metric(f"{HISTOGRAM}_count", sum(counts), "counter", HELP, labels)


def cache() -> Iterator[Metric]:
    cached = result_cache()
    for kind, count in cached.counts.items():
        labels = {"kind": kind}
        yield Metric(
            "pgcatalog_cache_hits_total", count.hits, "counter", "Lookups that found an entry in the cache", labels
        )
        yield Metric(
            "pgcatalog_cache_misses_total", count.misses, "counter", "Lookups that found no entry in the cache", labels
        )
        yield Metric("pgcatalog_cache_bytes", count.bytes, "gauge", "Bytes of the entries in the cache", labels)
    yield Metric("pgcatalog_cache_limit_bytes", cached.limit, "gauge", "Bytes that the cache may hold")


def pools(database: Any) -> Iterator[Metric]:
    """Yield the state of the pools: the pool of the storage, and those of code without a ZODB connection."""
    pools = {"catalog": list(pool.open_pools())}
    storage_pool = getattr(getattr(database, "storage", None), "_instance_pool", None)
    if storage_pool is not None:
        pools["storage"] = [storage_pool]
    for name, members in pools.items():
        stats = [member.get_stats() for member in members]
        for field, help in POOL.items():
            total = sum(s.get(field, 0) for s in stats)
            yield Metric(f"pgcatalog_{field}", total, "gauge", help, {"pool": name})


#: Time limit for a connection to the database, in seconds.
TIMEOUT = 5.0


@implementer(IMetricProvider)
@adapter(Interface)
class ProcessMetrics:
    """The figures of this process; *context* is the application root."""

    name = "pgcatalog"
    scope = "instance"

    def __init__(self, context: Any) -> None:
        self.context = context

    def collect(self) -> Iterator[ObservabilityMetric]:
        for metric in process_metrics(self.context._p_jar.db()):
            yield translated(metric)


@implementer(IMetricProvider)
@adapter(Interface)
class DatabaseMetrics:
    """The figures of the database of the application root *context*; empty unless its storage is zodb-pgjsonb."""

    name = "pgcatalog-database"
    scope = "global"

    def __init__(self, context: Any) -> None:
        self.context = context

    def collect(self) -> Iterator[ObservabilityMetric]:
        dsn = database_dsn(self.context._p_jar.db())
        if dsn is not None:
            with pool_for(dsn).connection(TIMEOUT) as connection:
                for metric in list(database_metrics(connection)):
                    yield translated(metric)


def translated(metric: Metric) -> ObservabilityMetric:
    return ObservabilityMetric(metric.name, metric.value, metric.kind, metric.scope, metric.help, metric.labels)


@implementer(IReadinessCheck)
class CatalogReadiness:
    """Ready if the database answers and has the table of catalogs, and is not a standby that is too far behind."""

    name = "pgcatalog"

    def __init__(self) -> None:
        self.dsn: str | None = None
        self.max_replay_lag = MAX_REPLAY_LAG

    def __call__(self) -> tuple[bool, str]:
        """Return whether the process is ready, and a sentence."""
        if self.dsn is None:
            return True, "no zodb-pgjsonb storage"
        try:
            with pool_for(self.dsn).connection(TIMEOUT) as connection:
                row = connection.execute("SELECT count(*) AS n FROM pgcatalog_state").fetchone()
                behind = standby_attention(standby(executing(connection)), self.max_replay_lag)
        except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
            return False, f"the catalog's database does not answer: {type(error).__name__}"
        return (False, english(behind[0])) if behind else (True, f"{row['n']} catalogs")


readiness = CatalogReadiness()


@adapter(IDatabaseOpenedWithRoot)
def remember_database(event: Any) -> None:
    """Have the readiness check query the opened database."""
    readiness.dsn = database_dsn(event.database)
    readiness.max_replay_lag = max_replay_lag(event.database) or MAX_REPLAY_LAG
