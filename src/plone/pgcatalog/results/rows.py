"""Single rows of a catalog in memory: path and metadata, of all results of a process."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from DateTime import DateTime
from datetime import date
from datetime import datetime
from plone.pgcatalog.indexing.codec import decode
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ROWS
from plone.pgcatalog.results.cache import Stamp
from transaction.interfaces import TransientError
from typing import Any
from zope.i18nmessageid import Message

import Missing


#: What a row and its idx take in memory, in bytes, besides the path, and for each byte of JSON.
ROW_BYTES = 300
IDX_FACTOR = 3

_absent = object()
#: Values that nobody can change, so that brains may share them.
IMMUTABLE = frozenset({str, int, float, bool, bytes, type(None), DateTime, datetime, date, Message})


class Row:
    """One row of a catalog; ``idx`` is its JSON data, None until it is loaded.

    The threads of a process share it, as the row in one *version*, which never changes.  ``stamp`` is the last state of
    the catalog in which this version was found, ``placed`` the last one in which the row was found at this *path*: a
    snapshot of that state may use the row, or its path, without asking.  What a state has is true for ever, so whoever
    sets one last does no harm.  ``used`` is for the cache.
    """

    __slots__ = ("idx", "path", "placed", "stamp", "used", "values", "version")

    def __init__(
        self,
        path: str | None,
        idx: dict[str, Any] | None = None,
        version: str | None = None,
        stamp: Stamp | None = None,
        placed: Stamp | None = None,
    ) -> None:
        self.path = path
        self.idx = idx
        self.version = version
        self.stamp = stamp
        self.placed = placed
        self.used = False
        #: decoded values of the idx that can be shared
        self.values: dict[str, Any] = {}

    def confirm(self, stamp: Stamp | None) -> None:
        """Note that the row is right in the state *stamp*, None being one of the transaction's own."""
        self.used = True
        if stamp is not None and not self.is_newer(stamp):
            self.stamp = stamp

    def is_newer(self, stamp: Stamp | None) -> bool:
        """Return whether the row was seen in a later state than *stamp*, None for an unknown one."""
        return stamp is not None and self.stamp is not None and self.stamp.tid > stamp.tid

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


class RowGone(TransientError, KeyError):
    """The database has lost a row that a cached answer lists, and the object with it: by a pack, or damage from outside.

    ZCatalog raises KeyError.  The answers are forgotten; a request is repeated, and finds what is there.
    """


class RowStore:
    """The rows of one catalog in the process's cache, each in the version that was seen last.

    *source* tells the catalog, and the keys of idx that are left out; None for a snapshot whose history nobody knows:
    versions are those of one, so nothing is found and nothing kept.
    """

    def __init__(self, source: str | None) -> None:
        self._source = source
        self._rows: Mapping[int, Row] = {} if source is None else result_cache().rows(source)

    @property
    def count(self) -> int:
        """How many rows there are with their idx."""
        return 0 if self._source is None else result_cache().rows_with_idx(self._source)

    @property
    def bitmap(self) -> bytes:
        """The bitmap, by rid, of the rows that are there with their idx (``ResultCache.bitmap``)."""
        return b"" if self._source is None else result_cache().bitmap(self._source)

    def get(self, rid: int) -> Row | None:
        """Return the row *rid* in whatever version."""
        return self._rows.get(rid)

    def get_whole(self, rids: Iterable[int]) -> dict[int, Row]:
        """Return those of *rids* that are there with their idx, in whatever version."""
        return {rid: row for rid in rids if (row := self._rows.get(rid)) is not None and row.idx is not None}

    def confirm(self, rid: int, version: str, stamp: Stamp | None) -> Row | None:
        """Return the row *rid* with its idx if it is there in this *version*, which the state *stamp* has, else None."""
        row = self._rows.get(rid)
        if row is None or row.idx is None or row.version != version:
            return None
        row.confirm(stamp)
        return row

    def put(self, rows: Sequence[tuple[int, Row, int]]) -> None:
        """Keep *rows*, (rid, row, bytes of its idx as JSON), where there is none that was seen in a later state."""
        if self._source is None:
            return
        put = result_cache().put
        for rid, row, size in rows:
            former = self._rows.get(rid)
            if former is None or not former.is_newer(row.stamp or row.placed):
                put((ROWS, self._source, rid), row, ROW_BYTES + len(row.path or "") + IDX_FACTOR * size)
