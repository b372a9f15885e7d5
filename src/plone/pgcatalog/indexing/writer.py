"""Writes the pending changes of one catalog inside the storage's commit.

Runs on the cursor of ``finalize``: the same PostgreSQL transaction that stores the objects, READ COMMITTED,
serialised with all other writers by the storage's lock.
"""

from collections.abc import Collection
from plone.pgcatalog.database import retirement
from plone.pgcatalog.database import schema
from plone.pgcatalog.database.keywords import collect
from plone.pgcatalog.database.keywords import lists_of_one
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.missing import has_indexes
from plone.pgcatalog.database.missing import report as report_missing
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.database.sets import forget_unused
from plone.pgcatalog.database.sets import save as save_sets
from plone.pgcatalog.database.sets import Sets
from plone.pgcatalog.database.sets import UNSAVED
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.indexing.merge import Merge
from plone.pgcatalog.indexing.overlap import merge
from plone.pgcatalog.indexing.overlay import by_columns
from plone.pgcatalog.indexing.overlay import sets_of
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.protocols import Cursor
from plone.pgcatalog.sql.values import as_stored
from psycopg.rows import tuple_row
from typing import Any
from ZODB.POSException import ConflictError

import dataclasses
import orjson


ADVANCE = (
    "UPDATE pgcatalog_state SET generation = generation + %(changes)s::bigint,"
    " tid = (SELECT max(tid) FROM transaction_log), complete_at = generation + %(changes)s::bigint,"
    " complete = CASE WHEN complete_at = generation THEN complete ELSE '{}' END,"
    " collected = CASE WHEN complete_at = generation THEN collected ELSE '{}' END WHERE catalog = %(catalog)s"
    " RETURNING relation, version, columns, generation, complete, interned, collected,"
    " EXISTS (SELECT FROM pgcatalog_rebuild r WHERE r.catalog = pgcatalog_state.catalog),"
    f" ARRAY({UNSAVED.format(numbers='%(numbers)s')})"
)
SAVE_STATE = (
    "INSERT INTO pgcatalog_state (catalog, version, relation, columns, generation, tid, complete_at, complete, interned,"
    " collected) VALUES (%s, %s, %s, %s, %s, (SELECT max(tid) FROM transaction_log), %s, %s, %s, %s)"
    " ON CONFLICT (catalog) DO UPDATE SET version = EXCLUDED.version, relation = EXCLUDED.relation,"
    " columns = EXCLUDED.columns, generation = EXCLUDED.generation, tid = EXCLUDED.tid,"
    " complete_at = EXCLUDED.complete_at, complete = EXCLUDED.complete, interned = EXCLUDED.interned,"
    " collected = EXCLUDED.collected"
)
#: The columns with a value in every row, when there are fewer of them.
SAVE_COMPLETE = "UPDATE pgcatalog_state SET complete = %s WHERE catalog = %s"
#: The columns whose keywords are known, when one has come to have too many.
SAVE_COLLECTED = "UPDATE pgcatalog_state SET collected = %s WHERE catalog = %s"


#: The writing transaction's own tid is the newest in the log: the processor has seen to it.
LOG_CHANGES = (
    "INSERT INTO pgcatalog_changes (tid, catalog, path)"
    " SELECT (SELECT max(tid) FROM transaction_log), %s, unnest(%s::text[]) ON CONFLICT DO NOTHING"
)
#: A rebuild beside the live relation follows these paths before it takes its place; '' makes it start over.
LOG_FOR_REBUILD = "INSERT INTO pgcatalog_rebuild_change (catalog, path) SELECT %s, unnest(%s::text[])"
#: Others may have moved what was merged: those paths are logged, too.
LOG_MERGED_FOR_REBUILD = (
    "INSERT INTO pgcatalog_rebuild_change (catalog, path)"
    " SELECT catalog, unnest(%s::text[]) FROM pgcatalog_rebuild WHERE catalog = %s"
)

#: What is known of the words of a catalog goes with them.
COUNTED = ("pgcatalog_words", "pgcatalog_texts")


class Writer:
    """Puts the changes *pending* in *session* into PostgreSQL with *cursor*.

    *has_idx* are the zoids whose idx went into object_state together with their state.
    """

    def __init__(
        self, cursor: Cursor, session: Session, pending: CatalogPending, layout: Layout, has_idx: set[int]
    ) -> None:
        self.cursor = cursor.connection.cursor(row_factory=tuple_row)
        self.session = session
        self.pending = pending
        self.layout = layout
        self.has_idx = has_idx

    def write(self) -> None:
        """Write everything; raises psycopg.Error, which aborts the commit."""
        self._log([*self.pending.entries, *([""] if self.pending.cleared or self.pending.dropped else [])])
        if self.pending.dropped:
            self._drop()
            return
        state = self._collect(*self._advance())
        self.stored = self.layout.with_interned(self.layout.interned(state))
        entries = [stored_entry(entry, self.stored) for entry in self.pending.entries.values()]
        merged = self._merge(state, entries)
        live, evicted = [entry for entry in entries if not entry.deleted], list(self.pending.evicted)
        if merged is not None:
            live, evicted = list(merged.live.values()), list(merged.evicted)
        self._empty_columns(state)
        if evicted:
            self._evict(state, evicted)
        if merged is not None:
            self._follow(state, merged)
        self._write_rows(state, [e for e in live if e.new])
        self._change_rows(state, [e for e in live if not e.new])
        self._write_idx(state, live)
        self._note_gaps(state, live)

    # -- relation and generation

    def _advance(self) -> tuple[CatalogState, Sets]:
        """Advance the generation; return the current state, and the lists of one that may have to be saved.

        Its relation then has what the layout asks.
        """
        lists = sets_of(self.pending.entries.values(), self.layout.lists)
        sets = {number: (name, values) for number, name, values in lists}
        keywords: dict[int, tuple[str, list[str]]] = {}
        for name, keys in sets.values():
            if name not in self.layout.interned_at_first:
                keywords.update(lists_of_one(name, keys))
        numbers = [*(sets | keywords)]
        values = {"changes": max(self.pending.changes, 1), "catalog": self.pending.zoid, "numbers": numbers}
        row = self.cursor.execute(ADVANCE, values).fetchone()
        if row is None:
            is_unfilled = has_indexes(self.pending.tool) and not self.pending.is_whole
            if is_unfilled:
                report_missing(self.pending.tool)
            save_sets(self.cursor, sets_in(sets, self.layout.interned_at_first))
            return self._point_to(version=0 if is_unfilled else 1, generation=max(self.pending.changes, 1)), keywords
        relation, version, columns, generation, complete, interned, collected, rebuilding, unsaved = row
        state = CatalogState(
            relation,
            version,
            frozenset(columns),
            generation,
            complete=frozenset(complete),
            interned=frozenset(interned),
            collected=frozenset(collected),
        )
        names = state.interned | self.layout.interned_at_first
        save_sets(self.cursor, sets_in({number: sets[number] for number in unsaved if number in sets}, names))
        if self.pending.replacement is not None:
            replaced = self._save(self.pending.replacement(self.cursor, state))
            forget_unused(self.cursor)
            return replaced, keywords
        if rebuilding:
            self._log_for_rebuild()
        if self.pending.cleared:
            retirement.retire_relation(self.cursor, relation)
            self._forget_idx(relation)
            for table in COUNTED:
                self._execute(f"DELETE FROM {table} WHERE catalog = %s", [self.pending.zoid])
            return self._point_to(version + 1, generation), keywords
        missing = [c for c in self.layout.columns if c.name not in state.columns]
        if missing or self.pending.layout_changed:
            state = self._extend(state, missing)
        return state, {number: keywords[number] for number in unsaved if number in keywords}

    def _collect(self, state: CatalogState, keywords: Sets) -> CatalogState:
        """Save those of *keywords*, lists of one, that are in columns which *state* collects; return the state then."""
        new = sets_in(keywords, state.collected)
        collected = collect(self.cursor, state.collected, new) if new else state.collected
        if collected == state.collected:
            return state
        self._execute(SAVE_COLLECTED, [sorted(collected), self.pending.zoid])
        return dataclasses.replace(state, collected=collected)

    def _log_for_rebuild(self) -> None:
        pending = self.pending
        everything = pending.cleared or pending.layout_changed or pending.cleared_columns
        self._execute(LOG_FOR_REBUILD, [pending.zoid, [*pending.entries, *([""] if everything else [])]])

    def _point_to(self, version: int, generation: int) -> CatalogState:
        """Make the *version*-th relation, or the next that can be made, and let the catalog's state name it."""
        version, relation = schema.free_relation(self.cursor, self.pending.zoid, version)
        interned = self.layout.interned_at_first
        schema.create_relation(self.cursor, relation, self.layout.with_interned(interned))
        schema.create_advised_indexes(self.cursor, self.pending.zoid, relation, self.layout.names)
        names = frozenset(self.layout.names)
        collected = self.layout.lists - interned
        return self._save(
            CatalogState(relation, version, names, generation, complete=names, interned=interned, collected=collected)
        )

    def _extend(self, state: CatalogState, missing: list[Any]) -> CatalogState:
        interned = self.layout.interned(state)
        layout = self.layout.with_interned(interned)
        names = {c.name for c in missing}
        if missing:
            schema.add_columns(self.cursor, state.relation, [c for c in layout.columns if c.name in names])
            schema.create_view(self.cursor, state.relation, layout)
        schema.create_indexes(self.cursor, state.relation, layout.indexes)
        collected = state.collected | (self.layout.lists & names) - interned
        columns = state.columns | names
        return self._save(dataclasses.replace(state, columns=columns, interned=interned, collected=collected))

    def _save(self, state: CatalogState) -> CatalogState:
        values = [self.pending.zoid, state.version, state.relation, sorted(state.columns)]
        values += [
            state.generation,
            state.generation,
            sorted(state.complete),
            sorted(state.interned),
            sorted(state.collected),
        ]
        self._execute(SAVE_STATE, values)
        return state

    def _drop(self) -> None:
        retirement.forget_rebuild(self.cursor, self.pending.zoid)
        recorded = ("pgcatalog_slow_queries", "pgcatalog_history", "pgcatalog_searches")
        for table in (*recorded, "pgcatalog_indexes", "pgcatalog_jobs", *COUNTED):
            self._execute(f"DELETE FROM {table} WHERE catalog = %s", [self.pending.zoid])
        query = "DELETE FROM pgcatalog_state WHERE catalog = %s RETURNING relation, generation"
        self._execute(query, [self.pending.zoid])
        known = (self.session.known_states or {}).get(self.pending.zoid)
        for relation, generation in self.cursor.fetchall():
            if known is not None and known.generation != generation:
                raise ConflictError("the catalog was changed by another transaction while this one took it away")
            self._forget_idx(relation)
            retirement.retire_relation(self.cursor, relation)

    def _forget_idx(self, relation: str) -> None:
        self._execute(
            f"UPDATE object_state o SET idx = NULL FROM {quote(relation)} c"
            " WHERE o.zoid = c.rid AND c.idx IS NULL AND o.idx IS NOT NULL AND o.zoid <> ALL(%s::bigint[])",
            [self._keeps_idx()],
        )

    def _keeps_idx(self) -> list[int]:
        """Return the objects whose idx in object_state this commit writes, whichever catalog it is for."""
        pendings = self.session.pending.values()
        written = {e.zoid for p in pendings for e in p.live() if e.zoid is not None and p.is_primary(e)}
        return [*written, *self.has_idx]

    def _evict(self, state: CatalogState, rids: list[int]) -> None:
        """Delete the rows *rids*, and the idx that those have in object_state."""
        self._execute(
            f"WITH gone AS (DELETE FROM {quote(state.relation)} WHERE rid = ANY(%s) RETURNING rid, idx)"
            " UPDATE object_state o SET idx = NULL FROM gone"
            " WHERE o.zoid = gone.rid AND gone.idx IS NULL AND o.idx IS NOT NULL AND o.zoid <> ALL(%s::bigint[])",
            [rids, self._keeps_idx()],
        )

    def _empty_columns(self, state: CatalogState) -> None:
        names = sorted(self.pending.cleared_columns & state.columns)
        if names:
            assignments = ", ".join(f"{quote(n)} = NULL" for n in names)
            self._execute(f"UPDATE {quote(state.relation)} SET {assignments}")

    # -- rows

    def _merge(self, state: CatalogState, entries: list[Entry]) -> Merge | None:
        """Return what is left to write of *entries* if others have changed them since our snapshot."""
        pending = self.pending
        known = (self.session.known_states or {}).get(pending.zoid)
        unchanged = known is not None and known.generation + max(pending.changes, 1) == state.generation
        if unchanged or not pending.entries or pending.replacement is not None:
            return None
        if pending.cleared:
            if known is not None:
                raise ConflictError("the catalog was changed by another transaction while this one filled it anew")
            return None
        types = {c.name: c.type for c in self.stored.columns if c.name in state.columns}
        return merge(self.cursor, state, types, entries, pending, self.has_idx)

    def _follow(self, state: CatalogState, merged: Merge) -> None:
        """Forget what others have removed, and move rows that others have changed."""
        forgotten = [e.rid for e in merged.removed.values() if self.pending.is_primary(e)]
        if forgotten:
            self._execute("UPDATE object_state SET idx = NULL WHERE zoid = ANY(%s)", [forgotten])
        paths = [e.path for e in merged.live.values()]
        self._log(paths)
        self._execute(LOG_MERGED_FOR_REBUILD, [paths, self.pending.zoid])
        # First to where nothing can be: two rows may change places.
        for query in (
            "UPDATE {} SET path = rid::text WHERE path <> %s AND rid = %s",
            "UPDATE {} SET path = %s WHERE rid = %s",
        ):
            if merged.moved:
                self._executemany(
                    query.format(quote(state.relation)), [[path, rid] for rid, path in merged.moved.items()]
                )

    def _log(self, paths: list[str]) -> None:
        if self.session.keeps_history:
            self._execute(LOG_CHANGES, [self.pending.zoid, paths])

    def _write_rows(self, state: CatalogState, entries: list[Entry]) -> None:
        if not entries:
            return
        columns = [c for c in self.stored.columns if c.name in state.columns]
        names = ["rid", "path", "zoid", "idx", *(c.quoted for c in columns)]
        values = ["%s::bigint", "%s::text", "%s::bigint", "%s::jsonb", *(f"%s::{c.type}" for c in columns)]
        updates = ", ".join(f"{n} = EXCLUDED.{n}" for n in names[1:])
        is_primary = self.pending.is_primary
        self._executemany(
            f"INSERT INTO {quote(state.relation)} ({', '.join(names)}) VALUES ({', '.join(values)})"
            f" ON CONFLICT (rid) DO UPDATE SET {updates}",
            [
                [
                    e.rid,
                    e.path,
                    e.zoid,
                    None if is_primary(e) else dump(e.idx),
                    *(e.columns.get(c.name) for c in columns),
                ]
                for e in entries
            ],
        )

    def _change_rows(self, state: CatalogState, entries: list[Entry]) -> None:
        types = {c.name: c.type for c in self.stored.columns if c.name in state.columns}
        for columns, group in by_columns(entries, types):
            assignments = ", ".join(f"{quote(n)} = %s::{types[n]}" for n in columns)
            self._executemany(
                f"UPDATE {quote(state.relation)} SET {assignments} WHERE rid = %s",
                [[*(e.columns[n] for n in columns), e.rid] for e in group],
            )

    def _note_gaps(self, state: CatalogState, live: list[Entry]) -> None:
        """Note which columns have no value in some row now, by what was written: the rows themselves are not read."""
        complete = state.complete - self.pending.cleared_columns
        for entry in live:
            written = complete if entry.new else complete & entry.columns.keys()
            complete -= {name for name in written if entry.columns.get(name) is None}
        if complete != state.complete:
            self._execute(SAVE_COMPLETE, [sorted(complete), self.pending.zoid])

    # -- idx

    def _write_idx(self, state: CatalogState, live: list[Entry]) -> None:
        """Write idx of rows whose object was not stored in this commit, and merge partial changes."""
        is_primary = self.pending.is_primary
        whole = [e for e in live if e.new and is_primary(e) and e.zoid not in self.has_idx]
        if whole:
            self._executemany(
                "UPDATE object_state SET idx = %s::jsonb WHERE zoid = %s", [[dump(e.idx), e.zoid] for e in whole]
            )
        partial = [e for e in live if not e.new and (e.idx or e.vanished)]
        self._merge_idx("object_state", "zoid", [e for e in partial if is_primary(e)])
        self._merge_idx(quote(state.relation), "rid", [e for e in partial if not is_primary(e)])

    def _merge_idx(self, table: str, key: str, entries: list[Entry]) -> None:
        if entries:
            self._executemany(
                f"UPDATE {table} SET idx = (COALESCE(idx, '{{}}') - %s::text[]) || %s::jsonb WHERE {key} = %s",
                [[sorted(e.vanished), dump(e.idx), e.rid] for e in entries],
            )

    def _execute(self, query: str, params: Any = ()) -> None:
        self.cursor.execute(query, params)

    def _executemany(self, query: str, rows: list[list[Any]]) -> None:
        self.cursor.executemany(query, rows)


def stored_entry(entry: Entry, layout: Layout) -> Entry:
    """Return *entry* with the values that a relation with the stored *layout* holds."""
    numbers = {n: as_stored(c, entry.columns[n]) for n, c in layout.interned_columns.items() if n in entry.columns}
    return dataclasses.replace(entry, columns=entry.columns | numbers) if numbers else entry


def sets_in(sets: Sets, names: Collection[str]) -> Sets:
    """Return those of *sets* that are lists of the columns *names*."""
    return {number: (name, values) for number, (name, values) in sets.items() if name in names}


def dump(idx: dict[str, Any]) -> str:
    """Return *idx* as JSON text."""
    return orjson.dumps(idx).decode()
