"""What a transaction sees of one catalog: which state, which rows of its own, and how they are stored."""

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
from plone.pgcatalog.query.bind import Shares
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.sql.predicate import Predicate
from typing import Any


#: The state of a catalog that was never committed.
UNSAVED = CatalogState("", 0, frozenset(), 0)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a transaction sees of one catalog until it changes the catalog next.

    *state* is the committed one.  *stored* is how the rows that *layout* asks for are stored, changes of the transaction
    included; what binding a condition looks up is not in it.  *stamp* names the state in the process's cache; None with
    changes.
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
        #: True for rows in the order of their rids whatever is pending: a stream goes on behind the last one
        self.by_rid = False

    def read_state(self) -> CatalogState | None:
        """Return the committed state, None when nothing has ever been committed; see ``Session.read_states``."""
        return self.session.read_states().get(self.zoid)

    @property
    def pending(self) -> CatalogPending | None:
        return self.session.pending.get(self.zoid)

    @property
    def is_committed(self) -> bool:
        """True when the transaction has changed nothing here: what it sees is what the snapshot's generation names."""
        return self.zoid not in self.session.pending

    @property
    def rows(self) -> int:
        """About how many rows the catalog has, as the planner knows; -1 if it does not."""
        state = self.read_state()
        return -1 if state is None else state.rows

    def snapshot(self) -> Snapshot | None:
        """Return the catalog as the transaction sees it, made once until its next change; None for a catalog without rows and changes.

        Raises HistoryChanged.
        """
        snapshot: Snapshot | None = self.session.snapshots.get(self.zoid)
        if snapshot is None or snapshot.layout is not self.layout or not self.is_committed:
            snapshot = self._snapshot()
            if snapshot is not None and snapshot.stamp is not None:
                self.session.snapshots[self.zoid] = snapshot
        return snapshot

    def stamp(self) -> Stamp | None:
        """Return the cache stamp of this snapshot; None with pending changes or no catalog."""
        snapshot = self.snapshot() if self.is_committed else None
        return None if snapshot is None else snapshot.stamp

    def is_current(self, stamp: Stamp | None) -> bool:
        """True if *stamp* is this snapshot's."""
        return stamp is not None and self.stamp() == stamp

    def _snapshot(self) -> Snapshot | None:
        state, pending = self.read_state() or UNSAVED, self.pending
        overlay = None
        if pending is not None and (pending.entries or pending.cleared or pending.cleared_columns):
            overlay = self._overlay(pending)
        elif state is UNSAVED:
            return None
        elif not state.columns.issuperset(self.layout.names):
            # An index was added in this transaction: its column comes with the commit.
            overlay = self._overlay(pending or CatalogPending(None, self.zoid))
        layout = self.layout.with_interned(self.layout.interned(state))
        is_saved = pending is None and overlay is None
        stored = Stored(
            source=(quote(state.relation), ()) if overlay is None else overlay.source(),
            complete=state.complete if pending is None else (),
            interned_columns=layout.interned_columns,
            known_sets=() if overlay is None else (overlay.sets,),
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
        """Return *stored* with what binding *conditions* needs of the database: lists of keywords, shares of values."""
        interned_columns = stored.interned_columns or {}
        parts = [part for where in conditions for part in where.leaves(Predicate)]
        interned = [part for part in parts if part.column.name in interned_columns]
        for part in interned:
            self.session.look_up(part)
        if interned:
            stored = replace(stored, known_sets=(self.session.known_sets(), *stored.known_sets))
        asks_shares = any(where.is_costly for where in conditions) and any(
            bind.asks_share(part, stored.complete, interned_columns) for part in parts
        )
        return replace(stored, shares=self._shares(stored.relation)) if asks_shares else stored

    def _shares(self, relation: str) -> Shares | None:
        """Return the shares of values in *relation*; None where no plan is worth a thought."""
        generations = self.session.generations
        if not relation or generations.is_small():
            return None
        return generations.selectivity.shares(self.session.ask, relation)

    def pending_idx(self, rid: int, committed: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the idx of the row *rid* as the transaction has changed it, None when it has not."""
        pending = self.pending
        entry = None if pending is None else pending.pending_at(rid)
        if entry is None:
            return None
        if entry.new or committed is None:
            return entry.idx
        return {k: v for k, v in committed.items() if k not in entry.vanished} | entry.idx
