"""Single rows of a catalog in memory: path and metadata, read in batches when one of them is touched."""

from collections.abc import Hashable
from collections.abc import Sequence
from DateTime import DateTime
from datetime import date
from datetime import datetime
from plone.pgcatalog.indexing.codec import decode
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.results.prefetch import batch_size
from plone.pgcatalog.results.prefetch import prefetch
from plone.pgcatalog.results.urls import URLs
from plone.pgcatalog.results.view import CatalogView
from typing import Any
from zope.i18nmessageid import Message

import Missing
import orjson


#: Rows whose idx is loaded together at the most.
IDX_BATCH = 50
#: Rows whose path is loaded together at the most.
PATH_BATCH = 500
#: What a row and its idx take in memory, in bytes, besides the path, and for each byte of JSON.
ROW_BYTES = 300
IDX_FACTOR = 3

_absent = object()
#: Values that nobody can change, so that brains may share them.
IMMUTABLE = frozenset({str, int, float, bool, bytes, type(None), DateTime, datetime, date, Message})


class Row:
    """One row; ``idx`` is its JSON data, None until it is loaded."""

    __slots__ = ("idx", "path", "values")

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.idx: dict[str, Any] | None = None
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
        #: True when most rows of the last page were known already, so that the next one can do without their idx
        self.is_warm = False

    def path(self, rid: int, path: str | None) -> Row:
        """Return the row *rid*, whose path is *path* or unknown."""
        row = self.rows.get(rid)
        if row is None:
            row = self.rows[rid] = Row(path)
            self.bytes += ROW_BYTES + len(path or "")
        elif row.path is None:
            row.path = path
        return row

    def load(self, rid: int, path: str | None, text: str | None) -> None:
        """Take the idx of the row *rid*, as JSON *text*; None for a row without one."""
        row = self.path(rid, path)
        if row.idx is None:
            row.idx = orjson.loads(text) if text else {}
            self.bytes += IDX_FACTOR * len(text or "")


class RowLoader:
    """Finds the rows with the *rids* of a result: in the store that all results of its *stamp* share, or by SQL.

    Once the transaction sees another state of the catalog, what it reads is the loader's own.  *unread* are keys of
    idx that are no metadata.
    """

    def __init__(self, view: CatalogView, rids: Sequence[int], unread: Sequence[str] = ()) -> None:
        self.view = view
        self.rids = rids
        self.unread = list(unread)
        self.urls = URLs()
        self._stamp: Stamp | None = None
        self._shared: RowStore | None = None
        self._own = RowStore()
        self._prefetched: set[int] = set()
        self._slices: dict[int, Sequence[int]] = {}
        self._position: dict[int, int] = {}

    def share(self, stamp: Stamp) -> None:
        """Use the store of the state *stamp*."""
        if self._stamp is None:
            self._stamp = stamp
            self._shared = result_cache().get(self._key(stamp)) or RowStore()

    def _key(self, stamp: Stamp) -> Hashable:
        return (stamp, "rows", tuple(self.unread))

    @property
    def store(self) -> RowStore:
        """The store for what is read now."""
        if self._shared is not None and self.view.stamp() == self._stamp:
            return self._shared
        return self._own

    def saved(self, store: RowStore) -> None:
        """Count what has been added to *store*; one that has outgrown the cache's room goes with its last result."""
        if store is self._shared and self._stamp is not None:
            result_cache().put(self._key(self._stamp), store, store.bytes)

    # -- paths

    def path(self, rid: int) -> str:
        """Return the path of the row *rid*, "" when it is gone."""
        path = self._path(rid)
        if path is None:
            wanted = [r for r in self._batch(rid, PATH_BATCH) if self._path(r) is None]
            found = self.view.paths(wanted)
            store = self.store
            for r in wanted:
                store.path(r, found.get(r, ""))
            self.saved(store)
            path = self._path(rid)
        return path or ""

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
            wanted = self._slices.get(rid) or self._batch(rid, IDX_BATCH)
            self._load([r for r in wanted if (known := store.rows.get(r)) is None or known.idx is None], store)
            row = store.rows[rid]
        return row

    def _load(self, rids: Sequence[int], store: RowStore) -> None:
        for rid, path, text in self.view.idx_texts(rids, self.unread):
            store.load(rid, path, text)
        for rid in rids:
            row = store.rows.get(rid)
            pending = self.view.pending_idx(rid, None if row is None else row.idx)
            store.load(rid, None, None)
            if pending is not None:
                store.rows[rid].idx = pending
        self.saved(store)

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
        if len(self._position) != len(self.rids):
            self._position = {r: i for i, r in enumerate(self.rids)}
        at = self._position.get(rid)
        return [rid] if at is None else self.rids[at - at % size :][:size]
