"""Shows a transaction its own uncommitted catalog rows.

A temporary table on the snapshot connection contains the pending rows as a whole, and a tombstone (a row without path)
for each committed row that is deleted.  The catalog's source becomes "committed rows whose rid is not in the table,
UNION ALL pending rows".  The table is created when a search meets pending changes, and PostgreSQL empties it when the
snapshot ends.

Plone searches for each object of a tree that it moves.  So a search writes only the changes since the last search to
the table, and finds single pending rows by an index.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.database.sets import CachedSets
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.indexing.manager import resolve_pending
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.query.ranked import Source
from plone.pgcatalog.sql.values import as_stored
from plone.pgcatalog.sql.values import set_number
from typing import Any


#: Temporary table with the unsaved lists of pending rows, of all catalogs.
LISTS = "pg_temp.pgcatalog_pending_lists"
CREATE_LISTS = (
    'CREATE TEMP TABLE IF NOT EXISTS pgcatalog_pending_lists (number bigint PRIMARY KEY, vals text[] COLLATE "C")'
    " ON COMMIT DELETE ROWS"
)
FIXED = ("rid", "path", "zoid")


class ScratchTable:
    """A temporary table with the columns of a catalog, on the snapshot connection; emptied when the snapshot ends."""

    def __init__(self, session: Session, name: str, layout: Layout, indexes: Sequence[str] = ()) -> None:
        self.messages = session.messages
        self.layout = layout
        name = f"{name}_{layout.signature}"
        self.name = f"pg_temp.{quote(name)}"
        self.columns = ", ".join([*FIXED, *(c.quoted for c in layout.columns)])
        table = (
            f"CREATE TEMP TABLE IF NOT EXISTS {quote(name)}"
            ' (rid bigint, path text COLLATE "C", zoid bigint'
            + "".join(f", {c.ddl}" for c in layout.columns)
            + ", moved boolean) ON COMMIT DELETE ROWS"
        )
        statements = [
            f"CREATE INDEX IF NOT EXISTS {quote(f'{name}_{i}')} ON {self.name} {definition}"
            for i, definition in enumerate(indexes)
        ]
        self._create = "; ".join([table, *statements])

    def create(self) -> None:
        """Create the table if it does not exist."""
        self.messages.run(self._create)

    def clear(self, paths: list[str] | None = None) -> None:
        """Delete the rows at *paths*, or all rows."""
        if paths is None:
            self.messages.write(f"DELETE FROM {self.name}", ())
        else:
            self.messages.write(f"DELETE FROM {self.name} WHERE path = ANY(%s::text[])", (paths,))

    def insert(self, entries: list[Entry]) -> None:
        """Insert *entries*, which are whole rows."""
        columns = self.layout.columns
        types = ["bigint", "text", "bigint", *(c.type for c in columns)]
        self.messages.write(
            f"INSERT INTO {self.name} ({self.columns}) VALUES ({', '.join(f'%s::{t}' for t in types)})",
            *([e.rid, e.path, e.zoid, *(as_stored(c, e.columns.get(c.name)) for c in columns)] for e in entries),
        )

    def mark_moved(self, rids: list[int]) -> None:
        """Mark the rows *rids* as moved from another path."""
        if rids:
            self.messages.write(f"UPDATE {self.name} SET moved = true WHERE rid = ANY(%s::bigint[])", (rids,))

    def add_tombstones(self, rids: list[int]) -> None:
        """Insert rows that consist of a record id only, one for each of *rids*."""
        if rids:
            self.messages.write(f"INSERT INTO {self.name} (rid) SELECT unnest(%s::bigint[])", (rids,))


class Overlay:
    """The pending rows of one catalog in a temporary table."""

    def __init__(self, session: Session, pending: CatalogPending, layout: Layout) -> None:
        self.session = session
        self.pending = pending
        self.layout = layout
        indexes = ["(rid)", "(path)", *(i.definition for i in layout.indexes if i.finds_few)]
        self.stored = layout.with_interned(layout.interned(session.read_states().get(pending.zoid)))
        self.table = ScratchTable(session, f"pgcatalog_overlay_{pending.zoid:x}", self.stored, indexes)
        resolve_pending(session, pending)
        self.fill()

    def fill(self) -> None:
        """Create the table, and have the next message write the pending rows, unless some have no rid yet."""
        self.table.create()
        self.pending.reset = True
        #: lists of pending rows, and possibly of rows that are no longer pending
        self.sets = CachedSets(is_bounded=False)
        #: name of the table with the unsaved lists; empty while there are none
        self.lists = ""
        if not self.pending.unresolved:
            self._write()

    def source(self) -> Source:
        """Return the union of committed and pending rows, after the table was updated."""
        resolve_pending(self.session, self.pending)
        self._write()
        state = None if self.pending.cleared else self.session.read_states().get(self.pending.zoid)
        pending = f"SELECT {self.table.columns} FROM {self.table.name} WHERE path IS NOT NULL"
        if state is None:
            return f"({pending}) AS catalog", ()
        committed = (
            f"SELECT {self._committed(state)} FROM {quote(state.relation)} AS committed"
            f" WHERE NOT EXISTS (SELECT FROM {self.table.name} AS hiding WHERE hiding.rid = committed.rid)"
        )
        return f"({committed} UNION ALL {pending}) AS catalog", ()

    def moved(self) -> str:
        """Return the SQL condition for rows of the source that this transaction has moved."""
        moved = f"SELECT moved FROM {self.table.name} AS here WHERE here.rid = catalog.rid AND here.path IS NOT NULL"
        return f"({moved}) IS TRUE"

    def _committed(self, state: CatalogState) -> str:
        """Return the columns to select from the committed relation: NULL for missing columns and for those to be emptied."""
        lost = self.pending.cleared_columns
        columns = [
            c.quoted if c.name in state.columns and c.name not in lost else f"NULL::{c.type} AS {c.quoted}"
            for c in self.stored.columns
        ]
        return ", ".join([*FIXED, *columns])

    def _write(self) -> None:
        """Have the next message write the changes since the last call."""
        pending = self.pending
        if pending.reset:
            self.table.clear()
            pending.dirty.update(pending.entries)
            pending.unsynced_deletions.update(pending.evicted)
            pending.reset = False
        elif not pending.dirty:
            return
        else:
            self.table.clear(list(pending.dirty))
        self.table.add_tombstones(list(pending.unsynced_deletions))
        pending.unsynced_deletions.clear()
        entries = [pending.entries[path] for path in pending.dirty if path in pending.entries]
        live = [e for e in entries if not e.deleted]
        self._store_sets(live)
        self.table.insert([e for e in live if e.new])
        self._insert_changed([e for e in live if not e.new])
        self.table.mark_moved([e.rid for e in live if e.rid is not None and pending.is_moved(e)])
        pending.dirty.clear()

    def _store_sets(self, entries: list[Entry]) -> None:
        """Cache the lists of *entries*; have the unsaved ones written to the table of lists."""
        lists = list(sets_of(entries, self.stored.interned_columns))
        saved = self.session.generations.sets
        new = {number: values for number, _, values in lists if number not in self.sets and number not in saved}
        self.sets.store(lists)
        if new:
            if not self.lists:
                self.session.messages.run(CREATE_LISTS)
                self.lists = LISTS
            statement = f"INSERT INTO {LISTS} VALUES (%s::bigint, %s::text[]) ON CONFLICT DO NOTHING"
            self.session.messages.write(statement, *new.items())

    def _insert_changed(self, entries: list[Entry]) -> None:
        """Copy the committed rows of the partial *entries*, and apply the changes of these."""
        state = self.session.read_states().get(self.pending.zoid)
        if not entries or state is None:
            return
        self.session.messages.write(
            f"INSERT INTO {self.table.name} ({self.table.columns}) SELECT {self._committed(state)}"
            f" FROM {quote(state.relation)} WHERE rid = ANY(%s::bigint[])",
            ([e.rid for e in entries],),
        )
        by_name = {c.name: c for c in self.stored.columns}
        for names, group in by_columns(entries, by_name):
            columns = [by_name[name] for name in names]
            assignments = ", ".join(f"{c.quoted} = %s::{c.type}" for c in columns)
            self.session.messages.write(
                f"UPDATE {self.table.name} SET {assignments} WHERE rid = %s",
                *([*(as_stored(c, e.columns[c.name]) for c in columns), e.rid] for e in group),
            )


def sets_of(entries: Iterable[Entry], names: Collection[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield (number, column, list) for each list that *entries* have in the columns *names*."""
    for entry in entries:
        for name in names:
            values = entry.columns.get(name)
            if values is not None:
                yield set_number(name, values), name, values


def by_columns(entries: list[Entry], names: Any) -> list[tuple[tuple[str, ...], list[Entry]]]:
    """Return partial *entries* grouped by the columns in *names* that they change, without entries that change none."""
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        columns = tuple(sorted(n for n in entry.columns if n in names))
        if columns:
            groups.setdefault(columns, []).append(entry)
    return list(groups.items())
