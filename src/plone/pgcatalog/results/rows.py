"""Single rows of a catalog in memory: path and metadata, read in batches when one of them is touched."""

from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Sequence
from DateTime import DateTime
from datetime import date
from datetime import datetime
from plone.pgcatalog.database.familiarity import ROUND_TRIP_ROWS
from plone.pgcatalog.indexing.codec import decode
from plone.pgcatalog.results.cache import row_cache
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.results.prefetch import batch_size
from plone.pgcatalog.results.prefetch import prefetch
from plone.pgcatalog.results.urls import URLs
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.results.view import parted
from typing import Any
from zope.i18nmessageid import Message

import Missing
import orjson


#: Rows whose idx is loaded together.
IDX_BATCH = 50
#: The most of them: who reads on and on gets twice as many each time.
MOST_IDX = 800
#: Rows whose path is loaded together at the most.
PATH_BATCH = 500
#: What a row and its idx take in memory, in bytes, besides the path, and for each byte of JSON.
ROW_BYTES = 300
IDX_FACTOR = 3

_absent = object()
#: Values that nobody can change, so that brains may share them.
IMMUTABLE = frozenset({str, int, float, bool, bytes, type(None), DateTime, datetime, date, Message})


class Row:
    """One row; ``idx`` is its JSON data, None until it is loaded, in the state *version* of the row; *size* its bytes."""

    __slots__ = ("idx", "path", "size", "values", "version")

    def __init__(
        self, path: str | None, idx: dict[str, Any] | None = None, version: str | None = None, size: int = 0
    ) -> None:
        self.path = path
        self.idx = idx
        self.version = version
        self.size = size
        #: decoded values of the idx that can be shared
        self.values: dict[str, Any] = {}

    def value(self, name: str) -> Any:
        """Return the metadata value *name*, Missing.Value if there is none; mutable ones anew each time."""
        value = self.values.get(name, _absent)
        if value is not _absent:
            return value
        assert self.idx is not None
        json = self.idx.get(name, _absent)
        value = Missing.Value if json is _absent else decode(json)
        if is_immutable(value):
            self.values[name] = value
        return value


def is_immutable(value: Any) -> bool:
    kind = type(value)
    return kind in IMMUTABLE or value is Missing.Value or (kind is tuple and all(type(v) in IMMUTABLE for v in value))


class RowStore:
    """Rows of one state of one catalog, by rid; ``bytes`` is about what they take."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.bytes = 0

    def path(self, rid: int, path: str | None) -> Row:
        """Return the row *rid*, whose path is *path* or unknown."""
        row = self.rows.get(rid)
        if row is None:
            row = self.rows[rid] = Row(path)
            self.bytes += ROW_BYTES + len(path or "")
        elif row.path is None:
            row.path = path
        return row

    def known(self, rid: int) -> Row | None:
        """Return the row *rid* if it is here with its idx."""
        row = self.rows.get(rid)
        return None if row is None or row.idx is None else row

    def has(self, rids: Iterable[int]) -> bool:
        """Return whether all rows *rids* are here with their idx."""
        return None not in map(self.known, rids)

    def load(self, rid: int, row: Row) -> None:
        """Take *row*, with its idx, as the one of *rid*."""
        if rid not in self.rows:
            self.bytes += ROW_BYTES + len(row.path or "")
        self.rows[rid] = row
        self.bytes += IDX_FACTOR * row.size


class KnownRows:
    """The rows of one catalog that the process has read lately, by rid: each in one version, shared by all results.

    Versions count for one history of the database only; a snapshot of which it is not known shares no rows.
    """

    def __init__(self, view: CatalogView, unread: Sequence[str]) -> None:
        self._session = view.session
        self._key = (view.zoid, tuple(unread))

    def get(self, rid: int, version: str) -> Row | None:
        """Return the row *rid* if it is known in this *version*."""
        history = self._session.history.number
        row: Row | None = None if history is None else row_cache().get((history, self._key, rid))
        return row if row is not None and row.version == version else None

    def those_of(self, rids: Iterable[int]) -> list[int]:
        """Return those of *rids* whose rows are known, in some version."""
        history = self._session.history.number
        return [] if history is None else [rid for rid in rids if (history, self._key, rid) in row_cache()]

    def put(self, rid: int, row: Row, size: int) -> None:
        """Keep *row*, of *size* bytes."""
        history = self._session.history.number
        if history is not None:
            row_cache().put((history, self._key, rid), row, size)


class RowLoader:
    """Finds the rows with the *rids* of a result: in the store that all results of its *stamp* share, or by SQL.

    Once the transaction sees another state of the catalog, what it reads is the loader's own.  *unread* are keys of
    idx that are no metadata.
    """

    def __init__(self, view: CatalogView, rids: Sequence[int], unread: Sequence[str] = ()) -> None:
        self.view = view
        self.rids = rids
        self.unread = list(unread)
        self._known = KnownRows(view, self.unread)
        self.urls = URLs()
        #: the request of the result's brains
        self.request: Any = None
        self._stamp: Stamp | None = None
        self._shared: RowStore | None = None
        self._own = RowStore()
        self._prefetched: set[int] = set()
        self._slices: dict[int, Sequence[int]] = {}
        self._position: dict[int, int] = {}
        #: how many rows the last batch had, and which place of the result is behind it
        self._size = IDX_BATCH
        self._end = -1

    def share(self, stamp: Stamp) -> None:
        """Use the store of the state *stamp*."""
        if self._stamp is None:
            self._stamp = stamp
            self._shared = row_cache().get(self._key(stamp)) or RowStore()

    def _key(self, stamp: Stamp) -> Hashable:
        return (stamp, "rows", tuple(self.unread))

    @property
    def store(self) -> RowStore:
        """The store for what is read now."""
        if self._shared is not None and self.view.names(self._stamp):
            return self._shared
        return self._own

    def saved(self, store: RowStore) -> None:
        """Count what has been added to *store*; one that has outgrown the cache's room goes with its last result."""
        if store is self._shared and self._stamp is not None:
            row_cache().put(self._key(self._stamp), store, store.bytes)

    # -- paths

    def path(self, rid: int) -> str:
        """Return the path of the row *rid*, "" when it is gone."""
        path = self._path(rid)
        if path is None:
            self._load_paths(self._batch(rid, PATH_BATCH))
            path = self._path(rid)
        return path or ""

    def paths(self, rids: Sequence[int]) -> list[str]:
        """Return the paths of the rows *rids*, "" for those that are gone."""
        self._load_paths(rids)
        return [self._path(rid) or "" for rid in rids]

    def _load_paths(self, rids: Sequence[int]) -> None:
        wanted = [rid for rid in rids if self._path(rid) is None]
        if wanted:
            found = self.view.paths(wanted)
            store = self.store
            for rid in wanted:
                store.path(rid, found.get(rid, ""))
            self.saved(store)

    def _path(self, rid: int) -> str | None:
        for store in (self._shared, self._own):
            row = None if store is None else store.rows.get(rid)
            if row is not None and row.path is not None:
                return row.path
        return None

    # -- metadata

    def expect(self, rids: Sequence[int]) -> None:
        """Note that *rids* will probably be wanted together."""
        if len(rids) <= IDX_BATCH:
            self._slices.update(dict.fromkeys(rids, rids))

    def row(self, rid: int) -> Row:
        """Return the row *rid* with its idx."""
        store = self.store
        row = store.rows.get(rid)
        if row is None or row.idx is None:
            wanted = self._slices.get(rid) or self._next(rid)
            self._load([r for r in wanted if (known := store.rows.get(r)) is None or known.idx is None], store)
            row = store.rows[rid]
        return row

    def _next(self, rid: int) -> Sequence[int]:
        """Return *rid* and those to load with it: more and more as long as somebody reads on where the last ones ended."""
        if self._at(rid) != self._end:
            self._size = IDX_BATCH
            wanted = self._batch(rid, IDX_BATCH)
        else:
            self._size = min(2 * self._size, MOST_IDX)
            wanted = self.rids[self._end : self._end + self._size]
        self._end = (self._at(wanted[-1]) or 0) + 1
        return wanted

    def _load(self, rids: Sequence[int], store: RowStore) -> None:
        if not self.view.is_committed:
            # What is committed of a row says where it was before the transaction moved it.
            self._load_paths(rids)
        known = self._known.those_of(rids)
        if len(known) <= ROUND_TRIP_ROWS:
            known = []
        self._read(rids, store, known)
        changed = [rid for rid in known if (row := store.rows.get(rid)) is None or row.idx is None]
        if changed:
            self._read(changed, store)
        for rid in rids:
            row = store.path(rid, None)
            pending = self.view.pending_idx(rid, row.idx)
            if pending is not None or row.idx is None:
                # A row of its own: others share the committed one.
                store.rows[rid] = Row(row.path, pending or {})
        self.saved(store)

    def _read(self, rids: Sequence[int], store: RowStore, known: Sequence[int] = ()) -> None:
        """Put the committed rows *rids* into *store*; of those that are *known* only the version is read.

        Those of another version have no idx then.
        """
        for rid, path, text in self.view.idx_texts(rids, self.unread, known):
            self.take(rid, path, text, store)

    def take(self, rid: int, path: str, text: str, store: RowStore, remember: bool = True) -> bool:
        """Put the row *rid* into *store*; *text* is that of ``CatalogView.idx_texts``.

        The process keeps it for other results if it is to *remember* it.  Returns whether it had a row of the same
        version already, which is taken then.
        """
        version, idx = parted(text)
        row = self._known.get(rid, version)
        is_known = row is not None
        if row is None:
            row = Row(path, orjson.loads(idx) if idx else None, version, len(idx))
            if idx and remember:
                self._known.put(rid, row, ROW_BYTES + len(path) + IDX_FACTOR * len(idx))
        seen = store.rows.get(rid)
        if seen is not None and seen.path is not None and seen.path != row.path:
            # The transaction has moved the object.
            row = Row(seen.path, row.idx, size=row.size)
        store.load(rid, row)
        return is_known

    # -- objects

    def prefetch(self, rid: int) -> None:
        """Have the objects of the row *rid* and of those behind it loaded together, if nobody has asked for it yet."""
        size = batch_size()
        if rid in self._prefetched or not size:
            return
        # The rid of an object's first path is its oid.
        wanted = [r for r in self._following(rid, size) if r not in self._prefetched]
        self._prefetched.update(wanted)
        if len(wanted) > 1:
            prefetch(self.view.session.jar, wanted)

    def _following(self, rid: int, size: int) -> Sequence[int]:
        rids = self._slices.get(rid) or self.rids
        try:
            at = list(rids).index(rid)
        except ValueError:
            return [rid]
        return rids[at : at + size]

    def _batch(self, rid: int, size: int) -> Sequence[int]:
        at = self._at(rid)
        return [rid] if at is None else self.rids[at - at % size :][:size]

    def _at(self, rid: int) -> int | None:
        """Return the place of *rid* in the result."""
        if len(self._position) != len(self.rids):
            self._position = {r: i for i, r in enumerate(self.rids)}
        return self._position.get(rid)
