"""The relation that a rebuild fills, its rows, visits and log: all that a rebuild writes before the swap.

All functions use a cursor (rows as tuples) of the rebuild's own connection, or of the final commit.  Searches read none
of these rows.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from plone.pgcatalog.database import retirement
from plone.pgcatalog.database import schema
from plone.pgcatalog.database.layout import idx_table
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.sets import Sets
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.indexing.overlay import sets_of
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.writer import dump
from plone.pgcatalog.sql import locks
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.sql.values import as_stored
from psycopg import Cursor
from psycopg.errors import LockNotAvailable
from typing import Any

import dataclasses
import json


#: Maximum number of ids or paths in one visit, a job of the processes of the rebuild.
SLICE = 100
#: Longest wait for running commits, and for other locks on object_state, when a rebuild begins.
LOCK_TIMEOUT = "30s"

READ = "SELECT catalog, relation, version, columns, interned, signature, phase, total, done, started FROM pgcatalog_rebuild"
BEGIN = (
    "INSERT INTO pgcatalog_rebuild (catalog, relation, version, columns, interned, signature, phase, total)"
    " VALUES (%s, %s, %s, %s, %s, %s, 'walk', %s)"
)
NEXT_VERSION = "UPDATE pgcatalog_state SET version = version + 1 WHERE catalog = %s RETURNING version, relation"
FIRST_STATE = "INSERT INTO pgcatalog_state (catalog, version, relation, columns, interned, generation) VALUES (%s, 0, %s, %s, %s, 0)"
#: Columns of a relation with few different values, according to the statistics of ANALYZE, where a negative number is a
#: share of the rows.
FEW_VALUES = read_statement("indexing", "rebuild_few_values")
#: A column is interned if it has at most so many different lists, and at most so many per row.
MOST_LISTS, MOST_LISTS_PER_ROW = 500, 0.02
PUT_VISITS = read_statement("indexing", "rebuild_visits")
TAKE_VISIT = read_statement("indexing", "rebuild_take")
HAS_VISITS = "SELECT EXISTS (SELECT FROM pgcatalog_queue WHERE kind = 'visit' AND catalog = %s)"
#: Puts visits for the live relation's paths that the walk has not reached: they may have been catalogued by hand.
UNVISITED = read_statement("indexing", "rebuild_unvisited")


class RebuildBusy(RuntimeError):
    """The storage's tables are locked for too long; try the rebuild again later."""


@dataclass(frozen=True)
class RebuildTarget:
    """A row of pgcatalog_rebuild, which describes a running or interrupted rebuild."""

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


def read(cursor: Cursor[Any], catalog: int, lock: str = "") -> RebuildTarget | None:
    """Return the rebuild of *catalog*, None if there is none; *lock*, such as ``FOR KEY SHARE``, protects its row."""
    cursor.execute(f"{READ} WHERE catalog = %s {lock}", [catalog])
    row = cursor.fetchone()
    if row is None:
        return None
    target = RebuildTarget(*row)
    return dataclasses.replace(target, columns=tuple(target.columns), interned=frozenset(target.interned))


def begin(
    cursor: Cursor[Any], catalog: int, layout: Layout, root: tuple[str, str], paths: Sequence[str] | None = None
) -> RebuildTarget:
    """Begin a rebuild, or return the rebuild that was begun with the same columns.

    - *root*: the path of the site's container, and the site's id
    - *paths*: visit only the objects at these paths

    Commits are blocked meanwhile, and later ones log their changes.  Raises RebuildBusy.
    """
    cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    try:
        cursor.execute(locks.HOLD_COMMITS)
        target = read(cursor, catalog)
        if target is not None and target.signature == layout.signature:
            return target
        retirement.forget_rebuild(cursor, catalog)
        return _begin(cursor, catalog, layout, root, paths)
    except LockNotAvailable as error:
        raise RebuildBusy(f"{RebuildBusy.__doc__} ({error})") from error


def _begin(
    cursor: Cursor[Any], catalog: int, layout: Layout, root: tuple[str, str], paths: Sequence[str] | None
) -> RebuildTarget:
    version, live = _next_version(cursor, catalog, layout)
    version, relation = schema.free_relation(cursor, catalog, version)
    retirement.retire_left_over(cursor, catalog)
    interned = layout.interned_at_first | _few_lists(cursor, live, layout)
    schema.create_relation(cursor, relation, Layout(layout.with_interned(interned).columns, ()))
    cursor.execute(
        f"CREATE TABLE {quote(idx_table(relation))} (rid BIGINT PRIMARY KEY REFERENCES {quote(relation)}"
        " ON DELETE CASCADE, idx JSONB NOT NULL)"
    )
    cursor.execute(f"SELECT count(*) FROM {quote(live)}")
    [(total,)] = cursor.fetchall() if paths is None else [(len(paths),)]
    names, lists = list(layout.names), sorted(interned)
    cursor.execute(BEGIN, [catalog, relation, version, names, lists, layout.signature, total])
    if paths is None:
        add_visits(cursor, catalog, root[0], [root[1]])
    else:
        add_visits(cursor, catalog, None, sorted(paths))
    target = read(cursor, catalog)
    assert target is not None
    return target


def _few_lists(cursor: Cursor[Any], live: str, layout: Layout) -> frozenset[str]:
    """Return the columns of the relation *live* with few different lists, far fewer than rows."""
    names = [c.name for c in layout.columns if c.can_be_interned]
    cursor.execute(FEW_VALUES, [quote(live), names, MOST_LISTS, MOST_LISTS_PER_ROW])
    return frozenset(name for (name,) in cursor.fetchall())


def _next_version(cursor: Cursor[Any], catalog: int, layout: Layout) -> tuple[int, str]:
    """Reserve a version for the new relation; return it and the name of the live relation."""
    cursor.execute(NEXT_VERSION, [catalog])
    row: tuple[int, str] | None = cursor.fetchone()
    if row is None:
        # A copied database: it has objects, and no catalog.
        _, live = schema.free_relation(cursor, catalog, 0)
        schema.create_relation(cursor, live, layout.with_interned(layout.interned_at_first))
        cursor.execute(FIRST_STATE, [catalog, live, list(layout.names), sorted(layout.interned_at_first)])
        return _next_version(cursor, catalog, layout)
    return row


# -- visits


def add_visits(cursor: Cursor[Any], catalog: int, container: str | None, ids: Sequence[str]) -> None:
    """Put visits of the objects *ids* in *container*, a path; if it is None, the objects with the paths *ids*."""
    visits = [json.dumps([container, ids[i : i + SLICE]]) for i in range(0, len(ids), SLICE)]
    if visits:
        cursor.execute(PUT_VISITS, {"catalog": catalog, "visits": visits})


def take_visit(cursor: Cursor[Any], catalog: int) -> tuple[str | None, list[str]] | None:
    """Take a visit that no other worker has locked: (container, ids), or (None, paths); None if there is no such visit.

    A rollback of the transaction restores the visit.
    """
    cursor.execute(TAKE_VISIT, {"catalog": catalog})
    row = cursor.fetchone()
    if row is None:
        return None
    container, names = json.loads(row[0])
    return container, names


def has_visits(cursor: Cursor[Any], catalog: int) -> bool:
    """Return True while a visit is waiting or in work."""
    cursor.execute(HAS_VISITS, [catalog])
    [(found,)] = cursor.fetchall()
    return bool(found)


def live_relation(cursor: Cursor[Any], catalog: int) -> str:
    """Return the name of the relation that searches read."""
    cursor.execute("SELECT relation FROM pgcatalog_state WHERE catalog = %s", [catalog])
    [(relation,)] = cursor.fetchall()
    return str(relation)


def add_rest(cursor: Cursor[Any], target: RebuildTarget) -> None:
    """Put visits of the paths that only the live relation has."""
    live = live_relation(cursor, target.catalog)
    query = UNVISITED.format(slice=SLICE, live=quote(live), relation=quote(target.relation))
    cursor.execute(query, {"catalog": target.catalog})


def set_phase(cursor: Cursor[Any], target: RebuildTarget, phase: str) -> None:
    """Save *phase* as the phase of *target*."""
    cursor.execute("UPDATE pgcatalog_rebuild SET phase = %s WHERE catalog = %s", [phase, target.catalog])


def advance(cursor: Cursor[Any], target: RebuildTarget, count: int) -> None:
    """Add *count* to the number of finished objects."""
    cursor.execute("UPDATE pgcatalog_rebuild SET done = done + %s WHERE catalog = %s", [count, target.catalog])


# -- log


def read_log(cursor: Cursor[Any], target: RebuildTarget, limit: int) -> tuple[list[int], set[str]]:
    """Return the oldest *limit* log entries as (ids, paths)."""
    cursor.execute(
        "SELECT id, path FROM pgcatalog_rebuild_change WHERE catalog = %s ORDER BY id LIMIT %s", [target.catalog, limit]
    )
    rows = cursor.fetchall()
    return [id for id, _ in rows], {path for _, path in rows}


def live_paths(cursor: Cursor[Any], target: RebuildTarget, paths: Iterable[str]) -> set[str]:
    """Return the subset of *paths* that the live relation has."""
    live = live_relation(cursor, target.catalog)
    cursor.execute(f"SELECT path FROM {quote(live)} WHERE path = ANY(%s::text[])", [list(paths)])
    return {path for (path,) in cursor.fetchall()}


def sibling_paths(cursor: Cursor[Any], target: RebuildTarget, paths: Iterable[str]) -> set[str]:
    """Return the paths in *target* of the objects that are live at *paths*: the paths of one object may share an idx."""
    live = live_relation(cursor, target.catalog)
    cursor.execute(
        f"SELECT n.path FROM {quote(live)} l JOIN {quote(target.relation)} n USING (zoid)"
        " WHERE l.path = ANY(%s::text[])",
        [list(paths)],
    )
    return {path for (path,) in cursor.fetchall()}


def forget_log(cursor: Cursor[Any], ids: list[int]) -> None:
    """Delete log entries that have been applied."""
    cursor.execute("DELETE FROM pgcatalog_rebuild_change WHERE id = ANY(%s)", [ids])


class RowWriter:
    """Writes rows of *target*.

    - *pending*: decides which idx belong in object_state
    - *new_rid*: returns an unused oid
    - *save_sets*: saves the lists whose numbers the rows will contain
    """

    def __init__(
        self,
        cursor: Cursor[Any],
        target: RebuildTarget,
        layout: Layout,
        pending: CatalogPending,
        new_rid: Any,
        save_sets: Callable[[Sets], None],
    ) -> None:
        self.cursor = cursor
        self.target = target
        self.stored = layout.with_interned(target.interned)
        self.pending = pending
        self.new_rid = new_rid
        self.save_sets = save_sets

    def replace(self, entries: Iterable[Entry], deleted: Iterable[str] = ()) -> None:
        """Insert *entries*, each a whole row, in place of the rows at their paths; delete the rows at *deleted*."""
        entries = list({e.path: e for e in entries}.values())
        paths = [*deleted, *(e.path for e in entries)]
        self.cursor.execute(f"DELETE FROM {self._table} WHERE path = ANY(%s::text[])", [paths])
        if entries:
            lists = sets_of(entries, self.stored.interned_columns)
            self.save_sets({number: (name, values) for number, name, values in lists})
            self._insert(self._with_rids(self._stored(entries)))

    @property
    def _table(self) -> str:
        return quote(self.target.relation)

    def _stored(self, entries: list[Entry]) -> list[Entry]:
        """Return the *entries* whose object still exists, and lock these objects until the end of the transaction."""
        zoids = sorted(e.zoid for e in entries if e.zoid is not None)
        self.cursor.execute(
            "SELECT zoid FROM object_state WHERE zoid = ANY(%s::bigint[]) ORDER BY zoid FOR KEY SHARE", [zoids]
        )
        stored = {zoid for (zoid,) in self.cursor.fetchall()}
        return [e for e in entries if e.zoid is None or e.zoid in stored]

    def _with_rids(self, entries: list[Entry]) -> list[Entry]:
        taken = self._taken([e.zoid for e in entries if e.zoid is not None])
        numbered = []
        for entry in entries:
            rid = self.new_rid() if entry.zoid is None or entry.zoid in taken else entry.zoid
            taken.add(rid)
            numbered.append(dataclasses.replace(entry, rid=rid))
        return numbered

    def _taken(self, rids: list[int]) -> set[int]:
        """Return the subset of *rids* that rows at other paths have.

        Rows that have changed according to the log are deleted first: a moved object is visited at its old and at its
        new path.
        """
        self.cursor.execute(
            f"DELETE FROM {self._table} n USING pgcatalog_rebuild_change c"
            " WHERE n.rid = ANY(%s::bigint[]) AND c.catalog = %s AND c.path = n.path",
            [rids, self.target.catalog],
        )
        self.cursor.execute(f"SELECT rid FROM {self._table} WHERE rid = ANY(%s::bigint[])", [rids])
        return {rid for (rid,) in self.cursor.fetchall()}

    def _insert(self, entries: list[Entry]) -> None:
        columns = self.stored.columns
        names = ["rid", "path", "zoid", "idx", *(c.quoted for c in columns)]
        is_primary = self.pending.is_primary
        with self.cursor.copy(f"COPY {self._table} ({', '.join(names)}) FROM STDIN") as copy:
            for entry in entries:
                idx = None if is_primary(entry) else dump(entry.idx)
                values = [as_stored(c, entry.columns.get(c.name)) for c in columns]
                copy.write_row([entry.rid, entry.path, entry.zoid, idx, *values])
        self._insert_idx([e for e in entries if is_primary(e)])

    def _insert_idx(self, entries: list[Entry]) -> None:
        """Store the idx of *entries* that differ from the idx in object_state, until the swap."""
        self.cursor.execute(
            f"INSERT INTO {quote(idx_table(self.target.relation))} (rid, idx) SELECT f.rid, f.idx"
            " FROM unnest(%s::bigint[], %s::text[]::jsonb[]) AS f (rid, idx)"
            " JOIN object_state o ON o.zoid = f.rid WHERE o.idx IS DISTINCT FROM f.idx",
            [[e.rid for e in entries], [dump(e.idx) for e in entries]],
        )
