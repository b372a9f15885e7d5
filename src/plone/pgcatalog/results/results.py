"""The result of a search: a lazy sequence that fetches a window first and the rest only when asked."""

from array import array
from collections.abc import Sequence
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.results.view import CatalogView
from typing import Any
from ZTUtils.Lazy import LazyMap


#: Rows that the first statement of a search without a limit brings.
FIRST_WINDOW = 100
#: Brains whose idx (or path) is loaded together at the most.
IDX_BATCH = 50


class IdxBatches:
    """Loads the idx of result rows in batches: the slice that somebody took, else rows around the touched one."""

    def __init__(self, view: CatalogView, rids: Sequence[int]) -> None:
        self.view = view
        self.rids = rids
        self.loaded: dict[int, dict[str, Any]] = {}
        self._slices: dict[int, Sequence[int]] = {}
        self._position: dict[int, int] = {}

    def expect(self, rids: Sequence[int]) -> None:
        """Note that *rids* will probably be wanted together."""
        if len(rids) <= IDX_BATCH:
            self._slices.update(dict.fromkeys(rids, rids))

    def idx_of(self, rid: int) -> dict[str, Any]:
        """Return the idx JSON of the row *rid*."""
        if rid not in self.loaded:
            self._load_idx_batch(rid)
        return self.loaded[rid]

    def _load_idx_batch(self, rid: int) -> None:
        wanted = [r for r in self._slices.get(rid) or self._around(rid) if r not in self.loaded]
        found = self.view.idx(wanted)
        self.loaded.update((r, found.get(r, {})) for r in wanted)

    def _around(self, rid: int) -> Sequence[int]:
        if len(self._position) != len(self.rids):
            self._position = {r: i for i, r in enumerate(self.rids)}
        at = self._position.get(rid)
        return [rid] if at is None else self.rids[at - at % IDX_BATCH :][:IDX_BATCH]


class CatalogSearchResults(LazyMap):
    """Brains of the rows a query matched, in order.

    The window that is known comes from the first statement; ``len()`` of an unlimited result and
    ``actual_result_count`` count when the window did not settle it; everything beyond the window is fetched
    as one array of rids.  ``complete()`` reads all that is still open, before the snapshot changes.
    """

    def __init__(self, catalog: Any, view: CatalogView, query: CompiledQuery) -> None:
        self._catalog = catalog
        self._view = view
        self._query = query
        self._rids: Sequence[int] = array("q")
        self._rows: dict[int, tuple[str, Any]] = {}
        self._exhausted = True
        self._total: int | None = 0
        self._best = 1.0
        if not query.is_empty:
            self._run()
        self._batches = IdxBatches(view, self._rids)
        if self._total is None or not self._exhausted:
            view.session.open_results.add(self)

    # -- running

    def _run(self) -> None:
        query = self._query
        if query.python_sort or not query.window.fits_sql:
            self._run_whole()
            return
        size = query.window.size
        wanted = FIRST_WINDOW + 1 if size is None else size
        rows = self._view.page(query, query.window.start, wanted) if wanted else []
        settled = len(rows) < wanted and (bool(rows) or not query.window.start)
        self._exhausted = size is not None or settled
        self._total = query.window.start + len(rows) if settled else None
        self._keep(rows if self._exhausted else rows[:FIRST_WINDOW])

    def _run_whole(self) -> None:
        rows = self._view.page(self._query, 0, None)
        if self._query.python_sort:
            rows = self._catalog.sort_in_python(rows, self._query.python_sort)
        self._total = len(rows)
        self._keep(self._query.window.cut(rows, self._query.sort_count))

    def _keep(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._rids = array("q", [row[0] for row in rows])
        self._rows = {rid: (path, score) for rid, path, score in rows}
        if rows and rows[0][2]:
            self._best = float(rows[0][2])

    def complete(self) -> None:
        """Read what is still open: the remaining rows and the total."""
        if not self._exhausted:
            rows = self._view.page(self._query, 0, None)
            self._keep(rows)
            self._batches.rids = self._rids
            self._total, self._exhausted = len(rows), True
        if self._total is None:
            self._total = self._view.count(self._query)

    def _fetch_rest(self) -> None:
        self._rids = self._view.rids(self._query)
        self._batches.rids = self._rids
        self._total = len(self._rids)
        self._exhausted = True

    # -- the sequence

    def __len__(self) -> int:
        if self._exhausted:
            return len(self._rids)
        if self._total is None:
            self._total = self._view.count(self._query)
        return self._total

    def __bool__(self) -> bool:
        return bool(self._rids) or len(self) > 0

    @property
    def actual_result_count(self) -> int:
        """The number of rows that match, limits aside."""
        if self._total is None:
            self._total = self._view.count(self._query)
        return self._total

    @actual_result_count.setter
    def actual_result_count(self, value: int) -> None:
        self._total = value

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._slice(index)
        if (index < 0 or index >= len(self._rids)) and not self._exhausted:
            self._fetch_rest()
        return self._brain(self._rids[index])

    def _slice(self, index: slice) -> list[Any]:
        known = len(self._rids)
        inside = index.step in (None, 1) and index.stop is not None and (index.start or 0) >= 0
        if not self._exhausted and not (inside and 0 <= index.stop <= known):
            self._fetch_rest()
        rids = self._rids[index]
        self._load_paths(rids)
        self._batches.expect(rids)
        return [self._brain(rid) for rid in rids]

    def __iter__(self) -> Any:
        index = 0
        while True:
            if index >= len(self._rids):
                if self._exhausted:
                    return
                self._fetch_rest()
                continue
            yield self._brain(self._rids[index])
            index += 1

    def _brain(self, rid: int) -> Any:
        if rid not in self._rows:
            at = self._rids.index(rid)
            self._load_paths(self._rids[at : at + IDX_BATCH])
        path, score = self._rows[rid]
        return self._catalog.brain(self._batches, rid, path, *self._scores(score))

    def _load_paths(self, rids: Sequence[int]) -> None:
        missing = [rid for rid in rids if rid not in self._rows]
        if missing:
            paths = self._view.paths(missing)
            self._rows.update({rid: (paths.get(rid, ""), None) for rid in missing})

    def _scores(self, score: Any) -> tuple[Any, Any]:
        """Return (score, normalised score 0..100) as ZCatalog's brains have them."""
        if score is None:
            return 1, 1
        return int(score * 1000) or 1, int(100.0 * score / self._best)
