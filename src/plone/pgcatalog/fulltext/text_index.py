"""ZCTextIndex: one tsvector with the words of the index's lexicon.

PostgreSQL's own parsers and dictionaries take no part in it, so words and answers are the same on every server.
"""

from Acquisition import aq_base
from Acquisition import aq_parent
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from html import unescape
from html.entities import html5
from html.entities import name2codepoint
from plone.pgcatalog.fulltext import ranking
from plone.pgcatalog.fulltext import site
from plone.pgcatalog.fulltext import tsquery
from plone.pgcatalog.fulltext.lexicon import find_parts
from plone.pgcatalog.fulltext.lexicon import quoted
from plone.pgcatalog.fulltext.lexicon import STEM
from plone.pgcatalog.fulltext.lexicon import Stems
from plone.pgcatalog.fulltext.lexicon import storable_text
from plone.pgcatalog.fulltext.lexicon import texts_of
from plone.pgcatalog.fulltext.lexicon import tsvector_literal
from plone.pgcatalog.fulltext.lexicon import tsvector_words
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.stemming import Stemming
from plone.pgcatalog.fulltext.tuning import Meaning
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import Fragment
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.unindex import parse
from plone.pgcatalog.query.ranked import Score
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.column import GIN_OPTIONS
from plone.pgcatalog.sql.predicate import matches
from Products.PluginIndexes.util import safe_callable
from typing import Any
from ZODB.utils import u64

import re


#: The indexes of what counts most in a page.
HEADINGS = ("Title", "Description")
#: The labels in a tsvector of the parts that have weights; words of the body have none, which is d.
LABELS_OF_WEIGHTS = {"title": "a", "description": "b", "keywords": "c", "body": "d"}
#: How many characters of a text are kept to take snippets from.
SOURCE_LENGTH = 20_000
#: What may stand for a character in a text that was HTML: Plone's way from there knows the names of HTML 4 and decimal numbers.
LEFT_REFERENCE = re.compile(r"&(#x[0-9a-f]+|[a-z][a-z0-9]*);", re.IGNORECASE)


class ZCTextIndexTranslator(IndexTranslator):
    """``Products.ZCTextIndex``: full text with AND, OR, NOT, phrases and wildcards."""

    meta_type = "ZCTextIndex"
    in_idx = False
    #: the last text, the languages whose stop words it has, the lexicon's way to its words, and what it was compiled to
    _compiled: tuple[tuple[Any, ...], tsquery.Clause] | None = None
    #: True for a search in order of relevance
    _with_pins = False
    #: False for what a search excludes
    _with_stems = True
    #: None for a search without wildcards inside of words
    globs: tsquery.Globs | None = None
    #: None for those of the site
    _weights: ranking.Weights | None = None

    def columns(self) -> tuple[Column, ...]:
        """Return the tsvector, the number of words, and for SearchableText the beginning, to take snippets from.

        varchar and not text, so that it goes out of line: rows stay narrow.
        """
        # A text is kept compressed, and most are kept apart from their rows.
        vector = Column(self.base, "tsvector", is_long=True, is_last=True)
        count = Column(f"{self.base}_words", "integer", is_last=True)
        return (vector, count) if self.source is None else (vector, count, self.source)

    @property
    def source(self) -> Column | None:
        return Column(f"{self.base}_source", "varchar", is_last=True) if self.id == SOURCE_INDEX else None

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        """Return the GIN index; ``fastupdate`` collects the many entries of a text for later."""
        return (SQLIndex(self.base, f"USING gin ({self.column.quoted}) {GIN_OPTIONS}"),)

    def extract(self, obj: Any, report: Report) -> Values | None:
        """Return the words, as ``index_object``: of all strings of all indexed attributes, together."""
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
        lexicon = self.index.getLexicon()
        words_of_texts = words(lexicon, texts)
        if self.id == SOURCE_INDEX:
            parts = find_parts(obj, words_of_texts, lambda texts: words(lexicon, texts))
            literal, trimmed = tsvector_literal(words_of_texts, parts, self._stems(obj))
        else:
            literal, trimmed = tsvector_literal(words_of_texts)
        if trimmed:
            report(f"index {self.id!r}: {trimmed}")
        source = (source_text(texts),) if self.id == SOURCE_INDEX else ()
        return (literal, len(words_of_texts), *source)

    @property
    def stemming(self) -> Stemming | None:
        """The stems that texts of this index have; None for none."""
        return site.site_stemming(aq_parent(self.index)) if self.id == SOURCE_INDEX else None

    def _stems(self, obj: Any) -> Stems | None:
        """Return what gives the stems of words in a text of *obj*: those of its language."""
        stemming = self.stemming
        if stemming is None:
            return None
        return stemming.lexeme_of(next(iter(texts_of(obj, "Language")), ""))

    def where(self, query: Mapping[str, Any]) -> Condition | None:
        """Return the condition for *query*.

        Raises TypeError for a value that is no string or sequence of strings, and LimitExceeded for too many words.
        """
        text = self._text(query)
        return None if text is None else any_of((self._clause(text, query).condition, *self._pinned(text, query)))

    def not_excluded(self, query: Mapping[str, Any]) -> Condition:
        text = self._text(query)
        return EVERYTHING if text is None else self._clause(text, query).kept

    def has_meaning(self, query: Mapping[str, Any]) -> bool:
        text = self._text(query)
        return text is None or self._clause(text, query).has_meaning

    def score(self, query: Mapping[str, Any]) -> Fragment | None:
        """Return how often and where the words of *query* stand, the rare ones counting more; longer texts count less."""
        text = self._text(query)
        clause = tsquery.NO_CLAUSE if text is None else self._clause(text, query)
        if text is None or not clause.rank:
            return None
        catalog = aq_parent(self.index)
        weights = (self._weights or site.search_weights(catalog)) if self.id == SOURCE_INDEX else ranking.NEUTRAL
        score = site.search_backend().score(self._ranked_text(catalog), clause.rank, weights)
        if score is None:
            return None
        headings = self._in_headings(clause.rank)
        if self.tuning is None:
            return Score.of(score, headings)
        pins = self._pinned(text, query)
        tuned = self.tuning.ranked(score, pins, self.other)
        return Score.of(tuned, [*headings, *self.tuning.preferred(pins, self.other)])

    def _in_headings(self, terms: Sequence[ranking.Term]) -> list[tuple[Condition, ...]]:
        """Return the conditions for pages with one of *terms* in the title, and in the description."""
        if self.id != SOURCE_INDEX:
            return []
        # The words themselves: no other index has marked stems.
        forms = [quoted(word) for t in terms for group in t.related for word in group if not word.startswith(STEM)]
        any_form = tsquery.operation(" | ", dict.fromkeys([*(term.tsquery for term in terms), *forms]))
        headings = [heading for name in HEADINGS if (heading := self._text_index(name)) is not None]
        return [tuple(matches(heading.column, any_form) for heading in headings)] if headings else []

    def _text_index(self, name: str) -> "ZCTextIndexTranslator | None":
        try:
            translator = self.other(name)
        except KeyError:
            return None
        return translator if isinstance(translator, ZCTextIndexTranslator) else None

    def _ranked_text(self, catalog: Any) -> ranking.RankedText:
        vector, count, *_ = self.columns()
        oid = getattr(aq_base(catalog), "_p_oid", None)
        return ranking.RankedText(
            vector=vector.quoted,
            words=count.quoted,
            column=vector.name,
            catalog=None if oid is None else u64(oid),
        )

    def tried(self, settings: Mapping[str, Any], path: str | None) -> "ZCTextIndexTranslator":
        """Return the translator for a search as it would be if the site at *path* had *settings*."""
        tried = self._changed(tuning=site.site_tuning(settings, lambda: path), _weights=ranking.Weights.of(settings))
        return tried.on_search_pages() if self.tuning is not None and self.tuning.is_visitors else tried

    def scores_of_parts(self, query: Mapping[str, Any]) -> dict[str, Fragment]:
        """Return for each part of a page an SQL number: the score that a page of this part alone would have.

        By the built-in ranking, whatever ranks, without pins and boosts; nothing for a *query* that is not ranked.
        """
        text = self._text(query)
        clause = tsquery.NO_CLAUSE if text is None else self._clause(text, query)
        if text is None or not clause.rank:
            return {}
        catalog = aq_parent(self.index)
        whole, weights = self._ranked_text(catalog), self._weights or site.search_weights(catalog)
        parts = {
            name: replace(whole, vector=f"ts_filter({whole.vector}, '{{{label}}}'::\"char\"[])")
            for name, label in LABELS_OF_WEIGHTS.items()
        }
        scores = {name: site.PLAIN.score(part, clause.rank, weights) for name, part in parts.items()}
        return {name: score for name, score in scores.items() if score is not None}

    def exact(self) -> "ZCTextIndexTranslator":
        return self._changed(tuning=None, _with_stems=False, word_parts=None, question=None)

    def on_search_pages(self) -> "ZCTextIndexTranslator":
        languages = site.site_languages(aq_parent(self.index))
        return self._changed(tuning=site.visitors_tuning(self.tuning, languages))

    def with_word_parts(self, parts: Mapping[str, tuple[str, ...]]) -> "ZCTextIndexTranslator":
        return self._changed(word_parts=parts)

    def with_question(self, question: Any) -> "ZCTextIndexTranslator":
        return self._changed(question=question)

    def with_globs(self, globs: tsquery.Globs) -> "ZCTextIndexTranslator":
        """Return the translator for a search whose words with wildcards inside find the words that *globs* has for them."""
        return self._changed(globs=globs)

    def ranked(self) -> "ZCTextIndexTranslator":
        return self if self.tuning is None else self._changed(_with_pins=True)

    def _changed(self, **attributes: Any) -> "ZCTextIndexTranslator":
        changed = copy(self)
        vars(changed).update(attributes, _compiled=None)
        return changed

    @property
    def is_stable(self) -> bool:
        """What else is found depends on the request and the words of the site, ranks on utilities."""
        is_plain = self.tuning is None and self.word_parts is None and self.globs is None and self.question is None
        return is_plain and site.search_backend() is site.PLAIN

    def _text(self, query: Mapping[str, Any]) -> str | None:
        """Return the search text for this index in *query*, None for none."""
        record = parse(self.index, query)
        return None if record.keys is None else " ".join(record.keys)

    def _clause(self, text: str, query: Mapping[str, Any]) -> tsquery.Clause:
        """Return what *text*, that of *query* for this index, finds."""
        if not text:
            return tsquery.NO_CLAUSE
        lexicon = self.index.getLexicon()
        languages = [] if self.tuning is None else self.tuning.stop_languages(query)
        question = (text, languages, getattr(lexicon, "_pipeline", None))
        if self._compiled is None or self._compiled[0] != question:
            self._compiled = question, self._compile(lexicon, text, query)
        return self._compiled[1]

    def _compile(self, lexicon: Any, text: str, query: Mapping[str, Any]) -> tsquery.Clause:
        meaning = None if self.tuning is None else self.tuning.meaning(lexicon, query)
        if self.word_parts:
            meaning = replace(meaning or Meaning({}, frozenset()), parts=self.word_parts)
        stemming = self.stemming
        related = stemming.related if stemming is not None and self._with_stems else None
        return tsquery.compile_text(lexicon, text, self.column, meaning, related, self.globs or {})

    def _pinned(self, text: str, query: Mapping[str, Any]) -> list[Condition]:
        """Return the conditions of the pages that are pinned to the *text* of *query*, in their order."""
        if self.tuning is None or not self._with_pins or not text:
            return []
        pinned: list[Condition] = self.tuning.pinned(self.index.getLexicon(), text, query, self.other)
        return pinned

    def entry(self, values: Values) -> list[str]:
        """Return the words in their order, as ``getEntryForObject``."""
        return tsvector_words(values[0])

    def key_expression(self) -> None:
        """The real index's ``uniqueValues`` raises NotImplementedError."""
        return None


def source_text(texts: Iterable[str]) -> str:
    """Return what is kept of the searchable *texts* to take snippets from: one line, of limited length."""
    joined = LEFT_REFERENCE.sub(_character, " ".join(texts)[: 2 * SOURCE_LENGTH])
    return " ".join(storable_text(joined).split())[:SOURCE_LENGTH]


def _character(reference: re.Match[str]) -> str:
    """Return the character of *reference*, or itself: one with a name that Plone knows was meant to be read like this."""
    name = reference[1]
    is_left = name[0] == "#" or (f"{name};" in html5 and name not in name2codepoint)
    return unescape(reference[0]) if is_left else reference[0]


def body_of(source: str, beginnings: Iterable[Any]) -> str:
    """Return *source* without its *beginnings*, strings it may start with (Plone's id and title), one after another."""
    for beginning in beginnings:
        if isinstance(beginning, str) and beginning:
            beginning = " ".join(beginning.split())
            rest = source.removeprefix(beginning)
            if rest != source and not rest[:1].strip():
                source = rest.lstrip()
    return source
