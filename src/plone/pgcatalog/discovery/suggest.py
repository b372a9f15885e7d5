"""Suggestions from the site's own words: what a word that is being typed may become, and what a mistyped one may mean."""

from collections.abc import Callable
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
from plone.pgcatalog.protocols import CatalogTool
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


def suggest(tool: CatalogTool, text: str, limit: int = LIMIT, query: Mapping[str, Any] | None = None) -> list[str]:
    """Return up to *limit* words that begin with the last word of *text*, the most frequent first.

    They stand in what ``searchResults(**query)`` of the catalog *tool* finds, together with the other words of *text*.
    When there are few, those come behind that begin so but for one letter.  One statement, or two.
    """
    return suggest_later(tool, text, limit, query)()


def suggest_later(
    tool: CatalogTool, text: str, limit: int = LIMIT, query: Mapping[str, Any] | None = None
) -> Callable[[], list[str]]:
    """Return what will return ``suggest``; words that begin so are looked up in the next message, or then."""
    runs = _RUN.findall(storable_text(text)[-MAX_TEXT:])
    lexicon = lexicon_of(tool)
    prefix = _single(lexicon, runs[-1]) if runs else None
    if prefix is None or limit < 1:
        return list
    others = [as_word(run) for run in runs[:-1][-MAX_WORDS:] if words(lexicon, [run])]
    vocabulary = Vocabulary(tool, {**(query or {}), **({SOURCE_INDEX: " ".join(others)} if others else {})})
    beginning = vocabulary.beginning_with(prefix, limit)

    def suggested() -> list[str]:
        found = beginning()
        if len(found) < min(FEW_SUGGESTIONS, limit) and len(prefix) > EXACT_PREFIX + 1:
            near = vocabulary.nearly_beginning_with(prefix, limit)()
            found += [word for word in near if word not in found][: limit - len(found)]
        return found

    return suggested


def _single(lexicon: Any, run: str) -> str | None:
    """Return the one word that *lexicon* makes of *run*; None when it is no word, a long one, or several (Chinese, say)."""
    found = words(lexicon, [run])
    return found[0] if len(found) == 1 and len(found[0]) <= MAX_LENGTH else None


def did_you_mean(tool: CatalogTool, text: str, query: Mapping[str, Any] | None = None) -> str | None:
    """Return *text* with words of the site in place of unknown ones, None when nothing better is known.

    The words stand in what ``searchResults(**query)`` of the catalog *tool* finds, and the whole text finds some of it.
    Two statements, one when nothing is corrected.
    """
    corrected = correction(tool, text, query)
    if corrected is None or not finds_something(tool, {**(query or {}), SOURCE_INDEX: corrected}):
        return None
    return corrected


def correction(tool: CatalogTool, text: str, query: Mapping[str, Any] | None = None) -> str | None:
    """Return *text* as ``did_you_mean`` does, but maybe one that finds nothing: its words may stand in different pages.

    One statement.
    """
    return correction_later(tool, text, query)()


def correction_later(tool: CatalogTool, text: str, query: Mapping[str, Any] | None = None) -> Callable[[], str | None]:
    """Return what will return ``correction``; the words are looked up in the next message, or then."""
    text = storable_text(text)
    asked = _plain_words(lexicon_of(tool), text)
    words = sorted({word for _, word in asked})
    there = Vocabulary(tool, query or {}).near(words, max(map(allowed_edits, words))) if words else dict

    def made() -> str | None:
        better = _corrections(there(), words)
        corrected = text
        for token, word in reversed(asked):
            if word in better:
                corrected = corrected[: token.start()] + _as_typed(better[word], token[0]) + corrected[token.end() :]
        return None if corrected == text else corrected

    return made


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
