"""One catalog as a transaction sees it: its committed state, its pending rows, and its stored form."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from plone.pgcatalog import settings
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.indexing.overlay import Overlay
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.sql.predicate import Predicate
from typing import Any


#: The state of a catalog that was never committed.
UNSAVED = CatalogState("", 0, frozenset(), 0)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One catalog as a transaction sees it until it next changes the catalog.

    - ``state``: the committed state
    - ``layout``: the columns of the configured indexes
    - ``stored``: the stored form of the rows with these columns, pending rows included; without the sets and shares that
      ``with_values`` adds for single conditions
    - ``stamp``: the name of the state in the process's cache; None with pending changes
    """

    state: CatalogState
    layout: Layout
    stored: Stored
    stamp: Stamp | None


class SeenCatalog:
    """The catalog with tool oid *zoid* on *session*'s snapshot: its committed rows, plus pending ones."""

    def __init__(self, session: Session, zoid: int, layout: Layout) -> None:
        self.session = session
        self.zoid = zoid
        self.layout = layout
        #: True: order by rid, even with moved rows pending, because a stream continues behind the last rid
        self.by_rid = False

    def read_state(self) -> CatalogState | None:
        """Return the committed state, None if the catalog was never committed; see ``Session.read_states``."""
        return self.session.read_states().get(self.zoid)

    @property
    def pending(self) -> CatalogPending | None:
        return self.session.pending.get(self.zoid)

    @property
    def is_committed(self) -> bool:
        """True if the transaction has not changed the catalog: it sees the generation of its snapshot."""
        return self.zoid not in self.session.pending

    @property
    def rows(self) -> int:
        """The planner's estimate of the number of rows; -1 if there is none."""
        state = self.read_state()
        return -1 if state is None else state.rows

    def snapshot(self) -> Snapshot | None:
        """Return the catalog as the transaction sees it; None for a catalog without a committed state and without changes.

        Cached while nothing is pending.  Raises HistoryChanged.
        """
        snapshot: Snapshot | None = self.session.snapshots.get(self.zoid)
        if snapshot is None or snapshot.layout is not self.layout or not self.is_committed:
            snapshot = self._snapshot()
            if snapshot is not None and snapshot.stamp is not None:
                self.session.snapshots[self.zoid] = snapshot
        return snapshot

    def stamp(self) -> Stamp | None:
        """Return the stamp of this snapshot; None with pending changes, or without a committed state."""
        snapshot = self.snapshot() if self.is_committed else None
        return None if snapshot is None else snapshot.stamp

    def is_current(self, stamp: Stamp | None) -> bool:
        """Return True if *stamp* is the stamp of this snapshot."""
        return stamp is not None and self.stamp() == stamp

    def _snapshot(self) -> Snapshot | None:
        state, pending = self.read_state() or UNSAVED, self.pending
        overlay = None
        if pending is not None and (pending.entries or pending.cleared or pending.cleared_columns):
            overlay = self._overlay(pending)
        elif state is UNSAVED:
            return None
        elif not state.columns.issuperset(self.layout.names):
            # An index was added in this transaction: the commit adds its column.
            overlay = self._overlay(pending or CatalogPending(None, self.zoid))
        layout = self.layout.with_interned(self.layout.interned(state))
        is_saved = pending is None and overlay is None
        stored = Stored(
            source=(quote(state.relation), ()) if overlay is None else overlay.source(),
            complete=state.complete if pending is None else (),
            interned_columns=layout.interned_columns,
            cached_sets=() if overlay is None else (overlay.sets,),
            pending_sets="" if overlay is None else overlay.lists,
            rows=state.rows,
            full=settings.RANKED_ROWS,
            moved="" if overlay is None or pending is None or not pending.left or self.by_rid else overlay.moved(),
            relation=state.relation,
            counted={c.name: c for c in layout.columns if c.name in state.counted} if is_saved else {},
        )
        history = self.session.generations.number
        stamp = Stamp(history, self.zoid, state.relation, state.generation, state.tid) if is_saved else None
        return Snapshot(state, self.layout, stored, stamp)

    def _overlay(self, pending: CatalogPending) -> Overlay:
        overlay: Overlay | None = self.session.overlays.get(self.zoid)
        if overlay is None or overlay.layout != self.layout or overlay.pending is not pending:
            overlay = Overlay(self.session, pending, self.layout)
            self.session.overlays[self.zoid] = overlay
        return overlay

    def with_values(self, stored: Stored, conditions: Sequence[Condition]) -> Stored:
        """Return *stored* with the values from the database that binding *conditions* needs: interned sets, shares."""
        interned_columns = stored.interned_columns or {}
        parts = [part for where in conditions for part in where.leaves(Predicate)]
        interned = [part for part in parts if part.column.name in interned_columns]
        for part in interned:
            self.session.look_up(part)
        if interned:
            stored = replace(stored, cached_sets=(self.session.cached_sets(), *stored.cached_sets))
        needs_shares = any(where.is_costly for where in conditions) and any(
            bind.needs_share(part, stored.complete, interned_columns) for part in parts
        )
        if not needs_shares or not stored.relation:
            return stored
        return replace(stored, shares=self.session.generations.selectivity.shares(self.session.query, stored.relation))

    def pending_idx(self, rid: int, committed: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the idx of the row *rid* with its pending changes applied to *committed*; None if it has none."""
        pending = self.pending
        entry = None if pending is None else pending.pending_at(rid)
        if entry is None:
            return None
        if entry.new or committed is None:
            return entry.idx
        return {k: v for k, v in committed.items() if k not in entry.vanished} | entry.idx
