"""What a transaction sees of one catalog: which state, which rows of its own, and how they are stored."""

from collections.abc import Callable
from functools import partial
from plone.pgcatalog import settings
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.database.sets import KnownSets
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.indexing.overlay import Overlay
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Shares
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.ranked import Source
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import Predicate
from typing import Any


#: Makes a statement for the snapshot; it returns None when there is nothing to read.
Maker = Callable[[], Statement | None]


class SeenCatalog:
    """The catalog with tool oid *zoid* on *session*'s snapshot: its committed rows, plus pending ones."""

    def __init__(self, session: Session, zoid: int, layout: Layout) -> None:
        self.session = session
        self.zoid = zoid
        self.layout = layout
        #: True for rows in the order of their rids whatever is pending: a stream goes on behind the last one
        self.by_rid = False
        #: the states that the snapshot showed last, and the stamp: each row of a long result asks for it
        self._stamped: tuple[Any, Stamp | None] = (None, None)

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

    def stamp(self) -> Stamp | None:
        """Return the cache stamp of this snapshot; None with pending changes or no catalog."""
        session = self.session
        if self.zoid in session.pending:
            return None
        states, stamp = self._stamped
        if states is None or states is not session.known_states:
            state, stamp = self.read_state(), None
            if state is not None and self.has_columns(state):
                stamp = Stamp(session.generations.number, self.zoid, state.relation, state.generation, state.tid)
            self._stamped = session.known_states, stamp
        return stamp

    def is_current(self, stamp: Stamp | None) -> bool:
        """True if *stamp* is this snapshot's."""
        return stamp is not None and self.stamp() == stamp

    def has_columns(self, state: CatalogState) -> bool:
        """Return whether the relation of *state* has all columns of the layout."""
        return state.columns.issuperset(self.layout.names)

    @property
    def rows(self) -> int:
        """About how many rows the catalog has, as the planner knows; -1 if it does not."""
        state = self.read_state()
        return -1 if state is None else state.rows

    def source(self) -> Source | None:
        """Return the source to select from; None where the catalog has no rows at all."""
        pending = self.pending
        if pending is not None and (pending.entries or pending.cleared or pending.cleared_columns):
            return self._overlay(pending).source()
        state = self.read_state()
        if state is None:
            return None
        if not self.has_columns(state):
            # An index was added in this transaction: its column comes with the commit.
            return self._overlay(pending or CatalogPending(None, self.zoid)).source()
        return quote(state.relation), ()

    def _overlay(self, pending: CatalogPending) -> Overlay:
        overlay: Overlay | None = self.session.overlays.get(self.zoid)
        if overlay is None or overlay.layout != self.layout or overlay.pending is not pending:
            overlay = Overlay(self.session, pending, self.layout)
            self.session.overlays[self.zoid] = overlay
        return overlay

    # -- how rows are stored

    def binding(self, statement: Callable[[Stored], Statement | None], *conditions: Condition) -> Maker:
        """Return the function that makes *statement* for the snapshot; see ``bound``."""
        return partial(self.bound, statement, *conditions)

    def bound(self, statement: Callable[[Stored], Statement | None], *conditions: Condition) -> Statement | None:
        """Return *statement* for the rows as they are stored in the snapshot.

        It binds no other *conditions* than these; None where there is nothing to ask.
        """
        stored = self.stored(*conditions)
        return None if stored is None else statement(stored)

    def stored(self, *conditions: Condition) -> Stored | None:
        """Return how the rows are stored in the snapshot; None where there are none at all.

        What binding the *conditions* needs of the database is looked up here: lists of keywords, shares of values.
        """
        source = self.source()
        if source is None:
            return None
        state, pending = self.read_state(), self.pending
        interned_columns = self.stored_layout().interned_columns
        overlay: Overlay | None = self.session.overlays.get(self.zoid)
        is_committed = self.is_committed
        complete = state.complete if state is not None and is_committed else ()
        parts = [part for where in conditions for part in where.leaves(Predicate)]
        interned = [part for part in parts if part.column.name in interned_columns]
        for part in interned:
            self.session.look_up(part)
        asks_shares = any(where.is_costly for where in conditions) and any(
            bind.asks_share(part, complete, interned_columns) for part in parts
        )
        return Stored(
            source=source,
            complete=complete,
            interned_columns=interned_columns,
            known_sets=self._known_sets() if interned else (),
            pending_sets="" if is_committed or overlay is None else overlay.lists,
            rows=None if state is None else state.rows,
            full=settings.RANKED_ROWS,
            shares=self._shares(state) if asks_shares else None,
            moved=self._overlay(pending).moved() if pending is not None and pending.left and not self.by_rid else "",
            relation="" if state is None else state.relation,
            counted=self._counted(state) if is_committed else {},
        )

    def _counted(self, state: CatalogState | None) -> dict[str, Column]:
        """Return the columns of the relation of *state* whose values are counted, by name."""
        if state is None or not state.counted or not self.has_columns(state):
            return {}
        return {c.name: c for c in self.stored_layout().columns if c.name in state.counted}

    def _shares(self, state: CatalogState | None) -> Shares | None:
        """Return the shares of values in the relation of *state*; None where no plan is worth a thought."""
        if state is None or self.session.generations.is_small():
            return None
        return self.session.generations.selectivity.shares(self.session.ask, state.relation)

    def stored_layout(self) -> Layout:
        """Return the layout as the rows are stored in the snapshot."""
        return self.layout.with_interned(self.layout.interned(self.read_state()))

    def _known_sets(self) -> list[KnownSets]:
        """Return the lists that rows may have: those of the database, and those that are pending."""
        sets = self.session.known_sets()
        overlay: Overlay | None = self.session.overlays.get(self.zoid)
        return [sets] if self.is_committed or overlay is None else [sets, overlay.sets]

    def pending_idx(self, rid: int, committed: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the idx of the row *rid* as the transaction has changed it, None when it has not."""
        pending = self.pending
        entry = None if pending is None else pending.pending_at(rid)
        if entry is None:
            return None
        if entry.new or committed is None:
            return entry.idx
        return {k: v for k, v in committed.items() if k not in entry.vanished} | entry.idx
