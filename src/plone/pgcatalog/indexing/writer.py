"""Writes the pending changes of one catalog inside the storage's commit.

Runs on the cursor of ``finalize``: in the PostgreSQL transaction that stores the objects, READ COMMITTED, serialised
with all other writers by the storage's lock.
"""

from dataclasses import replace
from plone.pgcatalog.database import counts
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.indexing.merge import Merge
from plone.pgcatalog.indexing.overlap import merge
from plone.pgcatalog.indexing.overlay import by_columns
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.transition import Transitions
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.values import as_stored
from psycopg import Cursor
from psycopg.rows import tuple_row
from typing import Any
from ZODB.POSException import ConflictError

import orjson


#: Saves the columns with a value in every row, when there are fewer of them.
SAVE_COMPLETE = "UPDATE pgcatalog_state SET complete = %s WHERE catalog = %s"
#: The writing transaction's own tid is the newest in the log; the processor has checked this.
LOG_CHANGES = (
    "INSERT INTO pgcatalog_changes (tid, catalog, path)"
    " SELECT (SELECT max(tid) FROM transaction_log), %s, unnest(%s::text[]) ON CONFLICT DO NOTHING"
)
#: Others may have moved the merged rows, so their paths are logged for a rebuild, too.
LOG_MERGED_FOR_REBUILD = (
    "INSERT INTO pgcatalog_rebuild_change (catalog, path)"
    " SELECT catalog, unnest(%s::text[]) FROM pgcatalog_rebuild WHERE catalog = %s"
)


class Writer:
    """Writes the changes *pending* in *session* to PostgreSQL with *cursor*.

    *has_idx* are the zoids whose idx was stored in object_state together with their state.
    """

    def __init__(self, cursor: Cursor[Any], session: Session, pending: CatalogPending, has_idx: set[int]) -> None:
        self.cursor = cursor.connection.cursor(row_factory=tuple_row)
        self.session = session
        self.pending = pending
        self.has_idx = has_idx
        self.transitions = Transitions(self.cursor, session, pending, has_idx)

    def write(self) -> str | None:
        """Write all changes; return the relation of the rows, None for a catalog that is dropped.

        Raises psycopg.Error or ConflictError, which abort the commit.
        """
        pending = self.pending
        self._log([*pending.entries, *([""] if pending.cleared or pending.dropped else [])])
        if pending.dropped:
            self.transitions.drop()
            return None
        state = self.transitions.advance()
        layout = self.transitions.layout
        self.stored = layout.with_interned(layout.interned(state))
        self.types = {c.name: c.type for c in self.stored.columns if c.name in state.columns}
        entries = [stored_entry(entry, self.stored) for entry in pending.entries.values()]
        merged = self._merge(state, entries)
        live, evicted = [entry for entry in entries if not entry.deleted], list(pending.evicted)
        if merged is not None:
            live, evicted = list(merged.live.values()), list(merged.evicted)
        self._empty_columns(state)
        if evicted:
            self.transitions.evict(state.relation, evicted)
        if merged is not None:
            self._follow(state, merged)
        self._write_rows(state, [e for e in live if e.new])
        self._change_rows(state, [e for e in live if not e.new])
        self._write_idx(state, live)
        self._note_gaps(state, live)
        before = state.generation - pending.steps
        if len(live) >= counts.FOLD_ROWS or state.generation // counts.FOLD_COMMITS > before // counts.FOLD_COMMITS:
            counts.fold(self.cursor, state.relation)
        return state.relation

    def _empty_columns(self, state: CatalogState) -> None:
        names = sorted(self.pending.cleared_columns & state.columns)
        if names:
            assignments = ", ".join(f"{quote(n)} = NULL" for n in names)
            self.cursor.execute(f"UPDATE {quote(state.relation)} SET {assignments}")

    def _merge(self, state: CatalogState, entries: list[Entry]) -> Merge | None:
        """Return the changes of *entries* that remain to be written, None if others have not changed the rows.

        Raises ConflictError.
        """
        pending = self.pending
        seen = self.transitions.seen_state
        unchanged = seen is not None and seen.generation + pending.steps == state.generation
        if unchanged or not pending.entries or pending.replacement is not None:
            return None
        if pending.cleared:
            if seen is not None:
                raise ConflictError("the catalog was changed by another transaction while this one refilled it")
            return None
        return merge(self.cursor, state, self.types, entries, pending, self.has_idx)

    def _follow(self, state: CatalogState, merged: Merge) -> None:
        """Delete the idx of rows that others have removed, and move rows that others have changed."""
        forgotten = [e.rid for e in merged.removed.values() if self.pending.is_primary(e)]
        if forgotten:
            self.cursor.execute("UPDATE object_state SET idx = NULL WHERE zoid = ANY(%s)", [forgotten])
        paths = [e.path for e in merged.live.values()]
        self._log(paths)
        self.cursor.execute(LOG_MERGED_FOR_REBUILD, [paths, self.pending.zoid])
        # First to a path that no row has: two rows may change places.
        for statement in (
            "UPDATE {} SET path = rid::text WHERE path <> %s AND rid = %s",
            "UPDATE {} SET path = %s WHERE rid = %s",
        ):
            if merged.moved:
                self.cursor.executemany(
                    statement.format(quote(state.relation)), [[path, rid] for rid, path in merged.moved.items()]
                )

    def _log(self, paths: list[str]) -> None:
        if self.session.preserves_history:
            self.cursor.execute(LOG_CHANGES, [self.pending.zoid, paths])

    def _write_rows(self, state: CatalogState, entries: list[Entry]) -> None:
        if not entries:
            return
        names = ["rid", "path", "zoid", "idx", *map(quote, self.types)]
        values = ["%s::bigint", "%s::text", "%s::bigint", "%s::jsonb", *(f"%s::{t}" for t in self.types.values())]
        updates = ", ".join(f"{n} = EXCLUDED.{n}" for n in names[1:])
        is_primary = self.pending.is_primary
        self.cursor.executemany(
            f"INSERT INTO {quote(state.relation)} ({', '.join(names)}) VALUES ({', '.join(values)})"
            f" ON CONFLICT (rid) DO UPDATE SET {updates}",
            [
                [
                    e.rid,
                    e.path,
                    e.zoid,
                    None if is_primary(e) else dump(e.idx),
                    *(e.columns.get(name) for name in self.types),
                ]
                for e in entries
            ],
        )

    def _change_rows(self, state: CatalogState, entries: list[Entry]) -> None:
        relation = quote(state.relation)
        for columns, group in by_columns(entries, self.types):
            types, values = [self.types[n] for n in columns], [[e.columns[n] for n in columns] for e in group]
            if len(group) == 1 or any(each.endswith("[]") for each in types):
                assignments = ", ".join(f"{quote(n)} = %s::{self.types[n]}" for n in columns)
                statement = f"UPDATE {relation} SET {assignments} WHERE rid = %s"
                self.cursor.executemany(statement, [[*row, e.rid] for row, e in zip(values, group, strict=True)])
                continue
            # A single statement, because each statement runs the triggers.
            assignments = ", ".join(f"{quote(n)} = new.{quote(n)}" for n in columns)
            arrays = ", ".join(["%s::bigint[]", *(f"%s::{each}[]" for each in types)])
            self.cursor.execute(
                f"UPDATE {relation} AS row SET {assignments}"
                f" FROM unnest({arrays}) AS new (rid, {', '.join(map(quote, columns))}) WHERE row.rid = new.rid",
                [[e.rid for e in group], *map(list, zip(*values, strict=True))],
            )

    def _note_gaps(self, state: CatalogState, live: list[Entry]) -> None:
        """Save which columns now have no value in some row, judging by the written entries: the rows are not read."""
        complete = state.complete - self.pending.cleared_columns
        for entry in live:
            written = complete if entry.new else complete & entry.columns.keys()
            complete -= {name for name in written if entry.columns.get(name) is None}
        if complete != state.complete:
            self.cursor.execute(SAVE_COMPLETE, [sorted(complete), self.pending.zoid])

    # -- idx

    def _write_idx(self, state: CatalogState, live: list[Entry]) -> None:
        """Write the idx of rows whose object is not stored in this commit, and merge partial changes."""
        is_primary = self.pending.is_primary
        whole = [e for e in live if e.new and is_primary(e) and e.zoid not in self.has_idx]
        if whole:
            self.cursor.executemany(
                "UPDATE object_state SET idx = %s::jsonb WHERE zoid = %s", [[dump(e.idx), e.zoid] for e in whole]
            )
        partial = [e for e in live if not e.new and (e.idx or e.vanished)]
        self._merge_idx("object_state", "zoid", [e for e in partial if is_primary(e) and e.zoid not in self.has_idx])
        self._merge_idx(quote(state.relation), "rid", [e for e in partial if not is_primary(e)])

    def _merge_idx(self, table: str, key: str, entries: list[Entry]) -> None:
        if entries:
            changes = [dump([e.idx, sorted(e.vanished)]) for e in entries]
            self.cursor.execute(
                f"UPDATE {table} AS row SET idx ="
                " (COALESCE(row.idx, '{}') - ARRAY(SELECT jsonb_array_elements_text(change -> 1))) || (change -> 0)"
                f" FROM unnest(%s::bigint[], %s::jsonb[]) AS new (key, change) WHERE row.{key} = new.key",
                [[e.rid for e in entries], changes],
            )


def stored_entry(entry: Entry, layout: Layout) -> Entry:
    """Return *entry* in the form that a relation with *layout* stores: lists of interned columns replaced by numbers."""
    numbers = {n: as_stored(c, entry.columns[n]) for n, c in layout.interned_columns.items() if n in entry.columns}
    return replace(entry, columns=entry.columns | numbers) if numbers else entry


def dump(idx: Any) -> str:
    """Return *idx*, or a change of one, as JSON text."""
    return orjson.dumps(idx).decode()
