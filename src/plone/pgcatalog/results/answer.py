"""The answer to a query as far as it has been read; no I/O.  Answers are immutable, so threads share them."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from plone.pgcatalog.indexes.base import HIGHEST_SCORE
from plone.pgcatalog.query.compiler import CompiledQuery
from typing import Any


#: Approximate bytes of a cached answer: of the entry itself with its key, of each row, and of each score.
ENTRY_BYTES = 600
ID_BYTES = 8
SCORE_BYTES = 32


@dataclass(frozen=True, slots=True)
class Answer:
    """The *ids* of the first rows of a result, in order, and for a ranked query their *scores*.

    - ``whole``: *ids* are all rows of the result
    - ``total``: the number of rows that match, ignoring the window; None until they are counted
    - ``least``: more rows than this match, as a count with a limit has found; -1 before such a count
    """

    ids: Sequence[int] = ()
    scores: tuple[float, ...] = ()
    whole: bool = False
    total: int | None = None
    least: int = -1

    @classmethod
    def of_all(cls, compiled: CompiledQuery, rows: Sequence[Sequence[Any]]) -> "Answer":
        """Return the answer to *compiled* with all its *rows*, (rid, path, score, …)."""
        scores = tuple(row[2] or 0.0 for row in rows) if compiled.score else ()
        return cls(array("q", [row[0] for row in rows]), scores, True, len(rows))

    @classmethod
    def of_ids(cls, ids: Sequence[int], size: int | None, total: int | None, least: int) -> "Answer":
        """Return the answer with *ids*, read with LIMIT *size* (None: no limit); *total* and *least* as in the class."""
        is_whole = size is None or len(ids) < size
        return cls(ids, (), is_whole, len(ids) if is_whole else total, least)

    @property
    def bytes(self) -> int:
        """Approximate size in memory, in bytes."""
        return ENTRY_BYTES + ID_BYTES * len(self.ids) + SCORE_BYTES * len(self.scores)

    def exceeds(self, limit: int | None) -> bool:
        """Return True if more than *limit* rows match and their number is unknown; always False for *limit* None."""
        return limit is not None and self.total is None and self.least >= limit

    def with_page(
        self, compiled: CompiledQuery, rows: Sequence[Sequence[Any]], size: int, total: int | None = None
    ) -> "Answer":
        """Return this answer to *compiled* extended by the next *rows*, (rid, path, score, …), read with LIMIT *size*.

        *total* is the number of all rows that match, None if the statement did not count them.
        """
        window, limit, least = compiled.window, compiled.count_limit, self.least
        if total is not None and limit is not None and total > limit:
            total, least = None, limit
        total = self.total if total is None else total
        end = window.start + len(self.ids) + len(rows)
        ended = len(rows) < size or total == end
        if ended and (rows or self.ids or not window.start):
            total = end
        ids = array("q", [*self.ids, *(row[0] for row in rows)])
        scores = (*self.scores, *(row[2] or 0.0 for row in rows)) if compiled.score else ()
        return Answer(ids, scores, ended or window.size is not None, total, least)

    def with_count(self, counted: int, limit: int | None) -> "Answer":
        """Return this answer with *counted* as ``total``; a number above *limit* only sets ``least``."""
        if limit is not None and counted > limit:
            return replace(self, least=limit)
        return replace(self, total=counted)

    def merged(self, newer: "Answer") -> "Answer":
        """Return this answer combined with a *newer* one for the same state: the longer ``ids``, and either ``total``."""
        more, other = (self, newer) if len(self.ids) > len(newer.ids) else (newer, self)
        return more if more.total is not None or other.total is None else replace(more, total=other.total)


class Scores:
    """The scores of the rows of an answer, in the scales of ZCatalog's brains."""

    def __init__(self) -> None:
        self._by_rid: dict[int, float] = {}

    def of(self, rid: int, answer: Answer) -> tuple[int, int]:
        """Return the score of the row *rid* of *answer*, times 1000, and in percent of the best score below that of pins."""
        if len(self._by_rid) != len(answer.ids):
            self._by_rid = dict(zip(answer.ids, answer.scores, strict=True))
        score = self._by_rid[rid]
        best = next((s for s in answer.scores if s <= HIGHEST_SCORE), 0.0)
        return int(score * 1000) or 1, min(int(100.0 * score / (best or 1.0)), 100)


UNKNOWN = Answer()
NOTHING_MATCHES = Answer(whole=True, total=0)
