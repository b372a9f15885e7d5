"""Hybrid ranking: one order of what words find and what is near by its meaning, in one statement.

The ranking by words and that by similarity are fused by their places, not by their scores, which have nothing in common:
reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009), score = sum of 1 / (60 + place).  Pages that are pinned stay on
top.  Where words find so much that only candidates are ranked (see ``ranked``), the nearest rows that have the words are
candidates, too, and what is not ranked follows, the newest first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from plone.pgcatalog.query.nearest import Near
from plone.pgcatalog.query.nearest import sql_of
from plone.pgcatalog.query.ranked import Source
from plone.pgcatalog.query.ranked import Stages
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import Statement


#: The constant of the formula: the higher, the less a first place counts more than the next ones.
SMOOTHING = 60
#: No ranking gives a row more, but pins do (``indexes.base.HIGHEST_SCORE``).
HIGHEST = "1e12"
FUSED = sql_of("fused").format(smoothing=SMOOTHING, highest=HIGHEST)
#: What the fused rows are joined as: names that no column of a catalog has.
HIT, SCORE = '"fused hit"', '"fused score"'


class Fusion(Fragment):
    """The score of a hybrid search: that of its *words*, for rows with *found*, the condition of a search for words, and *near*.

    As SQL it is the score of the words; with the condition of the search, that tells it from others.
    """

    __slots__ = ("found", "near", "words")

    def __init__(self, words: Fragment, found: Condition, near: Near) -> None:
        super().__init__(words.sql, words.params)
        self.words = words
        self.found = found
        self.near = near


@dataclass(frozen=True)
class FusedRows:
    """The rows of a Fusion as SQL: of *source*, with its conditions *found* and *among* as they are stored.

    *stages* are those of the ranking by words, None if all hits are ranked.
    """

    fusion: Fusion
    source: Source
    found: Condition
    among: Condition
    stages: Stages | None

    @property
    def first(self) -> Fragment:
        """The WITH clause: ``nearest``, ``words`` with their places, and ``fused``: hit, score, is_alone (without the words)."""
        nearest = self.fusion.near.asked.nearest_rows(self.source, self.among)
        parts = [Fragment(f"nearest AS MATERIALIZED ({nearest.sql})", nearest.params)]
        relation, values = self.source
        where = self.found
        if self.stages is not None:
            parts.append(self.stages.ctes)
            ranked = Condition("rid = ANY(ARRAY(SELECT rid FROM ranked UNION SELECT rid FROM nearest))")
            where = Condition(f"{ranked.sql} AND ({where.sql})", where.params)
        score = self.fusion.words
        scored = f"SELECT rid, {score.sql} AS score FROM {relation} WHERE {where.sql}"
        place = "row_number() OVER (ORDER BY score DESC NULLS LAST, rid DESC) AS place"
        parts.append(
            Fragment(
                f"words AS MATERIALIZED (SELECT rid, score, {place} FROM ({scored}) AS scored)",
                (*score.params, *values, *where.params),
            )
        )
        parts.append(Fragment(FUSED))
        return Fragment(
            f"WITH {', '.join(part.sql for part in parts)} ", tuple(value for part in parts for value in part.params)
        )

    def places(self, rids: Sequence[int]) -> Statement:
        """Return the statement for (rid, place by words, place by meaning, similarity) of those of *rids* that are fused."""
        first = self.first
        return Statement(
            f"{first.sql}SELECT hit, words.place, nearest.place, nearest.similarity FROM fused"
            " LEFT JOIN words ON words.rid = hit LEFT JOIN nearest ON nearest.rid = hit WHERE hit = ANY(%s::bigint[])",
            (*first.params, list(rids)),
            is_costly=True,
        )

    def page(self, start: int, size: int) -> str:
        """Return the relation of the rows ``[start:start + size]``, if these are fused."""
        rows = f"SELECT hit AS {HIT}, score AS {SCORE} FROM fused ORDER BY score DESC, hit DESC LIMIT {size:d} OFFSET {start:d}"
        return f"({rows}) AS fused_page JOIN {self.source[0]} ON rid = {HIT}"

    @property
    def all_rows(self) -> str:
        """The relation of all rows of the source, with the score of those that are fused."""
        return (
            f"{self.source[0]} LEFT JOIN (SELECT hit AS {HIT}, score AS {SCORE} FROM fused) AS fused_all ON rid = {HIT}"
        )

    def total(self, count: Statement | None) -> Fragment:
        """Return the number of hits as an expression; NULL if it costs something and there is no *count*, which counts them."""
        if self.stages is None:
            return Fragment("(SELECT count(*) FROM fused)")
        free = "(SELECT total + (SELECT count(*) FROM fused WHERE is_alone) FROM found)"
        return Fragment(free) if count is None else Fragment(f"coalesce({free}, ({count.sql}))", count.params)
