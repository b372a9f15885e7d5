"""Loads the rows of a result in batches, on first access, from the process's cache or by SQL."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.database.prefetch import batch_size
from plone.pgcatalog.database.prefetch import prefetch
from plone.pgcatalog.query.statements import split_version
from plone.pgcatalog.results.brain import URLs
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ROWS
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.results.rows import Row
from plone.pgcatalog.results.rows import RowGone
from plone.pgcatalog.results.rows import RowStore
from plone.pgcatalog.results.view import CatalogView
from typing import Any


#: Rows whose idx is loaded together.
IDX_BATCH = 50
#: Share of a catalog's rows that must be cached for statements to leave out metadata and paths.
MOST_SHARE = 0.9
#: Number of rows whose idx takes as long to read as a round trip.
ROUND_TRIP_ROWS = 25
#: Upper limit of a batch, which doubles during sequential reads.
MOST_IDX = 800
#: Upper limit of rows whose versions are compared to confirm their paths: for more, reading the paths is cheaper.
MOST_CONFIRMED = 5000
#: Rows whose path is loaded together.
PATH_BATCH = 500


class Neighbours:
    """Selects the rows of a result, in the order of its *rids*, that are loaded together with one of them."""

    def __init__(self, rids: Sequence[int]) -> None:
        self.rids = rids
        self._slices: dict[int, Sequence[int]] = {}
        self._position: dict[int, int] = {}
        #: number of rows in the last batch, and the position behind it in the result; None before the first batch
        self._size = IDX_BATCH
        self._end: int | None = None

    def expect(self, rids: Sequence[int]) -> None:
        """Note that the rows *rids* will probably be read together."""
        if len(rids) <= IDX_BATCH:
            self._slices.update(dict.fromkeys(rids, rids))

    def of(self, rid: int, missing: Callable[[Sequence[int]], Sequence[int]]) -> tuple[Sequence[int], Sequence[int]]:
        """Return the rids of the batch to load with *rid*, and the rids behind it that will probably be read next.

        The batch doubles while a caller reads on behind the last one.  *missing* returns the rids whose rows are not loaded;
        loaded rows between two batches do not count as a gap.
        """
        wanted = self._slices.get(rid)
        if wanted is not None:
            return wanted, ()
        at, end = self._at(rid), self._end
        if at is None or end is None or not 0 <= at - end <= MOST_IDX or missing(self.rids[end:at]):
            self._size = IDX_BATCH
            wanted = self.batch(rid, IDX_BATCH)
            self._end = (self._at(wanted[-1]) or 0) + 1
            return wanted, ()
        self._size = min(2 * self._size, MOST_IDX)
        self._end = at + self._size
        return self.rids[at : self._end], self.rids[self._end : self._end + MOST_IDX]

    def following(self, rid: int, size: int) -> Sequence[int]:
        """Return at most *size* rids from *rid* on, of its slice if there is one, else of the result."""
        rids = self._slices.get(rid) or self.rids
        try:
            at = list(rids).index(rid)
        except ValueError:
            return [rid]
        return rids[at : at + size]

    def batch(self, rid: int, size: int) -> Sequence[int]:
        """Return the rids of the batch that contains *rid*, if the result is divided into batches of *size* rows."""
        at = self._at(rid)
        return [rid] if at is None else self.rids[at - at % size :][:size]

    def _at(self, rid: int) -> int | None:
        """Return the position of *rid* in the result, None if it is not there."""
        if len(self._position) != len(self.rids):
            self._position = {r: i for i, r in enumerate(self.rids)}
        return self._position.get(rid)


def without_idx(rows: Mapping[int, Row], rids: Iterable[int]) -> list[int]:
    """Return the *rids* whose row is not in *rows*, or has no idx there."""
    return [rid for rid in rids if (row := rows.get(rid)) is None or row.idx is None]


class RowLoader:
    """Loads the rows with the *rids* of a result, from the process's cache or by SQL.

    A cached row is used if a statement has confirmed its version for the snapshot, or if its ``stamp`` is the snapshot's.
    Pending rows, and rows read while the transaction saw another state than the result's, stay private to the loader.
    *excluded_keys* are keys of idx that no brain reads.
    """

    def __init__(self, view: CatalogView, rids: Sequence[int], excluded_keys: Sequence[str] = ()) -> None:
        self.view = view
        self.neighbours = Neighbours(rids)
        self.excluded_keys = list(excluded_keys)
        self._excluded = " ".join(excluded_keys)
        self.urls = URLs()
        #: the request of the result's brains
        self.request: Any = None
        self._stamp: Stamp | None = None
        #: rid -> row in the state of the stamp
        self._stamped: dict[int, Row] = {}
        #: rid -> row in another state, or with pending changes
        self._own: dict[int, Row] = {}
        self._prefetched: set[int] = set()

    def share(self, stamp: Stamp) -> None:
        """Share rows with other results of the state *stamp*; only the first call counts."""
        if self._stamp is None:
            self._stamp = stamp

    @property
    def rows(self) -> dict[int, Row]:
        """The loaded rows of the state that the transaction sees now, by rid; some have no idx yet."""
        return self._stamped if self.view.is_current(self._stamp) else self._own

    def held(self, rid: int) -> Row | None:
        """Return the row *rid* if it is loaded with its idx, else None."""
        row = self.rows.get(rid)
        return None if row is None or row.idx is None else row

    # -- the process's cache

    @property
    def store(self) -> RowStore:
        """The cached rows of the catalog."""
        history = self.view.session.history.number
        return RowStore(None if history is None else f"{history} {self.view.zoid} {self._excluded}")

    def has_most(self) -> bool:
        """Return True if the cache has at least the share MOST_SHARE of the catalog's rows."""
        return 0 < MOST_SHARE * self.view.rows <= self.store.count

    def find(self, rids: Iterable[int]) -> dict[int, Row]:
        """Add the rows, or paths, of *rids* that are cached for the state of the result to ``rows``; return ``rows``."""
        rows, stamp, hits = self.rows, self._stamp, 0
        if rows is not self._stamped:
            return rows
        store = self.store
        for rid in rids:
            if rid in rows:
                continue
            row = store.get(rid)
            if row is None:
                continue
            if row.stamp == stamp:
                rows[rid] = row
                row.used = True
                hits += 1
            elif row.placed == stamp:
                rows[rid] = Row(row.path)
                row.used = True
        if hits:
            result_cache().count(ROWS, hits, 0)
        return rows

    # -- rows from statements

    def add_rows(self, found: Sequence[Sequence[Any]], share: bool = True) -> None:
        """Store the rows *found*: (rid, path, score) and, for a page with versions, a text as of ``idx_texts`` or None.

        With *share* they are cached for other results.
        """
        if len(found[0]) > 3 and found[0][3] is not None:
            self._store([(row[0], row[1], row[3]) for row in found], share)
            return
        rows = self.find([row[0] for row in found])
        self.place([(row[0], row[1]) for row in found if row[0] not in rows or rows[row[0]].path is None])

    def place(self, found: Sequence[tuple[int, str]]) -> None:
        """Store the paths *found*, (rid, path) pairs, for rows without a path."""
        rows, stamp, store = self.rows, self._stamp, self.store
        new = []
        for rid, path in found:
            row = rows.get(rid)
            if row is not None:
                if row.path is None:
                    rows[rid] = Row(path, row.idx)
                continue
            rows[rid] = Row(path)
            if rows is not self._stamped:
                continue
            row = store.get(rid)
            if row is not None and row.path == path:
                row.placed = stamp
            else:
                new.append((rid, Row(path, placed=stamp), 0))
        store.put(new, len(found) > IDX_BATCH)

    def _store(self, found: Iterable[tuple[int, str, str]], share: bool = True, yields: bool = False) -> None:
        """Store the rows *found*, (rid, path, text of ``CatalogView.idx_texts``); see ``add_rows`` and ``RowStore.put``.

        A cached row of the same version is reused.  Another row is stored without idx if the text has none.
        """
        rows, store = self.rows, self.store
        stamp = self._stamp if rows is self._stamped else None
        confirmed = 0
        new = []
        for rid, path, text in found:
            version, idx = split_version(text)
            row = store.confirm(rid, version, stamp)
            if row is not None:
                confirmed += 1
            else:
                row = Row(path, idx.encode() if idx else None, version, stamp)
                if idx:
                    new.append((rid, row, len(idx)))
            self._use(rid, row, rows)
        result_cache().count(ROWS, confirmed, len(new))
        if share:
            store.put(new, yields)

    def _use(self, rid: int, row: Row, rows: dict[int, Row]) -> None:
        """Put *row* into *rows*, with the path that is already there."""
        seen = rows.get(rid)
        if seen is not None and seen.path is not None and seen.path != row.path:
            # The transaction has moved the object.
            row = Row(seen.path, row.idx)
        rows[rid] = row

    # -- paths

    def path(self, rid: int) -> str:
        """Return the path of the row *rid*, "" if the transaction has removed the row; raises RowGone."""
        path = self._path(rid)
        if path is None:
            self._load_paths(self.neighbours.batch(rid, PATH_BATCH))
            path = self._path(rid)
        if not path and self.view.is_committed:
            raise self._gone(rid)
        return path or ""

    def _gone(self, rid: int) -> RowGone:
        """Clear the cache, whose answers may list the missing row *rid*; return the error to raise."""
        result_cache().clear()
        return RowGone(rid)

    def paths(self, rids: Sequence[int]) -> list[str]:
        """Return the paths of the rows *rids*, "" for a row that is gone."""
        self._load_paths(rids)
        return [self._path(rid) or "" for rid in rids]

    def _load_paths(self, rids: Sequence[int]) -> None:
        self.find(rids)
        wanted = [rid for rid in rids if self._path(rid) is None]
        # A committed row does not have the path to which the transaction has moved its object.
        held = self.store.get_whole(wanted) if self.view.is_committed else {}
        if ROUND_TRIP_ROWS < len(held) <= MOST_CONFIRMED:
            self._read((), held)
            wanted = [rid for rid in wanted if self._path(rid) is None]
        if wanted:
            found = self.view.paths(wanted).value()
            self.place([(rid, found.get(rid, "")) for rid in wanted])

    def _path(self, rid: int) -> str | None:
        for rows in (self._stamped, self._own):
            row = rows.get(rid)
            if row is not None and row.path is not None:
                return row.path
        return None

    # -- metadata

    def row(self, rid: int) -> Row:
        """Return the row *rid* with its idx; raises RowGone."""
        row = self.held(rid)
        if row is None:
            self._load(*self.neighbours.of(rid, lambda rids: without_idx(self.find(rids), rids)))
            row = self.held(rid)
            if row is None:
                raise self._gone(rid)
        return row

    def _load(self, rids: Sequence[int], ahead: Sequence[int] = ()) -> None:
        """Load the rows *rids* with their idx; in the same statement, confirm the cached rows among *ahead*."""
        if not self.view.is_committed:
            # A committed row has the path from before the transaction moved its object.
            self._load_paths(rids)
        rids = without_idx(self.find(rids), rids)
        if rids:
            if self.view.is_committed:
                ahead = without_idx(self.find(ahead), ahead)
            else:
                ahead = ()
            held = self.store.get_whole([*rids, *ahead])
            self._read([rid for rid in rids if rid not in held], held)
        rows, is_committed = self.rows, self.view.is_committed
        for rid in rids:
            row = rows.get(rid)
            committed = None if row is None or row.idx is None else row
            pending = None if is_committed else self.view.pending_idx(rid, committed.data if committed else None)
            if is_committed and (row is None or row.version is None):
                # No statement has returned the row: it is gone.
                continue
            if pending is not None or committed is None:
                # A private row: other results share the committed one.
                rows[rid] = Row(None if row is None else row.path, pending or {})

    def _read(self, rids: Sequence[int], held: Mapping[int, Row]) -> None:
        """Read the committed rows *rids*, and the rows of *held*, cached rows by rid, whose version has changed."""
        if not rids and not held:
            return
        versions = {rid: row.version or "" for rid, row in held.items()}
        found = self.view.idx_texts(rids, self.excluded_keys, versions).value()
        rows = self.rows
        stamp = self._stamp if rows is self._stamped else None
        changed = {row[0] for row in found}
        for rid, row in held.items():
            if rid not in changed:
                row.confirm(stamp)
                self._use(rid, row, rows)
        result_cache().count(ROWS, len(held) - len(changed.intersection(held)), 0)
        # A row without a path is gone.
        self._store((row for row in found if row[1] is not None), yields=len(rids) + len(held) > IDX_BATCH)

    # -- objects

    def prefetch(self, rid: int) -> None:
        """Load the objects of the row *rid* and of the rows behind it together, unless this was done before."""
        size = batch_size()
        if rid in self._prefetched or not size:
            return
        # The rid of an object's first path is its oid.
        wanted = [r for r in self.neighbours.following(rid, size) if r not in self._prefetched]
        self._prefetched.update(wanted)
        if len(wanted) > 1:
            prefetch(self.view.session.jar, wanted)
