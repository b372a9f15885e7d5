"""What is known of the answer to a query: pure, and shared by the threads of a process."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from plone.pgcatalog.indexes.base import HIGHEST_SCORE
from plone.pgcatalog.query.compiler import CompiledQuery
from typing import Any


#: Bytes of an entry in the cache, besides its rows.
ENTRY_BYTES = 1000
ROW_BYTES = 8
SCORE_BYTES = 32


@dataclass(frozen=True, slots=True)
class Answer:
    """The *ids* of the first rows that match, all of them if ``whole``, and their *scores*.

    ``total`` is the number of rows that match, limits aside; None while nobody has counted.  There are more than ``least``.
    """

    ids: Sequence[int] = ()
    scores: tuple[float, ...] = ()
    whole: bool = False
    total: int | None = None
    least: int = -1

    @classmethod
    def of_all(cls, query: CompiledQuery, rows: Sequence[Sequence[Any]]) -> "Answer":
        """Return the answer to *query* with all its *rows*, (rid, path, score, …)."""
        scores = tuple(row[2] or 0.0 for row in rows) if query.score else ()
        return cls(array("q", [row[0] for row in rows]), scores, True, len(rows))

    @classmethod
    def of_ids(cls, ids: Sequence[int], size: int | None, total: int | None, least: int) -> "Answer":
        """Return the answer with the first *size* *ids*, None for all, of *total* rows, more than *least*, as far as known."""
        is_whole = size is None or len(ids) < size
        return cls(ids, (), is_whole, len(ids) if is_whole else total, least)

    @property
    def bytes(self) -> int:
        """About what it takes in memory."""
        return ENTRY_BYTES + ROW_BYTES * len(self.ids) + SCORE_BYTES * len(self.scores)

    def exceeds(self, limit: int | None) -> bool:
        """Return whether more than *limit* rows are known to match, of which nobody knows the number; None is no limit."""
        return limit is not None and self.total is None and self.least >= limit

    def with_page(
        self, query: CompiledQuery, rows: Sequence[Sequence[Any]], size: int, total: int | None = None
    ) -> "Answer":
        """Return the answer to *query* with the next *rows*, (rid, path, score, …), of a page with room for *size*.

        *total* is the number of all rows that match, None if the page did not tell.
        """
        window, limit, least = query.window, query.count_limit, self.least
        if total is not None and limit is not None and total > limit:
            total, least = None, limit
        total = self.total if total is None else total
        end = window.start + len(self.ids) + len(rows)
        ended = len(rows) < size or total == end
        if ended and (rows or self.ids or not window.start):
            total = end
        ids = array("q", [*self.ids, *(row[0] for row in rows)])
        scores = (*self.scores, *(row[2] or 0.0 for row in rows)) if query.score else ()
        return Answer(ids, scores, ended or window.size is not None, total, least)

    def with_count(self, counted: int, limit: int | None) -> "Answer":
        """Return the answer with the number of rows that was *counted*; more than *limit* are only known to exceed it."""
        if limit is not None and counted > limit:
            return replace(self, least=limit)
        return replace(self, total=counted)

    def merged(self, newer: "Answer") -> "Answer":
        """Return what this one and a *newer* one for the same state of the catalog know together."""
        more, other = (self, newer) if len(self.ids) > len(newer.ids) else (newer, self)
        return more if more.total is not None or other.total is None else replace(more, total=other.total)


class Scores:
    """The scores of the rows of an answer, as ZCatalog's brains have them."""

    def __init__(self) -> None:
        self._by_rid: dict[int, float] = {}

    def of(self, rid: int, answer: Answer) -> tuple[int, int]:
        """Return the score of the row *rid* of *answer*, and the same normalised to 0..100."""
        if len(self._by_rid) != len(answer.ids):
            self._by_rid = dict(zip(answer.ids, answer.scores, strict=True))
        score = self._by_rid[rid]
        best = next((s for s in answer.scores if s <= HIGHEST_SCORE), 0.0)
        return int(score * 1000) or 1, min(int(100.0 * score / (best or 1.0)), 100)


UNKNOWN = Answer()
NOTHING_MATCHES = Answer(whole=True, total=0)
