"""The process's cache of answers: shared by its threads, bounded by bytes, the least recently used go first.

Keys begin with a ``Stamp``, which names one state of one catalog: an answer is only ever found by transactions whose
snapshot shows that state.  Nothing needs to be invalidated; answers of earlier states fall out in time.
"""

from collections import OrderedDict
from collections.abc import Hashable
from functools import cache
from plone.pgcatalog.settings import result_cache_mb
from typing import Any
from typing import NamedTuple

import threading


#: No single answer gets more than this part of the room.
LARGEST_SHARE = 4
#: The same for the rows of one state of a catalog.
LARGEST_SHARE_OF_ROWS = 2


class Stamp(NamedTuple):
    """One state of one catalog: of which opened database, of which tool, which relation, at which generation.

    *tid* is the transaction that made it: a database that has lost transactions counts generations a second time.
    """

    database: int
    catalog: int
    relation: str
    generation: int
    tid: int


class ResultCache:
    """Keeps values with their sizes up to *limit* bytes in all, none larger than its *largest*-th part; safe for threads."""

    def __init__(self, limit: int, largest: int = LARGEST_SHARE) -> None:
        self.limit = limit
        self._largest = largest
        self.size = 0
        self.hits = 0
        self.misses = 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()
        #: catalog -> megabytes that its site's settings ask for
        self._wishes: dict[Hashable, float] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def get(self, key: Hashable) -> Any:
        """Return the value of *key*, None if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                self.misses += 1
                return None
            self.hits += 1
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Keep *value*, of so many bytes, in place of what *key* had; one that is too large is not kept."""
        with self._lock:
            _, old = self._entries.pop(key, (None, 0))
            self.size -= old
            if size * self._largest > self.limit:
                return
            self._entries[key] = (value, size)
            self.size += size
            self._shrink()

    def heed(self, catalog: Hashable, megabytes: float) -> None:
        """Let the settings of *catalog* ask for so many *megabytes*; the largest wish counts, 0 is none."""
        if self._wishes.get(catalog) == megabytes:
            return
        with self._lock:
            self._wishes[catalog] = megabytes
            self.limit = int(max(self._wishes.values()) * 2**20)
            self._shrink()

    def _shrink(self) -> None:
        while self.size > self.limit:
            _, (_, freed) = self._entries.popitem(last=False)
            self.size -= freed

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self.size = 0


@cache
def result_cache() -> ResultCache:
    """Return the process's cache; its size is what settings say when it is first wanted, until a catalog asks for another."""
    return ResultCache(int(result_cache_mb() * 2**20))


@cache
def row_cache() -> ResultCache:
    """Return the process's cache of rows, single ones and those of a state: half as much room as for answers."""
    return ResultCache(result_cache().limit // 2, LARGEST_SHARE_OF_ROWS)


def set_limits(catalog: Hashable, megabytes: float) -> None:
    """Let the settings of *catalog* ask for so many *megabytes* for answers."""
    result_cache().heed(catalog, megabytes)
    row_cache().heed(catalog, megabytes / 2)
