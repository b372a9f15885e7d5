"""Reads one catalog as its transaction sees it: committed rows of the snapshot plus pending ones."""

from array import array
from collections.abc import Iterable
from collections.abc import Sequence
from plone.pgcatalog.database.schema import CatalogState
from plone.pgcatalog.database.schema import Layout
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.indexing.overlay import Overlay
from plone.pgcatalog.indexing.overlay import Source
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.query.compiler import CompiledQuery
from typing import Any

import orjson
import sys


Rows = list[tuple[Any, ...]]


class CatalogView:
    """Runs statements against the catalog with tool oid *zoid* on *session*'s snapshot."""

    def __init__(self, session: Session, zoid: int, layout: Layout) -> None:
        self.session = session
        self.zoid = zoid
        self.layout = layout

    @property
    def state(self) -> CatalogState | None:
        """The committed state, None when nothing has ever been committed."""
        return self.session.states.get(self.zoid)

    @property
    def pending(self) -> CatalogPending | None:
        return self.session.pending.get(self.zoid)

    def source(self) -> Source | None:
        """Return what to select from, None when there is nothing at all."""
        pending = self.pending
        if pending is not None and (pending.entries or pending.cleared or pending.cleared_columns):
            return self._overlay(pending).source()
        if self.state is None:
            return None
        if not self.state.columns.issuperset(self.layout.names):
            # An index was added in this transaction: its column comes with the commit.
            return self._overlay(pending or CatalogPending(None, self.zoid)).source()
        return quote(self.state.relation), ()

    def _overlay(self, pending: CatalogPending) -> Overlay:
        overlay: Overlay | None = self.session.overlays.get(self.zoid)
        if overlay is None or overlay.layout != self.layout or overlay.pending is not pending:
            overlay = Overlay(self.session, pending, self.layout)
            self.session.overlays[self.zoid] = overlay
        return overlay

    # -- statements

    def select(
        self, expressions: str, where: Condition = EVERYTHING, tail: str = "", params: Sequence[Any] = ()
    ) -> Rows:
        """Return ``SELECT expressions FROM catalog WHERE where tail``; *params* are those of *expressions*."""
        source = self.source()
        if source is None:
            return []
        relation, source_params = source
        condition = "" if where is EVERYTHING else f" WHERE {where.sql}"
        query = f"SELECT {expressions} FROM {relation}{condition} {tail}"
        return self.session.execute(query, (*params, *source_params, *where.params))

    def count(self, query: CompiledQuery) -> int:
        """Return the number of rows that match."""
        rows = self.select("count(*)", query.where)
        return rows[0][0] if rows else 0

    def page(self, query: CompiledQuery, start: int, size: int | None) -> Rows:
        """Return (rid, path, score) rows ``[start:start + size]`` of the sorted result."""
        score = query.score
        expressions = f"rid, path, {score.sql if score else 'NULL'} AS score"
        order = ("score DESC", "rid DESC") if score else query.order
        tail = f"ORDER BY {', '.join(order)}"
        if size is not None:
            tail += f" LIMIT {size:d}"
        if start:
            tail += f" OFFSET {start:d}"
        return self.select(expressions, query.where, tail, score.params if score else ())

    def rids(self, query: CompiledQuery) -> array[int]:
        """Return the rids of the whole sorted result: one row with one binary value."""
        score = query.score
        order = (f"{score.sql} DESC", "rid DESC") if score else query.order
        expression = f"string_agg(int8send(rid), ''::bytea ORDER BY {', '.join(order)})"
        rows = self.select(expression, query.where, "", score.params if score else ())
        rids = array("q")
        if rows and rows[0][0]:
            rids.frombytes(rows[0][0])
            if sys.byteorder == "little":
                rids.byteswap()
        return rids

    def paths(self, rids: Iterable[int]) -> dict[int, str]:
        """Return the paths of *rids*, leaving out unknown ones."""
        condition = Condition("rid = ANY(%s::bigint[])", (list(rids),))
        return dict(self.select("rid, path", condition))

    # -- idx

    def idx(self, rids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return the idx JSON (undecoded values) of the rows *rids*, those pending included."""
        found = self._committed_idx(rids)
        pending = self.pending
        if pending is None:
            return found
        wanted = set(rids)
        for entry in pending.live():
            if entry.rid in wanted:
                found[entry.rid] = pending_idx(found.get(entry.rid), entry)
        return found

    def _committed_idx(self, rids: Sequence[int]) -> dict[int, dict[str, Any]]:
        state = self.state
        if state is None:
            return {}
        rows = self.session.execute(
            f"SELECT c.rid, coalesce(c.idx, o.idx)::text FROM {quote(state.relation)} c"
            " LEFT JOIN object_state o ON o.zoid = c.zoid WHERE c.rid = ANY(%s::bigint[])",
            (list(rids),),
        )
        return {rid: orjson.loads(text) if text else {} for rid, text in rows}


def pending_idx(committed: dict[str, Any] | None, entry: Entry) -> dict[str, Any]:
    """Return the idx of a row with a pending *entry*."""
    if entry.new or committed is None:
        return entry.idx
    return {k: v for k, v in committed.items() if k not in entry.vanished} | entry.idx
