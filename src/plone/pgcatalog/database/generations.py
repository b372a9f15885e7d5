"""What the threads of a process know of a database's catalogs without asking it.

Catalogs are written inside the storage's commits, and those are serialised: snapshots with the same newest
transaction show the same catalogs.  The storage reads that transaction's id with every new snapshot.
"""

from collections import defaultdict
from collections.abc import Mapping
from plone.pgcatalog.database.familiarity import Familiarity
from plone.pgcatalog.database.schema import CatalogState
from plone.pgcatalog.database.shares import Shares
from typing import Any
from weakref import WeakKeyDictionary

import itertools


#: Catalogs by the zoid of their tool.
States = Mapping[int, CatalogState]

_numbers = itertools.count(1)
_databases: "WeakKeyDictionary[Any, Generations]" = WeakKeyDictionary()


class Generations:
    """The newest states known of one opened database; ``number`` is the database's own in this process."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self._newest: tuple[int, States] = (-1, {})
        #: whether the server's own settings leave room for large bitmaps; None as long as nobody has asked
        self.has_memory: bool | None = None
        #: catalog -> how much of the last pages the process knew already
        self.familiarity: defaultdict[int, Familiarity] = defaultdict(Familiarity)
        #: catalog -> which share of its rows has which values
        self.shares: defaultdict[int, Shares] = defaultdict(Shares)

    @classmethod
    def of(cls, database: Any) -> "Generations":
        """Return the one of *database*, a ZODB.DB."""
        found = _databases.get(database)
        return _databases.setdefault(database, cls()) if found is None else found

    @property
    def newest(self) -> States:
        """The states of the newest transaction anybody has looked at: a good guess for the next snapshot."""
        return self._newest[1]

    def states_at(self, tid: int | None) -> States | None:
        """Return the states in snapshots whose newest transaction is *tid*, None if they must be read."""
        newest, states = self._newest
        return states if tid == newest else None

    def remember(self, tid: int | None, states: States) -> None:
        """Note the *states* read in a snapshot whose newest transaction is *tid* (None if that is unknown)."""
        if tid is not None and tid >= self._newest[0]:
            self._newest = (tid, states)


def snapshot_tid(storage: Any) -> int | None:
    """Return the id of the newest transaction in the snapshot of *storage*, None when it proves nothing.

    A storage with history may forget its newest transactions when it is packed, and begin a second time at an older
    one.  Outside of a snapshot, as in a commit, each statement sees the newest data.
    """
    if storage.supportsUndo() or not getattr(storage, "_in_read_txn", False):
        return None
    tid: int | None = getattr(storage, "_polled_tid", None)
    return tid
