"""The process's cache: one for all threads and catalogs, bounded by bytes; the least recently used go first.

A key begins with its kind, one of ``KINDS``.  Answers (hits, facets, values) have a ``Stamp`` next: only transactions
whose snapshot shows that state find them, so nothing is invalidated, and answers of earlier states fall out in time.
Rows outlive states: a row says itself for which version, and for which state, it is right (``results.rows.Row``).
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from plone.pgcatalog.settings import result_cache_mb
from typing import Any
from typing import NamedTuple

import threading


#: (HITS, stamp, key of the query)
HITS = "hits"
#: (FACETS, stamp, SQL, values)
FACETS = "facets"
#: (VALUES, stamp, name of the index)
VALUES = "values"
#: (ROWS, history, catalog, excluded keys of idx, rid)
ROWS = "rows"
KINDS = (HITS, FACETS, VALUES, ROWS)

Key = tuple[Any, ...]
#: Key -> value and its bytes, the least recently used first.
Entries = OrderedDict[Key, tuple[Any, int]]

#: No single entry gets more than this part of the room.
LARGEST_SHARE = 4


class Stamp(NamedTuple):
    """One state of one catalog: of which opened database, of which tool, which relation, at which generation.

    *tid* is the transaction that made it: a database that has lost transactions counts generations a second time.
    """

    database: int
    catalog: int
    relation: str
    generation: int
    tid: int


@dataclass
class Count:
    """Bytes of the entries of one kind, how often one of them was there, and how often not."""

    bytes: int = 0
    hits: int = 0
    misses: int = 0


class ResultCache:
    """Keeps values with their sizes up to *limit* bytes in all, none larger than a quarter of it; safe for threads.

    Rows, and answers, may use what the other ones leave, and have half of the room for sure: whoever reads a whole site
    leaves others their answers.  ``counts`` has a ``Count`` for each kind.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.counts = {kind: Count() for kind in KINDS}
        self._answers: Entries = OrderedDict()
        self._rows: Entries = OrderedDict()
        self._lock = threading.Lock()
        #: catalog -> bytes that its site's settings ask for
        self._limits: dict[Any, int] = {}

    def _part(self, key: Key) -> Entries:
        return self._rows if key[0] == ROWS else self._answers

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        return sum(count.bytes for count in self.counts.values())

    def __len__(self) -> int:
        return len(self._answers) + len(self._rows)

    def __contains__(self, key: Key) -> bool:
        return key in self._part(key)

    def get(self, key: Key) -> Any:
        """Return the value of *key*, None if there is none; it is counted."""
        [value] = self.peek([key])
        self.count(key[0], value is not None, value is None)
        return value

    def peek(self, keys: Sequence[Key]) -> list[Any]:
        """Return the value, or None, of each of *keys*, which are of one kind; nothing is counted."""
        found: list[Any] = []
        entries = self._part(keys[0]) if keys else self._rows
        with self._lock:
            for key in keys:
                entry = entries.get(key)
                if entry is None:
                    found.append(None)
                else:
                    entries.move_to_end(key)
                    found.append(entry[0])
        return found

    def count(self, kind: str, hits: int, misses: int) -> None:
        """Count *hits* and *misses* of entries of one *kind*."""
        count = self.counts[kind]
        with self._lock:
            count.hits += hits
            count.misses += misses

    def put(self, key: Key, value: Any, size: int) -> None:
        """Keep *value*, of *size* bytes, in place of what *key* had; one that is too large is not kept.

        Raises KeyError for an unknown kind.
        """
        entries, count = self._part(key), self.counts[key[0]]
        with self._lock:
            _, old = entries.pop(key, (None, 0))
            count.bytes -= old
            if size * LARGEST_SHARE <= self.limit:
                entries[key] = (value, size)
                count.bytes += size
                self._shrink()

    def set_limit(self, catalog: Any, megabytes: float) -> None:
        """Let the settings of *catalog* ask for *megabytes*, 0 for no cache; the largest number that any asks for counts."""
        limit = int(megabytes * 2**20)
        if self._limits.get(catalog) == limit:
            return
        with self._lock:
            self._limits[catalog] = limit
            self.limit = max(self._limits.values())
            self._shrink()

    def _shrink(self) -> None:
        while self.size > self.limit:
            rows_have_more = 2 * self.counts[ROWS].bytes > self.limit
            entries = self._rows if rows_have_more or not self._answers else self._answers
            key, (_, freed) = entries.popitem(last=False)
            self.counts[key[0]].bytes -= freed

    def clear(self, kind: str | None = None) -> None:
        """Forget the entries of *kind*; None for everything."""
        with self._lock:
            for entries in (self._answers, self._rows):
                for key in [key for key in entries if kind in (None, key[0])]:
                    self.counts[key[0]].bytes -= entries.pop(key)[1]


@cache
def result_cache() -> ResultCache:
    """Return the process's cache; its size is what settings say when it is first wanted, until a catalog asks for another."""
    return ResultCache(int(result_cache_mb() * 2**20))
