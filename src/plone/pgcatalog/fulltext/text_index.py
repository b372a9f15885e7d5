"""ZCTextIndex: a tsvector column with the words of the index's lexicon.

PostgreSQL's own parsers and dictionaries are not used, so words and results are the same on every server.
"""

from Acquisition import aq_base
from Acquisition import aq_parent
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import partial
from html import unescape
from html.entities import html5
from html.entities import name2codepoint
from plone.pgcatalog import settings
from plone.pgcatalog.fulltext import ranking
from plone.pgcatalog.fulltext import site
from plone.pgcatalog.fulltext import tsquery
from plone.pgcatalog.fulltext.lexicon import find_parts
from plone.pgcatalog.fulltext.lexicon import quoted
from plone.pgcatalog.fulltext.lexicon import signed_lexemes
from plone.pgcatalog.fulltext.lexicon import STEM
from plone.pgcatalog.fulltext.lexicon import Stems
from plone.pgcatalog.fulltext.lexicon import storable_text
from plone.pgcatalog.fulltext.lexicon import texts_of
from plone.pgcatalog.fulltext.lexicon import tsvector_literal
from plone.pgcatalog.fulltext.lexicon import tsvector_words
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.lexicon import words_besides
from plone.pgcatalog.fulltext.signs import MOST_SEARCHED
from plone.pgcatalog.fulltext.signs import MOST_STORED
from plone.pgcatalog.fulltext.stemming import Stemming
from plone.pgcatalog.fulltext.tuning import Meaning
from plone.pgcatalog.indexes.base import all_of
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Column
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import Fragment
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import Report
from plone.pgcatalog.indexes.base import SQLIndex
from plone.pgcatalog.indexes.base import Values
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.unindex import parse
from plone.pgcatalog.query.ranked import Score
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.sql.column import GIN_OPTIONS
from plone.pgcatalog.sql.predicate import matches
from Products.PluginIndexes.util import safe_callable
from typing import Any
from ZODB.utils import u64

import re


#: The text indexes of the parts of a page with the highest weights.
HEADINGS = ("Title", "Description")
#: Part of a page -> its label in a tsvector; words of the body have no label, which PostgreSQL reads as d.
LABELS_OF_WEIGHTS = {"title": "a", "description": "b", "keywords": "c", "body": "d"}
#: Characters of a text that are stored for snippets.
SOURCE_LENGTH = 20_000
#: Precedes the text of a file, and stands between its pages, slides or sheets.
PAGE_END = "\f"
#: A character reference that may be left in a text that was HTML: Plone decodes only names of HTML 4 and decimal numbers.
LEFT_REFERENCE = re.compile(r"&(#x[0-9a-f]+|[a-z][a-z0-9]*);", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextSearch:
    """The compiled part of a query for a text index: the clause of the text, and its ranking.

    *pins* are the conditions of the pages pinned to the text, in order; *weights* None means the weights of the site.
    *signed* are the lexemes of the words with signs.
    """

    clause: tsquery.Clause
    tuning: site.SiteTuning | None = None
    pins: tuple[Condition, ...] = ()
    weights: ranking.Weights | None = None
    signed: tuple[str, ...] = ()


class ZCTextIndexTranslator(IndexTranslator):
    """``Products.ZCTextIndex``: full text with AND, OR, NOT, phrases and wildcards."""

    meta_type = "ZCTextIndex"
    in_idx = False

    def columns(self) -> tuple[Column, ...]:
        """Return the columns of the tsvector, the number of words, and for SearchableText the source of snippets.

        The source is varchar, not text, so that it is stored out of line and rows stay narrow.
        """
        # PostgreSQL compresses long tsvectors, and stores most of them out of line.
        vector = Column(self.base, "tsvector", is_long=True, is_last=True)
        count = Column(f"{self.base}_words", "integer", is_last=True)
        return (vector, count) if self.source is None else (vector, count, self.source)

    @property
    def source(self) -> Column | None:
        return Column(f"{self.base}_source", "varchar", is_last=True) if self.id == SOURCE_INDEX else None

    def sql_indexes(self) -> tuple[SQLIndex, ...]:
        """Return the GIN index of the tsvector."""
        return (SQLIndex(self.base, f"USING gin ({self.column.quoted}) {GIN_OPTIONS}"),)

    def extract(self, obj: Any, report: Report) -> Values | None:
        """Return the values of the columns for *obj*; None if its indexed attributes have no strings.

        As in ``index_object``, the words are those of all strings of all indexed attributes.
        """
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
            besides = words_besides(lexicon, texts) if settings.WHOLE_WORDS else ()
            signed = signed_lexemes(lexicon, texts, MOST_STORED) if self._has_signed else ()
            literal, trimmed = tsvector_literal(words_of_texts, parts, self._stems(obj), besides, signed)
        else:
            literal, trimmed = tsvector_literal(words_of_texts)
        if trimmed:
            report(f"index {self.id!r}: {trimmed}")
        source = (source_text(texts),) if self.id == SOURCE_INDEX else ()
        return (literal, len(words_of_texts), *source)

    @property
    def _has_signed(self) -> bool:
        return settings.WORDS_WITH_SIGNS and self.id == SOURCE_INDEX

    @property
    def stemming(self) -> Stemming | None:
        """The stemming of the texts of this index; None without stems."""
        return site.site_stemming(aq_parent(self.index)) if self.id == SOURCE_INDEX else None

    def _stems(self, obj: Any) -> Stems | None:
        """Return the function from a word to its lexemes for the language of *obj*; None without stems."""
        stemming = self.stemming
        if stemming is None:
            return None
        return stemming.lexemes_of(next(iter(texts_of(obj, "Language")), ""))

    def where(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition | None:
        """Return the condition for *query*; None if it does not name this index.

        Raises TypeError for a value that is no string or sequence of strings, and LimitExceeded for too many words.
        """
        search = self._search(query, context)
        return None if search is None else any_of((search.clause.condition, *search.pins))

    def not_excluded(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Condition:
        search = self._search(query, context)
        return EVERYTHING if search is None else search.clause.not_excluded

    def has_meaning(self, query: Mapping[str, Any], context: SearchContext | None = None) -> bool:
        search = self._search(query, context)
        return search is None or search.clause.has_meaning

    def score(self, query: Mapping[str, Any], context: SearchContext | None = None) -> Fragment | None:
        """Return the score of a row for *query*, by the site's ranking backend, pins and boosts; None without ranking."""
        search = self._search(query, context)
        if search is None or not search.clause.rank:
            return None
        terms, pins, tuning = search.clause.rank, search.pins, search.tuning
        score = site.search_backend().score(self._ranked_text(), terms, self._weights(search))
        if score is None:
            return None
        signed = [matches(self.column, quoted(word)) for word in search.signed]
        preferred = [*self._in_headings(terms), *([(all_of(signed), any_of(signed))] if signed else [])]
        if tuning is not None:
            score, preferred = tuning.ranked(score, self.other), [*preferred, *tuning.preferred(pins, self.other)]
        return Score.of(site.pinned_first(site.signed_first(score, signed), pins), preferred)

    def _in_headings(self, terms: Sequence[ranking.Term]) -> list[tuple[Condition, ...]]:
        """Return a group of conditions for pages with one of *terms* in the title, and in the description.

        A second group is for pages with a number with dashes.  Empty unless this is SearchableText and the catalog has one of
        these indexes.
        """
        if self.id != SOURCE_INDEX:
            return []
        # Without marked stems: the indexes of title and description have none.
        numbers = [term.tsquery for term in terms if "-" in term.word]
        forms = [quoted(word) for t in terms for group in t.related for word in group if not word.startswith(STEM)]
        any_form = tsquery.operation(" | ", dict.fromkeys([*(term.tsquery for term in terms), *forms]))
        headings = [heading for name in HEADINGS if (heading := self._text_index(name)) is not None]
        groups = [tuple(matches(heading.column, any_form) for heading in headings)] if headings else []
        return [*groups, (matches(self.column, " | ".join(numbers)),)] if numbers else groups

    def _text_index(self, name: str) -> "ZCTextIndexTranslator | None":
        try:
            translator = self.other(name)
        except KeyError:
            return None
        return translator if isinstance(translator, ZCTextIndexTranslator) else None

    def _ranked_text(self) -> ranking.RankedText:
        vector, count, *_ = self.columns()
        oid = getattr(aq_base(aq_parent(self.index)), "_p_oid", None)
        return ranking.RankedText(
            vector=vector.quoted,
            words=count.quoted,
            column=vector.name,
            catalog=None if oid is None else u64(oid),
        )

    def _weights(self, search: "TextSearch") -> ranking.Weights:
        if self.id != SOURCE_INDEX:
            return ranking.NEUTRAL
        return search.weights or site.search_weights(aq_parent(self.index))

    def scores_of_parts(self, query: Mapping[str, Any], context: SearchContext) -> dict[str, Fragment]:
        """Return part of a page -> SQL of the score that a page of this part alone would have; empty without ranking.

        Always by the built-in backend, without pins and boosts.
        """
        search = self._search(query, context)
        if search is None or not search.clause.rank:
            return {}
        whole, weights = self._ranked_text(), self._weights(search)
        parts = {
            name: replace(whole, vector=f"ts_filter({whole.vector}, '{{{label}}}'::\"char\"[])")
            for name, label in LABELS_OF_WEIGHTS.items()
        }
        scores = {name: site.PLAIN_BACKEND.score(part, search.clause.rank, weights) for name, part in parts.items()}
        return {name: score for name, score in scores.items() if score is not None}

    @property
    def is_stable(self) -> bool:
        """True with the built-in ranking backend, False with one of an add-on."""
        return site.search_backend() is site.PLAIN_BACKEND

    def _search(self, query: Mapping[str, Any], context: SearchContext | None) -> "TextSearch | None":
        """Return the part of *query* for this index, compiled once per *context*; None if *query* lacks the index."""
        record = parse(self.index, query)
        if record.keys is None:
            return None
        text = " ".join(record.keys)
        context = context or self.context or SearchContext()
        tuning = context.tuning if self.id == SOURCE_INDEX else None
        lexicon = self.index.getLexicon()
        languages = () if tuning is None else tuple(tuning.stop_languages(query))
        key = self.id, text, languages, getattr(lexicon, "_pipeline", None)
        return context.once(key, partial(self._compiled, lexicon, text, query, tuning, context))

    def _compiled(
        self, lexicon: Any, text: str, query: Mapping[str, Any], tuning: site.SiteTuning | None, context: SearchContext
    ) -> "TextSearch":
        if not text:
            return TextSearch(tsquery.NO_CLAUSE)
        meaning = None if tuning is None else tuning.meaning(lexicon, query)
        if context.word_parts and self.id == SOURCE_INDEX:
            meaning = replace(meaning or Meaning({}, frozenset()), parts=context.word_parts)
        stemming = None if context.is_exact else self.stemming
        related = None if stemming is None else stemming.related
        globs, has_whole_words = context.globs.get(self.id, {}), settings.WHOLE_WORDS and self.id == SOURCE_INDEX
        clause = tsquery.compile_text(lexicon, text, self.column, meaning, related, globs, has_whole_words)
        pins = tuning.pinned(lexicon, text, query, self.other) if tuning is not None and context.is_ranked else ()
        signed = signed_lexemes(lexicon, [text.replace("*", "")], MOST_SEARCHED) if self._has_signed else []
        return TextSearch(clause, tuning, tuple(pins), context.weights, tuple(signed))

    def entry(self, values: Values) -> list[str]:
        """Return the words in order, as ``getEntryForObject`` does."""
        return tsvector_words(values[0])

    def key_expression(self) -> None:
        """Return None: ``uniqueValues`` of a ZCTextIndex raises NotImplementedError."""
        return None


class TextOfFile(str):
    """The text of a file among the searchable texts of an object; form feeds in it part pages, slides or sheets."""


def source_text(texts: Iterable[str]) -> str:
    """Return the stored form of the searchable *texts* for snippets: one line of at most SOURCE_LENGTH characters.

    Its only form feeds are those of a TextOfFile, and one in front of it.
    """
    joined = " ".join(
        f"{PAGE_END}{text}" if isinstance(text, TextOfFile) else text.replace(PAGE_END, " ") for text in texts
    )
    return in_one_line(storable_text(LEFT_REFERENCE.sub(_character, joined[: 2 * SOURCE_LENGTH])))[:SOURCE_LENGTH]


def in_one_line(text: str) -> str:
    """Return *text* with a single blank for each white space, and without blanks where pages end."""
    return PAGE_END.join(" ".join(page.split()) for page in text.split(PAGE_END))


def _character(reference: re.Match[str]) -> str:
    """Return the character of *reference*; or *reference* itself, as literal text, if it is of a kind that Plone decodes."""
    name = reference[1]
    is_left = name[0] == "#" or (f"{name};" in html5 and name not in name2codepoint)
    return unescape(reference[0]).replace(PAGE_END, " ") if is_left else reference[0]


def body_of(source: str, beginnings: Iterable[Any]) -> str:
    """Return *source* without *beginnings*, strings that it may start with one after another (Plone's id and title)."""
    for beginning in beginnings:
        if isinstance(beginning, str) and beginning:
            beginning = " ".join(beginning.split())
            rest = source.removeprefix(beginning)
            if rest != source and not rest[:1].strip():
                source = rest.lstrip()
    return source
