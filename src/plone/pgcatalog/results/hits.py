"""Which rows a query finds: as much as somebody wanted to know, from the cache or from the database."""

from array import array
from collections.abc import Hashable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import cached_property
from plone.pgcatalog.database.hit_rate import Habits
from plone.pgcatalog.database.hit_rate import HitRate
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import Key
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.results.rows import IDX_BATCH
from plone.pgcatalog.results.rows import RowLoader
from plone.pgcatalog.results.view import CatalogView
from typing import Any


#: Bytes of an entry in the cache, besides its rows.
ENTRY_BYTES = 1000
ROW_BYTES = 8
SCORE_BYTES = 32


@dataclass(frozen=True, slots=True)
class Hits:
    """What is known of a result: the *rids* of its first rows, all of them if ``is_whole``, and their *scores*.

    ``total`` is the number of rows that match, limits aside; None while nobody has counted.  There are more than ``least``.
    """

    rids: Sequence[int] = ()
    scores: tuple[float, ...] = ()
    is_whole: bool = False
    total: int | None = None
    least: int = -1

    @property
    def bytes(self) -> int:
        return ENTRY_BYTES + ROW_BYTES * len(self.rids) + SCORE_BYTES * len(self.scores)


#: The parts of an answer.
ROWS, TOTAL = "rows", "total"

UNKNOWN = Hits()
NO_HITS = Hits(is_whole=True, total=0)


class Finder:
    """Finds the rows of *query* in *view*; what it reads of them it gives to *loader*."""

    def __init__(self, view: CatalogView, query: CompiledQuery, loader: RowLoader) -> None:
        self.view = view
        self.query = query
        self.loader = loader
        self.hits = NO_HITS if query.is_empty else UNKNOWN
        self._stamp: Stamp | None = None
        #: None while the answer is nobody else's
        self._query_key: Hashable = None
        self._key: Key | None = None
        self._started = False
        #: the parts of the answer that somebody has asked for: its first rows, their total
        self._asked: list[str] = []
        self._wants_total = False
        #: for how many rows the last statement was sent
        self._wanted = 0
        #: True if metadata that the process probably has is read only if it has not, in another message
        self.guesses = True

    @property
    def is_open(self) -> bool:
        """True when there may be more rows than are known."""
        return not self.hits.is_whole

    # -- the cache

    def start(self) -> None:
        """Take what the cache knows."""
        if self._started:
            return
        self._started = True
        if not self.view.is_committed or self.query.is_empty:
            return
        self._query_key = self.query.key
        if self.view.session.knows_states():
            self._find_stamp()
        # Else the first statement will tell the state, too.

    def _find_stamp(self) -> None:
        stamp = self.view.stamp()
        if self._query_key is None or stamp is None:
            return
        self._stamp = stamp
        self._key = (HITS, stamp, self._query_key)
        self.loader.share(stamp)
        known = result_cache().get(self._key)
        if known is not None and len(known.rids) >= len(self.hits.rids):
            complete = known.total is not None or self.hits.total is None
            self.hits = known if complete else replace(known, total=self.hits.total)

    def _learn(self, hits: Hits) -> None:
        """Take *hits*, read just now, and keep them for others."""
        if self._stamp is None:
            self._find_stamp()
            if len(self.hits.rids) > len(hits.rids):
                hits = replace(self.hits, total=self.hits.total if hits.total is None else hits.total)
        self.hits = hits
        if self._key is not None and self.view.is_current(self._stamp):
            result_cache().put(self._key, hits, hits.bytes)

    # -- reading

    def first(self, wanted: int, with_idx: bool) -> None:
        """Know at least the first *wanted* rows, or all there are."""
        self.start()
        self._note(ROWS, max(wanted, len(self.hits.rids)))
        if not self.hits.is_whole and len(self.hits.rids) < wanted:
            with_total = self._wants_total or self._expects(TOTAL) > 0
            self._read(wanted, with_idx, with_total and self.hits.total is None)

    def _read(self, wanted: int, with_idx: bool, with_total: bool) -> None:
        """Know the first *wanted* rows, which are not known, and *with_total* how many there are."""
        known = len(self.hits.rids)
        self._wanted = wanted
        window = self.query.window
        size = wanted - known if window.size is None else window.size
        with_idx = with_idx and size <= IDX_BATCH
        rows, total = self._page(window.start + known, size, with_idx, with_total) if size else ([], None)
        least = self.hits.least
        limit = self.query.count_limit
        if total is not None and limit is not None and total > limit:
            total, least = None, limit
        total = self.hits.total if total is None else total
        ended = len(rows) < size or total == window.start + known + len(rows)
        if ended and (rows or known or not window.start):
            total = window.start + known + len(rows)
        self._learn(
            Hits(
                array("q", [*self.hits.rids, *(row[0] for row in rows)]),
                (*self.hits.scores, *(row[2] or 0.0 for row in rows)) if self.query.score else (),
                ended or window.size is not None,
                total,
                least,
            )
        )
        self._keep_rows(rows, size)

    def note_rows(self) -> None:
        """Note that somebody asks for rows that are known: a count may have brought them."""
        if ROWS not in self._asked:
            self._note(ROWS, self._wanted)

    def _note(self, part: str, rows: int) -> None:
        """Note that somebody asks for a *part* of the answer, of so many *rows*."""
        if part in self._asked or self._shape is None:
            return
        if self._asked:
            self._habits.follow((self._shape, self._asked[0]), rows)
        else:
            self._habits.begin((self._shape, part))
        self._asked.append(part)

    def _expects(self, part: str) -> int:
        """Return how many rows of another *part* will probably be asked for next; 0 for none."""
        if len(self._asked) != 1 or part in self._asked:
            return 0
        return self._habits.expects((self._shape, self._asked[0]))

    @property
    def _habits(self) -> Habits:
        return self.view.session.generations.habits[self.view.zoid]

    @cached_property
    def _shape(self) -> Hashable:
        """What searches that differ in their values only have in common; None for one that nobody else asks."""
        return None if self._query_key is None else (self.query.where.sql, self.query.order_by, bool(self.query.score))

    def _page(self, start: int, size: int, with_idx: bool, with_total: bool) -> tuple[list[Any], int | None]:
        rate, excluded = self._hit_rate, self.loader.excluded_keys if with_idx else None
        brings = True
        if self.guesses:
            brings = not rate.skip_metadata(size)
            excluded = None if rate.skip_versions(self._stamp) else excluded
        return self.view.page_and_total(self.query, start, size, excluded, brings, with_total=with_total)

    @property
    def _hit_rate(self) -> HitRate:
        return self.view.session.generations.hit_rates[self.view.zoid]

    def _keep_rows(self, rows: Sequence[Sequence[Any]], room: int = 0) -> None:
        """Keep *rows*, which a statement has brought that could bring as many as there is *room* for."""
        if not rows:
            return
        known, current = self.loader.keep(rows)
        if len(rows) <= IDX_BATCH:
            self._hit_rate.learn_state(self._stamp, current == len(rows))
        if len(rows[0]) > 3:
            self._hit_rate.learn(known, len(rows), room)

    def rest(self, with_paths: bool = False) -> None:
        """Know all rows, and with *with_paths* where they are."""
        if self.query.window.size is not None:
            self.first(1, with_idx=False)
        self.start()
        if self.hits.is_whole:
            return
        # Where known rows are is told by their versions.
        if self.query.score or (with_paths and not self._hit_rate.skip_paths()):
            rows = self.view.page(self.query, 0, None)
            scores = tuple(row[2] or 0.0 for row in rows) if self.query.score else ()
            self._learn(Hits(array("q", [row[0] for row in rows]), scores, True, len(rows)))
            self._keep_rows(rows)
        else:
            rids = self.view.rids(self.query)
            self._learn(Hits(rids, (), True, len(rids)))

    def count_along(self) -> None:
        """Have the rows counted by the statement that reads the first of them."""
        self._wants_total = True

    def count_up_to(self, limit: int) -> None:
        """Have counting stop behind *limit* rows."""
        self.query = replace(self.query, count_limit=limit)

    def total(self) -> int | None:
        """Return the number of rows that match, limits aside; None if there are more than are to be counted."""
        limit = self.query.count_limit
        self.start()
        self._note(TOTAL, 1)
        if limit is not None and self.hits.total is None and self.hits.least >= limit:
            return None
        expected = self._expects(ROWS) if self.hits.total is None and self.query.window.size is None else 0
        if len(self.hits.rids) < expected:
            self._read(expected, with_idx=True, with_total=True)
        if self.hits.total is None and (limit is None or self.hits.least < limit):
            counted = self.view.count(self.query)
            exceeds = limit is not None and counted > limit
            self._learn(replace(self.hits, least=limit or 0) if exceeds else replace(self.hits, total=counted))
        total = self.hits.total
        return None if total is None or (limit is not None and total > limit) else total

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
