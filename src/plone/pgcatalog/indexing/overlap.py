"""Reads the changes that others have made, since the snapshot, to the rows that this transaction is about to write."""

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import replace
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.indexing.merge import Current
from plone.pgcatalog.indexing.merge import Merge
from plone.pgcatalog.indexing.pending import by_name
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.pending import SeenRow
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.files import read_statement
from psycopg import Cursor
from psycopg.rows import tuple_row
from typing import Any
from ZODB.POSException import ConflictError

import orjson


#: xmin is the transaction that wrote a row version: it changes with each update.
STORED_ROWS = read_statement("indexing", "rows_stored")
#: Selects a row that was moved below one of some paths after the newest tid in the snapshot: its object was stored
#: then.
ARRIVED = read_statement("indexing", "rows_arrived")
#: SQL expression for the idx of a row.
IDX = "COALESCE(c.idx, CASE WHEN c.rid = c.zoid THEN o.idx END)"
NEWEST_TID = "(SELECT max(tid) FROM transaction_log)"
#: Maximum number of idx keys that are read one by one; reading a whole idx is cheaper than reading more keys.
FEW_KEYS = 4


def digests(values: Iterable[str]) -> str:
    """Return an SQL expression for the text of an array with a digest of each of *values*, SQL expressions."""
    return f"ARRAY[{', '.join(f'hashtextextended(({v})::text, 0)' for v in values)}]::bigint[]::text"


def stored_rows(relation: str, entries: Iterable[Entry], values: str = "") -> tuple[str, list[Any]]:
    """Return the query, and its parameters, for the rows that *entries* may replace; *values* are more columns to select."""
    entries = list(entries)
    paths = [e.path for e in entries]
    zoids = [e.zoid for e in entries if e.zoid is not None]
    return STORED_ROWS.format(relation=quote(relation), values=values), [paths, zoids]


def seen_rows(session: Session, zoid: int, entries: Sequence[Entry]) -> list[SeenRow]:
    """Return the rows of the catalog *zoid* that *entries* may replace, as in the snapshot of *session*."""
    state = session.read_states().get(zoid)
    if state is None:
        return []
    # Values are read as digests, and only of columns that the entries may change: a tree whose roles change has many
    # rows.
    written = [e for e in entries if not e.deleted]
    whole = any(e.full for e in written)
    touched = {n for e in written for n in e.columns}
    names = tuple(sorted(n for n in state.columns if whole or n in touched))
    keys: frozenset[str] | None = frozenset(k for e in written for k in (*e.idx, *e.vanished))
    if whole or len(keys or ()) > FEW_KEYS:
        keys = None
    idx: str = IDX
    parameters: list[Any] = []
    if keys is not None:
        idx = f"(SELECT jsonb_object_agg(k, {IDX} -> k) FROM unnest(%s::text[]) k WHERE jsonb_exists({IDX}, k))"
        parameters = [sorted(keys)]
    values = f", {NEWEST_TID}, {digests(f'c.{quote(n)}' for n in names)}, ({idx})::text"
    statement, rest = stored_rows(state.relation, entries, values)
    rows = session.query(Statement(statement, (*parameters, *rest)))
    return [SeenRow._make((*row, names, keys)) for row in rows]


def merge(
    cursor: Cursor[Any],
    state: CatalogState,
    types: dict[str, str],
    entries: list[Entry],
    pending: CatalogPending,
    has_idx: set[int],
) -> Merge | None:
    """Return the changes that remain to be written if others have changed rows of *pending*, otherwise None.

    - *cursor*: that of the commit
    - *types*: column name -> SQL type
    - *entries*: the entries of *pending*, with values as they are stored
    - *has_idx*: zoids of the objects whose idx is stored with their state

    Raises ConflictError if both have changed the same value.
    """
    cursor.execute(*stored_rows(state.relation, entries))
    result = Merge(entries, pending.seen, (SeenRow(*row) for row in cursor), set(pending.evicted))
    if not result.differs:
        return None
    for entry, current in currents(cursor, state, types, result):
        result.merge_entry(entry, current, pending.cleared_columns, entry.zoid in has_idx and pending.is_primary(entry))
    result.follow()
    trees = result.trees()
    if trees:
        rids = [e.rid for e in entries]
        newest = min(row.newest for row in pending.seen.values())
        cursor.execute(ARRIVED.format(relation=quote(state.relation)), [trees, newest, rids])
        for (path,) in cursor:
            raise ConflictError(f"{path} was added to a tree that this transaction changes")
    return result


def currents(
    cursor: Cursor[Any], state: CatalogState, types: dict[str, str], merge: Merge
) -> Iterable[tuple[Entry, Current]]:
    """Yield (entry, current row) for each changed entry of *merge*; the entry has all columns that it would write."""
    for rid, entry in merge.changed.items():
        columns = {n: entry.columns.get(n) for n in types if entry.new or n in entry.columns}
        names = [n for n in types if n in columns or n in merge.seen[rid].names]
        cursor.execute(
            f"SELECT c.path, {digests(f'c.{quote(n)}' for n in names)},"
            f" {digests(f'%s::{types[n]}' for n in columns)}, ({IDX})::text"
            f" FROM {quote(state.relation)} c LEFT JOIN object_state o ON o.zoid = c.zoid WHERE c.rid = %s",
            [*columns.values(), rid],
        )
        [(path, now, ours, idx)] = cursor.fetchall()
        current = Current(path, by_name(names, now), by_name(columns, ours), orjson.loads(idx or "{}"))
        yield replace(entry, columns=columns), current


#: Selects the rids of rows whose digests are unchanged.
SAME = """
SELECT row.rid FROM unnest(%s::bigint[], %s::text[]) AS seen (rid, digests)
JOIN {relation} AS row USING (rid) WHERE {digests} = seen.digests
"""


def changed_objects(cursor: Cursor[Any], pending: CatalogPending, relation: str) -> dict[str, list[int]]:
    """Return kind of job -> zoids of the objects that need it, because one of the columns for this kind has changed.

    *cursor* is that of the commit, and has written the rows into *relation*.
    """
    entries = [entry for entry in pending.live() if entry.jobs_of_columns and entry.zoid is not None]
    found: dict[str, list[int]] = {}
    for kind in dict.fromkeys(kind for entry in entries for kind in entry.jobs_of_columns):
        of_kind = [entry for entry in entries if kind in entry.jobs_of_columns]
        same = _unchanged(cursor, pending, relation, kind, of_kind)
        zoids = [entry.zoid for entry in of_kind if entry.rid not in same and entry.zoid is not None]
        if zoids:
            found[kind] = zoids
    return found


def _unchanged(
    cursor: Cursor[Any], pending: CatalogPending, relation: str, kind: str, entries: Iterable[Entry]
) -> set[int]:
    """Return the rids of *entries* that have the same values as before in all columns for jobs of *kind*."""
    by_columns: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    same = set()
    for entry in entries:
        row = None if pending.cleared or entry.rid is None else pending.seen.get(entry.rid)
        if row is None or entry.rid is None:
            continue
        row_digests = row.column_digests
        columns = tuple(sorted(entry.jobs_of_columns[kind] & row_digests.keys() & entry.columns.keys()))
        if columns:
            digests_of_row = f"{{{','.join(row_digests[name] for name in columns)}}}"
            by_columns.setdefault(columns, []).append((entry.rid, digests_of_row))
        else:
            same.add(entry.rid)
    cursor = cursor.connection.cursor(row_factory=tuple_row)
    for columns, rows in by_columns.items():
        query = SAME.format(relation=quote(relation), digests=digests(f"row.{quote(name)}" for name in columns))
        same |= {rid for (rid,) in cursor.execute(query, [*map(list, zip(*rows, strict=True))])}
    return same
