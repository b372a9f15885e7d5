"""Which rows are ranked when words find very many: a score needs the text of each, and nobody reads page 1,000.

In a large catalog these are, at the most, the newest ones, and the newest ones for each thing that makes a good hit (the words
stand in the title, somebody has pinned the page).  They come first, in the order of their scores; all others follow, the
newest first.
"""

from dataclasses import replace
from plone.pgcatalog.fulltext.ranking import Score
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import Fragment
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexing.overlay import Source


#: A catalog is large when it has more than this many times the rows that are ranked.
LARGE_RATIO = 10


def ranked_rids(source: Source, where: Condition, score: Score, limit: int) -> Fragment:
    """Return as SQL the rids of the rows of *source* that are ranked of those that match *where*.

    *limit* counts for the newest ones, and for each of the conditions that *score* prefers.
    """
    relation, source_params = source
    branches = [where, *(found for first in score.preferred if (found := all_of((where, first))) is not NOTHING)]
    newest = [f"(SELECT rid FROM {relation} WHERE {b.sql} ORDER BY rid DESC LIMIT {limit:d})" for b in branches]
    return Fragment(" UNION ".join(newest), tuple(p for b in branches for p in (*source_params, *b.params)))


def only(rids: Fragment, where: Condition) -> Condition:
    """Return the condition for the rows *rids*: what ``ranked_rids`` returns of those that match *where*."""
    return Condition(f"rid = ANY(ARRAY({rids.sql}))", rids.params, is_costly=where.is_costly)


def scored(rids: Fragment, score: Score) -> Score:
    """Return *score* for the rows *rids*, and less for all others."""
    sql = f"CASE WHEN rid IN ({rids.sql}) THEN {score.sql} ELSE 0 END"
    return replace(score, sql=sql, params=(*rids.params, *score.params))
