"""Merges what this transaction has catalogued with what others have changed in the same rows since its snapshot.

The storage compares objects.  But rows are also written for objects that are not stored: objects below a folder that
moves, or whose roles change.  Values computed for them from an older snapshot must not replace newer values.  So of a
row that others have changed, only the values that differ from the snapshot are written.  Pure: no SQL.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.pending import SeenRow
from typing import Any
from ZODB.POSException import ConflictError

import orjson


#: Value of a key that an idx does not have.
ABSENT = b""


@dataclass(frozen=True, slots=True)
class Current:
    """The current state of a row: its path, digests of its columns, digests of the values *ours* to be written, its idx."""

    path: str
    columns: Mapping[str, str]
    ours: Mapping[str, str]
    idx: Mapping[str, Any]


class Merge:
    """The changes of *entries* that remain to be written after a merge with those of other transactions.

    - *seen*: rows of the snapshot, by rid
    - *now*: the same rows in their current state
    - *evicted*: rids of rows to delete

    Raises ConflictError if another transaction has catalogued something in the place of an entry.
    """

    def __init__(
        self, entries: Iterable[Entry], seen: Mapping[int, SeenRow], now: Iterable[SeenRow], evicted: set[int]
    ) -> None:
        self.seen = seen
        self.now = {row.rid: row for row in now}
        self.live: dict[int, Entry] = {e.rid: e for e in entries if not e.deleted and e.rid is not None}
        self.deleted = {e.rid: e for e in entries if e.deleted and e.rid in seen and e.rid not in self.live}
        self.evicted = evicted
        #: rid -> path in this transaction
        self.paths = {rid: e.path for rid, e in self.live.items()}
        rids = self.live.keys() & seen.keys()
        self.changed = {rid: self.live[rid] for rid in rids if rid in self.now and self._differs(rid)}
        #: entries whose row others have removed
        self.removed = {rid: self.live[rid] for rid in rids if rid not in self.now}
        #: rid -> new path of rows that this transaction moves and others have changed
        self.moved: dict[int, str] = {}
        #: rids of rows that others have removed or changed a value of, as far as read; and of rows with a value changed
        #: by us
        self.theirs: set[int] = set(self.removed)
        self.ours: set[int] = set()
        self._check_places()

    @property
    def differs(self) -> bool:
        """True if others have written one of the rows."""
        return bool(self.changed or self.removed) or any(
            rid not in self.now or self._differs(rid) for rid in self.deleted
        )

    def _differs(self, rid: int) -> bool:
        old, new = self.seen[rid], self.now[rid]
        if (old.row_version, old.path) != (new.row_version, new.path):
            return True
        return new.object_version is not None and old.object_version != new.object_version

    def _check_places(self) -> None:
        unseen = {row.zoid for rid, row in self.now.items() if rid not in self.seen}
        lost = [*self.removed.values(), *(e for rid, e in self.deleted.items() if rid not in self.now)]
        for entry in lost:
            if entry.zoid is not None and entry.zoid in unseen:
                raise conflict(entry.path, "it was catalogued under another path")
        rids = {row.path: rid for rid, row in self.now.items()}
        for rid, entry in self.live.items():
            taken = rids.get(entry.path, rid)
            if self._arrives(entry) and taken != rid and taken not in self.evicted:
                raise conflict(entry.path, "another object was catalogued there")
            if rid in self.now and rid not in self.seen:
                raise conflict(entry.path, "it was catalogued")
            if rid not in self.seen and self._comes_from_changed(entry):
                raise conflict(entry.path, "its catalogued values were changed")

    def _arrives(self, entry: Entry) -> bool:
        row = self.seen.get(entry.rid or 0)
        return row is None or row.path != entry.path

    def _comes_from_changed(self, entry: Entry) -> bool:
        deleted = [e.rid for e in self.deleted.values() if e.zoid is not None and e.zoid == entry.zoid]
        return any(rid is not None and (rid not in self.now or self._differs(rid)) for rid in deleted)

    # -- values

    def merge_entry(self, entry: Entry, current: Current, always: frozenset[str], stored: bool) -> None:
        """Reduce *entry* to the values that differ from the snapshot.

        - *current*: the current state of its row
        - *always*: names of columns that are written in any case
        - *stored*: True if the idx has already been written with its object

        Raises ConflictError if others have changed the same values.
        """
        assert entry.rid is not None
        row = self.seen[entry.rid]
        if stored and entry.new and row.keys is not None:
            raise conflict(entry.path, "it was changed")
        old = row.column_digests
        columns = our_changes(entry.path, old, current.columns, current.ours, always)
        idx = {} if stored else self._idx_changes(entry, row, current)
        if entry.path not in (row.path, current.path):
            if current.path != row.path:
                raise conflict(entry.path, "it was moved")
            self.moved[entry.rid] = entry.path
        if current.path != row.path or any(old[n] != current.columns.get(n, old[n]) for n in old):
            self.theirs.add(entry.rid)
        if columns or entry.rid in self.moved:
            self.ours.add(entry.rid)
        self.evicted.discard(entry.rid)
        self.live[entry.rid] = replace(
            entry,
            path=self.moved.get(entry.rid, current.path),
            full=False,
            exists=True,
            columns={n: entry.columns[n] for n in columns},
            idx={k: entry.idx[k] for k in idx if k in entry.idx},
            vanished=frozenset(k for k in idx if k not in entry.idx),
        )

    def _idx_changes(self, entry: Entry, row: SeenRow, current: Current) -> set[str]:
        seen = orjson.loads(row.idx or "{}")
        now = {k: packed(v) for k, v in current.idx.items()}
        old = {k: packed(v) for k, v in seen.items()}
        ours = dict.fromkeys(entry.vanished, ABSENT)
        if entry.new:
            ours = dict.fromkeys([*old, *now], ABSENT)
        ours |= {k: packed(v) for k, v in entry.idx.items()}
        keys = ours.keys() | old.keys() | now.keys()
        old = {k: old.get(k, ABSENT) for k in keys if row.keys is None or k in row.keys}
        return our_changes(entry.path, old, {k: now.get(k, ABSENT) for k in keys}, ours)

    # -- trees

    def follow(self) -> None:
        """Drop the entries below a row that others have removed.

        Raises ConflictError for an entry below a row that others have changed: it may have inherited outdated values.
        """
        touched = {self.paths[rid]: rid for rid in self.theirs}
        for rid, path in self.paths.items():
            for container in ancestors(path):
                above = touched.get(container)
                if above is None or self._stays_below(rid, above):
                    continue
                if above not in self.removed:
                    raise conflict(path, f"{container} was changed")
                self.removed[rid] = self.live[rid]
        for rid in self.removed:
            self.live.pop(rid, None)

    def _stays_below(self, rid: int, above: int) -> bool:
        """Return True if the row *rid* was below the row *above* in the snapshot, too."""
        row, container = self.seen.get(rid), self.seen.get(above)
        return row is not None and container is not None and row.path.startswith(f"{container.path}/")

    def trees(self) -> list[str]:
        """Return the paths of changed rows whose removal, move or change affects the rows below them."""
        partial = [rid for rid, e in self.changed.items() if rid in self.ours and (rid in self.moved or not e.full)]
        deleted = [rid for rid in self.deleted if rid in self.now and self._differs(rid)]
        return [self.now[rid].path for rid in (*partial, *deleted)]


def our_changes(
    path: str,
    old: Mapping[str, Any],
    now: Mapping[str, Any],
    ours: Mapping[str, Any],
    always: frozenset[str] = frozenset(),
) -> set[str]:
    """Return the names of values in *ours* to write in place of *now*: the values that differ from *old*, and *always*.

    Raises ConflictError for a value that others have changed, too, or may have changed because *old* lacks it.
    """
    changes = set()
    for name, value in ours.items():
        if name in always and name in old and now[name] == old[name]:
            changes.add(name)
        elif value == now[name]:
            changes.update({name} & always)
        elif name in always or name not in old or (value != old[name] and now[name] != old[name]):
            raise conflict(path, f"{name} was changed")
        elif value != old[name]:
            changes.add(name)
    return changes


def packed(value: Any) -> bytes:
    """Return a JSON value as canonical bytes: equal values have equal bytes, and True differs from 1."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def ancestors(path: str) -> Iterator[str]:
    """Yield the paths of the containers of *path*, innermost first."""
    while "/" in path.lstrip("/"):
        path = path.rpartition("/")[0]
        yield path


def conflict(path: str, reason: str) -> ConflictError:
    return ConflictError(f"{path}: {reason} by another transaction")
