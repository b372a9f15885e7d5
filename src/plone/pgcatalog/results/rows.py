"""Single rows of a catalog in memory, with path and metadata, shared by all results of a process."""

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


#: Bytes of a row in memory, besides the text of its path and its idx; and bytes of six shared values.
ROW_BYTES = 650
VALUES_BYTES = 450

_absent = object()
#: Types of immutable values, which brains may share.
IMMUTABLE = frozenset({str, int, float, bool, bytes, type(None), DateTime, datetime, date, Message})


class Row:
    """One row of a catalog in one *version*, shared by the threads of a process.

    - ``idx``: JSON as bytes, or a dict with pending changes; None until it is loaded
    - ``stamp``: the last state in which this version was found; a snapshot of that state may use the row without a query
    - ``placed``: the last state in which the row was found at *path*; a snapshot of that state may use the path
    - ``used``: set on use, and cleared when the cache has spared the row once

    A state never changes, so threads may overwrite each other's stamps.
    """

    #: the row that was parsed last, and its data
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
        """Note that the row is right in the state *stamp*; None for a state with pending changes."""
        self.used = True
        if stamp is not None and not self.is_newer(stamp):
            self.stamp = stamp

    def is_newer(self, stamp: Stamp | None) -> bool:
        """Return True if the row was seen in a later state than *stamp*; False if *stamp* is None."""
        return stamp is not None and self.stamp is not None and self.stamp.tid > stamp.tid

    @property
    def data(self) -> dict[str, Any]:
        """The parsed ``idx``; cached for the last row only, because it takes four times the memory of the text."""
        row, data = Row.parsed
        if row is not self:
            assert self.idx is not None
            data = orjson.loads(self.idx) if isinstance(self.idx, bytes) else self.idx
            Row.parsed = self, data
        return data

    def value(self, name: str) -> Any:
        """Return the metadata value *name*, Missing.Value if there is none; a mutable value is a new object each time."""
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
    """The database has lost a row that a cached answer lists, and its object, by a pack or damage from outside.

    ZCatalog raises KeyError.  The cache is cleared, and the publisher repeats the request, which reads the existing rows.
    """


class RowStore:
    """The cached rows of one catalog, each in the version that was seen last.

    *source* identifies history, catalog and excluded keys of idx (see ``cache.ROWS``).  It is None for a snapshot of an
    unknown history: versions differ between histories, so nothing is found or stored then.
    """

    def __init__(self, source: str | None) -> None:
        self._source = source
        self._rows: Mapping[int, Row] = {} if source is None else result_cache().rows(source)

    @property
    def count(self) -> int:
        """The number of cached rows with their idx."""
        return 0 if self._source is None else result_cache().rows_with_idx(self._source)

    def get(self, rid: int) -> Row | None:
        """Return the cached row *rid* in any version, else None."""
        return self._rows.get(rid)

    def get_whole(self, rids: Iterable[int]) -> dict[int, Row]:
        """Return the cached rows of *rids* with their idx, in any version, by rid."""
        return {rid: row for rid in rids if (row := self._rows.get(rid)) is not None and row.idx is not None}

    def confirm(self, rid: int, version: str, stamp: Stamp | None) -> Row | None:
        """Return the cached row *rid* with its idx, and confirm it for the state *stamp*; None if its *version* differs."""
        row = self._rows.get(rid)
        if row is None or row.idx is None or row.version != version:
            return None
        row.confirm(stamp)
        return row

    def put(self, rows: Sequence[tuple[int, Row, int]], yields: bool = False) -> None:
        """Store *rows*, (rid, row, bytes of its idx as JSON), unless the cached row was seen in a later state.

        With *yields* they evict no row that was used since: a loop over more rows than fit would evict each row before
        reading it again.
        """
        if self._source is None:
            return
        put = result_cache().put
        for rid, row, size in rows:
            former = self._rows.get(rid)
            if former is None or not former.is_newer(row.stamp or row.placed):
                row.used = row.used or yields
                total = ROW_BYTES + len(row.path or "") + (size and size + VALUES_BYTES)
                put((ROWS, self._source, rid), row, total, yields)
