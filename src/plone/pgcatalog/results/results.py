"""The result of a search: a lazy sequence that reads from the database only the rows that its caller asks for."""

from array import array
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from operator import index as index_of
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import LARGEST_WINDOW
from plone.pgcatalog.results.answer import Answer
from plone.pgcatalog.results.answer import Scores
from plone.pgcatalog.results.loader import IDX_BATCH
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.position import sorted_rids
from plone.pgcatalog.results.reader import Reader
from plone.pgcatalog.results.reader import unsorted
from plone.pgcatalog.results.rows import Row
from plone.pgcatalog.results.stream import BATCH
from plone.pgcatalog.results.stream import BrainStream
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.sql.values import whole
from types import MappingProxyType
from typing import Any
from typing import TYPE_CHECKING
from ZTUtils.Lazy import LazyMap


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


#: A slice that ends within this many rows is read by itself; beyond, the ids of all rows up to it are.
WINDOW = 100


class CatalogSearchResults(LazyMap):
    """Brains of the rows that *query* finds in *catalog*, in order.

    ``len()`` of an unlimited result counts; its first rows, and a limited result, come with their metadata in one
    statement; what is beyond is read as an array of record ids.  A result that Python sorts is read when it is made.
    *criteria*, *context* and *sort* are what *query* was compiled from: the whole query dict, with what restricts it, the
    context of the search, and (index name, reverse) pairs.  *on_start* is called when the first part of the answer is there, with True if it has rows.
    """

    # What trusted code may ask; others could change it, and then count what they may not see.
    catalog__roles__ = view__roles__ = query__roles__ = condition__roles__ = criteria__roles__ = sort__roles__ = ()
    context__roles__ = ()

    def __init__(
        self,
        catalog: "Catalog",
        view: CatalogView,
        query: CompiledQuery,
        context: SearchContext,
        criteria: Mapping[str, Any] = MappingProxyType({}),
        sort: Sequence[tuple[str, bool]] = (),
        on_start: Callable[[bool], Any] | None = None,
    ) -> None:
        #: the catalog with the configuration and the context of this search; and what its rows are read from
        self.catalog, self.context, self.view = catalog, context, view
        #: the compiled query, the condition of the rows that match, limits aside, and what both were made of
        self.query, self.condition, self.criteria, self.sort = query, query.where, criteria, tuple(sort)
        loader = RowLoader(view, array("q"), catalog.excluded_keys)
        self._needs_python = bool(query.python_sort) or not query.window.fits_sql
        self._reader = Reader(view, unsorted(query) if self._needs_python else query, loader, query.window.is_page)
        self._sorted: Sequence[int] | None = None
        self._assigned: int | None = None
        self._count_limit: int | None = None
        self._scores = Scores()
        self._on_start = on_start
        self._brain_of = catalog.brain_maker()
        #: rid -> brain, of all that were given out
        self._brains: dict[int, Any] = {}
        if query.is_empty:
            return
        if query.python_sort:
            # The order is not in the database: it is that of the folders now.
            self._first(1)
        else:
            view.session.open_results.add(self)

    # -- what rooms above do with it, imported when somebody asks for it

    def iterate(self, batch: int = BATCH) -> BrainStream:
        """Return an iterator over the brains of all rows, read *batch* by batch, sorted as the search says, else by rid.

        Raises QueryError for a search with a limit, or sorted by an index that SQL cannot sort by.
        """
        return BrainStream(self.catalog, self.query, batch)

    def facets(self, names: Sequence[str] = (), **options: Any) -> Any:
        """Count the values of the indexes *names* in all rows that match, limits of the search aside.

        Returns {name: Facet}; for *options* and errors see ``discovery.facets.facets``.
        """
        from plone.pgcatalog.discovery.facets import facets

        return facets(self, names, **options).value()

    @property
    def facet_counts(self) -> Any:
        """``["facet_fields"][index name][value as text]`` is the number of rows, for eea.facetednavigation."""
        from plone.pgcatalog.discovery.facets import facet_counts

        return facet_counts(self)

    def highlighter(self) -> Any:
        """Return what marks the words of this search in any text (a ``Highlighter``); false when it asks for none."""
        from plone.pgcatalog.discovery.highlight import highlighter

        return highlighter(self)

    def snippets(self, brains: Iterable[Any], *args: Any, **options: Any) -> dict[int, str]:
        """Return record id -> HTML for *brains* of this result, a page of it; see ``discovery.highlight.snippets``."""
        from plone.pgcatalog.discovery.highlight import snippets

        return snippets(self, brains, *args, **options).value()

    # -- reading

    def read_first(self, rows: int) -> None:
        """Read the first *rows* rows now, in one message with what an open batch has collected."""
        self._first(rows)

    def count_along(self) -> None:
        """Have all rows counted in the message that reads the first ones: for who will want both."""
        if not self._needs_python:
            self._reader.count_along()

    def count_up_to(self, limit: int) -> None:
        """Have ``actual_result_count`` be *limit* where more rows match, which are not counted; ``is_limited`` tells.

        A result that Python sorts, or somebody has counted, is counted whole.  Raises ValueError for a negative *limit*.
        """
        limit = whole("a limit to counting", limit, LARGEST_WINDOW)
        if limit < 0:
            raise ValueError("a limit to counting is not negative")
        self._count_limit = limit
        if not self._needs_python:
            self._reader.count_up_to(limit)

    @property
    def is_limited(self) -> bool:
        """True if more rows match than ``actual_result_count`` says."""
        if self._count_limit is None or self._needs_python or self._assigned is not None:
            return False
        return self._reader.total() is None

    @property
    def _loader(self) -> RowLoader:
        return self._reader.loader

    @property
    def _answer(self) -> Answer:
        return self._reader.answer

    @property
    def _rids(self) -> Sequence[int]:
        """The record ids of the rows that are known."""
        return self._answer.ids if self._sorted is None else self._sorted

    def _first(self, wanted: int) -> None:
        if self._needs_python:
            self._sort_rows()
        elif wanted <= WINDOW:
            self._reader.first(wanted)
        else:
            self._reader.rest_up_to(wanted)
        self._has_read()

    def _all(self, with_paths: bool = False) -> None:
        if self._needs_python:
            self._sort_rows()
        else:
            self._reader.rest(with_paths)
        self._has_read()

    def _sort_rows(self) -> None:
        """Sort in Python, and cut what SQL cannot."""
        if self._sorted is None:
            self._reader.rest(with_paths=True, with_metadata=True)
            rids: Sequence[int] = self._answer.ids
            if self.query.python_sort:
                paths = self._loader.paths(rids)
                rids = sorted_rids(self.view, self.catalog.translator, self.query, rids, paths)
                self._assigned = len(rids)
            self._sorted = self.query.window.cut(rids, self.query.sort_count)

    def _has_read(self) -> None:
        if not self._reader.is_together:
            self._loader.neighbours.rids = self._rids
        if self._on_start is not None:
            on_start, self._on_start = self._on_start, None
            on_start(bool(self._rids or self._answer.total))

    def materialize(self, ending: bool = False) -> None:
        """Read what is still open: before a change of the catalog all, before the *ending* of the transaction the rids."""
        if not self._answer.whole or (self._needs_python and self._sorted is None):
            self._all(with_paths=not ending)
        if not ending and self._assigned is None:
            self._count()

    def fail(self, error: Exception) -> None:
        """Raise *error* for each read from now on: the snapshot of the search is gone."""
        self._reader.error = error

    # -- the sequence

    def __len__(self) -> int:
        if self._needs_python:
            self._first(1)
        elif self.query.window.size is not None:
            self._reader.window()
            self._has_read()
        if self._sorted is None and not self._answer.whole:
            total = self._reader.whole_total()
            self._has_read()
            return total
        return len(self._rids)

    def __bool__(self) -> bool:
        self._first(1)
        return len(self._rids) > 0

    @property
    def actual_result_count(self) -> int:
        """The number of rows that match, limits aside but that of ``count_up_to``."""
        return self._count()

    @actual_result_count.setter
    def actual_result_count(self, value: int) -> None:
        self._assigned = value

    def _count(self) -> int:
        if self._needs_python:
            self._sort_rows()
        if self._assigned is not None:
            return self._assigned
        total = self._reader.total()
        self._has_read()
        return total if total is not None else self._count_limit or 0

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._slice(index)
        index = index_of(index)
        if len(self._rids) <= index:
            self._first(index - index % IDX_BATCH + IDX_BATCH)
        if not 0 <= index < len(self._rids):
            self._all()
        rid = self._rids[index]
        brain = self._brains.get(rid)
        if brain is None:
            row = self._loader.held(rid)
            if row is None:
                self._loader.find([rid])
                row = self._loader.held(rid)
            brain = self._brain(rid, row)
        return brain

    def _slice(self, index: slice) -> list[Any]:
        if index.step in (None, 1) and index.stop is not None and min(index.start or 0, index.stop) >= 0:
            self._first(index.stop)
        else:
            self._all()
        rids = self._rids[index]
        self._loader.neighbours.expect(rids)
        rows = self._loader.find(rids)
        return [self._brain(rid, row if (row := rows.get(rid)) and row.idx is not None else None) for rid in rids]

    def __iter__(self) -> Any:
        index = 0
        if self._rids:
            self._first(1)
        while True:
            if index >= len(self._rids):
                self._first(min(index + IDX_BATCH, WINDOW)) if index < WINDOW else self._all()
                if index >= len(self._rids):
                    return
            if index % IDX_BATCH == 0:
                self._loader.find(self._rids[index : index + IDX_BATCH])
            rid = self._rids[index]
            yield self._brain(rid, self._loader.held(rid))
            index += 1

    def _brain(self, rid: int, row: Row | None) -> Any:
        """Return the brain of the row *rid*, always the same one; a new one is made of *row*, if that is known."""
        brain = self._brains.get(rid)
        # Of two threads that make one, both get that of the first.
        return self._brains.setdefault(rid, self._new_brain(rid, row)) if brain is None else brain

    def _new_brain(self, rid: int, row: Row | None) -> Any:
        scores = (1, 1) if self.query.score is None else self._scores.of(rid, self._answer)
        return self._brain_of(self._loader, rid, *scores, row)
