"""Puts rows into the relation that a rebuild fills; on a cursor of the rebuild's own connection, or of the last commit."""

from collections.abc import Callable
from collections.abc import Iterable
from plone.pgcatalog.database import schema
from plone.pgcatalog.database.schema import Layout
from plone.pgcatalog.database.sets import Sets
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.indexing.overlay import sets_of
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.rebuild_relation import RebuildTarget
from plone.pgcatalog.indexing.writer import dump
from plone.pgcatalog.protocols import Cursor
from plone.pgcatalog.sql.sets import stored
from typing import Any

import dataclasses


class Rows:
    """Writes rows of *target*; *pending* tells whose idx belongs into object_state, *new_rid* gives unused oids.

    *save_sets* saves lists that rows are about to have the numbers of.
    """

    def __init__(
        self,
        cursor: Cursor,
        target: RebuildTarget,
        layout: Layout,
        pending: CatalogPending,
        new_rid: Any,
        save_sets: Callable[[Sets], None],
    ) -> None:
        self.cursor = cursor
        self.target = target
        self.stored = layout.stored(target.interned)
        self.pending = pending
        self.new_rid = new_rid
        self.save_sets = save_sets

    def replace(self, entries: Iterable[Entry], gone: Iterable[str] = ()) -> None:
        """Put *entries* in, each a whole row, in the place of what is at their paths; remove what is at *gone*."""
        entries = list({e.path: e for e in entries}.values())
        paths = [*gone, *(e.path for e in entries)]
        self.cursor.execute(f"DELETE FROM {self._table} WHERE path = ANY(%s::text[])", [paths])
        if entries:
            lists = sets_of(entries, self.stored.numbered)
            self.save_sets({number: (name, values) for number, name, values in lists})
            self._insert(self._with_rids(self._stored(entries)))

    @property
    def _table(self) -> str:
        return quote(self.target.relation)

    def _stored(self, entries: list[Entry]) -> list[Entry]:
        """Return the *entries* whose object is still there, and stays until the end of the transaction."""
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
        """Return those of *rids* that rows at other paths have.

        Rows of which the log says that they have changed give way: a moved object is met at its old and at its
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
                values = [stored(c, entry.columns.get(c.name)) for c in columns]
                copy.write_row([entry.rid, entry.path, entry.zoid, idx, *values])
        self._insert_idx([e for e in entries if is_primary(e)])

    def _insert_idx(self, entries: list[Entry]) -> None:
        """Keep the idx of *entries* where object_state has another one, until the relation takes over."""
        self.cursor.execute(
            f"INSERT INTO {quote(schema.idx_table(self.target.relation))} (rid, idx) SELECT f.rid, f.idx"
            " FROM unnest(%s::bigint[], %s::text[]::jsonb[]) AS f (rid, idx)"
            " JOIN object_state o ON o.zoid = f.rid WHERE o.idx IS DISTINCT FROM f.idx",
            [[e.rid for e in entries], [dump(e.idx) for e in entries]],
        )
