"""Answers a compiled query, as far as somebody wants to know: from the process's cache, or by one statement.

What a statement brings besides the answer follows from rules, never from what other requests did:

- a page of up to IDX_BATCH rows says the version of each, and brings its metadata, unless the process has most rows of the
  catalog (``RowLoader.has_most``); of a catalog that a bitmap fits, those of the rows that the process has not;
- a count, or the length of a page, brings both where both are wanted for sure: *pages* says that a query has ``b_size``;
  else in an open batch; in a small catalog it brings where the first rows are, if nothing is ranked;
- a search for fewer than IDX_BATCH unique values has about as many rows: each read of it brings all, and so their number;
- a search for one unique value that a page has announced brings the rows of all such values (``results.announced``);
- a row beyond the first ones comes with the ids of all in front of it, and of as many behind it;
- rows bring no count, unless ``count_along`` says so;
- all rows of a result that Python sorts are read at once, and up to FEW_ROWS with their versions and metadata.
"""

from array import array
from dataclasses import replace
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.results.answer import Answer
from plone.pgcatalog.results.answer import NOTHING_MATCHES
from plone.pgcatalog.results.answer import UNKNOWN
from plone.pgcatalog.results.cache import BITS
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import Key
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.results.loader import IDX_BATCH
from plone.pgcatalog.results.loader import is_small_catalog
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.sql.predicate import EQUALS
from typing import Any


#: Rows of a result that Python sorts which come with their metadata: their versions take about as long as another message.
FEW_ROWS = 100
#: Rows that a count brings in a small catalog: a page of Plone's listings has 20 or 30.
COUNT_BATCH = 30
#: Ids of rows that are read at once, at least; then twice as many, so that slice after slice reads none more than twice.
FEWEST_IDS = 1024


class Reader:
    """Answers *query* in *view*; what it reads of rows it gives to *loader*.  *pages*: somebody wants a page and the total."""

    def __init__(self, view: CatalogView, query: CompiledQuery, loader: RowLoader, pages: bool = False) -> None:
        self._view = view
        #: the error of the last chance to read; None as long as the snapshot of the search is there
        self.error: Exception | None = None
        self.query = query
        self.loader = loader
        self.answer = NOTHING_MATCHES if query.is_empty else UNKNOWN
        self._stamp: Stamp | None = None
        #: None while the answer is nobody else's
        self._key: Key | None = None
        self._started = False
        self._pages = pages
        self._counts_along = False
        #: True if the loader has the rows of other searches, too
        self.is_together = False

    @property
    def view(self) -> CatalogView:
        """The rows of the search; raises ``error``."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self._view

    # -- the cache

    def start(self) -> None:
        """Take what the cache knows."""
        if self._started:
            return
        self._started = True
        if not self.view.is_committed or self.query.is_empty:
            return
        query_key, stamp = self.query.key, self.view.stamp()
        if query_key is None or stamp is None:
            return
        self._stamp = stamp
        self._key = (HITS, stamp, query_key)
        self.loader.share(stamp)
        cached = result_cache().get(self._key)
        if cached is not None:
            self.answer = self.answer.merged(cached)

    def _learn(self, answer: Answer) -> None:
        """Take *answer*, read just now, and keep it for others."""
        self.answer = answer
        if self._key is not None and self.view.is_current(self._stamp):
            result_cache().put(self._key, answer, answer.bytes)

    # -- reading

    def first(self, wanted: int) -> None:
        """Know at least the first *wanted* rows, or all there are."""
        self.start()
        if not self.answer.whole and len(self.answer.ids) < wanted and not self._read_announced():
            self._read_page(max(wanted, self._few_rows()), self._counts_along)

    def window(self) -> None:
        """Know the rows of a window, for whoever wants their number: if there are *pages*, that of all rows, too."""
        self._counts_along = self._counts_along or self._pages
        self.first(1)

    def _read_page(self, wanted: int, with_total: bool, with_versions: bool = True) -> None:
        """Know the first *wanted* rows, which are not known, and *with_total* how many there are."""
        start, size = self.query.window.start + len(self.answer.ids), self.query.window.size
        if size is None:
            size = wanted - len(self.answer.ids)
        rows: list[Any] = []
        total = None
        if size:
            excluded = self.loader.excluded_keys if with_versions and size <= IDX_BATCH else None
            held = self._held()
            with_total = with_total and self.answer.total is None
            rows, total = self.view.page(self.query, start, size, excluded, held, with_total)
        self._learn(self.answer.with_page(self.query, rows, size, total))
        if rows:
            self.loader.keep(rows)

    def _few_rows(self) -> int:
        """Return a limit above the number of rows that a search for unique values finds; 0 for another search."""
        part = self.query.unique
        if part is None or self.query.window.size is not None:
            return 0
        return IDX_BATCH if part.operator == EQUALS or len(part.values[0]) < IDX_BATCH else 0

    def _read_announced(self) -> bool:
        """Know all rows of a search that was announced; return whether it was."""
        session = self.view.session
        announced = session.announced.get(self.view.zoid)
        if announced is None or (found := announced.find(self.query, self.loader, self._held)) is None:
            return False
        rids, self.loader = found
        self.is_together = True
        self._learn(Answer(rids, (), True, len(rids)))
        return True

    def _held(self) -> bytes | None:
        """Return the bitmap of the rows that a page brings no metadata of; None for all rows."""
        if 0 < self.view.rows <= BITS // 2:
            return self.loader.store.bitmap
        return None if self.loader.has_most() else b""

    def rest(self, with_paths: bool = False, with_metadata: bool = False) -> None:
        """Know all rows, and with *with_paths* where they are; *with_metadata* their metadata if there are few."""
        if self.query.window.size is not None or self._few_rows():
            self.first(1)
        self.start()
        if self.answer.whole:
            return
        # Where rows are that the process has is told by their versions.
        with_metadata = with_metadata and not self.query.score
        if self.query.score or with_metadata or (with_paths and not self.loader.has_most()):
            options = (self.loader.excluded_keys, self._held(), False, None, FEW_ROWS) if with_metadata else ()
            rows, _ = self.view.page(self.query, 0, None, *options)
            scores = tuple(row[2] or 0.0 for row in rows) if self.query.score else ()
            self._learn(Answer(array("q", [row[0] for row in rows]), scores, True, len(rows)))
            if rows:
                self.loader.keep(rows)
        else:
            ids = self.view.rids(self.query)
            self._learn(Answer(ids, (), True, len(ids)))

    def rest_up_to(self, wanted: int) -> None:
        """Know at least the first *wanted* rows, or all there are; what is near the end costs as much as all."""
        size = max(FEWEST_IDS, 1 << (wanted - 1).bit_length())
        if self._few_rows():
            self.first(1)
        self.start()
        total = self.answer.total
        if self.answer.whole or len(self.answer.ids) >= wanted:
            return
        if self.query.score or self.query.window.size is not None or (total is not None and total <= size):
            self.rest()
            return
        ids = self.view.rids(self.query, size)
        is_whole = len(ids) < size
        self._learn(Answer(ids, (), is_whole, len(ids) if is_whole else total, self.answer.least))

    # -- counting

    def count_along(self) -> None:
        """Have the rows counted by the statement that reads the first of them."""
        self._counts_along = True

    def count_up_to(self, limit: int) -> None:
        """Have counting stop behind *limit* rows."""
        self.query = replace(self.query, count_limit=limit)

    def total(self) -> int | None:
        """Return the number of rows that match, limits aside; None if there are more than are to be counted."""
        limit = self.query.count_limit
        self.start()
        if self.answer.exceeds(limit):
            return None
        if self.answer.total is None and not self.answer.ids and (few := self._few_rows()):
            self.first(few)
        elif self.answer.total is None and (wanted := self._rows_with_count()):
            # The process has most rows of a small catalog, and knows them without their versions until the next commit.
            self._read_page(wanted, with_total=True, with_versions=wanted != COUNT_BATCH)
        if self.answer.total is None and not self.answer.exceeds(limit):
            self._learn(self.answer.with_count(self.view.count(self.query).value(), limit))
        total = self.answer.total
        return None if total is None or (limit is not None and total > limit) else total

    def _rows_with_count(self) -> int:
        """Return how many rows, of which none is known, a count brings along."""
        if self.answer.ids or self.answer.whole:
            return 0
        if self.view.session.collected.is_open if self.query.window.size is None else self._pages:
            return IDX_BATCH
        if self.query.window.size is not None or self.query.score:
            return 0
        return COUNT_BATCH if is_small_catalog(self.view) else 0

    def whole_total(self) -> int:
        """Return the number of rows that match, however many there are."""
        if self.query.count_limit is not None:
            self.query = replace(self.query, count_limit=None)
        total = self.total()
        assert total is not None
        return total


def unsorted(query: CompiledQuery) -> CompiledQuery:
    """Return *query* without what Python has to do: its sort, and a window that SQL cannot cut."""
    return replace(query, python_sort=(), window=Window())
