"""Spellings of the lexicon's words, which have neither capitals nor accents: ``Straße`` for ``strasse``.

A spelling is read from texts that the user may see.  Capitals count behind a word in small letters only.
"""

from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
from functools import cache
from plone.i18n.normalizer.base import baseNormalize
from plone.pgcatalog.fulltext.lexicon import whole_forms
from plone.pgcatalog.fulltext.lexicon import words
from plone.pgcatalog.sql.files import read_statement
from string import ascii_lowercase
from typing import Any
from unicodedata import normalize

import re


#: Most letters of a word that is completed or corrected.
MAX_LENGTH = 40
#: Suggested words with their spellings.  Most words that are spelled as in texts, most pages that are read for each of them,
#: most characters of a page, and most spellings in it.
SPELLED = read_statement("discovery", "words_spelled")
SPELLED_WORDS, SPELLED_PAGES, SPELLED_LENGTH, SPELLED_FORMS = 20, 2, 10_000, 10

#: A word between spaces at the end of a text.
_BEFORE = re.compile(r"\s(\w++)\s++$")


def single_word(lexicon: Any, run: str) -> str | None:
    """Return the word that *lexicon* makes of *run*; None unless it is a single word of at most MAX_LENGTH letters.

    A word that the lexicon cuts is its whole word, if there is one.
    """
    parts = words(lexicon, [run])
    parts = parts if len(parts) == 1 else whole_forms(lexicon, run)[:1]
    return parts[0] if len(parts) == 1 and len(parts[0]) <= MAX_LENGTH else None


def spellings_in(lexicon: Any, words: Collection[str], texts: Iterable[str]) -> dict[str, str]:
    """Return word -> its most frequent spelling in *texts*, for *words* of *lexicon* that are in *texts*.

    A spelling counts in small letters, or behind a word in small letters and a space before that: neither at the beginning of a
    sentence, nor in a title whose words have capitals, nor behind the page's id.  A word without any is in small letters.
    """
    small: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    known: dict[str, str | None] = {}
    any_word = re.compile(rf"(?<!\w)(?:{'|'.join(map(word_pattern, words))})(?!\w)", re.IGNORECASE)
    for text in (normalize("NFKC", text) for text in texts if words):
        for match in any_word.finditer(text):
            run = match[0]
            word = known[run] if run in known else known.setdefault(run, single_word(lexicon, run))
            if word is not None and word in words:
                small.setdefault(word, run.lower())
                before = _BEFORE.search(text[max(match.start() - MAX_LENGTH, 0) : match.start()])
                if run.islower() or (before is not None and before[1][0].islower()):
                    found.setdefault(word, []).append(run)
    return small | {word: _most_frequent(runs) for word, runs in found.items()}


def _most_frequent(spellings: Sequence[str]) -> str:
    """Return the most frequent one of *spellings*; of equally frequent ones that in small letters, if there is one."""
    numbers = Counter(spellings)
    return min(numbers, key=lambda spelling: (-numbers[spelling], spelling != spelling.lower(), spelling))


def spelling(lexicon: Any, word: str, spellings: Iterable[str]) -> str:
    """Return the most frequent one of *spellings* of *word* of *lexicon*; *word* itself if there is none."""
    runs = [normalize("NFKC", each) for each in spellings]
    right = [run for run in runs if single_word(lexicon, run) == word]
    return _most_frequent(right) if right else word


def word_pattern(word: str) -> str:
    """Return a regular expression of the spellings of *word* of a lexicon, in capitals or not."""
    classes, pairs = _spellings()
    pattern, place = "", 0
    while place < len(word):
        pair, letter = word[place : place + 2], word[place]
        both = "".join(classes.get(each, re.escape(each)) for each in pair)
        pattern += f"(?:[{pairs[pair]}]|{both})" if pair in pairs else classes.get(letter, re.escape(letter))
        place += 2 if pair in pairs else 1
    return pattern


@cache
def letter_classes() -> tuple[list[str], list[str]]:
    """Return letters of words in a lexicon, and for each the class, in a regular expression, of the letters it is made of.

    ``ß`` stands for a double ``s`` as well.
    """
    classes, pairs = _spellings()
    double = f"(?:[{pairs['ss']}]|{classes['s']}{classes['s']})"
    return [*classes, "ß"], [*classes.values(), double]


@cache
def _spellings() -> tuple[dict[str, str], dict[str, str]]:
    """Return letter -> the class of the letters it is made of, and two letters -> letters of which both are made."""
    letters = {letter: letter + letter.upper() for letter in ascii_lowercase}
    pairs = {"ss": "ẞ"}
    for char in map(chr, range(0xC0, 0x250)):
        base = baseNormalize(char).lower()
        if char.isalpha() and base.isalpha():
            kind = letters if base in letters else pairs
            if len(base) <= 2:
                kind[base] = kind.get(base, "") + char
    return {letter: f"[{each}]" for letter, each in letters.items()}, pairs


def as_typed(word: str, token: str) -> str:
    """Return *word* with the capitals of *token*, which it replaces: all letters, the first one, or none."""
    if len(token) > 1 and token.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if token[0].isupper() else word
