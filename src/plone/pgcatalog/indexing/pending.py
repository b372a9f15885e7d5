"""What a transaction has catalogued, moved and removed, and has not committed yet.

Pure bookkeeping in Python: no SQL.  The overlay shows it to the transaction's own searches, the writer puts
it into PostgreSQL inside the storage's commit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One catalogued path with changes waiting.

    ``columns`` maps column names to values, ``idx`` idx keys to JSON values, ``vanished`` are idx keys whose
    value is gone.  ``full`` entries replace the row; others change it, or make one with just these values
    when the path was not catalogued (``exists`` False; None while nobody has looked).
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
    #: gives the metadata (idx keys) of an entry that left them out, should its path turn out to be new
    late: Callable[[], dict[str, Any]] | None = None

    @property
    def new(self) -> bool:
        """True when the row is written as a whole."""
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
        )


class CatalogPending:
    """The pending changes of one catalog in one transaction."""

    def __init__(self, tool: Any, zoid: int) -> None:
        self.tool = tool
        self.zoid = zoid
        #: path of the site whose catalog this is: what it knows of objects there is kept in object_state.idx, all
        #: else in the catalog's own rows; None for a catalog that is not a site's
        self.site_path: str | None = None
        self.entries: dict[str, Entry] = {}
        #: committed rows that were looked up: path -> (rid, zoid), and back
        self.stored: dict[str, tuple[int, int | None]] = {}
        self.stored_paths: dict[int, str] = {}
        #: rid -> path of the entries that have got one
        self.owners: dict[int, str] = {}
        #: committed rows to delete: removed, or their path now belongs to another object
        self.evicted: set[int] = set()
        self.cleared = False
        self.cleared_columns: frozenset[str] = frozenset()
        self.layout_changed = False
        self.dropped = False
        #: number of changes; the generation advances by it
        self.changes = 0
        #: paths the overlay has not been told about
        self.dirty: set[str] = set()
        #: True when all that the overlay has been told is void
        self.reset = False

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
        self.entries[entry.path] = entry
        self.dirty.add(entry.path)

    def delete(self, path: str) -> None:
        """Note that *path* is no longer catalogued."""
        self.changes += 1
        self.entries[path] = Entry(path, deleted=True)
        self.dirty.add(path)

    def clear(self) -> None:
        """Forget everything, committed rows included."""
        self.changes += 1
        for mapping in (self.entries, self.stored, self.stored_paths, self.owners, self.evicted, self.dirty):
            mapping.clear()
        self.cleared = self.reset = True
        self.cleared_columns = frozenset()

    def clear_columns(self, names: frozenset[str]) -> None:
        """Empty the columns *names* of all rows."""
        self.changes += 1
        self.reset = True
        self.cleared_columns |= names
        for path, entry in self.entries.items():
            kept = {k: v for k, v in entry.columns.items() if k not in names}
            self.entries[path] = replace(entry, columns=kept)

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of the state, for a savepoint."""
        copied = {k: v.copy() if isinstance(v, dict | set) else v for k, v in self.__dict__.items()}
        return copied

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that ``snapshot`` returned (which stays reusable)."""
        for key, value in state.items():
            setattr(self, key, value.copy() if isinstance(value, dict | set) else value)
        self.reset = True

    def settle_metadata(self) -> None:
        """Complete the entries of which it is now known that they make a row."""
        for path, entry in self.entries.items():
            if entry.late is not None and entry.new:
                self.entries[path] = replace(entry, idx=entry.late() | entry.idx, late=None)

    @property
    def hidden(self) -> list[int]:
        """Rids of committed rows that the entries replace or remove."""
        return [*self.evicted, *(e.rid for e in self.entries.values() if e.exists and e.rid is not None)]

    def is_primary(self, entry: Entry) -> bool:
        """True when the idx of *entry* lives in object_state."""
        if self.site_path is None or entry.rid is None or entry.rid != entry.zoid:
            return False
        return f"{entry.path}/".startswith(f"{self.site_path}/")

    def live(self) -> list[Entry]:
        """Return the entries that are rows, not removals."""
        return [e for e in self.entries.values() if not e.deleted]
