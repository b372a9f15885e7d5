"""What a large catalog costs: its sizes, the write-ahead log of a change, and VACUUM after many changes."""

from benchmarks.scale_fill import REAL
from benchmarks.timing import value
from benchmarks.zope_site import PloneSite
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import psycopg
import transaction


Measures = dict[str, Any]
MEGABYTE = 2**20
SIZES = """
SELECT c.relname, pg_relation_size(c.oid) + coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0)
FROM pg_class c WHERE c.relkind IN ('r', 'i') AND c.relnamespace = 'public'::regnamespace
"""
RELATION = "SELECT relation FROM pgcatalog_state"
CHANGE = "UPDATE {} SET modified = modified + interval '1 minute' WHERE rid %% 3 = %s"


def sizes(connection: Any, rows: int) -> Measures:
    """Return the sizes of the catalog's table, of each of its indexes, and of what else grows with the site."""
    [(relation,)] = connection.execute(RELATION).fetchall()
    found = dict(connection.execute(SIZES).fetchall())
    indexes = {name: size for name, size in found.items() if name.startswith(f"{relation}_")}
    words = sum(size for name, size in found.items() if name.startswith("pgcatalog_words"))
    sets = sum(size for name, size in found.items() if name.startswith("pgcatalog_sets"))
    total = found[relation] + sum(indexes.values()) + words + sets
    [(of_objects, lists)] = connection.execute(
        "SELECT pg_total_relation_size('object_state'), (SELECT count(*) FROM pgcatalog_sets)"
    ).fetchall()
    measures = {
        "size: the catalog, a row": value(total / rows, "bytes"),
        "size: its table, texts included": value(found[relation] / MEGABYTE, "MB"),
        "size: its SQL indexes": value(sum(indexes.values()) / MEGABYTE, "MB"),
        "size: its words": value(words / MEGABYTE, "MB"),
        "size: its lists by number": value(sets / MEGABYTE, "MB"),
        "lists by number": value(lists, ""),
        "size: the objects (a title and a description each) with their metadata": value(of_objects / MEGABYTE, "MB"),
    }
    for name, size in sorted(indexes.items(), key=lambda item: -item[1]):
        measures[f"size: index {name.removeprefix(relation + '_')}"] = value(size / MEGABYTE, "MB")
    return measures


def log_position(connection: Any) -> int:
    [(position,)] = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").fetchall()
    return int(position)


def changes(place: PloneSite, connection: Any, iterations: int) -> Measures:
    """Return what changing a document costs: with everything a commit writes, the storage's part included."""

    def save(number: int) -> None:
        site = place.enter()
        document = site[REAL][f"document{number}"]
        document.title = f"Changed {number}"
        document.reindexObject()
        transaction.commit()
        place.leave()

    def costs(first: int, before_each: Callable[[], object]) -> tuple[list[float], list[float]]:
        seconds, sizes = [], []
        for number in range(first, first + iterations):
            before_each()
            position, started = log_position(connection), perf_counter()
            save(number)
            seconds.append(perf_counter() - started)
            sizes.append(log_position(connection) - position)
        return seconds, sizes

    save(0)
    connection.execute("CHECKPOINT")
    save(1)
    seconds, sizes = costs(2, lambda: None)
    _, first_sizes = costs(2 + iterations, lambda: connection.execute("CHECKPOINT"))
    return {
        "a document changed and committed": value(median(seconds) * 1000, "ms"),
        "write-ahead log of that": value(median(sizes), "bytes"),
        "write-ahead log of that, the first one after a checkpoint": value(median(first_sizes), "bytes"),
    }


def vacuumed(connection: Any, count: Callable[[], float]) -> Measures:
    """Change a third of the rows; return what VACUUM takes, and *count*, the milliseconds of a count, before and after."""
    [(relation,)] = connection.execute(RELATION).fetchall()
    connection.execute(f"ALTER TABLE {relation} SET (autovacuum_enabled = off)")
    before = count()
    position, started = log_position(connection), perf_counter()
    connection.execute(CHANGE.format(relation), [0])
    changing, logged = perf_counter() - started, log_position(connection) - position
    changed = count()
    started = perf_counter()
    connection.execute(f"VACUUM (ANALYZE) {relation}")
    seconds = perf_counter() - started
    after = count()
    connection.execute(f"ALTER TABLE {relation} RESET (autovacuum_enabled)")
    return {
        "a third of the rows changed by one statement": value(changing, "s"),
        "write-ahead log of that, in all": value(logged / MEGABYTE, "MB"),
        "VACUUM ANALYZE after it": value(seconds, "s"),
        "pages read by a count, all visible": value(before, "pages"),
        "pages read by a count, a third changed": value(changed, "pages"),
        "pages read by a count, vacuumed": value(after, "pages"),
    }


def connected(dsn: str) -> psycopg.Connection[Any]:
    """Return a connection on which statements are planned as those of a search in a large catalog."""
    connection = psycopg.connect(dsn, autocommit=True)
    connection.execute("SET work_mem = '64MB'")
    return connection
