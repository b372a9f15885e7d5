"""Two-stage ranking: find matches without reading texts, then score candidates.

A score needs the text of each row, and nobody reads page 1,000.  The first stage finds what matches without reading a text.  If
that is little, the second makes a score of each.  If it is much, only candidates get one: the newest hits, and the newest ones for
each thing that makes a good hit (a word stands in the title or the description, somebody has pinned the page).  They come first,
in the order of their scores; all others follow, the newest first.

There are two ways to the newest rows that match.  The index of the texts finds all, in no order, and each is visited: the time
grows with the hits.  A walk from the newest row on reads each text until it has enough: the time shrinks with them.  In a large
catalog the first way is taken for up to ``bound`` hits, then the second; if the hits turn out to be old, the first one to its end.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from importlib.resources import files
from math import isqrt
from plone.pgcatalog.sql.expression import all_of
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.expression import Statement
from typing import Any


#: How many candidates there are of the newest hits, a first window at least, and for each thing that makes a good one.
NEWEST = 100
GOOD = 300
#: In a catalog of more rows than these not all hits are visited.
LARGE = 10_000
#: A text that is walked over takes about as long as 1.5 hits that are visited, and the walk wants ``NEWEST`` of them.
WALKED = 150

#: MATERIALIZED, PostgreSQL plans as if it had to read all hits: it takes the index of the texts, and stops on the way.
#: If the hits are old, a walk has found too few, and all of them are visited.
NEWEST_HITS = " ".join((files(__package__) / "newest_hits.sql").read_text("utf-8").split())


def bound(rows: int, full: int) -> int:
    """Return how many hits of *rows* take as long to visit, as the walk takes that finds so many; *full* at least."""
    return max(full, isqrt(WALKED * rows))


#: An SQL relation to select from, and the values of its placeholders.
Source = tuple[str, tuple[Any, ...]]


@dataclass(slots=True, eq=False)
class Score(Fragment):
    """An SQL number that ranks a row, the higher the better.

    ``preferred`` are conditions of what is ranked however many rows are found, since the best ones probably have it: in
    groups, which do not take places from each other, and in each the best condition first.
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
    """The two stages for the rows of *source* that match *where*, as SQL.  Up to *full* hits are all ranked."""

    source: Source
    where: Condition
    score: Score
    full: int

    #: Whether PostgreSQL plans the statement as well without its values.
    plans_once = True
    #: Whether ``found`` counts all hits, however many there are.
    counts_all = True

    @staticmethod
    def of(source: Source, where: Condition, score: Fragment | None, rows: int | None, full: int) -> "Stages | None":
        """Return those for a catalog of *rows* in which *full* hits are all ranked, 0 for any number; None if all hits are."""
        if rows is None or not 0 < full < rows or not isinstance(score, Score):
            return None
        if rows > LARGE:
            return StagesOfMany(source, where, score, full, rows, bound(rows, full))
        return Stages(source, where, score, full)

    @property
    def newest(self) -> int:
        """How many hits are ranked for sure, if there are as many."""
        return min(NEWEST, self.full)

    @property
    def good(self) -> int:
        """How many hits are ranked for each thing that makes a good one."""
        return min(GOOD, self.full)

    @property
    def first(self) -> Fragment:
        """The WITH clause of ``ctes``."""
        ctes = self.ctes
        return Fragment(f"WITH {ctes.sql} ", ctes.params)

    @property
    def ctes(self) -> Fragment:
        """What WITH names: ``found`` with the ``total`` of hits (NULL: very many), and ``ranked``, the rids of what is ranked."""
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
        # Without OFFSET, PostgreSQL would walk through the ids to have them in order, and read the text of each row.
        return Fragment(
            f"SELECT {columns} FROM ({hits} OFFSET 0) AS each", (self.full, *source_params, *self.where.params)
        )

    def _good(self, group: Sequence[Condition]) -> Fragment | None:
        """Return the newest hits of the first condition of *group*, then those of the next one; None if there can be none.

        They are looked for only where not all hits are ranked.
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
        """The condition for the rows that are ranked."""
        return Condition("rid = ANY(ARRAY(SELECT rid FROM ranked))", is_costly=self.where.is_costly)

    @property
    def scored(self) -> Fragment:
        """The score of any row that matches, NULL for one that is not ranked."""
        return Fragment(f"CASE WHEN rid IN (SELECT rid FROM ranked) THEN {self.score.sql} END", self.score.params)


@dataclass(frozen=True)
class StagesOfMany(Stages):
    """The two stages for a catalog of very many *rows*: not even the rids of all hits are read, but of up to *bound*."""

    rows: int
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
            # The next ones only get the places that these leave.
            wanted = f"(SELECT is_much AND count(rid) < {self.good:d} FROM found LEFT JOIN grade{grade} ON true GROUP BY is_much)"
        each = " UNION ALL ".join(f"SELECT rid, {grade} AS grade FROM grade{grade}" for grade in range(len(grades)))
        return Fragment(
            f"(WITH {', '.join(part.sql for part in parts)}"
            f" SELECT rid FROM ({each}) AS each ORDER BY grade, rid DESC LIMIT {self.good:d})",
            tuple(param for part in parts for param in part.params),
        )

    def _newest(self, where: Condition, size: int, walked: int) -> Fragment:
        """Return SQL for one row about what matches *where*: how many are ``counted``, up to *bound* and one more, and ``rids``.

        These are the newest *size*, or no less than the newest *walked* if there are more than *bound*.
        """
        relation, source_params = self.source
        # Behind so many newer rows, *bound* hits that are spread evenly have as many as are wanted, four times over.
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
    """Return the number of rows that match, as an expression of a page that is ranked by *score*, *in stages* or all of it.

    It is NULL if it costs something and there is no *count*, the statement that counts them.
    """
    if isinstance(score, Score) and not in_stages:
        return Fragment("count(*) OVER ()")
    free = "(SELECT total FROM found)" if in_stages else "NULL"
    if count is None:
        return Fragment(free)
    return Fragment(f"coalesce({free}, ({count.sql}))" if in_stages else f"({count.sql})", count.params)
