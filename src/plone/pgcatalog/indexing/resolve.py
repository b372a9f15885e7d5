"""Assigns rids to pending entries, according to the stored rows.

The rid of an object's first path is its zoid; each further path of it, and each object without an oid, gets a new oid
that no object will ever have.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import replace
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry


#: rid, path, zoid
StoredRow = tuple[int, str, int | None]
NewRid = Callable[[], int]


def unresolved(pending: CatalogPending) -> list[Entry]:
    """Return the entries without a rid, removals first: they free rids for entries at other paths."""
    entries = [pending.entries[path] for path in pending.unresolved]
    return sorted(entries, key=lambda e: not e.deleted)


def resolve(pending: CatalogPending, entries: Sequence[Entry], rows: Iterable[StoredRow], new_rid: NewRid) -> None:
    """Assign a rid to each of *entries*, and record whether its row exists.

    *rows* are the stored rows at the paths of *entries*, and of their objects.
    """
    for rid, path, zoid in rows:
        pending.stored[path] = (rid, zoid)
        pending.stored_paths[rid] = path
    for entry in entries:
        resolved = _resolve_removal(pending, entry) if entry.deleted else _resolve_row(pending, entry, new_rid)
        pending.resolve(resolved)
    # At the end, because indexers run here, and may search.
    for entry in entries:
        pending.complete(entry.path)


def _resolve_removal(pending: CatalogPending, entry: Entry) -> Entry:
    stored = pending.stored.get(entry.path)
    if stored is None:
        return replace(entry, rid=0, exists=False)
    pending.evict(stored[0])
    pending.leave(stored[1], entry.path)
    return replace(entry, rid=stored[0], zoid=stored[1], exists=True)


def _resolve_row(pending: CatalogPending, entry: Entry, new_rid: NewRid) -> Entry:
    stored = pending.stored.get(entry.path)
    has_other_rid = entry.required_rid is not None and stored is not None and entry.required_rid != stored[0]
    if (
        stored is not None
        and entry.zoid in (None, stored[1])
        and stored[0] not in pending.evicted
        and not has_other_rid
    ):
        rid, exists = stored[0], entry.exists is not False
        if not exists:
            # Removed and catalogued again in part: the stored row is replaced by one with only these values.
            pending.evict(rid)
    else:
        if stored is not None:
            pending.evict(stored[0])
        rid, exists = _free_rid(pending, entry, new_rid), False
    pending.owners[rid] = entry.path
    return replace(entry, rid=rid, exists=exists)


def _free_rid(pending: CatalogPending, entry: Entry, new_rid: NewRid) -> int:
    wanted = entry.zoid if entry.required_rid is None else entry.required_rid
    return new_rid() if wanted is None or _is_taken(pending, wanted, entry.path) else wanted


def _is_taken(pending: CatalogPending, rid: int, path: str) -> bool:
    """Return True if a row at another path has the id *rid*."""
    owner = pending.owners.get(rid)
    if owner is not None and owner != path:
        holder = pending.entries.get(owner)
        if holder is not None and not holder.deleted and holder.rid == rid:
            return True
    stored_path = pending.stored_paths.get(rid)
    if stored_path is None or stored_path == path:
        return False
    return rid not in pending.evicted
