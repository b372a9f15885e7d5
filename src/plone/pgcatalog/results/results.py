"""The result of a search: a lazy sequence that reads from the database only the rows that its caller uses."""

from array import array
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from operator import index as index_of
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import LARGEST_WINDOW
from plone.pgcatalog.results.answer import Scores
from plone.pgcatalog.results.brain import URLs
from plone.pgcatalog.results.loader import IDX_BATCH
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.reader import Reader
from plone.pgcatalog.results.reader import SortedReader
from plone.pgcatalog.results.reader import WINDOW
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


class CatalogSearchResults(LazyMap):
    """Sequence of the brains of the rows that the query *compiled* finds in *catalog*, in order.

    - ``len()`` of an unlimited result sends a statement that counts
    - the first rows, and a limited result, are read with their metadata in one statement
    - rows beyond are read as an array of record ids
    - a result that is sorted in Python is read when it is created

    *compiled* was made from *criteria* (the query dict, restrictions included), *context* and *sort* (pairs of index name
    and reverse).  *on_start* as in ``Reader``.
    """

    # For trusted code only: other code could change them, and then count rows that its user may not see.
    catalog__roles__ = view__roles__ = compiled__roles__ = condition__roles__ = criteria__roles__ = sort__roles__ = ()
    context__roles__ = ()

    def __init__(
        self,
        catalog: "Catalog",
        view: CatalogView,
        compiled: CompiledQuery,
        context: SearchContext,
        criteria: Mapping[str, Any] = MappingProxyType({}),
        sort: Sequence[tuple[str, bool]] = (),
        on_start: Callable[[bool], Any] | None = None,
    ) -> None:
        #: the catalog with its configuration, the context of this search, and the view that reads its rows
        self.catalog, self.context, self.view = catalog, context, view
        #: the compiled query, its condition, and the query dict and sort that it was compiled from
        self.compiled, self.condition, self.criteria, self.sort = compiled, compiled.where, criteria, tuple(sort)
        loader = RowLoader(view, array("q"), catalog.excluded_keys)
        self._reader = (
            Reader(view, compiled, loader, on_start)
            if compiled.window.fits_sql and not compiled.python_sort
            else SortedReader(catalog.translator, view, compiled, loader, on_start)
        )
        self._assigned: int | None = None
        self._count_limit: int | None = None
        self._scores = Scores()
        #: made once: its expressions take longer to compile than a title takes to mark
        self._highlighter: Any = None
        self._brain_of = catalog.brain_maker()
        #: rid -> brain, of all brains that were returned
        self._brains: dict[int, Any] = {}
        if not self._reader.is_whole:
            view.session.open_results.add(self)

    # -- features of packages above this one, imported on use

    def iterate(self, batch: int = BATCH) -> BrainStream:
        """Return an iterator over the brains of all rows in the order of the search, else by rid; reads in batches.

        Raises QueryError for a search with a limit, or sorted by an index that SQL cannot sort by.
        """
        return BrainStream(self.catalog, self.compiled, batch)

    def facets(self, names: Sequence[str] = (), **options: Any) -> Any:
        """Count the values of the indexes *names* in all rows that match, ignoring limits of the search.

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
        """Return a ``Highlighter`` of this search's words for any text; it is false if the search has no words."""
        from plone.pgcatalog.discovery.highlight import highlighter

        if self._highlighter is None:
            self._highlighter = highlighter(self)
        return self._highlighter

    def snippets(self, brains: Iterable[Any], *args: Any, **options: Any) -> Mapping[int, str]:
        """Return record id -> HTML for *brains*, a page of this result; see ``discovery.snippets.snippets``."""
        from plone.pgcatalog.discovery.snippets import snippets

        return snippets(self, brains, *args, **options).value()

    # -- reading

    def read_first(self, rows: int) -> None:
        """Read the first *rows* rows now, in one message with the statements of an open batch."""
        self._reader.read(rows)

    def collect(self) -> None:
        """Add the page of a search with ``b_size`` to the open batch, whose message reads it."""
        self._reader.collect()

    def serve_urls(self, urls: URLs) -> None:
        """Let the brains of this result have URLs by *urls*."""
        self._loader.urls = urls

    def count_with_page(self) -> None:
        """Count all rows in the statement that reads the first ones, for a caller that needs both."""
        self._reader.counts_with_page = True

    def count_up_to(self, limit: int) -> None:
        """Stop counting at *limit*: if more rows match, ``actual_result_count`` is *limit*, and ``is_limited`` is True.

        Has no effect if the result is sorted in Python, or its count is assigned.  Raises ValueError for a negative *limit*.
        """
        limit = whole("a limit to counting", limit, LARGEST_WINDOW)
        if limit < 0:
            raise ValueError("a limit to counting must not be negative")
        self._count_limit = limit
        self._reader.count_up_to(limit)

    @property
    def is_limited(self) -> bool:
        """True if more rows match than ``actual_result_count`` says."""
        return self._count_limit is not None and self._assigned is None and self._reader.total() is None

    @property
    def _loader(self) -> RowLoader:
        return self._reader.loader

    def materialize(self, ending: bool = False) -> None:
        """Read the remaining rids; before a change of the catalog, not before the *ending*, also paths and the total."""
        if not self._reader.is_whole:
            self._reader.read(with_paths=not ending)
        if not ending and self._assigned is None:
            self._reader.total()

    def fail(self, error: Exception) -> None:
        """Raise *error* on each further read, because the snapshot of the search is gone."""
        self._reader.error = error

    # -- the sequence

    def __len__(self) -> int:
        return self._reader.length()

    def __bool__(self) -> bool:
        self._reader.read(1)
        return len(self._reader.rids) > 0

    @property
    def actual_result_count(self) -> int:
        """The number of rows that match, ignoring limits of the search; at most the limit of ``count_up_to``."""
        if self._assigned is not None:
            return self._assigned
        total = self._reader.total()
        return total if total is not None else self._count_limit or 0

    @actual_result_count.setter
    def actual_result_count(self, value: int) -> None:
        self._assigned = value

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._slice(index)
        index, reader = index_of(index), self._reader
        if len(reader.rids) <= index:
            reader.read(index - index % IDX_BATCH + IDX_BATCH)
        if not 0 <= index < len(reader.rids):
            reader.read()
        rid = reader.rids[index]
        brain = self._brains.get(rid)
        if brain is None:
            row = self._loader.held(rid)
            if row is None:
                self._loader.find([rid])
                row = self._loader.held(rid)
            brain = self._brain(rid, row)
        return brain

    def _slice(self, index: slice) -> list[Any]:
        reader = self._reader
        if index.step in (None, 1) and index.stop is not None and min(index.start or 0, index.stop) >= 0:
            reader.read(index.stop)
        else:
            reader.read()
        rids = reader.rids[index]
        self._loader.neighbours.expect(rids)
        rows = self._loader.find(rids)
        return [self._brain(rid, row if (row := rows.get(rid)) and row.idx is not None else None) for rid in rids]

    def __iter__(self) -> Any:
        index, reader = 0, self._reader
        if reader.rids:
            reader.read(1)
        while True:
            if index >= len(reader.rids):
                reader.read(min(index + IDX_BATCH, WINDOW)) if index < WINDOW else reader.read()
                if index >= len(reader.rids):
                    return
            if index % IDX_BATCH == 0:
                self._loader.find(reader.rids[index : index + IDX_BATCH])
            rid = reader.rids[index]
            yield self._brain(rid, self._loader.held(rid))
            index += 1

    def _brain(self, rid: int, row: Row | None) -> Any:
        """Return the brain of the row *rid*, the same one each time; *row* is the row, if it is loaded."""
        brain = self._brains.get(rid)
        # If two threads create the brain, both return the first one.
        return self._brains.setdefault(rid, self._new_brain(rid, row)) if brain is None else brain

    def _new_brain(self, rid: int, row: Row | None) -> Any:
        scores = (1, 1) if self.compiled.score is None else self._scores.of(rid, self._reader.answer)
        return self._brain_of(self._loader, rid, *scores, row)
