"""Snippets of a page of results: where in its text each of them says what was searched for."""

from collections.abc import Iterable
from itertools import chain
from plone.pgcatalog.core.catalog import Catalog
from plone.pgcatalog.discovery.highlight import body_of
from plone.pgcatalog.discovery.highlight import Highlighter
from plone.pgcatalog.discovery.highlight import LENGTH
from plone.pgcatalog.fulltext.tuning import Words
from plone.pgcatalog.fulltext.word_lookup import text_queries
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.query import bind
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import Read
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.column import RID
from plone.pgcatalog.sql.predicate import any_value
from typing import Any


def highlighter(results: CatalogSearchResults) -> Highlighter:
    """Return what marks the words of the search of *results* in any text; false when it asks for none."""
    catalog = results.catalog
    lexicons = {
        name: catalog.translator(name).index.getLexicon() for name in catalog.indexes if _is_text(catalog, name)
    }
    found = text_queries(results.criteria, lexicons)
    queries = ((lexicons[name], text) for name, text in found)
    alternatives = (_alternatives(catalog.translator(name), lexicons[name], text) for name, text in found)
    stemmings = (getattr(catalog.translator(name), "stemming", None) for name, _ in found)
    return Highlighter(queries, next(filter(None, stemmings), None), chain.from_iterable(alternatives))


def snippets(results: CatalogSearchResults, brains: Iterable[Any], length: int = LENGTH) -> dict[int, str]:
    """Return record id -> HTML for *brains* of *results*, a page of it: about *length* characters of each text.

    The words that were searched for are in ``<mark>``, and there is no other markup. Without such words it is the
    beginning of the text. One statement. What this search does not find is left out.
    """
    return Snippets(results, brains, length).by_rid()


class Snippets:
    """The snippets of *brains* of *results*, see ``snippets``; in an open batch their texts come in the message of that."""

    def __init__(self, results: CatalogSearchResults, brains: Iterable[Any], length: int = LENGTH) -> None:
        self._results = results
        self._brains = [] if results.query.is_empty else list(brains)
        self._length = length
        catalog = results.catalog
        view = catalog.search_view()
        where = any_value(RID, [brain.getRID() for brain in self._brains]) & results.query.where
        columns = f"rid, {source_column(catalog)}"
        statement = view.binding(lambda stored: bind.select(columns, bind.condition(where, stored), stored), where)
        self._texts = Read(view, statement) if self._brains else None

    def by_rid(self) -> dict[int, str]:
        """Return record id -> HTML.  Raises as ``CatalogView.ask``."""
        if self._texts is None:
            return {}
        texts: dict[int, str] = dict(self._texts.rows())
        marks = highlighter(self._results)
        return {
            brain.getRID(): marks.snippet(_text(brain, texts[brain.getRID()]), self._length)
            for brain in self._brains
            if brain.getRID() in texts
        }


def source_column(catalog: Catalog) -> str:
    """Return the SQL of the text that snippets are taken from."""
    if SOURCE_INDEX in catalog.indexes:
        column = catalog.translator(SOURCE_INDEX).source
        if column is not None:
            return str(column.quoted)
    return "NULL::varchar"


def _text(brain: Any, source: str | None) -> str:
    """Return what the row says in prose; Plone's searchable text begins with id and title."""
    if source is None:
        description = getattr(brain, "Description", "")
        return description if isinstance(description, str) else ""
    return body_of(source, (getattr(brain, "getId", ""), getattr(brain, "Title", "")))


def _alternatives(translator: IndexTranslator, lexicon: Any, text: str) -> list[Words]:
    """Return what the index of *translator* finds besides when somebody searches for *text*."""
    containing = [(word,) for words in (translator.word_parts or {}).values() for word in words]
    return [*containing, *(translator.tuning.synonyms(lexicon, text) if translator.tuning is not None else ())]


def _is_text(catalog: Catalog, name: str) -> bool:
    translator = catalog.translator(name)
    return type(translator).score is not IndexTranslator.score and hasattr(translator.index, "getLexicon")
