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
from plone.pgcatalog.results.answer import Scores
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
    """Brains of the rows that *query* finds in *catalog*, in order.

    ``len()`` of an unlimited result counts; its first rows, and a limited result, come with their metadata in one
    statement; what is beyond is read as an array of record ids.  A result that Python sorts is read when it is made.
    *criteria*, *context* and *sort* are what *query* was compiled from: the whole query dict, with what restricts it, the
    context of the search, and (index name, reverse) pairs.  *on_start* is that of ``Reader``.
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
        self._reader = (
            Reader(view, query, loader, on_start)
            if query.window.fits_sql and not query.python_sort
            else SortedReader(catalog.translator, view, query, loader, on_start)
        )
        self._assigned: int | None = None
        self._count_limit: int | None = None
        self._scores = Scores()
        self._brain_of = catalog.brain_maker()
        #: rid -> brain, of all that were given out
        self._brains: dict[int, Any] = {}
        if not self._reader.is_whole:
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
        self._reader.read(rows)

    def count_along(self) -> None:
        """Have all rows counted in the message that reads the first ones: for who will want both."""
        self._reader.counts_along = True

    def count_up_to(self, limit: int) -> None:
        """Have ``actual_result_count`` be *limit* where more rows match, which are not counted; ``is_limited`` tells.

        A result that Python sorts, or whose count is assigned, is counted whole.  Raises ValueError for a negative *limit*.
        """
        limit = whole("a limit to counting", limit, LARGEST_WINDOW)
        if limit < 0:
            raise ValueError("a limit to counting is not negative")
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
        """Read what is still open: before a change of the catalog all, before the *ending* of the transaction the rids."""
        if not self._reader.is_whole:
            self._reader.read(with_paths=not ending)
        if not ending and self._assigned is None:
            self._reader.total()

    def fail(self, error: Exception) -> None:
        """Raise *error* for each read from now on: the snapshot of the search is gone."""
        self._reader.error = error

    # -- the sequence

    def __len__(self) -> int:
        return self._reader.length()

    def __bool__(self) -> bool:
        self._reader.read(1)
        return len(self._reader.rids) > 0

    @property
    def actual_result_count(self) -> int:
        """The number of rows that match, limits aside but that of ``count_up_to``."""
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
        """Return the brain of the row *rid*, always the same one; a new one is made of *row*, if that is known."""
        brain = self._brains.get(rid)
        # Of two threads that make one, both get that of the first.
        return self._brains.setdefault(rid, self._new_brain(rid, row)) if brain is None else brain

    def _new_brain(self, rid: int, row: Row | None) -> Any:
        scores = (1, 1) if self.query.score is None else self._scores.of(rid, self._reader.answer)
        return self._brain_of(self._loader, rid, *scores, row)
