"""Two-stage ranking: find matches without reading texts, then score candidates.

The score of a row is computed from its text, and the last pages of a large result are rarely read.  The first stage finds
all matches without reading a text.  The second stage scores all of them if there are few, else only candidates:

- the newest hits
- the newest hits for each sign of a good hit: a word is in the title or the description, an editor has pinned the page

Candidates come first, in the order of their scores; all other hits follow, the newest first.

There are two ways to find the newest hits:

- the index of the texts finds all hits without an order, and each row is visited: the time grows with the number of hits
- a walk from the newest row on compares each text until it has enough hits: the time shrinks with the number of hits

In a large catalog the index is used for up to ``bound`` hits, and the walk for more.  If the walk finds too few, because
the hits are old, all hits of the index are visited.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from math import isqrt
from plone.pgcatalog.sql.expression import all_of
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.sql.predicate import BELOW
from plone.pgcatalog.sql.predicate import BETWEEN
from plone.pgcatalog.sql.predicate import MATCHES
from plone.pgcatalog.sql.predicate import Predicate
from typing import Any


#: Numbers of candidates: newest hits, at least the first window, and hits for each sign of a good one.
NEWEST_SCORED = 100
GOOD = 300
#: In a catalog with more rows than this, not all hits are visited.
LARGE = 40_000
#: Up to this number of rows, reading the hits of any index takes less time than planning.
SMALL = 10_000
#: A text in the walk takes as long as visiting 1.5 hits, and the walk needs ``NEWEST_SCORED`` hits: 1.5 * 100.
WALKED = 150

#: With MATERIALIZED, PostgreSQL plans as if it read all hits: it uses the index of the texts, and LIMIT stops it early.
#: If the walk finds too few hits, all hits are visited.
NEWEST_HITS = read_statement("query", "newest_hits")


def bound(rows: int, full: int) -> int:
    """Return the number of hits, in *rows* rows, whose visit takes as long as the walk; at least *full*.

    The walk reads NEWEST_SCORED * rows / hits texts, so both are equal for hits = sqrt(WALKED * rows).
    """
    return max(full, isqrt(WALKED * rows))


#: An SQL relation to select from, and the values of its placeholders.
Source = tuple[str, tuple[Any, ...]]


@dataclass(slots=True, eq=False)
class Score(Fragment):
    """An SQL number that ranks a row, the higher the better.

    ``preferred`` are conditions of rows that are ranked however many rows match, since the best rows probably fulfil them.
    They are in groups with separate numbers of candidates; in each group the best condition is first.
    """

    preferred: tuple[tuple[Condition, ...], ...] = ()

    @staticmethod
    def of(score: Fragment, preferred: Iterable[tuple[Condition, ...]]) -> "Score":
        """Return *score* with *preferred*."""
        if isinstance(score, Score):
            return replace(score, preferred=tuple(preferred))
        return Score(score.sql, score.params, tuple(preferred))


@dataclass(frozen=True)
class Stages:
    """SQL of the two stages for those of the *rows* of *source* that match *where*.  Up to *full* hits are all ranked."""

    source: Source
    where: Condition
    score: Score
    full: int
    rows: int

    #: True if ``found`` counts all hits, however many there are.
    counts_all = True

    @staticmethod
    def of(source: Source, where: Condition, score: Fragment | None, rows: int | None, full: int) -> "Stages | None":
        """Return the stages for a catalog of *rows*; None if all hits are ranked: *full* is 0, or at least *rows*."""
        if rows is None or not 0 < full < rows or not isinstance(score, Score):
            return None
        if rows > LARGE:
            return StagesOfMany(source, where, score, full, rows, bound(rows, full))
        return Stages(source, where, score, full, rows)

    @property
    def plans_once(self) -> bool:
        """True if the same plan is good for any values of the statement.  Planning it takes longer than ranking some hits.

        For a plan without values PostgreSQL expects 0.5 % of all rows from a search for words, and as many from a range: the
        index of a range could look cheaper than the index of the texts.  With more than SMALL rows, any other index could be
        far better for a frequent word and a rare value.
        """
        indexed = [part for part in self.where.conjuncts() if not (isinstance(part, Predicate) and part.is_hidden)]
        operators = [part.operator if isinstance(part, Predicate) else None for part in indexed]
        if self.rows > SMALL:
            return operators == [MATCHES]
        return not {None, BELOW, BETWEEN}.intersection(operators)

    @property
    def newest(self) -> int:
        """The number of newest hits that are ranked in any case."""
        return min(NEWEST_SCORED, self.full)

    @property
    def good(self) -> int:
        """The number of hits that are ranked for each group of preferred conditions."""
        return min(GOOD, self.full)

    @property
    def first(self) -> Fragment:
        """The WITH clause of ``ctes``."""
        ctes = self.ctes
        return Fragment(f"WITH {ctes.sql} ", ctes.params)

    @property
    def ctes(self) -> Fragment:
        """The CTEs ``found``, with the ``total`` of hits (NULL: very many), and ``ranked``, the rids of the ranked hits."""
        newest = "SELECT unnest(rids[:CASE WHEN is_much THEN %s::int ELSE %s::int END]) AS rid FROM found"
        good = [branch for group in self.score.preferred if (branch := self._good(group)) is not None]
        ranked = [Fragment(newest, (self.newest, self.full)), *good]
        found = self._found()
        return Fragment(
            f"found AS MATERIALIZED ({found.sql}),"
            f" ranked AS MATERIALIZED ({' UNION '.join(branch.sql for branch in ranked)})",
            (*found.params, *(param for branch in ranked for param in branch.params)),
        )

    def _found(self) -> Fragment:
        relation, source_params = self.source
        columns = "array_agg(rid ORDER BY rid DESC) AS rids, count(*) > %s::int AS is_much, count(*) AS total"
        hits = f"SELECT rid FROM {relation} WHERE {self.where.sql}"
        # Without OFFSET, PostgreSQL would read the rows in the order of rid, and compare the text of each.
        return Fragment(
            f"SELECT {columns} FROM ({hits} OFFSET 0) AS each", (self.full, *source_params, *self.where.params)
        )

    def _good(self, group: Sequence[Condition]) -> Fragment | None:
        """Return SQL for the newest hits of the first condition of *group*, then of the next ones; None if no row can match.

        It finds no rows if all hits are ranked.
        """
        relation, source_params = self.source
        grades = [(grade, first) for grade, first in enumerate(group) if first is not NOTHING]
        if not grades:
            return None
        each = " UNION ALL ".join(
            f"(SELECT rid, {grade:d} AS grade FROM {relation} WHERE {first.sql} OFFSET 0)" for grade, first in grades
        )
        limit = f"LIMIT (SELECT CASE WHEN is_much THEN {self.good:d} ELSE 0 END FROM found)"
        return Fragment(
            f"(SELECT rid FROM ({each}) AS each WHERE rid IN (SELECT unnest(rids) FROM found)"
            f" ORDER BY grade, rid DESC {limit})",
            tuple(param for _, first in grades for param in (*source_params, *first.params)),
        )

    @property
    def only_ranked(self) -> Condition:
        """The condition for the ranked rows."""
        return Condition("rid = ANY(ARRAY(SELECT rid FROM ranked))", is_costly=self.where.is_costly)

    @property
    def scored(self) -> Fragment:
        """The score of any row that matches, NULL for a row that is not ranked."""
        return Fragment(f"CASE WHEN rid IN (SELECT rid FROM ranked) THEN {self.score.sql} END", self.score.params)


@dataclass(frozen=True)
class StagesOfMany(Stages):
    """SQL of the two stages for a catalog of very many *rows*: it reads the rids of at most *bound* hits, not of all."""

    bound: int

    plans_once = False
    counts_all = False

    def _found(self) -> Fragment:
        newest = self._newest(self.where, self.full, self.newest)
        columns = f"counted > {self.full:d} AS is_much, CASE WHEN counted <= {self.bound:d} THEN counted END AS total"
        return Fragment(f"SELECT rids, {columns} FROM ({newest.sql}) AS each", newest.params)

    def _good(self, group: Sequence[Condition]) -> Fragment | None:
        grades = [where for first in group if (where := all_of((first, self.where))) is not NOTHING]
        if not grades:
            return None
        parts, wanted = [], "(SELECT is_much FROM found)"
        for grade, where in enumerate(grades):
            newest = self._newest(where, self.good, self.good)
            parts.append(
                Fragment(
                    f"grade{grade} AS MATERIALIZED (SELECT unnest(rids) AS rid FROM ({newest.sql}) AS each WHERE {wanted})",
                    newest.params,
                )
            )
            # The next conditions only fill places that are left.
            wanted = f"(SELECT is_much AND count(rid) < {self.good:d} FROM found LEFT JOIN grade{grade} ON true GROUP BY is_much)"
        each = " UNION ALL ".join(f"SELECT rid, {grade} AS grade FROM grade{grade}" for grade in range(len(grades)))
        return Fragment(
            f"(WITH {', '.join(part.sql for part in parts)}"
            f" SELECT rid FROM ({each}) AS each ORDER BY grade, rid DESC LIMIT {self.good:d})",
            tuple(param for part in parts for param in part.params),
        )

    def _newest(self, where: Condition, size: int, walked: int) -> Fragment:
        """Return SQL for one row: ``counted``, the number of rows that match *where*, at most *bound* + 1, and ``rids``.

        ``rids`` are the newest *size* matches, or at least the newest *walked* if there are more than *bound*.
        """
        relation, source_params = self.source
        # If *bound* hits are spread evenly, this many newest rows contain four times *walked* of them.
        rows = 4 * walked * self.rows // self.bound
        sql = NEWEST_HITS.format(
            relation=relation,
            where=where.sql,
            rows=rows,
            bound=self.bound,
            more_than_bound=self.bound + 1,
            walked=walked,
            size=size,
        )
        return Fragment(sql, (*source_params, *where.params, *source_params, *where.params))


def total_column(score: Fragment | None, in_stages: bool, count: Statement | None) -> Fragment:
    """Return SQL for the number of rows that match, in a page that is ranked by *score*, in stages if *in_stages*.

    If it is not known from the page, it is the result of *count*, the statement that counts the rows; without it NULL.
    """
    if isinstance(score, Score) and not in_stages:
        return Fragment("count(*) OVER ()")
    free = "(SELECT total FROM found)" if in_stages else "NULL"
    if count is None:
        return Fragment(free)
    return Fragment(f"coalesce({free}, ({count.sql}))" if in_stages else f"({count.sql})", count.params)
