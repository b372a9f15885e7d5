"""The changes of a transaction to catalogs that are not committed yet: entries catalogued, moved and removed.

Pure bookkeeping in Python: no SQL.  The overlay shows the changes to the transaction's own searches, the writer writes
them to PostgreSQL inside the storage's commit.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from typing import Any
from typing import NamedTuple
from weakref import WeakSet


#: Attributes that a savepoint copies; the dictionaries have a journal.
SCALARS = (
    "site_path",
    "cleared",
    "cleared_columns",
    "layout_changed",
    "dropped",
    "changes",
    "replacement",
    "is_whole",
    "own_jobs",
    "is_backfill",
)

_absent = object()


class Mark:
    """A position in a journal; the journal can return to it while it is referenced."""

    def __init__(self, position: int, state: Any) -> None:
        self.position = position
        #: data of the journal's owner, to be restored with the position
        self.state = state


class Journal:
    """Undo log of the changes of its dictionaries, newest last; empty while no mark is alive.

    Plone sets a savepoint for each object of a tree that it copies.  If each one copied all pending changes, time and
    memory would grow with the square of the tree's size.
    """

    def __init__(self) -> None:
        self._marks: WeakSet[Mark] = WeakSet()
        self._undo: list[tuple[JournaledDict, Any, Any]] = []
        #: position of the first element of the list; older ones have been discarded
        self._start = 0

    def __len__(self) -> int:
        return len(self._undo)

    def mark(self, state: Any) -> Mark:
        """Return a mark of the current position with *state*; discard the part of the log that no older mark needs."""
        position = self._start + len(self._undo)
        oldest = min((mark.position for mark in self._marks), default=position)
        del self._undo[: oldest - self._start]
        self._start = oldest
        mark = Mark(position, state)
        self._marks.add(mark)
        return mark

    def rewind(self, mark: Mark) -> None:
        """Undo all changes since *mark*, which stays usable."""
        while len(self._undo) > mark.position - self._start:
            target, key, value = self._undo.pop()
            if value is _absent:
                dict.pop(target, key, None)
            else:
                dict.__setitem__(target, key, value)

    def note(self, target: "JournaledDict", key: Any) -> None:
        """Log the value of *target* at *key*, which is about to change."""
        if self._marks:
            self._undo.append((target, key, target.get(key, _absent)))


class JournaledDict(dict[Any, Any]):
    """A dict whose changes, made by the methods defined here, *journal* can undo."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def __setitem__(self, key: Any, value: Any) -> None:
        self._journal.note(self, key)
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        self._journal.note(self, key)
        super().__delitem__(key)

    def pop(self, key: Any, default: Any = None) -> Any:
        """Remove *key* and return its value, *default* if it is absent."""
        if key in self:
            self._journal.note(self, key)
        return super().pop(key, default)

    def clear(self) -> None:
        """Remove all items."""
        for key in self:
            self._journal.note(self, key)
        super().clear()


@dataclass(frozen=True, slots=True)
class Entry:
    """Pending changes of one catalogued path.

    - ``columns``: column name -> value
    - ``idx``: idx key -> JSON value
    - ``vanished``: idx keys that no longer have a value
    - ``full``: the entry replaces the row; otherwise it changes the row, or creates one with only these values if there
      is none
    - ``exists``: whether there is a row; None until it is looked up
    """

    path: str
    zoid: int | None = None
    rid: int | None = None
    full: bool = False
    deleted: bool = False
    exists: bool | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    idx: dict[str, Any] = field(default_factory=dict)
    vanished: frozenset[str] = frozenset()
    #: returns the metadata (idx keys) that the entry leaves out, in case its path turns out to be new
    late: Callable[[], dict[str, Any]] | None = None
    #: rid of the row before it was moved with its values unchanged
    required_rid: int | None = None
    #: kinds of jobs that the object needs after the commit
    jobs: frozenset[str] = frozenset()
    #: kind of job -> columns; the object needs the job if one of them gets another value
    jobs_of_columns: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def new(self) -> bool:
        """True if the row is written as a whole."""
        return self.full or self.exists is False

    def merged(self, later: "Entry") -> "Entry":
        """Return this entry with the partial *later* one applied."""
        idx = {k: v for k, v in self.idx.items() if k not in later.vanished} | later.idx
        vanished = frozenset() if self.full else (self.vanished | later.vanished) - later.idx.keys()
        return replace(
            self,
            columns=self.columns | later.columns,
            idx=idx,
            vanished=vanished,
            late=self.late and later.late,
            jobs=self.jobs | later.jobs,
            jobs_of_columns={**self.jobs_of_columns, **later.jobs_of_columns},
        )


class SeenRow(NamedTuple):
    """A committed row of the catalog; versions are PostgreSQL's (xmin), of the row and of its object's row.

    ``object_version`` is None for an object that this very commit stores: the storage has compared that one.
    """

    rid: int
    path: str
    zoid: int | None
    row_version: str
    object_version: str | None
    #: tid of the newest transaction in the snapshot
    newest: int = 0
    #: digests of the columns ``names``, in this order, as text of an SQL array; idx as JSON text, only its ``keys``
    #: unless None
    digests: str = "{}"
    idx: str | None = None
    names: tuple[str, ...] = ()
    keys: frozenset[str] | None = frozenset()

    @property
    def column_digests(self) -> dict[str, str]:
        return by_name(self.names, self.digests)


def by_name(names: Iterable[str], array: str) -> dict[str, str]:
    """Return *array*, text of an SQL array with a number for each of *names*, as a dict: name -> text of the number."""
    return dict(zip(names, array.strip("{}").split(","), strict=False))


class CatalogPending:
    """The pending changes of one catalog in one transaction."""

    def __init__(self, tool: Any, zoid: int) -> None:
        self.tool = tool
        self.zoid = zoid
        #: path of the site whose catalog this is, None if it is not a site's; the idx of objects below the path is
        #: stored in object_state.idx, any other idx in the catalog's own rows
        self.site_path: str | None = None
        self._journal = Journal()
        self.entries: dict[str, Entry] = JournaledDict(self._journal)
        #: paths of the entries without a rid, in their order
        self.unresolved: dict[str, None] = JournaledDict(self._journal)
        #: committed rows that were looked up: path -> (rid, zoid), and back
        self.stored: dict[str, tuple[int, int | None]] = JournaledDict(self._journal)
        self.stored_paths: dict[int, str] = JournaledDict(self._journal)
        #: rid -> committed row in the snapshot, for comparison: another transaction may change it meanwhile
        self.seen: dict[int, SeenRow] = {}
        #: rid -> path, of the entries that have a rid
        self.owners: dict[int, str] = JournaledDict(self._journal)
        #: rids of committed rows to delete: removed, or their path now belongs to another object
        self.evicted: dict[int, None] = JournaledDict(self._journal)
        #: zoid -> path where the object was in this transaction, and from which it was removed
        self.left: dict[int, str] = JournaledDict(self._journal)
        #: differences between the mappings of ZCatalog's names and the rows, until the commit: path -> rid and rid ->
        #: path, None for a key that was deleted from one of them
        self.uids: dict[str, int | None] = JournaledDict(self._journal)
        self.paths: dict[int, str | None] = JournaledDict(self._journal)
        #: paths of the rows that were deleted from both mappings
        self.nameless: dict[str, None] = JournaledDict(self._journal)
        self.cleared = False
        self.cleared_columns: frozenset[str] = frozenset()
        self.layout_changed = False
        self.dropped = False
        #: True if the relation that this commit creates will be complete: the catalog is new, or filled anew
        self.is_whole = False
        #: called with the commit's cursor and the state to install another relation, from a finished rebuild; returns
        #: the new state
        self.replacement: Callable[[Any, Any], Any] | None = None
        #: kinds of jobs that concern the catalog itself
        self.own_jobs: frozenset[str] = frozenset()
        #: True if the jobs of objects are part of a backfill
        self.is_backfill = False
        #: number of changes; the generation advances by it
        self.changes = 0
        #: paths with changes that the overlay does not have yet
        self.dirty: set[str] = set()
        #: evicted rids that the overlay does not have yet
        self.unsynced_deletions: set[int] = set()
        #: True if the content of the overlay is invalid
        self.reset = False

    @property
    def layout(self) -> Any:
        """The layout that the catalog's indexes require now."""
        return self.tool._core.layout()

    @property
    def steps(self) -> int:
        """The number by which the commit advances the catalog's generation."""
        return max(self.changes, 1)

    def put(self, entry: Entry) -> None:
        """Add a full or partial *entry*."""
        self.changes += 1
        earlier = self.entries.get(entry.path)
        if earlier is not None and not entry.full and not earlier.deleted:
            entry = earlier.merged(entry)
        elif earlier is not None and earlier.deleted and not entry.full:
            entry = replace(entry, exists=False)
        elif earlier is not None and earlier.rid is not None and earlier.zoid == entry.zoid and not earlier.deleted:
            entry = replace(entry, rid=earlier.rid, exists=earlier.exists)
        self._enter(entry)

    def delete(self, path: str) -> None:
        """Record that *path* is no longer catalogued."""
        self.changes += 1
        earlier = self.entries.get(path)
        if earlier is not None and not earlier.deleted:
            self.leave(earlier.zoid, path)
        self._enter(Entry(path, deleted=True))

    def delete_nameless(self) -> None:
        """Delete the rows that have lost both their path and their rid in the mappings of ZCatalog's names."""
        for path in list(self.nameless):
            self.delete(path)

    def _enter(self, entry: Entry) -> None:
        self.entries[entry.path] = entry
        self.uids.pop(entry.path, None)
        self.nameless.pop(entry.path, None)
        self.dirty.add(entry.path)
        if entry.rid is None:
            self.unresolved[entry.path] = None

    def resolve(self, entry: Entry) -> None:
        """Replace the entry without a rid by *entry*, which has one."""
        self.entries[entry.path] = entry
        if entry.path in self.unresolved:
            del self.unresolved[entry.path]

    def complete(self, path: str) -> None:
        """Add the metadata that the entry at *path* left out, if the entry has turned out to be a new row."""
        entry = self.entries[path]
        if entry.late is not None and entry.new:
            self.entries[path] = replace(entry, idx=entry.late() | entry.idx, late=None)

    def leave(self, zoid: int | None, path: str) -> None:
        """Record that the object *zoid* is no longer at *path*."""
        if zoid is not None:
            self.left[zoid] = path

    def is_moved(self, entry: Entry) -> bool:
        """Return True if the object of *entry* was at another path before, in this transaction or in the snapshot."""
        return entry.zoid is not None and self.left.get(entry.zoid, entry.path) != entry.path

    def evict(self, rid: int) -> None:
        """Record that the committed row *rid* is to be deleted."""
        if rid not in self.evicted:
            self.evicted[rid] = None
            self.unsynced_deletions.add(rid)

    def clear(self) -> None:
        """Discard all entries, and record that all committed rows are to be deleted."""
        self.changes += 1
        self.entries.clear()
        self.unresolved.clear()
        self.left.clear()
        for names in (self.uids, self.paths, self.nameless):
            names.clear()
        self.forget_rows()
        self.dirty.clear()
        self.cleared = self.reset = self.is_whole = True
        self.cleared_columns = frozenset()

    def forget_rows(self) -> None:
        """Clear the cached data of committed rows."""
        for mapping in (self.stored, self.stored_paths, self.owners, self.evicted, self.unsynced_deletions):
            mapping.clear()

    def clear_columns(self, names: frozenset[str]) -> None:
        """Record that the columns *names* become NULL in all rows."""
        self.changes += 1
        self.reset = True
        self.cleared_columns |= names
        for path, entry in self.entries.items():
            remaining = {k: v for k, v in entry.columns.items() if k not in names}
            self.entries[path] = replace(entry, columns=remaining)

    def see(self, rows: Iterable[SeenRow]) -> None:
        """Cache the committed *rows*; of several versions, the one with the most columns."""
        for row in rows:
            before = self.seen.get(row.rid)
            if before is None or len(before.names) <= len(row.names):
                self.seen[row.rid] = row

    def snapshot(self) -> Mark:
        """Return a mark of the current state, for a savepoint."""
        return self._journal.mark({name: getattr(self, name) for name in SCALARS})

    def restore(self, mark: Mark) -> None:
        """Return to the state of *mark*, from ``snapshot``; *mark* stays usable."""
        self._journal.rewind(mark)
        for name, value in mark.state.items():
            setattr(self, name, value)
        self.reset = True

    def pending_at(self, rid: int) -> Entry | None:
        """Return the pending entry with the row id *rid*, None if there is none."""
        entry = self.entries.get(self.owners.get(rid, ""))
        return None if entry is None or entry.deleted or entry.rid != rid else entry

    def is_primary(self, entry: Entry) -> bool:
        """Return True if the idx of *entry* is stored in object_state."""
        if self.site_path is None or entry.rid is None or entry.rid != entry.zoid:
            return False
        return f"{entry.path}/".startswith(f"{self.site_path}/")

    def jobs(self) -> dict[str, list[int]]:
        """Return kind of job -> zoids of the objects that need it."""
        jobs: dict[str, list[int]] = {}
        for entry in self.live():
            for kind in entry.jobs:
                if entry.zoid is not None:
                    jobs.setdefault(kind, []).append(entry.zoid)
        return jobs

    def live(self) -> list[Entry]:
        """Return the entries that are rows, without removals."""
        return [e for e in self.entries.values() if not e.deleted]
