"""Multiplies a filled catalog in SQL: each row again at new paths, with the same texts and values.

A row made by Python takes a processor half a millisecond, a copied one a tenth of that.  Objects are copied with
their metadata, so that a page reads as much as ever.
"""

from benchmarks.scale_costs import connected
from benchmarks.scale_costs import RELATION
from benchmarks.timing import value
from benchmarks.worker import Progress
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any

import psycopg


Measures = dict[str, Any]
#: Connections that copy rows, and that make SQL indexes: each has a process of the server.
CONNECTIONS = 4
#: The rows of the site's objects are not copied: those are changed one by one.
MADE = "path LIKE '/Plone/folder%'"
#: A copy is within its section, one level deeper.
NEW_PATH = "regexp_replace({}, '^(/Plone/[^/]+)', '\\1/copy{}')"
#: The rows of the objects in the folders that are copied.
RANGE = f"SELECT min(rid), max(rid), count(*) FROM {{}} WHERE {MADE}"
DEFINITIONS = """
SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid), c.conname
FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype = 'u'
WHERE i.indrelid = %s::regclass AND NOT i.indisprimary ORDER BY pg_relation_size(i.indexrelid) DESC
"""
COLUMNS = """
SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
OBJECTS = """
INSERT INTO object_state (zoid, tid, class_mod, class_name, state, state_size, refs, idx)
SELECT zoid + {shift}, tid, class_mod, class_name, state, state_size, refs, idx
FROM object_state WHERE zoid BETWEEN {first} AND {last}
"""
#: What a commit leaves: a generation of its own, at which the same columns are complete.
STATE = (
    "UPDATE pgcatalog_state SET generation = generation + 1, complete_at = generation + 1 WHERE relation = %s"
    " RETURNING catalog"
)
WORDS = (
    "UPDATE pgcatalog_words SET documents = documents * %(copies)s WHERE catalog = %(catalog)s",
    "UPDATE pgcatalog_texts t SET documents = documents * %(copies)s, generation = s.generation"
    " FROM pgcatalog_state s WHERE s.catalog = t.catalog AND t.catalog = %(catalog)s",
)


def multiply(dsn: str, copies: int, progress: Progress) -> Measures:
    """Make *copies* rows of each made row of the catalog of the database *dsn*, itself included; return what that took."""
    with connected(dsn) as connection:
        [(relation,)] = connection.execute(RELATION).fetchall()
        first, last, _ = connection.execute(RANGE.format(relation)).fetchone() or (0, 0, 0)
        size = last - first + 1
        [(start,)] = connection.execute("SELECT last_value + 1 FROM zoid_seq").fetchall()
        connection.execute("SELECT setval('zoid_seq', %s)", [start + size * copies])
        definitions = connection.execute(DEFINITIONS, [relation]).fetchall()
        columns = [name for (name,) in connection.execute(COLUMNS, [relation])]
        for name, _, constraint in definitions:
            if constraint:
                connection.execute(f'ALTER TABLE {relation} DROP CONSTRAINT "{constraint}"')
            else:
                connection.execute(f"DROP INDEX {name}")
        connection.execute(f"ALTER TABLE {relation} SET (autovacuum_enabled = off, toast.autovacuum_enabled = off)")
        # What copying writes into the write-ahead log says nothing of a site.
        for table in (relation, "object_state"):
            connection.execute(f"ALTER TABLE {table} SET UNLOGGED")
        measures = {}
        inserts = [
            statements(relation, columns, (first, last), start - first + size * (copy - 1), copy)
            for copy in range(1, copies)
        ]
        measures["copies: rows written"] = value(side_by_side(dsn, inserts, progress, "copying"), "s")
        return measures | completed(dsn, relation, copies, definitions, progress)


def completed(dsn: str, relation: str, copies: int, definitions: list[tuple[str, ...]], progress: Progress) -> Measures:
    """Make the SQL indexes with these *definitions*, VACUUM, and leave state and words as a commit and a count would."""
    with connected(dsn) as connection:
        indexes = [[definition] for _, definition, _ in definitions]
        measures = {"copies: SQL indexes made": value(side_by_side(dsn, indexes, progress, "SQL indexes"), "s")}
        for name, _, constraint in definitions:
            if constraint:
                connection.execute(f'ALTER TABLE {relation} ADD CONSTRAINT "{constraint}" UNIQUE USING INDEX {name}')
        progress("VACUUM")
        started = perf_counter()
        connection.execute(f"VACUUM (ANALYZE) {relation}")
        measures["VACUUM ANALYZE of the filled table"] = value(perf_counter() - started, "s")
        connection.execute("VACUUM (ANALYZE) object_state")
        connection.execute(f"ALTER TABLE {relation} RESET (autovacuum_enabled, toast.autovacuum_enabled)")
        with connection.transaction():
            [(catalog,)] = connection.execute(STATE, [relation]).fetchall()
            for statement in WORDS:
                connection.execute(statement, {"copies": copies, "catalog": catalog})
        connection.execute("VACUUM (ANALYZE) pgcatalog_words")
    return measures


def statements(relation: str, columns: list[str], rids: tuple[int, int], shift: int, copy: int) -> list[str]:
    """Return what makes the *copy*-th copy of the rows with *rids*, whose own are higher by *shift*."""
    first, last = rids
    prefix = f"{copy:04x}"
    changed = {
        "rid": f"rid + {shift}",
        "zoid": f"zoid + {shift}",
        "path": NEW_PATH.format("path", copy),
        "path_value": NEW_PATH.format("path_value", copy),
        # That of a section is the site.
        "parent_path": f"regexp_replace({NEW_PATH.format('path', copy)}, '/[^/]+$', '')",
        "depth": "depth + 1",
        "uid": f"'{prefix}' || substr(uid, 5)",
    }
    names = ", ".join(f'"{name}"' for name in columns)
    values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
    return [
        OBJECTS.format(shift=shift, first=first, last=last),
        f"INSERT INTO {relation} ({names}) SELECT {values} FROM {relation} WHERE rid BETWEEN {first} AND {last} ORDER BY rid",
    ]


def side_by_side(dsn: str, jobs: list[list[str]], progress: Progress, what: str) -> float:
    """Run *jobs*, lists of statements, on a few connections; return the seconds."""

    def run(job: list[str]) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            # The copies have the objects that their rows refer to: no need to look for each.
            connection.execute("SET session_replication_role = replica")
            connection.execute("SET maintenance_work_mem = '256MB'")
            for statement in job:
                connection.execute(statement.encode())

    started = perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for number, _ in enumerate(pool.map(run, jobs), 1):
            progress(f"{what}, {number} of {len(jobs)}")
    return perf_counter() - started


def vacuumed_after_few(connection: Any, count: Callable[[], float]) -> Measures:
    """Change a fiftieth of the rows, as many as autovacuum waits for; return what VACUUM takes, and *count* before and after."""
    [(relation,)] = connection.execute(RELATION).fetchall()
    connection.execute(f"ALTER TABLE {relation} SET (autovacuum_enabled = off)")
    figures: dict[str, tuple[Callable[[], float], str]] = {
        "pages read by a count, all visible": (count, "pages"),
        "a fiftieth of the rows changed by one statement": (
            partial(
                seconds,
                connection,
                f"UPDATE {relation} SET modified = modified + interval '1 minute' WHERE rid % 50 = 0",
            ),
            "s",
        ),
        "pages read by a count, a fiftieth changed": (count, "pages"),
        "VACUUM ANALYZE after a fiftieth has changed": (
            partial(seconds, connection, f"VACUUM (ANALYZE) {relation}"),
            "s",
        ),
        "pages read by a count, a fiftieth changed, vacuumed": (count, "pages"),
    }
    measures = {name: value(measure(), unit) for name, (measure, unit) in figures.items()}
    connection.execute(f"ALTER TABLE {relation} RESET (autovacuum_enabled)")
    return measures


def seconds(connection: Any, statement: str) -> float:
    started = perf_counter()
    connection.execute(statement)
    return perf_counter() - started
