"""More like this: rows whose text means the same as another row's, or shares its characteristic words where there are no vectors."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from plone.pgcatalog.database.layout import load_sql
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
from plone.pgcatalog.results.view import Rows
from plone.pgcatalog.results.view import RowsFetch
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.column import PATH
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.column import RID
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import any_value
from plone.pgcatalog.sql.predicate import equals
from plone.pgcatalog.sql.values import whole
from typing import Any


#: How many words of a text are searched for, and among how many of its most frequent ones they are chosen.
WORDS, CANDIDATES = 25, 500
#: The part of all documents, and the number of them, that a characteristic word may stand in; the most rows looked at
#: for each word, when the words have not been counted yet.
COMMON_PART, COMMON, ROWS = 0.1, 50, 5000

#: A word weighs (1 + ln tf) idf^2, tf being how often it stands in the text, and idf how rare it is in all: what it
#: contributes to the product of two tf-idf vectors, if it stands in the other text once.  Longer texts count less.
#: A word of one text alone finds nothing.  Until words have been counted all are equally rare.  Stems are no words.
SIMILAR = load_sql("similar")


def more_like_this(tool: Any, what: Any, limit: int, query: Mapping[str, Any]) -> Fetch[Any]:
    """Return a fetch of the *limit* results of *query* that are most like *what* by their text, ranked by likeness.

    *what* is a brain, an object or a UID.  Both it and the results are what the user may see on the catalog *tool*; what
    is not catalogued, or hidden from the user, or has no text, is like nothing.  Raises TypeError for another *what*, and
    QueryError for a catalog without a text index.
    """
    limit = whole("limit", limit, LARGEST_WINDOW)
    as_results = partial(_results, tool, query)
    if limit <= 0:
        return Fetch(partial(as_results, []))
    near = _near_rows(tool, what, limit, query)
    if near is None:
        return _similar_rows(tool, what, limit, query).then(as_results)
    # A page may have no vectors.
    return near.then(lambda rows: as_results(rows or _similar_rows(tool, what, limit, query).value()))


def _results(tool: Any, query: Mapping[str, Any], rows: Rows) -> Any:
    """Return the results of *query* that *rows* name, (record id, score) each, ranked by the scores."""
    if not rows:
        return tool.searchResults(where=Or())
    like = RankedRows(tuple(rid for rid, _ in rows), tuple(score for _, score in rows))
    given = expression_in(query)
    return tool.searchResults(**{**query, WHERE: like if given is None else And(like, given)})


def _near_rows(tool: Any, what: Any, limit: int, query: Mapping[str, Any]) -> RowsFetch | None:
    """Return a fetch of (record id, score) of the rows that mean the same; None for a site without vectors.

    The meaning of a page is the mean of its chunks.
    """
    vectors = vectors_of(tool._core)
    if vectors is None:
        return None
    itself = tool.searchResults(where=_itself(what), show_inactive=True).condition
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


def _similar_rows(tool: Any, what: Any, limit: int, query: Mapping[str, Any]) -> RowsFetch:
    """Return a fetch of (record id, score) of the rows with the same characteristic words."""
    # An expired page, too, may be looked at by who may view it.
    itself = tool.searchResults(where=_itself(what), show_inactive=True).condition
    given = {WHERE: And()} | dict(query)
    results = tool.searchResults(**given)
    catalog = results.catalog
    view = catalog.search_view()
    column, length, *_ = find(results.context, SOURCE_INDEX).columns()

    def statement(stored: Stored) -> Statement:
        relation, params = stored.source
        one, where = bind.condition(itself, stored), bind.condition(results.condition, stored)
        text = SIMILAR.format(
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
        values = (*params, *one.params, *counted, *counted, *params, *where.params, limit)
        return Statement(text, values, where.is_costly)

    fetch: RowsFetch = view.fetch(statement, itself, results.condition)
    return fetch


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

    def condition(self, context: SearchContext) -> Condition:
        return equals(PATH, clean_path(self.path))


@dataclass(frozen=True)
class RankedRows(Combinable):
    """The rows *rids*, ranked by their *scores*."""

    rids: tuple[int, ...]
    scores: tuple[float, ...]

    def names(self) -> frozenset[str]:
        return frozenset()

    def condition(self, context: SearchContext) -> Condition:
        return any_value(RID, self.rids)

    def score(self, context: SearchContext) -> Fragment:
        return Fragment("(%s::float[])[array_position(%s::bigint[], rid)]", (list(self.scores), list(self.rids)))
