"""More like this: rows whose text is near to another row's in meaning or, without vectors, in characteristic words."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from plone.pgcatalog.database.prepared import Rows
from plone.pgcatalog.discovery.suggest import LEXEME
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.meaning.question import question_by
from plone.pgcatalog.meaning.table import vectors_of
from plone.pgcatalog.query import bind
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.query.compiler import LARGEST_WINDOW
from plone.pgcatalog.query.criteria import expression_in
from plone.pgcatalog.query.expression import find
from plone.pgcatalog.query.expression import WHERE
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.query.objects import Combinable
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.query.objects import Or
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.results.view import RowsFetch
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.column import PATH
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.column import RID
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.sql.predicate import any_value
from plone.pgcatalog.sql.predicate import equals
from plone.pgcatalog.sql.values import whole
from typing import Any


#: The number of characteristic words of a text, and the number of its most frequent words that they are chosen from.
WORDS, CANDIDATES = 25, 500
#: A characteristic word is in at most this share of all documents, or this number of them if that is more; and the most rows
#: that are read for each word.
COMMON_PART, COMMON, ROWS = 0.1, 50, 5000

#: The weight of a word is (1 + ln tf) idf², with tf its occurrences in the text: its contribution to the product of two
#: tf-idf vectors, if it is in the other text once.  Scores of longer texts are reduced.  Words in only one document, and
#: stems, are left out.  Until words have been counted, the idf of all words is 1.
SIMILAR_ROWS = read_statement("discovery", "similar")


def more_like_this(tool: Any, item: Any, limit: int, query: Mapping[str, Any]) -> Fetch[Any]:
    """Return a fetch of up to *limit* results of *query* on the catalog *tool*, those with the text most similar to *item*.

    *item* is a brain, an object or a UID.  The results are ranked by similarity, and restricted to rows that the user may
    see.  They are empty if *item* is not catalogued, hidden from the user, or without a text.  Raises TypeError for another
    *item*, and QueryError for a catalog without a text index.
    """
    limit = whole("limit", limit, LARGEST_WINDOW)
    as_results = partial(_results, tool, query)
    if limit <= 0:
        return Fetch(partial(as_results, []))
    near = _near_rows(tool, item, limit, query)
    if near is None:
        return _similar_rows(tool, item, limit, query).then(as_results)
    # The page itself may have no vectors yet.
    return near.then(lambda rows: as_results(rows or _similar_rows(tool, item, limit, query).value()))


def _results(tool: Any, query: Mapping[str, Any], rows: Rows) -> Any:
    """Return the results of *query* among *rows*, (rid, score) pairs, ranked by the scores."""
    if not rows:
        return tool.searchResults(where=Or())
    like = RankedRows(tuple(rid for rid, _ in rows), tuple(score for _, score in rows))
    given = expression_in(query)
    return tool.searchResults(**{**query, WHERE: like if given is None else And(like, given)})


def _near_rows(tool: Any, item: Any, limit: int, query: Mapping[str, Any]) -> RowsFetch | None:
    """Return a fetch of (rid, score) of the rows nearest in meaning; None for a site without vectors.

    The vector of *item* is the mean of the vectors of its chunks.
    """
    vectors = vectors_of(tool._core)
    if vectors is None:
        return None
    itself = tool.searchResults(where=_itself(item), show_inactive=True).condition
    results = tool.searchResults({WHERE: And()} | dict(query))
    view = results.catalog.search_view()

    def statement(stored: Stored) -> Statement:
        relation, params = stored.source
        one, where = bind.condition(itself, stored), bind.condition(results.condition, stored)
        row = f"FROM {relation} WHERE {one.sql} ORDER BY rid LIMIT 1"
        mean = f"(SELECT {quote(vectors.schema)}.avg(embedding) FROM {quote(vectors.name)} WHERE zoid = (SELECT zoid {row}))"
        near = question_by(vectors, Fragment(mean, (*params, *one.params))).nearest(stored.source, where)
        sql = (
            f"SELECT rid, max(similarity) AS score FROM ({near.sql}) AS near"
            f" WHERE similarity IS NOT NULL AND rid <> (SELECT rid {row}) GROUP BY rid ORDER BY score DESC, rid LIMIT %s"
        )
        return Statement(sql, (*near.params, *params, *one.params, limit), where.is_costly)

    fetch: RowsFetch = view.fetch(statement, itself, results.condition)
    return fetch


def _similar_rows(tool: Any, item: Any, limit: int, query: Mapping[str, Any]) -> RowsFetch:
    """Return a fetch of (rid, score) of the rows with the same characteristic words."""
    # An expired page is no search result, but users may still view it.
    itself = tool.searchResults(where=_itself(item), show_inactive=True).condition
    given = {WHERE: And()} | dict(query)
    results = tool.searchResults(**given)
    catalog = results.catalog
    view = catalog.search_view()
    column, length, *_ = find(results.context, SOURCE_INDEX).columns()

    def statement(stored: Stored) -> Statement:
        relation, params = stored.source
        one, where = bind.condition(itself, stored), bind.condition(results.condition, stored)
        text = SIMILAR_ROWS.format(
            column=column.quoted,
            relation=relation,
            length=length.quoted,
            itself=one.sql,
            where=where.sql,
            lexeme=LEXEME.format(word="characteristic.word"),
            candidates=CANDIDATES,
            words=WORDS,
            rows=ROWS,
            common=COMMON,
            common_part=COMMON_PART,
        )
        counted = (catalog.zoid, column.name)
        values = (*params, *one.params, *counted, *params, *where.params, limit)
        return Statement(text, values, where.is_costly)

    fetch: RowsFetch = view.fetch(statement, itself, results.condition)
    return fetch


def _itself(item: Any) -> Combinable:
    """Return the query object that finds *item* itself.  Raises TypeError if it is no brain, object or UID."""
    if isinstance(item, str):
        return Eq("UID", item)
    if hasattr(item, "getPath") and hasattr(item, "getRID"):
        return RowPath(item.getPath())
    if hasattr(item, "getPhysicalPath"):
        return RowPath("/".join(item.getPhysicalPath()))
    raise TypeError(f"more_like_this needs a brain, an object or a UID, not {item!r}")


@dataclass(frozen=True)
class RowPath(Combinable):
    """Query object for the row with the path *path*."""

    path: str

    def names(self) -> frozenset[str]:
        return frozenset()

    def condition(self, context: SearchContext) -> Condition:
        return equals(PATH, clean_path(self.path))


@dataclass(frozen=True)
class RankedRows(Combinable):
    """Query object for the rows *rids*, ranked by *scores*, in the same order."""

    rids: tuple[int, ...]
    scores: tuple[float, ...]

    def names(self) -> frozenset[str]:
        return frozenset()

    def condition(self, context: SearchContext) -> Condition:
        return any_value(RID, self.rids)

    def score(self, context: SearchContext) -> Fragment:
        return Fragment("(%s::float[])[array_position(%s::bigint[], rid)]", (list(self.scores), list(self.rids)))
