"""ZCTextIndex: one tsvector with the words of the index's lexicon.

PostgreSQL's own parsers and dictionaries take no part in it, so words and answers are the same on every server.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.search.highlight import SOURCE_INDEX
from plone.pgcatalog.search.highlight import source_text
from plone.pgcatalog.search.lexicon import tsvector_literal
from plone.pgcatalog.search.lexicon import tsvector_words
from plone.pgcatalog.search.lexicon import words
from plone.pgcatalog.search.query_words import Meaning
from plone.pgcatalog.search.tsquery import Clause
from plone.pgcatalog.search.tsquery import compile_text
from plone.pgcatalog.search.tsquery import NO_CLAUSE
from Products.PluginIndexes.util import safe_callable
from Products.ZCatalog.query import IndexQuery
from typing import Any


class ZCTextIndexTranslator(IndexTranslator):
    """``Products.ZCTextIndex``: full text with AND, OR, NOT, phrases and wildcards."""

    meta_type = "ZCTextIndex"
    in_idx = False
    is_stable = False
    #: True for a search in order of relevance
    _with_pins = False

    def columns(self) -> tuple[Column, ...]:
        """Return the tsvector, the number of words, and for SearchableText the beginning, to take snippets from.

        varchar and not text, so that it goes out of line: rows stay narrow.
        """
        source = (Column(f"{self.base}_source", "varchar"),) if self.id == SOURCE_INDEX else ()
        return (Column(self.base, "tsvector"), Column(f"{self.base}_words", "integer"), *source)

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        """Return the GIN index; ``fastupdate`` collects the many entries of a text for later."""
        return (SQLIndex(self.base, f"USING gin ({self.column.quoted}) WITH (fastupdate = on)"),)

    def extract(self, obj: Any, report: Report) -> Values | None:
        """See IndexTranslator; as ``index_object``: all strings of all indexed attributes, together."""
        texts: list[Any] = []
        for name in self.index._indexed_attrs:
            value = getattr(obj, name, None)
            if value is not None and safe_callable(value):
                value = value()
            if isinstance(value, (list, tuple, set)):
                texts += value
            else:
                texts.append(value)
        texts = [text for text in texts if isinstance(text, str)]
        if not texts:
            return None
        found = words(self.index.getLexicon(), texts)
        literal, trimmed = tsvector_literal(found)
        if trimmed:
            report(f"index {self.id!r}: {trimmed}")
        source = (source_text(texts),) if self.id == SOURCE_INDEX else ()
        return (literal, len(found), *source)

    def where(self, query: Mapping[str, Any]) -> Condition | None:
        """See IndexTranslator.  Raises TypeError for a value that is no string or sequence of strings."""
        clause = self._clause(query)
        return None if clause is None else any_of((clause.condition, *self._pinned(query)))

    def score(self, query: Mapping[str, Any]) -> Condition | None:
        """Return how often and how close together the words of *query* are; longer texts count less."""
        clause = self._clause(query)
        if clause is None or clause.rank is None:
            return None
        score = Condition(f"ts_rank_cd({self.column.quoted}, %s::tsquery, 1)", (clause.rank,))
        return score if self.tuning is None else self.tuning.ranked(score, self._pinned(query), self.other)

    def exact(self) -> "ZCTextIndexTranslator":
        """See IndexTranslator."""
        return self if self.tuning is None and not self.parts else self._changed(tuning=None, parts={})

    def ranked(self) -> "ZCTextIndexTranslator":
        """See IndexTranslator."""
        return self if self.tuning is None else self._changed(_with_pins=True)

    def _changed(self, **attributes: Any) -> "ZCTextIndexTranslator":
        changed = copy(self)
        vars(changed).update(attributes)
        return changed

    def _text(self, query: Mapping[str, Any]) -> str | None:
        """Return the search text for this index in *query*, None for none."""
        index = self.index
        record = IndexQuery(query, self.id, index.query_options, index.operators, index.useOperator)
        return None if record.keys is None else " ".join(record.keys)

    def _clause(self, query: Mapping[str, Any]) -> Clause | None:
        text = self._text(query)
        if not text:
            return None if text is None else NO_CLAUSE
        lexicon = self.index.getLexicon()
        meaning = None if self.tuning is None else self.tuning.meaning(lexicon, text, query)
        if self.parts:
            meaning = replace(meaning or Meaning({}, frozenset()), parts=self.parts)
        return compile_text(lexicon, text, self.column.quoted, meaning)

    def _pinned(self, query: Mapping[str, Any]) -> list[Condition]:
        """Return the conditions of the pages that are pinned to *query*, in their order."""
        text = self._text(query) if self._with_pins else None
        if self.tuning is None or not text:
            return []
        pinned: list[Condition] = self.tuning.pinned(self.index.getLexicon(), text, query, self.other)
        return pinned

    def entry(self, values: Values) -> list[str]:
        """Return the words in their order, as ``getEntryForObject``."""
        return tsvector_words(values[0])

    def key_expression(self) -> None:
        """The real index's ``uniqueValues`` raises NotImplementedError."""
        return None
