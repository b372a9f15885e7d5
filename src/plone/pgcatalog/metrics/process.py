"""Figures of this process: searches, cache, slow queries, pools."""

from collections.abc import Iterator
from itertools import accumulate
from plone.pgcatalog.database import pool
from plone.pgcatalog.metrics.metric import Metric
from plone.pgcatalog.observe import counters
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.results.cache import result_cache
from typing import Any


SECONDS = "pgcatalog_query_seconds"
HELP = "Time of the statements of searches, by kind of search and by what they fetch"
#: Fields of psycopg_pool's statistics.
POOL = {
    "pool_size": "Connections in a pool",
    "pool_available": "Connections in a pool that nobody uses",
    "requests_waiting": "Threads that wait for a connection of a pool",
}


def process_metrics(database: Any = None) -> Iterator[Metric]:
    """Yield the figures of this process; *database*, a ZODB.DB, adds the pool of its storage."""
    yield from searches()
    yield from cache()
    for name, number in recorder.totals().items():
        yield Metric(f"pgcatalog_slow_queries_{name}_total", number, "counter", f"Slow queries that were {name}")
    yield from pools(database)


def searches() -> Iterator[Metric]:
    """Yield the latency histograms; their counts are the round trips."""
    for kind, operation, seconds, counts in counters.totals():
        labels = {"kind": kind, "operation": operation}
        for end, number in zip((*counters.BUCKETS, float("inf")), accumulate(counts), strict=True):
            le = "+Inf" if end == float("inf") else str(end)
            yield Metric(f"{SECONDS}_bucket", number, "counter", HELP, labels | {"le": le})
        yield Metric(f"{SECONDS}_sum", seconds, "counter", HELP, labels)
        yield Metric(f"{SECONDS}_count", sum(counts), "counter", HELP, labels)


def cache() -> Iterator[Metric]:
    """Yield the figures of the process's cache, by kind of entry."""
    kept = result_cache()
    for kind, count in kept.counts.items():
        labels = {"kind": kind}
        yield Metric("pgcatalog_cache_hits_total", count.hits, "counter", "Entries that the cache had", labels)
        yield Metric("pgcatalog_cache_misses_total", count.misses, "counter", "Entries that the cache had not", labels)
        yield Metric("pgcatalog_cache_bytes", count.bytes, "gauge", "Bytes of the entries in the cache", labels)
    yield Metric("pgcatalog_cache_limit_bytes", kept.limit, "gauge", "Bytes that the cache may hold")


def pools(database: Any) -> Iterator[Metric]:
    """Yield the state of the pools: the storage's, and those of code without a ZODB connection."""
    found = {"catalog": list(pool.open_pools())}
    storage_pool = getattr(getattr(database, "storage", None), "_instance_pool", None)
    if storage_pool is not None:
        found["storage"] = [storage_pool]
    for name, members in found.items():
        stats = [member.get_stats() for member in members]
        for field, help in POOL.items():
            total = sum(s.get(field, 0) for s in stats)
            yield Metric(f"pgcatalog_{field}", total, "gauge", help, {"pool": name})
