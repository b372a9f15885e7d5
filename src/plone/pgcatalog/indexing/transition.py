"""A catalog's relation: whether it exists, and how a commit changes it and its state before rows are written.

A catalog is unfilled if its site was copied or imported, or came from another database without its table.
``transition_of`` decides, without SQL, how a relation changes; ``Transitions`` changes it.
"""

from Acquisition import aq_base
from collections.abc import Collection
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from plone.pgcatalog.database import counts
from plone.pgcatalog.database import schema
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.layout import is_unfilled as is_unfilled_relation
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.retirement import forget_rebuild
from plone.pgcatalog.database.retirement import retire_chunks
from plone.pgcatalog.database.retirement import retire_relation
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.database.sets import forget_unused
from plone.pgcatalog.database.sets import save as save_sets
from plone.pgcatalog.database.sets import Sets
from plone.pgcatalog.database.sets import UNSAVED
from plone.pgcatalog.indexing.overlay import sets_of
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.files import read_statement
from psycopg import Cursor
from typing import Any
from typing import TYPE_CHECKING
from ZODB.POSException import ConflictError
from ZODB.utils import z64

import logging


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


logger = logging.getLogger(__name__)

MESSAGE = (
    "%s has no table in this database, for example because the site was copied, imported or partially restored. It contains"
    " only objects saved since then. Run pgcatalog rebuild, or Rebuild in its tab Advanced, to fill it."
)

#: Advances the generation, and returns which of some lists are not saved.
ADVANCE = read_statement("indexing", "state_advance").format(unsaved=UNSAVED.format(numbers="%(numbers)s"))
#: A rebuild beside the live relation applies the changes at these paths before the swap; '' makes it start over.
LOG_FOR_REBUILD = "INSERT INTO pgcatalog_rebuild_change (catalog, path) SELECT %s, unnest(%s::text[])"
#: Deletes the idx of an object together with its row, unless this commit writes another one.
FORGET_IDX = (
    "UPDATE object_state o SET idx = NULL FROM {gone} WHERE o.zoid = gone.rid AND gone.idx IS NULL"
    " AND o.idx IS NOT NULL AND o.zoid <> ALL(%s::bigint[])"
)
#: Deletes the words of a catalog, with its rows.
FORGET_WORDS = read_statement("fulltext", "words_forget")
#: Tables with the records of a catalog, deleted with the catalog.
OF_CATALOG = (
    "pgcatalog_slow_queries",
    "pgcatalog_history",
    "pgcatalog_searches",
    "pgcatalog_indexes",
    "pgcatalog_queue",
    "pgcatalog_vectors",
)


@dataclass(frozen=True, slots=True)
class NewRelation:
    """The catalog gets an empty relation: its first one, or one in the place of *former*, which was cleared.

    A first relation has version 0 if rows that should be in it are missing.
    """

    version: int
    generation: int
    former: str | None = None


@dataclass(frozen=True, slots=True)
class Replacement:
    """The relation that a rebuild has filled takes the place of the relation of *state*."""

    state: CatalogState


@dataclass(frozen=True, slots=True)
class Extension:
    """The relation of *state* gets the columns *missing*, and the SQL indexes that it lacks."""

    state: CatalogState
    missing: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class NoTransition:
    """The relation of *state* already fits the layout."""

    state: CatalogState


Transition = NewRelation | Replacement | Extension | NoTransition


def transition_of(pending: CatalogPending, layout: Layout, state: CatalogState | None) -> Transition:
    """Return the transition that *pending* changes require for a catalog in *state*, None if it has no relation."""
    if state is None:
        is_unfilled = has_indexes(pending.tool) and not pending.is_whole
        return NewRelation(version=0 if is_unfilled else 1, generation=pending.steps)
    if pending.replacement is not None:
        return Replacement(state)
    if pending.cleared:
        return NewRelation(state.version + 1, state.generation, former=state.relation)
    missing = tuple(c for c in layout.columns if c.name not in state.columns)
    return Extension(state, missing) if missing or pending.layout_changed else NoTransition(state)


class Transitions:
    """Applies transitions to the relation and state of the catalog whose changes are *pending* in *session*.

    - *cursor*: that of the commit
    - *has_idx*: zoids whose idx was stored in object_state together with their state
    """

    def __init__(self, cursor: Cursor[Any], session: Session, pending: CatalogPending, has_idx: set[int]) -> None:
        self.cursor = cursor
        self.session = session
        self.pending = pending
        self.layout = pending.layout
        self.has_idx = has_idx

    @property
    def seen_state(self) -> CatalogState | None:
        """The state in the transaction's snapshot, None if it was not read."""
        return (self.session.loaded_states or {}).get(self.pending.zoid)

    def advance(self) -> CatalogState:
        """Advance the generation; return the state, with a relation that fits the layout."""
        lists = sets_of(self.pending.entries.values(), self.layout.lists)
        sets = {number: (name, values) for number, name, values in lists}
        state, is_rebuilding, unsaved = self._advance([*sets])
        interned = self.layout.interned_at_first | (state.interned if state else frozenset())
        new = sets if unsaved is None else {number: sets[number] for number in unsaved if number in sets}
        save_sets(self.cursor, sets_in(new, interned))
        transition = transition_of(self.pending, self.layout, state)
        if is_rebuilding and not isinstance(transition, Replacement):
            self._log_for_rebuild()
        return self._apply(transition)

    def _advance(self, numbers: list[int]) -> tuple[CatalogState | None, bool, Sequence[int] | None]:
        """Advance the generation; return (state, whether a rebuild is running, unsaved list numbers from *numbers*).

        (None, False, None) for a catalog that has no relation.
        """
        values = {"changes": self.pending.steps, "catalog": self.pending.zoid, "numbers": numbers}
        row = self.cursor.execute(ADVANCE, values).fetchone()
        if row is None:
            return None, False, None
        relation, version, columns, generation, complete, interned, is_rebuilding, unsaved = row
        state = CatalogState(
            relation,
            version,
            frozenset(columns),
            generation,
            complete=frozenset(complete),
            interned=frozenset(interned),
        )
        return state, is_rebuilding, unsaved

    def _apply(self, transition: Transition) -> CatalogState:
        match transition:
            case NewRelation():
                return self._create_relation(transition)
            case Replacement(state):
                assert self.pending.replacement is not None
                replaced = self._save(self.pending.replacement(self.cursor, state))
                forget_unused(self.cursor)
                return replaced
            case Extension(state, missing):
                return self._extend(state, missing)
            case NoTransition(state):
                return state

    def _create_relation(self, new: NewRelation) -> CatalogState:
        """Create the relation under the next free version, and save it in the catalog's state."""
        if new.version == 0:
            report_missing(self.pending.tool)
        if new.former is not None:
            retire_relation(self.cursor, new.former)
            self.forget_idx(f"{quote(new.former)} AS gone")
            self._forget_words()
        version, relation = schema.free_relation(self.cursor, self.pending.zoid, new.version)
        interned = self.layout.interned_at_first
        schema.create_relation(self.cursor, relation, self.layout.with_interned(interned))
        schema.create_advised_indexes(self.cursor, self.pending.zoid, relation, self.layout.names)
        names = frozenset(self.layout.names)
        return self._save(CatalogState(relation, version, names, new.generation, complete=names, interned=interned))

    def _extend(self, state: CatalogState, missing: tuple[Column, ...]) -> CatalogState:
        interned = self.layout.interned(state)
        layout = self.layout.with_interned(interned)
        names = {c.name for c in missing}
        if missing:
            schema.add_columns(self.cursor, state.relation, [c for c in layout.columns if c.name in names])
            schema.create_view(self.cursor, state.relation, layout)
        schema.create_indexes(self.cursor, state.relation, layout.indexes)
        counts.create(self.cursor, state.relation)
        return self._save(replace(state, columns=state.columns | names, interned=interned))

    def _log_for_rebuild(self) -> None:
        pending = self.pending
        everything = pending.cleared or pending.layout_changed or pending.cleared_columns
        paths = [*pending.entries, *([""] if everything else [])]
        self.cursor.execute(LOG_FOR_REBUILD, [pending.zoid, paths])

    def _save(self, state: CatalogState) -> CatalogState:
        values = {name: getattr(state, name) for name in ("version", "relation", "generation")}
        values |= {name: sorted(getattr(state, name)) for name in ("columns", "complete", "interned")}
        self.cursor.execute(read_statement("indexing", "state_save"), {"catalog": self.pending.zoid, **values})
        indexes = schema.index_names(state.relation, self.layout.with_interned(state.interned))
        parameters = {"catalog": self.pending.zoid, "relation": state.relation, "indexes": indexes}
        self.cursor.execute(read_statement("indexing", "state_made"), parameters)
        return state

    def drop(self) -> None:
        """Drop the catalog; raises ConflictError if others have changed it since the snapshot."""
        forget_rebuild(self.cursor, self.pending.zoid)
        retire_chunks(self.cursor, self.pending.zoid)
        self._forget_words()
        for table in OF_CATALOG:
            self.cursor.execute(f"DELETE FROM {table} WHERE catalog = %s", [self.pending.zoid])
        statement = "DELETE FROM pgcatalog_state WHERE catalog = %s RETURNING relation, generation"
        for relation, generation in self.cursor.execute(statement, [self.pending.zoid]).fetchall():
            if self.seen_state is not None and self.seen_state.generation != generation:
                raise ConflictError("the catalog was changed by another transaction while this one removed it")
            self.forget_idx(f"{quote(relation)} AS gone")
            retire_relation(self.cursor, relation)

    def _forget_words(self) -> None:
        self.cursor.execute(FORGET_WORDS, [self.pending.zoid, []])

    def evict(self, relation: str, rids: list[int]) -> None:
        """Delete the rows *rids* of *relation*, and their idx in object_state."""
        delete = f"WITH gone AS (DELETE FROM {quote(relation)} WHERE rid = ANY(%s) RETURNING rid, idx) "
        self.cursor.execute(delete + FORGET_IDX.format(gone="gone"), [rids, self._written_zoids()])

    def forget_idx(self, rows: str) -> None:
        """Delete the idx in object_state of the rows *rows*, an item of a FROM clause."""
        self.cursor.execute(FORGET_IDX.format(gone=rows), [self._written_zoids()])

    def _written_zoids(self) -> list[int]:
        """Return the zoids of objects whose idx in object_state this commit writes, for any catalog."""
        pendings = self.session.pending.values()
        written = {e.zoid for p in pendings for e in p.live() if e.zoid is not None and p.is_primary(e)}
        return [*written, *self.has_idx]


def sets_in(sets: Sets, names: Collection[str]) -> Sets:
    """Return the subset of *sets* that are lists of the columns *names*."""
    return {number: (name, values) for number, (name, values) in sets.items() if name in names}


def has_indexes(tool: Any) -> bool:
    """Return True if the catalog *tool* has indexes."""
    return bool(aq_base(tool)._indexes)


def expects_relation(tool: Any) -> bool:
    """Return True if the catalog *tool* was committed with indexes: that commit created its table."""
    base = aq_base(tool)
    return getattr(base, "_p_serial", z64) != z64 and not base._p_changed and has_indexes(tool)


def is_unfilled(catalog: "Catalog") -> bool:
    """Return whether *catalog* has no table, or one with only the rows that were saved since it was created."""
    session = catalog.session
    state = session.read_states().get(catalog.zoid)
    if state is not None:
        return is_unfilled_relation(state.relation)
    return catalog.zoid not in session.pending and expects_relation(catalog.tool)


def expect_filling(tool: Any) -> None:
    """Mark the table that this transaction creates for *tool*, a new catalog, as unfilled until a rebuild has filled it."""
    aq_base(tool)._v_reported_missing = True
    tool._core.change().is_whole = False


def report_missing(tool: Any) -> None:
    """Log that *tool* has lost its table, at most once while the tool stays in the cache of its connection."""
    base = aq_base(tool)
    if not getattr(base, "_v_reported_missing", False):
        base._v_reported_missing = True
        logger.error(MESSAGE, "/".join(tool.getPhysicalPath()))
