"""The process's cache: one for all threads and catalogs, limited in bytes, evicts the least recently used entries.

A key begins with its kind, one of ``KINDS``.  In keys of answers (hits, facets, values) a ``Stamp`` follows: only
transactions whose snapshot has this state find them, so they need no invalidation, and old ones are evicted in time.
Rows outlive states: each row has the version and the state for which it is right (``results.rows.Row``).
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


#: (HITS, stamp, digest of the query)
HITS = "hits"
#: (FACETS, stamp, digest of the statement)
FACETS = "facets"
#: (VALUES, stamp, name of the index, whether numbers of rows are included)
VALUES = "values"
#: (ROWS, source, rid); the source is a text of the history, the catalog, and the excluded keys of idx
ROWS = "rows"
KINDS = (HITS, FACETS, VALUES, ROWS)

Key = tuple[Any, ...]
#: Key -> value and its bytes, the least recently used first.
Entries = OrderedDict[Key, tuple[Any, int]]

#: Answers are guaranteed this fraction (1/8) of the limit, and no single entry may be larger.
VALUE_DIVISOR = 8


class Stamp(NamedTuple):
    """The name of one state of one catalog: opened database, oid of the tool, relation, generation and *tid*.

    *tid* is the transaction that created the state: a database that has lost transactions repeats generations.
    """

    database: int
    catalog: int
    relation: str
    generation: int
    tid: int


@dataclass
class Count:
    """Bytes of the entries of one kind, and numbers of hits and misses."""

    bytes: int = 0
    hits: int = 0
    misses: int = 0


def has_idx(row: Any) -> bool:
    """Return True if *row* is a row with its idx, False for None."""
    return row is not None and row.idx is not None


class ResultCache:
    """Cache of values with their sizes, of *limit* bytes in all; no value is larger than an eighth of it.  Thread-safe.

    Rows and answers may use the room that the others leave.  Answers are guaranteed an eighth, even if a loop reads a whole
    site.  Rows are guaranteed the rest: most answers are valid for a minute, or until the next commit, and would evict the
    rows that each navigation shows.  ``counts`` has a ``Count`` for each kind.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        #: bytes of all entries
        self.size = 0
        self.counts = {kind: Count() for kind in KINDS}
        self._answers: Entries = OrderedDict()
        self._rows: Entries = OrderedDict()
        #: source -> rid -> row: the same rows again, for fast look-ups
        self._sources: dict[str, dict[int, Any]] = {}
        #: source -> number of its rows with their idx
        self._with_idx: Counter[str] = Counter()
        self._lock = threading.Lock()
        #: opened database -> catalog -> limit in bytes by the settings of its site
        self._limits: WeakKeyDictionary[Any, dict[int, int]] = WeakKeyDictionary()

    def _part(self, key: Key) -> Entries:
        return self._rows if key[0] == ROWS else self._answers

    def __len__(self) -> int:
        return len(self._answers) + len(self._rows)

    def __contains__(self, key: Key) -> bool:
        return key in self._part(key)

    def get(self, key: Key) -> Any:
        """Return the value of *key*, None if there is none; count a hit or a miss."""
        with self._lock:
            value, _ = self._answers.get(key, (None, 0))
            if value is not None:
                self._answers.move_to_end(key)
        self.count(key[0], value is not None, value is None)
        return value

    def rows(self, source: str) -> Mapping[int, Any]:
        """Return the rows of *source* by rid; reading them needs no lock.

        A caller that uses a row sets its ``used``, which spares it once from eviction.  With ``get``, the look-ups would
        take a visible part of the time of a cached page.
        """
        return self._sources.setdefault(source, {})

    def rows_with_idx(self, source: str) -> int:
        """Return the number of rows of *source* with their idx."""
        return self._with_idx[source]

    def count(self, kind: str, hits: int, misses: int) -> None:
        """Add *hits* and *misses* to the counts of *kind*."""
        count = self.counts[kind]
        with self._lock:
            count.hits += hits
            count.misses += misses

    def put(self, key: Key, value: Any, size: int, yields: bool = False) -> None:
        """Store *value*, of *size* bytes, in place of any former value of *key*; a value that is too large is not stored.

        With *yields* nothing is stored, and a former value stays, if there is no room and the row to evict next was used;
        that row is then spared once.  Raises KeyError for an unknown kind.
        """
        entries = self._part(key)
        with self._lock:
            _, old = entries.get(key, (None, 0))
            room = max(self.limit - self.size, self.limit - self.limit // VALUE_DIVISOR - self.counts[ROWS].bytes)
            if yields and size - old > room and self._spares_oldest():
                return
            entries.pop(key, None)
            self._resize(key, -old)
            if size * VALUE_DIVISOR <= self.limit:
                entries[key] = value, size
                self._resize(key, size)
                if entries is self._rows:
                    self._place(key, value)
                self._shrink()
            else:
                self._forget(key)

    def set_limit(self, database: Any, catalog: int, megabytes: float) -> None:
        """Set the limit for the tool *catalog* of *database* to *megabytes*, 0 for no cache.

        The largest limit of all catalogs of opened databases applies.
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
            rows_have_more = self.counts[ROWS].bytes > self.limit - self.limit // VALUE_DIVISOR
            entries = self._rows if rows_have_more or not self._answers else self._answers
            if entries is self._rows and self._spares_oldest():
                continue
            key, (_, freed) = entries.popitem(last=False)
            self._resize(key, -freed)
            self._forget(key)

    def _spares_oldest(self) -> bool:
        """Spare the row to evict next, and return True, if it was used: move it to the end, and clear its ``used``."""
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

    def _forget(self, key: Key) -> None:
        if key[0] == ROWS:
            self._with_idx[key[1]] -= has_idx(self._sources.get(key[1], {}).pop(key[2], None))

    def clear(self, kind: str | None = None) -> None:
        """Remove the entries of *kind*; None for all kinds."""
        with self._lock:
            for entries in (self._answers, self._rows) if kind is None else (self._part((kind,)),):
                for key in [key for key in entries if kind in (None, key[0])]:
                    self._resize(key, -entries.pop(key)[1])
                    self._forget(key)


@cache
def result_cache() -> ResultCache:
    """Return the process's cache; its limit is the default, or the environment's, until a catalog sets another one."""
    return ResultCache(int(result_cache_mb() * 2**20))
