"""Which rows are ranked when words find very many: a score needs the text of each, and nobody reads page 1,000.

Ranking has two stages.  The first finds what matches, without reading a text.  If that is little, the second makes a score
of each.  If it is much, only candidates get one: the newest hits, and the newest ones for each thing that makes a good hit
(a word stands in the title or the description, somebody has pinned the page).  They come first, in the order of their scores;
all others follow, the newest first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from plone.pgcatalog.database.planning import MANY_ROWS
from plone.pgcatalog.fulltext.ranking import Score
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import Fragment
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexing.overlay import Source
from plone.pgcatalog.sql.fragment import Statement


#: How many candidates there are of the newest hits, a first window at least, and for each thing that makes a good one.
NEWEST = 100
GOOD = 300


@dataclass(frozen=True)
class Stages:
    """The two stages for the rows of *source* that match *where*, as SQL.

    Up to *full* hits are all ranked.  In a *large* catalog not even the rids of all hits are read.
    """

    source: Source
    where: Condition
    score: Score
    full: int
    large: bool

    @staticmethod
    def of(source: Source, where: Condition, score: Score, rows: int, full: int) -> "Stages | None":
        """Return those for a catalog of *rows* in which *full* hits are all ranked, 0 for any number; None if all hits are."""
        return Stages(source, where, score, full, rows > MANY_ROWS) if 0 < full < rows else None

    @property
    def newest(self) -> int:
        """How many hits are ranked for sure, if there are as many."""
        return min(NEWEST, self.full)

    @property
    def first(self) -> Fragment:
        """The WITH clause: ``found`` with the ``total`` of hits (NULL: very many), and ``ranked``, the rids of what is ranked."""
        newest = "SELECT unnest(rids[:CASE WHEN is_much THEN %s::int ELSE %s::int END]) AS rid FROM found"
        good = [branch for group in self.score.preferred if (branch := self._good(group)) is not None]
        ranked = [Fragment(newest, (self.newest, self.full)), *good]
        found = self._found()
        return Fragment(
            f"WITH found AS MATERIALIZED ({found.sql}),"
            f" ranked AS MATERIALIZED ({' UNION '.join(branch.sql for branch in ranked)}) ",
            (*found.params, *(param for branch in ranked for param in branch.params)),
        )

    def _found(self) -> Fragment:
        relation, source_params = self.source
        hits = f"SELECT rid FROM {relation} WHERE {self.where.sql}"
        params = (*source_params, *self.where.params)
        columns = "array_agg(rid ORDER BY rid DESC) AS rids, count(*) > %s::int AS is_much"
        if self.large:
            total = "CASE WHEN count(*) <= %s::int THEN count(*) END AS total"
            sql = f"SELECT {columns}, {total} FROM ({hits} ORDER BY rid DESC LIMIT %s::int) AS each"
            return Fragment(sql, (self.full, self.full, *params, self.full + 1))
        # Without OFFSET, PostgreSQL would walk through the ids to have them in order, and read the text of each row.
        return Fragment(f"SELECT {columns}, count(*) AS total FROM ({hits} OFFSET 0) AS each", (self.full, *params))

    def _good(self, group: Sequence[Condition]) -> Fragment | None:
        """Return the newest hits of the first condition of *group*, then those of the next one; None if there can be none.

        They are looked for only where not all hits are ranked.
        """
        limit = f"LIMIT (SELECT CASE WHEN is_much THEN {min(GOOD, self.full):d} ELSE 0 END FROM found)"
        parts = [part for grade, first in enumerate(group) if (part := self._part(grade, first, limit)) is not None]
        if not parts:
            return None
        hits = "" if self.large else " WHERE rid IN (SELECT unnest(rids) FROM found)"
        each = " UNION ALL ".join(part.sql for part in parts)
        return Fragment(
            f"(SELECT rid FROM ({each}) AS each{hits} ORDER BY grade, rid DESC {limit})",
            tuple(param for part in parts for param in part.params),
        )

    def _part(self, grade: int, first: Condition, limit: str) -> Fragment | None:
        relation, source_params = self.source
        where = all_of((self.where, first)) if self.large else first
        if where is NOTHING:
            return None
        order = f"ORDER BY rid DESC {limit}" if self.large else "OFFSET 0"
        sql = f"(SELECT rid, {grade:d} AS grade FROM {relation} WHERE {where.sql} {order})"
        return Fragment(sql, (*source_params, *where.params))

    @property
    def only_ranked(self) -> Condition:
        """The condition for the rows that are ranked."""
        return Condition("rid = ANY(ARRAY(SELECT rid FROM ranked))", is_costly=self.where.is_costly)

    @property
    def scored(self) -> Fragment:
        """The score of any row that matches, NULL for one that is not ranked."""
        return Fragment(f"CASE WHEN rid IN (SELECT rid FROM ranked) THEN {self.score.sql} END", self.score.params)


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
