"""More like this: rows whose text shares the characteristic words of another row's text."""

from collections.abc import Mapping
from dataclasses import dataclass
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.query.expression import expression_in
from plone.pgcatalog.query.expression import find
from plone.pgcatalog.query.expression import Lookup
from plone.pgcatalog.query.expression import WHERE
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.query.objects import Combinable
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import Or
from plone.pgcatalog.search.lexicon import quoted
from plone.pgcatalog.search.tsquery import operation
from plone.pgcatalog.search.vocabulary import INDEX
from typing import Any


#: How many words of a text are searched for, and among how many of its most frequent ones they are chosen.
WORDS, CANDIDATES = 25, 500

#: Term frequency times inverse document frequency.  A word of one text alone finds nothing; until words have been counted
#: all are equally rare.  Stems (ascii 2) are no words.
CHARACTERISTIC = """
WITH found AS (SELECT rid, {column} AS words FROM {relation} WHERE {where} ORDER BY rid LIMIT 1),
frequent AS (
    SELECT lexeme, coalesce(cardinality(positions), 1) AS often FROM found, unnest(words) AS word
    WHERE ascii(lexeme) > 2 ORDER BY often DESC, lexeme LIMIT {candidates}
), counted AS (SELECT documents FROM pgcatalog_texts WHERE catalog = %s AND text_column = %s)
SELECT rid, ARRAY(
    SELECT f.lexeme FROM frequent f LEFT JOIN counted c ON true
    LEFT JOIN pgcatalog_words w ON w.catalog = %s AND w.text_column = %s AND w.word = f.lexeme
    WHERE c.documents IS NULL OR w.documents > 1
    ORDER BY f.often * ln(1 + coalesce(c.documents / w.documents::float, 0)) DESC, f.often DESC, f.lexeme LIMIT {limit}
) FROM found
"""


@dataclass(frozen=True)
class AnyWord(Combinable):
    """Rows, *rid* excepted, that have at least one of *words* in the text index *index*, ranked by how much of them.

    The words are those of the index, not of a query: nothing is parsed.
    """

    index: str
    words: tuple[str, ...]
    rid: int

    def names(self) -> frozenset[str]:
        return frozenset((self.index,))

    def condition(self, lookup: Lookup) -> Condition:
        column = find(lookup, self.index).column.quoted
        return Condition(f"{column} @@ %s::tsquery AND rid <> %s", (self._tsquery(), self.rid))

    def score(self, lookup: Lookup) -> Condition:
        # Unlike ts_rank_cd this takes no account of how close the words are, and asks each row once.
        return Condition(f"ts_rank({find(lookup, self.index).column.quoted}, %s::tsquery, 1)", (self._tsquery(),))

    def _tsquery(self) -> str:
        return operation(" | ", map(quoted, self.words))


def more_like_this(tool: Any, what: Any, limit: int, query: Mapping[str, Any]) -> Any:
    """Return the results of *query*, at most *limit*, that are like *what* by their text, the most similar first.

    *what* is a brain, an object or a UID.  Both it and the results are what the user may see on the catalog *tool*; what
    is not catalogued, or not for him, or has no text, is like nothing.  Raises TypeError for another *what*.
    """
    row = _characteristic(tool, what)
    if row is None or not row[1]:
        return tool.searchResults(where=Or())
    rid, words = row
    like = AnyWord(INDEX, tuple(words), rid)
    given = expression_in(query)
    where = like if given is None else And(like, given)
    return tool.searchResults(**{**query, WHERE: where, "b_start": 0, "b_size": limit})


def _characteristic(tool: Any, what: Any) -> tuple[int, list[str]] | None:
    """Return record id and characteristic words of *what*, None if there is no such row for the user."""
    # An expired page, too, may be looked at by who may view it.
    results = tool.searchResults(where=_itself(what), show_inactive=True)
    catalog, condition = results._catalog, results._query.where
    view = catalog.view()
    source = view.source()
    if source is None:
        return None
    relation, params = source
    column = find(catalog.translator, INDEX).column
    statement = CHARACTERISTIC.format(
        column=column.quoted, relation=relation, where=condition.sql, candidates=CANDIDATES, limit=WORDS
    )
    counted = (catalog.zoid, column.name)
    rows = view.session.execute(statement, (*params, *condition.params, *counted, *counted))
    return rows[0] if rows else None


def _itself(what: Any) -> Combinable:
    """Return what finds *what* itself."""
    if isinstance(what, str):
        return Eq("UID", what)
    if hasattr(what, "getPath") and hasattr(what, "getRID"):
        return RowPath(what.getPath())
    if hasattr(what, "getPhysicalPath"):
        return RowPath("/".join(what.getPhysicalPath()))
    raise TypeError(f"more_like_this takes a brain, an object or a UID, not {what!r}")


@dataclass(frozen=True)
class RowPath(Combinable):
    """The row that is catalogued under *path*."""

    path: str

    def names(self) -> frozenset[str]:
        return frozenset()

    def condition(self, lookup: Lookup) -> Condition:
        return Condition("path = %s", (clean_path(self.path),))
