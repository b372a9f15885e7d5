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
from typing import ClassVar
from zope.i18nmessageid import Message

import Missing
import orjson


#: What a row takes in memory, in bytes, besides the text of its path and its idx; and what six values of it take that are shared
#: (measured: 2,250 bytes for a row with 1,130 bytes of idx).
ROW_BYTES = 650
VALUES_BYTES = 450

_absent = object()
#: Values that nobody can change, so that brains may share them.
IMMUTABLE = frozenset({str, int, float, bool, bytes, type(None), DateTime, datetime, date, Message})


class Row:
    """One row of a catalog; ``idx`` is its JSON data as text, or what the transaction has made of it; None until it is loaded.

    The threads of a process share it, as the row in one *version*, which never changes.  ``stamp`` is the last state of
    the catalog in which this version was found, ``placed`` the last one in which the row was found at this *path*: a
    snapshot of that state may use the row, or its path, without asking.  What a state has is true for ever, so whoever
    sets one last does no harm.  ``used`` is for the cache.
    """

    #: the row that was asked last, and its data
    parsed: ClassVar[tuple["Row | None", dict[str, Any]]] = (None, {})

    __slots__ = ("idx", "path", "placed", "stamp", "used", "values", "version")

    def __init__(
        self,
        path: str | None,
        idx: bytes | dict[str, Any] | None = None,
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

    @property
    def data(self) -> dict[str, Any]:
        """What is in ``idx``, of the row that was asked last without parsing it again: taken apart it takes four times as much."""
        row, data = Row.parsed
        if row is not self:
            assert self.idx is not None
            data = orjson.loads(self.idx) if isinstance(self.idx, bytes) else self.idx
            Row.parsed = self, data
        return data

    def value(self, name: str) -> Any:
        """Return the metadata value *name*, Missing.Value if there is none; mutable ones anew each time."""
        value = self.values.get(name, _absent)
        if value is not _absent:
            return value
        json = self.data.get(name, _absent)
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

    def put(self, rows: Sequence[tuple[int, Row, int]], yields: bool = False) -> None:
        """Keep *rows*, (rid, row, bytes of its idx as JSON), where there is none that was seen in a later state.

        What *yields* pushes out nothing that was used since: a loop over more rows than there is room for would push out each one
        before it comes to it again.
        """
        if self._source is None:
            return
        put = result_cache().put
        for rid, row, size in rows:
            former = self._rows.get(rid)
            if former is None or not former.is_newer(row.stamp or row.placed):
                row.used = row.used or yields
                taken = ROW_BYTES + len(row.path or "") + (size and size + VALUES_BYTES)
                put((ROWS, self._source, rid), row, taken, yields)
