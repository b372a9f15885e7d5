"""The process's cache: one for all threads and catalogs, bounded by bytes; what was not used for long goes first.

A key begins with its kind, one of ``KINDS``.  Answers (hits, facets, values) have a ``Stamp`` next: only transactions
whose snapshot shows that state find them, so nothing is invalidated, and answers of earlier states fall out in time.
Rows outlive states: a row says itself for which version, and for which state, it is right (``results.rows.Row``).
"""

from collections import Counter
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from plone.pgcatalog.settings import result_cache_mb
from typing import Any
from typing import NamedTuple
from weakref import WeakKeyDictionary

import threading


#: (HITS, stamp, key of the query)
HITS = "hits"
#: (FACETS, stamp, SQL, values)
FACETS = "facets"
#: (VALUES, stamp, name of the index, whether with the numbers of rows)
VALUES = "values"
#: (ROWS, source, rid); the source is a text of the history, the catalog, and the keys of idx that are excluded
ROWS = "rows"
KINDS = (HITS, FACETS, VALUES, ROWS)

Key = tuple[Any, ...]
#: Key -> value and its bytes, the least recently used first.
Entries = OrderedDict[Key, tuple[Any, int]]

#: Bits of the bitmap that says which rows of a source are there with their idx: that of a row is its rid modulo BITS.
#: Another row may have the same one: whoever needs a row that is taken for known reads it once more.
BITS = 65_536

#: Answers have this part of the room for sure, and no single entry gets more.
SHARE = 8


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


def has_idx(row: Any) -> bool:
    """Return whether *row*, None for none, has its idx."""
    return row is not None and row.idx is not None


class ResultCache:
    """Keeps values with their sizes up to *limit* bytes in all, none larger than an eighth of it; safe for threads.

    Rows, and answers, may use what the other ones leave.  Answers have an eighth of the room for sure, which whoever reads a
    whole site leaves them, and rows the rest: most answers count for a minute, or until the next commit, and would push out
    the rows that each navigation shows.  ``counts`` has a ``Count`` for each kind.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        #: bytes of all entries
        self.size = 0
        self.counts = {kind: Count() for kind in KINDS}
        self._answers: Entries = OrderedDict()
        self._rows: Entries = OrderedDict()
        #: source -> rid -> row: the same once more, to be found quickly
        self._sources: dict[str, dict[int, Any]] = {}
        #: source -> how many of its rows have their idx
        self._with_idx: Counter[str] = Counter()
        #: source -> bitmap of BITS
        self._bitmaps: dict[str, bytearray] = {}
        self._lock = threading.Lock()
        #: opened database -> catalog -> bytes that the settings of its site ask for
        self._limits: WeakKeyDictionary[Any, dict[int, int]] = WeakKeyDictionary()

    def _part(self, key: Key) -> Entries:
        return self._rows if key[0] == ROWS else self._answers

    def __len__(self) -> int:
        return len(self._answers) + len(self._rows)

    def __contains__(self, key: Key) -> bool:
        return key in self._part(key)

    def get(self, key: Key) -> Any:
        """Return the value of *key*, None if there is none; it is counted."""
        with self._lock:
            value, _ = self._answers.get(key, (None, 0))
            if value is not None:
                self._answers.move_to_end(key)
        self.count(key[0], value is not None, value is None)
        return value

    def rows(self, source: str) -> Mapping[int, Any]:
        """Return the rows of *source* by rid, to be looked at without a lock.

        Whoever uses one sets its ``used``: it is spared once when room is needed.  A page looks up each of its rows, and by
        ``get`` that would be a twentieth of a page that is known (12 of 240 microseconds for 25 rows).
        """
        return self._sources.setdefault(source, {})

    def rows_with_idx(self, source: str) -> int:
        """Return how many rows of *source* there are with their idx."""
        return self._with_idx[source]

    def bitmap(self, source: str) -> bytes:
        """Return BITS // 8 bytes that say which rows of *source* are there with their idx."""
        return bytes(self._bitmaps.get(source, ()))

    def count(self, kind: str, hits: int, misses: int) -> None:
        """Count *hits* and *misses* of entries of one *kind*."""
        count = self.counts[kind]
        with self._lock:
            count.hits += hits
            count.misses += misses

    def put(self, key: Key, value: Any, size: int, yields: bool = False) -> None:
        """Keep *value*, of *size* bytes, in place of what *key* had; one that is too large is not kept.

        A row that *yields* is not kept, and what its key had stays, if there is no room and the next one to go was used, which
        spares that one once.  Raises KeyError for an unknown kind.
        """
        entries = self._part(key)
        with self._lock:
            _, old = entries.get(key, (None, 0))
            room = max(self.limit - self.size, self.limit - self.limit // SHARE - self.counts[ROWS].bytes)
            if yields and size - old > room and self._spares_oldest():
                return
            entries.pop(key, None)
            self._resize(key, -old)
            if size * SHARE <= self.limit:
                entries[key] = value, size
                self._resize(key, size)
                if entries is self._rows:
                    self._place(key, value)
                self._shrink()
            else:
                self._forget(key)

    def set_limit(self, database: Any, catalog: int, megabytes: float) -> None:
        """Let the settings of the tool *catalog* ask for *megabytes*, 0 for no cache.

        The largest number counts that any catalog of an opened *database* asks for.
        """
        limit = int(megabytes * 2**20)
        if self._limits.get(database, {}).get(catalog) == limit:
            return
        with self._lock:
            self._limits.setdefault(database, {})[catalog] = limit
            self.limit = max(limit for limits in self._limits.values() for limit in limits.values())
            self._shrink()

    def _shrink(self) -> None:
        while self.size > self.limit:
            rows_have_more = self.counts[ROWS].bytes > self.limit - self.limit // SHARE
            entries = self._rows if rows_have_more or not self._answers else self._answers
            if entries is self._rows and self._spares_oldest():
                continue
            key, (_, freed) = entries.popitem(last=False)
            self._resize(key, -freed)
            self._forget(key)

    def _spares_oldest(self) -> bool:
        """Return whether the row that would go next was used: then another one is next, unless this one is used again."""
        key = next(iter(self._rows), None)
        if key is None or not self._rows[key][0].used:
            return False
        self._rows[key][0].used = False
        self._rows.move_to_end(key)
        return True

    def _resize(self, key: Key, size: int) -> None:
        self.counts[key[0]].bytes += size
        self.size += size

    def _place(self, key: Key, row: Any) -> None:
        rows = self._sources.setdefault(key[1], {})
        self._with_idx[key[1]] += has_idx(row) - has_idx(rows.get(key[2]))
        rows[key[2]] = row
        self._mark(key[1], key[2], has_idx(row))

    def _forget(self, key: Key) -> None:
        if key[0] == ROWS:
            self._with_idx[key[1]] -= has_idx(self._sources.get(key[1], {}).pop(key[2], None))
            self._mark(key[1], key[2], False)

    def _mark(self, source: str, rid: int, is_there: bool) -> None:
        """Set the bit of the row *rid* in the bitmap of *source*."""
        bitmap = self._bitmaps.setdefault(source, bytearray(BITS // 8))
        byte, bit = divmod(rid % BITS, 8)
        bitmap[byte] = bitmap[byte] & ~(1 << bit) | is_there << bit

    def clear(self, kind: str | None = None) -> None:
        """Forget the entries of *kind*; None for everything."""
        with self._lock:
            for entries in (self._answers, self._rows) if kind is None else (self._part((kind,)),):
                for key in [key for key in entries if kind in (None, key[0])]:
                    self._resize(key, -entries.pop(key)[1])
                    self._forget(key)


@cache
def result_cache() -> ResultCache:
    """Return the process's cache; its size is what settings say when it is first wanted, until a catalog asks for another."""
    return ResultCache(int(result_cache_mb() * 2**20))
