"""Suggestions from the site's own words: what a word that is being typed may become, and what a mistyped one may mean."""

from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.discovery.vocabulary import finds_something
from plone.pgcatalog.discovery.vocabulary import lexicon_of
from plone.pgcatalog.discovery.vocabulary import Vocabulary
from plone.pgcatalog.fulltext.edits import allowed_edits
from plone.pgcatalog.fulltext.edits import distance
from plone.pgcatalog.fulltext.edits import EXACT_PREFIX
from plone.pgcatalog.fulltext.lexicon import storable_text
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.fulltext.tsquery import as_word
from plone.pgcatalog.fulltext.tsquery import KEYWORDS
from plone.pgcatalog.settings import SOURCE_INDEX
from typing import Any

import re


LIMIT = 10
#: Characters of a text that are looked at, and words of it; longer words are taken as they are.
MAX_TEXT, MAX_WORDS, MAX_LENGTH = 1000, 10, 40
#: With fewer suggestions than these the word that is being typed may have a typo.
FEW_SUGGESTIONS = 3

_RUN = re.compile(r"\w+")
#: A word with what may make it more than a plain one: a sign of exclusion, wildcards.
_TOKEN = re.compile(r"-?[\w*?]+")


def suggest(tool: Any, text: str, limit: int = LIMIT, query: Mapping[str, Any] | None = None) -> list[str]:
    """Return up to *limit* words that begin with the last word of *text*, the most frequent first.

    They stand in what ``searchResults(**query)`` of the catalog *tool* finds, together with the other words of *text*.
    When there are few, those come behind that begin so but for one letter.  One statement, or two.
    """
    return Completions(tool, text, limit, query).words()


class Completions:
    """What ``suggest`` returns; in an open batch, words that begin so come in the message of that."""

    def __init__(self, tool: Any, text: str, limit: int = LIMIT, query: Mapping[str, Any] | None = None) -> None:
        runs = _RUN.findall(storable_text(text)[-MAX_TEXT:])
        lexicon = lexicon_of(tool)
        self._limit = limit
        self._prefix = _single(lexicon, runs[-1]) if runs and limit > 0 else None
        if self._prefix is not None:
            others = [as_word(run) for run in runs[:-1][-MAX_WORDS:] if words(lexicon, [run])]
            query = {**(query or {}), **({SOURCE_INDEX: " ".join(others)} if others else {})}
            self._vocabulary = Vocabulary(tool, query)
            self._beginning = self._vocabulary.beginning_with(self._prefix, limit)

    def words(self) -> list[str]:
        """Return the words.  Raises as ``CatalogView.ask``."""
        if self._prefix is None:
            return []
        found = self._beginning()
        if len(found) < min(FEW_SUGGESTIONS, self._limit) and len(self._prefix) > EXACT_PREFIX + 1:
            near = self._vocabulary.nearly_beginning_with(self._prefix, self._limit)()
            found += [word for word in near if word not in found][: self._limit - len(found)]
        return found


def _single(lexicon: Any, run: str) -> str | None:
    """Return the one word that *lexicon* makes of *run*; None when it is no word, a long one, or several (Chinese, say)."""
    found = words(lexicon, [run])
    return found[0] if len(found) == 1 and len(found[0]) <= MAX_LENGTH else None


def did_you_mean(tool: Any, text: str, query: Mapping[str, Any] | None = None) -> str | None:
    """Return *text* with words of the site in place of unknown ones, None when nothing better is known.

    The words stand in what ``searchResults(**query)`` of the catalog *tool* finds, and the whole text finds some of it.
    Two statements, one when nothing is corrected.
    """
    corrected = correction(tool, text, query)
    if corrected is None or not finds_something(tool, {**(query or {}), SOURCE_INDEX: corrected}):
        return None
    return corrected


def correction(tool: Any, text: str, query: Mapping[str, Any] | None = None) -> str | None:
    """Return *text* as ``did_you_mean`` does, but maybe one that finds nothing: its words may stand in different pages.

    One statement.
    """
    return Correction(tool, text, query).text()


class Correction:
    """What ``correction`` returns; in an open batch the words are looked up in the message of that."""

    def __init__(self, tool: Any, text: str, query: Mapping[str, Any] | None = None) -> None:
        self._text = storable_text(text)
        self._tokens = _plain_words(lexicon_of(tool), self._text)
        self._words = sorted({word for _, word in self._tokens})
        edits = max(map(allowed_edits, self._words), default=0)
        self._near = Vocabulary(tool, query or {}).near(self._words, edits) if self._words else dict

    def text(self) -> str | None:
        """Return the corrected text, None if nothing better is known.  Raises as ``CatalogView.ask``."""
        better = _corrections(self._near(), self._words)
        corrected = self._text
        for token, word in reversed(self._tokens):
            if word in better:
                corrected = corrected[: token.start()] + _as_typed(better[word], token[0]) + corrected[token.end() :]
        return None if corrected == self._text else corrected


def _plain_words(lexicon: Any, text: str) -> list[tuple[re.Match[str], str]]:
    """Return where in *text* its first words stand that are searched for as they are, and what *lexicon* makes of them."""
    found = []
    for token in _TOKEN.finditer(text, 0, MAX_TEXT):
        if token[0].upper() not in KEYWORDS and _RUN.fullmatch(token[0]):
            word = _single(lexicon, token[0])
            if word is not None and allowed_edits(word):
                found.append((token, word))
    return found[:MAX_WORDS]


def _corrections(there: Mapping[str, int], words: Sequence[str]) -> dict[str, str]:
    """Return the best of the words that are *there* (``Vocabulary.near``) for each of *words* that is not."""
    best = {}
    for word in set(words).difference(there):
        near = [
            (edits, word[0] != other[0], -documents, other)
            for other, documents in there.items()
            if other.upper() not in KEYWORDS and (edits := distance(word, other, allowed_edits(word))) is not None
        ]
        if near:
            best[word] = min(near)[-1]
    return best


def _as_typed(word: str, token: str) -> str:
    """Return *word* with capitals where *token*, in whose place it comes, has them."""
    if len(token) > 1 and token.isupper():
        return word.upper()
    return word.capitalize() if token[0].isupper() else word
