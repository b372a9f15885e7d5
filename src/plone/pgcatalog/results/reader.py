"""Reads the answer to a compiled query on demand, from the process's cache or by one statement.

Fixed rules decide which data a statement reads besides the requested ones:

- a page of up to IDX_BATCH rows reads their versions, and their metadata unless most rows of the catalog are cached
  (``RowLoader.has_most``)
- a count also reads the first rows: of a query with ``b_size`` (``Window.is_page``), or in an open batch
- a search for fewer than IDX_BATCH unique values reads all its rows at once, and so their number
- a search for one announced unique value reads the rows of all announced values (``results.announced``)
- a row beyond the first WINDOW is read with the ids of all rows up to a power of two, at least FEWEST_IDS
- reading rows counts no others, unless ``counts_with_page`` is set
- a result that is sorted in Python is read completely; up to FEW_ROWS rows with their versions and metadata
"""

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import replace
from plone.pgcatalog.database.prepared import Rows
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.results.answer import Answer
from plone.pgcatalog.results.answer import NOTHING_MATCHES
from plone.pgcatalog.results.answer import UNKNOWN
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import Key
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.loader import IDX_BATCH
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.position import sorted_rids
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.sql.predicate import EQUALS
from typing import Any


#: Up to this position rows are read as pages; for a row beyond, the ids of all rows up to it are read.
WINDOW = 100
#: Upper limit of rows sorted in Python that are read with their metadata: their versions take as long as a round trip.
FEW_ROWS = 100
#: Ids of rows that are read at once, at least.  Each further read doubles the number, so that slice after slice reads about
#: twice as many ids in all.
FEWEST_IDS = 1024


class Reader:
    """Reads the answer to *compiled* in *view*, and stores the rows it reads in *loader*.

    *on_start* is called once, after the first read, with True if there are rows.
    """

    def __init__(
        self,
        view: CatalogView,
        compiled: CompiledQuery,
        loader: RowLoader,
        on_start: Callable[[bool], Any] | None = None,
    ) -> None:
        self._view = view
        #: the error of reading before the snapshot ended, raised by each further read; None if there was none
        self.error: Exception | None = None
        self.compiled = compiled
        self.loader = loader
        self.answer = NOTHING_MATCHES if compiled.is_empty else UNKNOWN
        #: the key of the answer in the cache; None if the answer is not cached
        self._key: Key | None = None
        self._has_cached = False
        #: True if the statement that reads the first rows also counts all rows
        self.counts_with_page = False
        #: True if the loader also holds the rows of other, announced searches
        self._is_together = False
        self._on_start = on_start
        #: the first page, which waits for the message of a batch
        self._collected: Fetch[tuple[Answer, Rows]] | None = None

    @property
    def view(self) -> CatalogView:
        """The view that reads the rows; raises ``error`` if it is set."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self._view

    @property
    def rids(self) -> Sequence[int]:
        """The record ids of the rows read so far."""
        return self.answer.ids

    @property
    def is_whole(self) -> bool:
        """True if all rows are read."""
        return self.answer.whole

    # -- the cache

    def _read_cache(self) -> None:
        """Add the cached answer to ``answer``, on the first call."""
        if self._collected is not None:
            collected, self._collected = self._collected, None
            self._store(collected)
        if self._has_cached:
            return
        self._has_cached = True
        if not self.view.is_committed or self.compiled.is_empty:
            return
        query_key, stamp = self.compiled.key, self.view.stamp()
        if query_key is None or stamp is None:
            return
        self._key = (HITS, stamp, query_key)
        self.loader.share(stamp)
        cached = result_cache().get(self._key)
        if cached is not None:
            self.answer = self.answer.merged(cached)

    def _store(self, fetch: Fetch[tuple[Answer, Rows]]) -> None:
        """Set ``answer`` from *fetch*, cache it, and store the rows of *fetch* in the loader."""
        self.answer, rows = fetch.value()
        if self._key is not None and self.view.is_current(self._key[1]):
            result_cache().put(self._key, self.answer, self.answer.bytes)
        if rows:
            self.loader.add_rows(rows)

    def _has_read(self) -> None:
        if not self._is_together:
            self.loader.neighbours.rids = self.rids
        if self._on_start is not None:
            on_start, self._on_start = self._on_start, None
            on_start(bool(self.rids or self.answer.total))

    # -- reading

    def collect(self) -> None:
        """Add the page of a search with ``b_size`` to the open batch; the next read stores it."""
        self._read_cache()
        answer, size = self.answer, self.compiled.window.size
        if size and not answer.whole and not answer.ids:
            self._collected = self._page(size, self.counts_with_page)

    def read(self, wanted: int | None = None, with_paths: bool = False) -> None:
        """Read at least the first *wanted* rows, None for all; *with_paths*: also their paths, if all are read."""
        self._read(wanted, with_paths)
        self._has_read()

    def _read(self, wanted: int | None, with_paths: bool = False, with_metadata: bool = False) -> None:
        self._read_cache()
        if wanted is not None and wanted <= WINDOW:
            self._read_first(wanted)
            return
        if self.compiled.window.size is not None or self._few_rows():
            self._read_first(1)
        if not self.answer.whole and (wanted is None or len(self.answer.ids) < wanted):
            self._store(self._rest(wanted, with_paths, with_metadata and not self.compiled.score))

    def _read_first(self, wanted: int) -> None:
        """Read at least the first *wanted* rows as a page, unless they are read."""
        if self.answer.whole or len(self.answer.ids) >= wanted or self._read_announced():
            return
        self._read_page(max(wanted, self._few_rows()), self.counts_with_page)

    def _read_page(self, wanted: int, with_total: bool) -> None:
        """Read the missing ones of the first *wanted* rows, and *with_total* the number of all."""
        compiled, answer = self.compiled, self.answer
        size = compiled.window.size
        if size is None:
            size = wanted - len(answer.ids)
        if not size:
            self._store(Fetch.of((answer.with_page(compiled, (), size), [])))
            return
        self._store(self._page(size, with_total))

    def _page(self, size: int, with_total: bool) -> Fetch[tuple[Answer, Rows]]:
        """Return a fetch of the answer with the next *size* rows, *with_total* also with the number of all; and of these rows."""
        compiled, answer = self.compiled, self.answer
        excluded = self.loader.excluded_keys if size <= IDX_BATCH else None
        with_total = with_total and answer.total is None
        start = compiled.window.start + len(answer.ids)
        page = self.view.page(compiled, start, size, excluded, not self.loader.has_most(), with_total)
        return page.then(lambda page: (answer.with_page(compiled, page[0], size, page[1]), page[0]))

    def _few_rows(self) -> int:
        """Return a number above the number of rows of a search for a few unique values; 0 for any other search."""
        part = self.compiled.unique
        if part is None or self.compiled.window.size is not None:
            return 0
        return IDX_BATCH if part.operator == EQUALS or len(part.values[0]) < IDX_BATCH else 0

    def _read_announced(self) -> bool:
        """Read all rows if the search was announced; return True if it was."""
        announced = self.view.session.announced.get(self.view.zoid)
        if announced is None or (found := announced.find(self.compiled, self.loader)) is None:
            return False
        rids, self.loader = found
        self._is_together = True
        self._store(Fetch.of((Answer(rids, (), True, len(rids)), [])))
        return True

    def _rest(self, wanted: int | None, with_paths: bool, with_metadata: bool) -> Fetch[tuple[Answer, Rows]]:
        """Return a fetch of the answer with all rows, or with at least the first *wanted*, and of the rows to store."""
        compiled, total = self.compiled, self.answer.total
        size = None if wanted is None else max(FEWEST_IDS, 1 << (wanted - 1).bit_length())
        if compiled.score or (size is not None and total is not None and total <= size):
            size = None
        # If most rows are cached, their paths are not read: comparing versions confirms them.
        if compiled.score or with_metadata or (with_paths and not self.loader.has_most()):
            metadata = (self.loader.excluded_keys, not self.loader.has_most(), False, None, FEW_ROWS)
            page = self.view.page(compiled, 0, None, *(metadata if with_metadata else ()))
            return page.then(lambda page: (Answer.of_all(compiled, page[0]), page[0]))
        least = self.answer.least
        return self.view.rids(compiled, size).then(lambda rids: (Answer.of_ids(rids, size, total, least), []))

    # -- counting

    def count_up_to(self, limit: int) -> None:
        """Stop counting behind *limit* rows."""
        self.compiled = replace(self.compiled, count_limit=limit)

    def length(self) -> int:
        """Return the number of rows of the result; reading a page also counts all rows that match."""
        if self.compiled.window.size is not None:
            self.counts_with_page = self.counts_with_page or self.compiled.window.is_page
            self._read(1)
        if not self.answer.whole:
            self.compiled = (
                replace(self.compiled, count_limit=None) if self.compiled.count_limit is not None else self.compiled
            )
            total = self.total()
            assert total is not None
            return total
        self._has_read()
        return len(self.rids)

    def total(self) -> int | None:
        """Return the number of rows that match, ignoring the window; None if it exceeds ``count_limit`` of the query."""
        limit = self.compiled.count_limit
        self._read_cache()
        if self.answer.exceeds(limit):
            return None
        if self.answer.total is None and not self.answer.ids and (few := self._few_rows()):
            self._read_first(few)
        elif self.answer.total is None and (wanted := self._rows_with_count()):
            self._read_page(wanted, with_total=True)
        if self.answer.total is None and not self.answer.exceeds(limit):
            answer = self.answer
            self._store(self.view.count(self.compiled).then(lambda counted: (answer.with_count(counted, limit), [])))
        self._has_read()
        total = self.answer.total
        return None if total is None or (limit is not None and total > limit) else total

    def _rows_with_count(self) -> int:
        """Return the number of rows that a count also reads, 0 if some have been read."""
        if self.answer.ids or self.answer.whole:
            return 0
        window = self.compiled.window
        needs_rows = self.view.session.collected.is_open if window.size is None else window.is_page
        return IDX_BATCH if needs_rows else 0


class SortedReader(Reader):
    """Reader for a query with an order or a window that SQL lacks: reads all rows at once, then sorts and cuts them.

    *lookup* returns the translator of an index.  Positions in folders are read when the reader is created.
    """

    def __init__(
        self, lookup: Callable[[str], IndexTranslator], view: CatalogView, compiled: CompiledQuery, *more: Any
    ):
        super().__init__(view, replace(compiled, python_sort=(), window=Window()), *more)
        self._read(None, with_paths=True, with_metadata=True)
        rids = self.answer.ids
        if compiled.python_sort and rids:
            rids = sorted_rids(view, lookup, compiled, rids, self.loader.paths(rids))
        self._total = len(rids)
        self._sorted = compiled.cut(rids)
        self._has_read()

    @property
    def rids(self) -> Sequence[int]:
        """The record ids of the rows in the window, in order."""
        return self._sorted

    def read(self, wanted: int | None = None, with_paths: bool = False) -> None:
        """Do nothing: all rows have been read."""

    def length(self) -> int:
        """Return the number of rows in the window."""
        return len(self.rids)

    def total(self) -> int:
        """Return the number of rows in the sorted result, before it was cut."""
        return self._total
