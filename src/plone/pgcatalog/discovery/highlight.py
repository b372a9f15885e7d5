"""Marked words and snippets of texts for a query, as safe HTML.

Words are compared in the form that the site's lexicon gives them, so the words that a search has found are the marked ones:
``cafe`` marks "Café", and ``数据`` is marked inside a sentence without spaces.
"""

from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from dataclasses import field
from functools import cached_property
from html import escape
from plone.pgcatalog.discovery.file_pages import word_patterns
from plone.pgcatalog.discovery.hints import Hints
from plone.pgcatalog.fulltext.lexicon import class_name
from plone.pgcatalog.fulltext.lexicon import MAX_LEXEME_BYTES
from plone.pgcatalog.fulltext.lexicon import term_words
from plone.pgcatalog.fulltext.lexicon import whole_forms
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.places import belongs_to_letter
from plone.pgcatalog.fulltext.places import PART
from plone.pgcatalog.fulltext.places import Piece
from plone.pgcatalog.fulltext.places import pieces
from plone.pgcatalog.fulltext.places import written_words
from plone.pgcatalog.fulltext.stemming import beginnings
from plone.pgcatalog.fulltext.stemming import is_plain
from plone.pgcatalog.fulltext.stemming import mark
from plone.pgcatalog.fulltext.stemming import Stemming
from plone.pgcatalog.fulltext.tsquery import parse
from plone.pgcatalog.fulltext.tsquery import pattern_of
from plone.pgcatalog.fulltext.tsquery import split_glob
from plone.pgcatalog.fulltext.tsquery import wanted_terms
from plone.pgcatalog.fulltext.tsquery import whole_forms_of
from plone.pgcatalog.fulltext.tsquery import words_with_forms
from plone.pgcatalog.fulltext.tuning import Words
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.query.criteria import text_queries
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.settings import SOURCE_INDEX
from typing import Any

import re


#: Approximate number of characters in a snippet, without marks and escapes.
LENGTH = 200
#: Most characters in front of the first marked word.
LEAD = 40
#: Most matches of a text that are used to find its best part.
MAX_MATCHES = 200

#: Most letters of a stem whose last letters are compared, too.
SHORTEST_STEM = 3

MARK, END_MARK, GAP = "<mark>", "</mark>", "…"

_BETWEEN_UNDERSCORES = re.compile(r"[^_]+")
#: Elements of a lexicon's pipeline that turn a token of ASCII letters and digits into the token in lower case.
_PLAIN_ELEMENTS = {
    ("Products.CMFPlone.UnicodeSplitter.splitter", "Splitter"),
    ("Products.CMFPlone.UnicodeSplitter.splitter", "CaseNormalizer"),
    ("Products.CMFPlone.UnicodeSplitter.splitter", "I18NNormalizer"),
}

#: (start, end, word) of a marked part of a text; the word is the lexicon's form.
MarkedSpan = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a text, as HTML: the number of different words that are marked, and the *place* of its best match."""

    html: str
    words: int
    place: int


@dataclass
class QueryTerms:
    """The terms of search texts: words, prefixes, patterns with wildcards inside, and words that match in other forms."""

    words: set[str] = field(default_factory=set)
    prefixes: set[str] = field(default_factory=set)
    patterns: set[str] = field(default_factory=set)
    stemmed: set[str] = field(default_factory=set)
    phrases: set[tuple[str, ...]] = field(default_factory=set)

    def add(self, lexicon: Any, text: str) -> None:
        """Add the terms of *text*, a search text, that are not excluded (NOT)."""
        tree = parse(lexicon, text)
        for node in wanted_terms(tree) if tree is not None else ():
            value = node.getValue()
            if node.nodeType() != "GLOB":
                words = term_words(lexicon, [value] if isinstance(value, str) else value)
                self.words.update(words)
                if len(words) > 1:
                    self.phrases.add(tuple(words))
            elif pattern := pattern_of(node):
                self.patterns.add(pattern)
            elif prefix := split_glob(value)[0]:
                (self.prefixes if value.endswith("*") else self.words).add(prefix)
            (self.prefixes if node.nodeType() == "GLOB" else self.words).update(whole_forms_of(lexicon, node))
            self.stemmed.update(words_with_forms(lexicon, node))

    def without(self, stop_words: Container[Words]) -> "QueryTerms":
        """Return the terms without *stop_words*; unchanged if no other terms are left."""
        words, prefixes, stemmed = (
            {word for word in each if (word,) not in stop_words} for each in (self.words, self.prefixes, self.stemmed)
        )
        return (
            QueryTerms(words, prefixes, self.patterns, stemmed, self.phrases)
            if words or prefixes or self.patterns
            else self
        )


class Highlighter:
    """Marks the words of search texts in other texts; false if there are no words.

    - *queries*: (lexicon, search text) pairs.
    - *stemming*: with it, other forms of the words are marked as well.
    - *alternatives*: synonyms of the words, which are marked as well.
    - *stop_words*: words that are marked only if the search texts have no others.
    """

    # Safe for untrusted code, such as a Script (Python): it returns nothing but the caller's own texts.
    __allow_access_to_unprotected_subobjects__ = True

    def __init__(
        self,
        queries: Iterable[tuple[Any, str]],
        stemming: Stemming | None = None,
        alternatives: Iterable[Words] = (),
        stop_words: Container[Words] = (),
    ) -> None:
        self._stemming = stemming
        self._lexicons: list[Any] = []
        terms = QueryTerms()
        for lexicon, text in queries:
            self._lexicons.append(lexicon)
            terms.add(lexicon, text)
        terms = terms.without(stop_words)
        for alternative in alternatives:
            terms.words.update(alternative)
            terms.stemmed.update(alternative if len(alternative) == 1 else ())
        self._words, self._prefixes = terms.words, terms.prefixes
        self._prefix_lengths = sorted(set(map(len, terms.prefixes)))
        self._patterns = [*map(glob_regex, terms.patterns)]
        self._globs, self._phrases = terms.patterns, terms.phrases
        words = filter(is_plain, terms.stemmed)
        self._stems = set() if stemming is None else {each for word in words for each in stemming.stems(word)}
        self._marked_stems = {mark(*each) for each in self._stems}
        # Few other words have one of these prefixes, so few need to be stemmed.
        self._beginnings = tuple({prefix for each in self._stems for prefix in beginnings(*each)})
        self._is_plain = all(class_name(e) in _PLAIN_ELEMENTS for lexicon in self._lexicons for e in lexicon._pipeline)
        #: compared token -> its marked parts
        self._matches_of: dict[str, list[MarkedSpan]] = {}

    def __bool__(self) -> bool:
        return bool(self._words or self._prefixes or self._patterns)

    def snippet(self, text: str, length: int = LENGTH) -> str:
        """Return the part of *text*, about *length* characters, with the most different words, as HTML with marks.

        If *text* has none of the words, it is the beginning.
        """
        return self.excerpt(text, length).html

    def excerpt(self, text: str, length: int = LENGTH) -> "Excerpt":
        """Return the part of *text* as in ``snippet``, with figures."""
        spans = self.spans(text)
        lead = min(LEAD, length // 4)
        first, last, _ = self._best(spans, length - lead)
        start = max(0, first - lead)
        start, end = _whole_words(text, start, start + length, (first, last))
        inside = [span for span in spans if start <= span[0] and span[1] <= end]
        html = GAP * (start > 0) + marked(text, start, end, inside) + GAP * (end < len(text))
        return Excerpt(html, len({word for *_, word in inside}), max(start, first))

    def patterns(self) -> list[str]:
        """Return PostgreSQL's regular expressions of the words; see ``word_patterns``."""
        has_parts = self._stemming is not None and self._stemming.find_splits is not None
        forms, inside = set(), set()
        for language, stem in self._stems:
            # Other forms of a word begin with its stem, but for a last e, i or y, and for prefixes.  Forms without its letters,
            # as the Indonesian memukul of pukul, are not found.
            form = stem.rstrip("eiy") if len(stem) > SHORTEST_STEM else stem
            forms.add(form)
            if has_parts or any(not stem.startswith(prefix) for prefix in beginnings(language, stem)):
                inside.add(f"*{form}*")
        return word_patterns(self._words, self._prefixes | forms, self._globs | inside, self._phrases)

    @property
    def has_phrases(self) -> bool:
        return bool(self._phrases)

    def of_whole_words(self) -> "Highlighter":
        """Return a copy that marks whole words only: prefixes count as words, and patterns are dropped."""
        found = copy(self)
        found._words = self._words | self._prefixes
        found._prefixes, found._prefix_lengths, found._patterns = set(), [], []
        found._matches_of = {}
        return found

    def mark(self, text: str) -> str:
        """Return all of *text* as HTML, with the words marked."""
        return marked(text, 0, len(text), self.spans(text))

    def has_match(self, text: str) -> bool:
        """Return whether *text* contains one of the words."""
        return bool(self.spans(text))

    def spans(self, text: str) -> list[MarkedSpan]:
        """Return the first matches in *text*, about MAX_MATCHES at most, in order and without overlap."""
        spans: list[MarkedSpan] = []
        for match in PART.finditer(text) if self._hints is None else self._hints.tokens(text):
            token = match[0]
            # Each distinct token is compared once; texts repeat most of them.
            matches = self._matches_of.get(token)
            if matches is None:
                matches = self._matches_of[token] = self._matches(token)
            spans += [(match.start() + start, match.start() + end, word) for start, end, word in matches]
            if len(spans) >= MAX_MATCHES:
                break
        return spans

    @cached_property
    def _hints(self) -> Hints | None:
        """The places of the words; None for a lexicon with other elements than Plone's."""
        if not self._is_plain:
            return None
        has_parts = self._stemming is not None and self._stemming.find_splits is not None
        return Hints(
            (*self._words, *self._prefixes, *self._beginnings), self._beginnings if has_parts else (), self._globs
        )

    def _matches(self, token: str) -> list[MarkedSpan]:
        """Return the parts of *token*, a match of PART, that are to be marked."""
        if token.isascii():
            return self._matches_of_word(token)
        return [
            (first + start, first + end, word)
            for first, last in written_words(token)
            for start, end, word in self._matches_of_word(token[first:last])
        ]

    def _matches_of_word(self, token: str) -> list[MarkedSpan]:
        """Return the parts of *token*, a written word, that are to be marked."""
        for whole in self._whole_words_of(token):
            if self._is_wanted(whole):
                return [(0, len(token), whole)]
        normal = self._words_of(token)
        wanted = [word for word in normal if self._is_wanted(word)]
        if not wanted and "_" in token:
            return self._between_underscores(token)
        if len(normal) == 1:
            return [(0, len(token), word) for word in wanted]
        return self._inside(token) if wanted else []

    def _words_of(self, token: str) -> list[str]:
        if self._is_plain and token.isascii():
            return [token.lower()]
        return list(dict.fromkeys(word for lexicon in self._lexicons for word in words(lexicon, [token])))

    def _whole_words_of(self, token: str) -> list[str]:
        return [] if token.isascii() else [form for lexicon in self._lexicons for form in whole_forms(lexicon, token)]

    def _between_underscores(self, token: str) -> list[MarkedSpan]:
        return [
            (*part.span(), word)
            for part in _BETWEEN_UNDERSCORES.finditer(token)
            for word in self._words_of(part[0])[:1]
            if self._is_wanted(word)
        ]

    def _inside(self, token: str) -> list[MarkedSpan]:
        """Return the spans of the wanted words in *token*, of which the lexicon makes several; adjacent ones are joined."""
        joined: list[MarkedSpan] = []
        for start, end, word in sorted(span for piece in pieces(token) for span in self._inside_piece(piece)):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(joined[-1][1], end), joined[-1][2])
            else:
                joined.append((start, end, word))
        return joined

    def _inside_piece(self, piece: Piece) -> list[MarkedSpan]:
        """Return the spans of the wanted words in *piece*, of the whole piece if they are spelled in another way."""
        normal = self._words_of(piece.form)
        wanted = [word for word in normal if self._is_wanted(word)]
        if len(normal) > 1:
            places = [(*m.span(), word) for word in wanted for m in re.finditer(re.escape(word), piece.form)]
        else:
            places = []
        places = places or [(0, len(piece.form), word) for word in wanted]
        return [(*piece.place(start, end), word) for start, end, word in places]

    def _is_wanted(self, word: str) -> bool:
        if word in self._words or any(word[:length] in self._prefixes for length in self._prefix_lengths):
            return True
        if any(pattern.fullmatch(word, 0, MAX_LEXEME_BYTES) for pattern in self._patterns):
            return True
        if self._stemming is None:
            return False
        if word.startswith(self._beginnings) and not self._marked_stems.isdisjoint(self._stemming.marks(word)):
            return True
        if self._stemming.find_splits is None or not any(beginning in word for beginning in self._beginnings):
            return False
        return not self._marked_stems.isdisjoint(self._stemming.part_marks(word))

    def _best(self, spans: Sequence[MarkedSpan], length: int) -> MarkedSpan:
        """Return the match that starts the *length* characters with the most different words; (0, 0, "") without one."""
        best, most = (0, 0, ""), 0
        all_words = len({word for *_, word in spans})
        for i, span in enumerate(spans):
            if most == all_words:
                break
            different = len({word for _, end, word in spans[i : i + 30] if end <= span[0] + length})
            if different > most:
                best, most = span, different
        return best


def glob_regex(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of *pattern*, a word with ``*`` and ``?``, for ``fullmatch``.

    Its time is bounded by the length of the word times that of the pattern: a part between two ``*`` is an atomic group
    that matches at the first possible place, since a later place could not match more.
    """
    first, *parts = ["".join("." if char == "?" else re.escape(char) for char in part) for part in pattern.split("*")]
    if not parts:
        return re.compile(first, re.DOTALL)
    *middle, last = parts
    return re.compile(first + "".join(f"(?>.*?{part})" for part in middle if part) + ".*" + last, re.DOTALL)


def _whole_words(text: str, start: int, end: int, match: tuple[int, int]) -> tuple[int, int]:
    """Return *start* and *end* moved to nearby ends of words, without cutting into the span in the last argument.

    Neither of them parts a letter from its signs.
    """
    end = min(end, len(text))
    if start:
        space = text.find(" ", start, match[0])
        start = start if space < 0 else space + 1
        while start < match[0] and belongs_to_letter(text[start]):
            start += 1
    if end < len(text):
        space = text.rfind(" ", max(match[1], end - LEAD), end + 1)
        end = end if space < 0 else space
        while end > match[1] and belongs_to_letter(text[end]):
            end -= 1
    return start, end


def marked(text: str, start: int, end: int, spans: Iterable[MarkedSpan]) -> str:
    """Return *text* from *start* to *end* as HTML, escaped, with *spans* marked."""
    parts = []
    for first, last, _ in spans:
        parts += [escape(text[start:first]), MARK, escape(text[first:last]), END_MARK]
        start = last
    return "".join([*parts, escape(text[start:end])])


def highlighter(results: CatalogSearchResults) -> Highlighter:
    """Return the Highlighter for the search of *results*; false if it searches for no words."""
    context = results.context
    lexicons = {
        name: t.index.getLexicon()
        for name, t in context.indexes.items()
        if t.has_ranking and hasattr(t.index, "getLexicon")
    }
    texts = text_queries(results.criteria, lexicons)
    queries = ((lexicons[name], text) for name, text in texts)
    stemmings = (getattr(context.indexes[name], "stemming", None) for name, _ in texts)
    main = [(lexicons[name], text) for name, text in texts if name == SOURCE_INDEX]
    alternatives = [words for lexicon, text in main for words in _alternatives(context, lexicon, text)]
    tuning = context.tuning
    stop_words = {w for lexicon, _ in main if tuning is not None for w in tuning.stop_words(lexicon, results.criteria)}
    return Highlighter(queries, next(filter(None, stemmings), None), alternatives, stop_words)


def _alternatives(context: SearchContext, lexicon: Any, text: str) -> list[Words]:
    """Return the expansions of *text* in *context*: words that contain its words, and synonyms."""
    containing = [(word,) for words in context.word_parts.values() for word in words]
    return [*containing, *(context.tuning.synonyms(lexicon, text) if context.tuning is not None else ())]
