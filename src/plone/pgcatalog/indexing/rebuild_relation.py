"""The relation that a rebuild fills, its tasks and its log: everything a rebuild writes before it takes over.

All functions run on a cursor (rows as tuples) of a connection of the rebuild's own; nobody else reads what they write.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from plone.pgcatalog.database import schema
from plone.pgcatalog.database.schema import Layout
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.protocols import Cursor
from plone.pgcatalog.sql import locks
from psycopg.errors import LockNotAvailable

import dataclasses
import json


#: Container ids, or paths, in one task.
SLICE = 100
#: Longest wait for running commits, and for what else holds object_state, when a rebuild begins.
LOCK_TIMEOUT = "30s"

READ = "SELECT catalog, relation, version, columns, interned, signature, phase, total, done, started FROM pgcatalog_rebuild"
BEGIN = (
    "INSERT INTO pgcatalog_rebuild (catalog, relation, version, columns, interned, signature, phase, total)"
    " VALUES (%s, %s, %s, %s, %s, %s, 'walk', %s)"
)
NEXT_VERSION = "UPDATE pgcatalog_state SET version = version + 1 WHERE catalog = %s RETURNING version, relation"
FIRST_STATE = "INSERT INTO pgcatalog_state (catalog, version, relation, columns, interned, generation) VALUES (%s, 0, %s, %s, %s, 0)"
#: Columns of a relation with few different values, as ANALYZE has found; a negative number is a share of the rows.
FEW_VALUES = """
SELECT attname::text FROM pg_stats, pg_class c
WHERE c.oid = to_regclass(%s) AND schemaname = current_schema() AND tablename = relname AND attname = ANY(%s::text[])
    AND CASE WHEN n_distinct < 0 THEN -n_distinct * reltuples ELSE n_distinct END BETWEEN 1 AND least(%s, %s * reltuples)
"""
#: A column is kept by number with no more lists than these, and no more than this share of the rows.
MOST_LISTS, MOST_LISTS_PER_ROW = 500, 0.02
TAKE = (
    "DELETE FROM pgcatalog_rebuild_task WHERE id = (SELECT id FROM pgcatalog_rebuild_task"
    " WHERE catalog = %s ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING task"
)
#: What the live relation has and the walk has not met: it may have been catalogued by hand.
UNVISITED = (
    "INSERT INTO pgcatalog_rebuild_task (catalog, task)"
    " SELECT %(catalog)s, json_build_array(NULL, json_agg(path))::text FROM ("
    " SELECT path, row_number() OVER (ORDER BY path) / {slice} AS part FROM {live} l"
    " WHERE NOT EXISTS (SELECT FROM {relation} n WHERE n.path = l.path)) AS unmet GROUP BY part"
)


class RebuildBusy(RuntimeError):
    """Something holds the storage's tables for too long; the rebuild can be tried again."""


@dataclass(frozen=True)
class RebuildTarget:
    """A row of pgcatalog_rebuild."""

    catalog: int
    relation: str
    version: int
    columns: tuple[str, ...]
    interned: frozenset[str]
    signature: str
    phase: str
    total: int
    done: int
    started: datetime


def read(cursor: Cursor, catalog: int, lock: str = "") -> RebuildTarget | None:
    """Return the rebuild of *catalog* that is under way; *lock*, such as ``FOR KEY SHARE``, keeps it there."""
    cursor.execute(f"{READ} WHERE catalog = %s {lock}", [catalog])
    row = cursor.fetchone()
    if row is None:
        return None
    target = RebuildTarget(*row)
    return dataclasses.replace(target, columns=tuple(target.columns), interned=frozenset(target.interned))


def begin(
    cursor: Cursor, catalog: int, layout: Layout, root: tuple[str, str], paths: Sequence[str] | None = None
) -> RebuildTarget:
    """Begin a rebuild, or return the one that was begun with the same columns.

    *root* are the path of the site's container and the site's id; with *paths* only the objects there are visited.  No
    commit runs meanwhile: later ones log what they change.  Raises RebuildBusy.
    """
    cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    try:
        cursor.execute(locks.HOLD_COMMITS)
        target = read(cursor, catalog)
        if target is not None and target.signature == layout.signature:
            return target
        schema.forget_rebuild(cursor, catalog)
        return _begin(cursor, catalog, layout, root, paths)
    except LockNotAvailable as error:
        raise RebuildBusy(f"{RebuildBusy.__doc__} ({error})") from error


def _begin(
    cursor: Cursor, catalog: int, layout: Layout, root: tuple[str, str], paths: Sequence[str] | None
) -> RebuildTarget:
    version, live = _next_version(cursor, catalog, layout)
    version, relation = schema.free_relation(cursor, catalog, version)
    schema.retire_left_over(cursor, catalog)
    interned = layout.few_lists | _few_lists(cursor, live, layout)
    schema.create_relation(cursor, relation, Layout(layout.stored(interned).columns, ()))
    cursor.execute(
        f"CREATE TABLE {quote(schema.idx_table(relation))} (rid BIGINT PRIMARY KEY REFERENCES {quote(relation)}"
        " ON DELETE CASCADE, idx JSONB NOT NULL)"
    )
    cursor.execute(f"SELECT count(*) FROM {quote(live)}")
    (total,) = cursor.fetchone() if paths is None else (len(paths),)
    names, lists = list(layout.names), sorted(interned)
    cursor.execute(BEGIN, [catalog, relation, version, names, lists, layout.signature, total])
    if paths is None:
        add_tasks(cursor, catalog, root[0], [root[1]])
    else:
        add_tasks(cursor, catalog, None, sorted(paths))
    target = read(cursor, catalog)
    assert target is not None
    return target


def _few_lists(cursor: Cursor, live: str, layout: Layout) -> frozenset[str]:
    """Return the columns of which the relation *live* has few different lists, far fewer than rows."""
    names = [c.name for c in layout.columns if c.can_be_interned]
    cursor.execute(FEW_VALUES, [quote(live), names, MOST_LISTS, MOST_LISTS_PER_ROW])
    return frozenset(name for (name,) in cursor.fetchall())


def _next_version(cursor: Cursor, catalog: int, layout: Layout) -> tuple[int, str]:
    """Reserve a number for the new relation; return it and the name of the live one."""
    cursor.execute(NEXT_VERSION, [catalog])
    row: tuple[int, str] | None = cursor.fetchone()
    if row is None:
        # A copied database: there are objects, and no catalog.
        _, live = schema.free_relation(cursor, catalog, 0)
        schema.create_relation(cursor, live, layout.stored(layout.few_lists))
        cursor.execute(FIRST_STATE, [catalog, live, list(layout.names), sorted(layout.few_lists)])
        return _next_version(cursor, catalog, layout)
    return row


# -- tasks


def add_tasks(cursor: Cursor, catalog: int, container: str | None, ids: Sequence[str]) -> None:
    """Have the objects *ids* in *container*, a path, visited; or for None the objects whose paths are *ids*."""
    tasks = [json.dumps([container, ids[i : i + SLICE]]) for i in range(0, len(ids), SLICE)]
    if tasks:
        cursor.execute(
            "INSERT INTO pgcatalog_rebuild_task (catalog, task) SELECT %s, unnest(%s::text[])", [catalog, tasks]
        )


def take_task(cursor: Cursor, catalog: int) -> tuple[str | None, list[str]] | None:
    """Take a task that no other worker holds: (container, ids), or (None, paths); None when there is none.

    It comes back if the transaction is rolled back.
    """
    cursor.execute(TAKE, [catalog])
    row = cursor.fetchone()
    if row is None:
        return None
    container, names = json.loads(row[0])
    return container, names


def has_tasks(cursor: Cursor, catalog: int) -> bool:
    """True as long as a task waits or is being worked on."""
    cursor.execute("SELECT EXISTS (SELECT FROM pgcatalog_rebuild_task WHERE catalog = %s)", [catalog])
    (found,) = cursor.fetchone()
    return bool(found)


def live_relation(cursor: Cursor, catalog: int) -> str:
    """Return the name of the relation that searches read."""
    cursor.execute("SELECT relation FROM pgcatalog_state WHERE catalog = %s", [catalog])
    (relation,) = cursor.fetchone()
    return str(relation)


def add_rest(cursor: Cursor, target: RebuildTarget) -> None:
    """Have the paths visited that are in the live relation only."""
    live = live_relation(cursor, target.catalog)
    query = UNVISITED.format(slice=SLICE, live=quote(live), relation=quote(target.relation))
    cursor.execute(query, {"catalog": target.catalog})


def set_phase(cursor: Cursor, target: RebuildTarget, phase: str) -> None:
    """Note that *target* is in *phase* now."""
    cursor.execute("UPDATE pgcatalog_rebuild SET phase = %s WHERE catalog = %s", [phase, target.catalog])


def advance(cursor: Cursor, target: RebuildTarget, count: int) -> None:
    """Note that *count* more objects are done."""
    cursor.execute("UPDATE pgcatalog_rebuild SET done = done + %s WHERE catalog = %s", [count, target.catalog])


# -- log


def read_log(cursor: Cursor, target: RebuildTarget, limit: int) -> tuple[list[int], set[str]]:
    """Return the oldest *limit* entries of the log: their ids, and their paths."""
    cursor.execute(
        "SELECT id, path FROM pgcatalog_rebuild_change WHERE catalog = %s ORDER BY id LIMIT %s", [target.catalog, limit]
    )
    rows = cursor.fetchall()
    return [id for id, _ in rows], {path for _, path in rows}


def live_paths(cursor: Cursor, target: RebuildTarget, paths: Iterable[str]) -> set[str]:
    """Return those of *paths* that the live relation has."""
    live = live_relation(cursor, target.catalog)
    cursor.execute(f"SELECT path FROM {quote(live)} WHERE path = ANY(%s::text[])", [list(paths)])
    return {path for (path,) in cursor.fetchall()}


def sibling_paths(cursor: Cursor, target: RebuildTarget, paths: Iterable[str]) -> set[str]:
    """Return the paths that *target* has of the live relation's objects at *paths*: they may share an idx."""
    live = live_relation(cursor, target.catalog)
    cursor.execute(
        f"SELECT n.path FROM {quote(live)} l JOIN {quote(target.relation)} n USING (zoid)"
        " WHERE l.path = ANY(%s::text[])",
        [list(paths)],
    )
    return {path for (path,) in cursor.fetchall()}


def forget_log(cursor: Cursor, ids: list[int]) -> None:
    """Remove log entries that have been followed."""
    cursor.execute("DELETE FROM pgcatalog_rebuild_change WHERE id = ANY(%s)", [ids])
