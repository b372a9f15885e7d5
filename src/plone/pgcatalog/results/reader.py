"""Answers a compiled query, as far as somebody wants to know: from the process's cache, or by one statement.

What a statement brings besides the answer follows from rules, never from what other requests did:

- a page of up to IDX_BATCH rows says the version of each, and brings its metadata, unless the process has most rows of the
  catalog (``RowLoader.has_most``); of a catalog that a bitmap fits, those of the rows that the process has not;
- a count, or the length of a page, brings both where both are wanted for sure: *pages* says that a query has ``b_size``;
  else in an open batch; in a small catalog it brings where the first rows are, if nothing is ranked;
- a search for fewer than IDX_BATCH unique values has about as many rows: each read of it brings all, and so their number;
- a search for one unique value that a page has announced brings the rows of all such values (``results.announced``);
- a row beyond the first WINDOW comes with the ids of all in front of it, and of as many behind it;
- rows bring no count, unless ``count_along`` says so;
- all rows of a result that Python sorts are read at once, and up to FEW_ROWS with their versions and metadata.
"""

from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import replace
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.results.answer import Answer
from plone.pgcatalog.results.answer import NOTHING_MATCHES
from plone.pgcatalog.results.answer import UNKNOWN
from plone.pgcatalog.results.cache import BITS
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import Key
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.loader import IDX_BATCH
from plone.pgcatalog.results.loader import is_small_catalog
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.position import sorted_rids
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.results.view import Rows
from plone.pgcatalog.sql.predicate import EQUALS
from typing import Any


#: Rows that are read by themselves; for a row beyond, the ids of all rows up to it are.
WINDOW = 100
#: Rows of a result that Python sorts which come with their metadata: their versions take about as long as another message.
FEW_ROWS = 100
#: Rows that a count brings in a small catalog: a page of Plone's listings has 20 or 30.
COUNT_BATCH = 30
#: Ids of rows that are read at once, at least; then twice as many, so that slice after slice reads none more than twice.
FEWEST_IDS = 1024


class Reader:
    """Answers *query* in *view*; what it reads of rows it gives to *loader*.

    *on_start* is called once, when the first part of the answer is there, with True if it has rows.
    """

    def __init__(
        self,
        view: CatalogView,
        query: CompiledQuery,
        loader: RowLoader,
        on_start: Callable[[bool], Any] | None = None,
    ) -> None:
        self._view = view
        #: the error of the last chance to read; None as long as the snapshot of the search is there
        self.error: Exception | None = None
        self.query = query
        self.loader = loader
        self.answer = NOTHING_MATCHES if query.is_empty else UNKNOWN
        #: None while no other result has the same answer
        self._key: Key | None = None
        self._has_cached = False
        #: True if the statement that reads the first rows counts all
        self.counts_along = False
        #: True if the loader has the rows of other searches, too
        self._is_together = False
        self._on_start = on_start

    @property
    def view(self) -> CatalogView:
        """The rows of the search; raises ``error``."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self._view

    @property
    def rids(self) -> Sequence[int]:
        """The record ids of the rows that are read."""
        return self.answer.ids

    @property
    def is_whole(self) -> bool:
        """True if all rows are read."""
        return self.answer.whole

    # -- the cache

    def _read_cache(self) -> None:
        """Use the cached answer."""
        if self._has_cached:
            return
        self._has_cached = True
        if not self.view.is_committed or self.query.is_empty:
            return
        query_key, stamp = self.query.key, self.view.stamp()
        if query_key is None or stamp is None:
            return
        self._key = (HITS, stamp, query_key)
        self.loader.share(stamp)
        cached = result_cache().get(self._key)
        if cached is not None:
            self.answer = self.answer.merged(cached)

    def _learn(self, fetch: Fetch[tuple[Answer, Rows]]) -> None:
        """Read the answer and the rows of *fetch*, and store them for other results."""
        self.answer, rows = fetch.value()
        if self._key is not None and self.view.is_current(self._key[1]):
            result_cache().put(self._key, self.answer, self.answer.bytes)
        if rows:
            self.loader.keep(rows)

    def _has_read(self) -> None:
        if not self._is_together:
            self.loader.neighbours.rids = self.rids
        if self._on_start is not None:
            on_start, self._on_start = self._on_start, None
            on_start(bool(self.rids or self.answer.total))

    # -- reading

    def read(self, wanted: int | None = None, with_paths: bool = False) -> None:
        """Read at least the first *wanted* rows, None for all; *with_paths* their paths, if all are read."""
        self._read(wanted, with_paths)
        self._has_read()

    def _read(self, wanted: int | None, with_paths: bool = False, with_metadata: bool = False) -> None:
        self._read_cache()
        if wanted is not None and wanted <= WINDOW:
            self._read_first(wanted)
            return
        if self.query.window.size is not None or self._few_rows():
            self._read_first(1)
        if not self.answer.whole and (wanted is None or len(self.answer.ids) < wanted):
            self._learn(self._rest(wanted, with_paths, with_metadata and not self.query.score))

    def _read_first(self, wanted: int) -> None:
        """Read at least the first *wanted* rows, a page or a few."""
        if self.answer.whole or len(self.answer.ids) >= wanted or self._read_announced():
            return
        self._read_page(max(wanted, self._few_rows()), self.counts_along)

    def _read_page(self, wanted: int, with_total: bool, with_versions: bool = True) -> None:
        """Read the first *wanted* rows, which are not read, and *with_total* how many there are."""
        query, answer = self.query, self.answer
        size = query.window.size
        if size is None:
            size = wanted - len(answer.ids)
        if not size:
            self._learn(Fetch.of((answer.with_page(query, (), size), [])))
            return
        excluded = self.loader.excluded_keys if with_versions and size <= IDX_BATCH else None
        with_total = with_total and answer.total is None
        page = self.view.page(query, query.window.start + len(answer.ids), size, excluded, self._held(), with_total)
        self._learn(page.then(lambda page: (answer.with_page(query, page[0], size, page[1]), page[0])))

    def _few_rows(self) -> int:
        """Return a limit above the number of rows that a search for unique values finds; 0 for another search."""
        part = self.query.unique
        if part is None or self.query.window.size is not None:
            return 0
        return IDX_BATCH if part.operator == EQUALS or len(part.values[0]) < IDX_BATCH else 0

    def _read_announced(self) -> bool:
        """Read all rows of a search that was announced; return whether it was."""
        announced = self.view.session.announced.get(self.view.zoid)
        if announced is None or (found := announced.find(self.query, self.loader, self._held)) is None:
            return False
        rids, self.loader = found
        self._is_together = True
        self._learn(Fetch.of((Answer(rids, (), True, len(rids)), [])))
        return True

    def _held(self) -> bytes | None:
        """Return the bitmap of the rows that a page brings no metadata of; None for all rows."""
        if 0 < self.view.rows <= BITS // 2:
            return self.loader.store.bitmap
        return None if self.loader.has_most() else b""

    def _rest(self, wanted: int | None, with_paths: bool, with_metadata: bool) -> Fetch[tuple[Answer, Rows]]:
        """Return a fetch of all rows, or of a part with the first *wanted*; what is near the end costs as much as all."""
        query, total = self.query, self.answer.total
        size = None if wanted is None else max(FEWEST_IDS, 1 << (wanted - 1).bit_length())
        if query.score or (size is not None and total is not None and total <= size):
            size = None
        # Where rows are that the process has is told by their versions.
        if query.score or with_metadata or (with_paths and not self.loader.has_most()):
            options = (self.loader.excluded_keys, self._held(), False, None, FEW_ROWS) if with_metadata else ()
            page = self.view.page(query, 0, None, *options)
            return page.then(lambda page: (Answer.of_all(query, page[0]), page[0]))
        least = self.answer.least
        return self.view.rids(query, size).then(lambda rids: (Answer.of_ids(rids, size, total, least), []))

    # -- counting

    def count_up_to(self, limit: int) -> None:
        """Have counting stop behind *limit* rows."""
        self.query = replace(self.query, count_limit=limit)

    def length(self) -> int:
        """Return the number of rows of the result: of its window, whose page brings the number of all, or of all."""
        if self.query.window.size is not None:
            self.counts_along = self.counts_along or self.query.window.is_page
            self._read(1)
        if not self.answer.whole:
            self.query = replace(self.query, count_limit=None) if self.query.count_limit is not None else self.query
            total = self.total()
            assert total is not None
            return total
        self._has_read()
        return len(self.rids)

    def total(self) -> int | None:
        """Return the number of rows that match, limits aside; None if there are more than are to be counted."""
        limit = self.query.count_limit
        self._read_cache()
        if self.answer.exceeds(limit):
            return None
        if self.answer.total is None and not self.answer.ids and (few := self._few_rows()):
            self._read_first(few)
        elif self.answer.total is None and (wanted := self._rows_with_count()):
            # The process has most rows of a small catalog, and knows them without their versions until the next commit.
            self._read_page(wanted, with_total=True, with_versions=wanted != COUNT_BATCH)
        if self.answer.total is None and not self.answer.exceeds(limit):
            answer = self.answer
            self._learn(self.view.count(self.query).then(lambda counted: (answer.with_count(counted, limit), [])))
        self._has_read()
        total = self.answer.total
        return None if total is None or (limit is not None and total > limit) else total

    def _rows_with_count(self) -> int:
        """Return how many rows, of which none is read, a count brings along."""
        if self.answer.ids or self.answer.whole:
            return 0
        if self.view.session.collected.is_open if self.query.window.size is None else self.query.window.is_page:
            return IDX_BATCH
        if self.query.window.size is not None or self.query.score:
            return 0
        return COUNT_BATCH if is_small_catalog(self.view) else 0


class SortedReader(Reader):
    """Answers *query*, whose order or window is not in SQL: all rows are read at once, then sorted and cut here.

    *lookup* finds the translator of an index.  Positions are those in the folders now.
    """

    def __init__(self, lookup: Callable[[str], IndexTranslator], view: CatalogView, query: CompiledQuery, *more: Any):
        super().__init__(view, replace(query, python_sort=(), window=Window()), *more)
        self._read(None, with_paths=True, with_metadata=True)
        rids = self.answer.ids
        if query.python_sort and rids:
            rids = sorted_rids(view, lookup, query, rids, self.loader.paths(rids))
        self._total = len(rids)
        self._sorted = query.cut(rids)
        self._has_read()

    @property
    def rids(self) -> Sequence[int]:
        """The record ids of the rows in their order."""
        return self._sorted

    def read(self, wanted: int | None = None, with_paths: bool = False) -> None:
        """Read nothing: all rows are here."""

    def length(self) -> int:
        """Return the number of rows in the window."""
        return len(self.rids)

    def total(self) -> int:
        """Return the number of rows that have a place in the order."""
        return self._total
