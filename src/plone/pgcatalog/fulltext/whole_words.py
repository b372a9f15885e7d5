"""Words of a text as a reader sees them, where Plone's splitter cuts them or joins them with others.

They are stored in SearchableText besides the words of the splitter, so that nothing is found less: the deviation
``text-whole-words``.

- a word with soft hyphens, zero-width spaces or joiners inside, without these
- a word with signs: without them in Latin, Hebrew and Arabic, with them elsewhere, where they are vowels
- a word before a raised sign or number: ``Plone`` of ``Plone™``
- the parts of a word with underscores: ``2023`` of ``Jahresbericht_2023``
- a number with dashes: ``88-46-0``
"""

from collections.abc import Iterator
from collections.abc import Sequence
from plone.pgcatalog.fulltext.places import INVISIBLE
from plone.pgcatalog.fulltext.places import runs
from plone.pgcatalog.fulltext.places import written_words
from Products.CMFPlone.UnicodeSplitter.config import rx_all
from unicodedata import normalize

import re


#: Most characters of a whole word; a longer one is a text with zero-width spaces between its words.
LONGEST = 60
_RAISED = "™℠ªº¹²³⁰⁴⁵⁶⁷⁸⁹"
#: Combining signs that readers leave out when they type: of Latin, Greek and Cyrillic, Hebrew, and Arabic.
_POINTS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed"
)
#: Blocks of scripts whose vowels are signs, without Thai, of which the splitter makes bigrams.
_SYLLABLES = "\u0900-\u0dff\u0e80-\u109f\u1780-\u17d3"
_LEFT_OUT = re.compile(f"[{INVISIBLE}{_POINTS}]")
_RAISED_SIGN = re.compile(f"[{_RAISED}]")
#: A character that a word with other forms has, for a word or for its beginning.
_CUT = re.compile(f"[_{INVISIBLE}{_RAISED}{_POINTS}{_SYLLABLES}]")
#: A number with dashes, or a word and all characters beside it that are neither ASCII nor blank.
_TOKEN = re.compile(r"(?<![\w-])\d++(?:-\d++)++(?![\w-])|(?:\w|[^\x00-\x7f\s])++")
_DASHED = re.compile(r"-(?<=\d-)\d")


def whole_words(word: str) -> list[str]:
    """Return the other forms in which *word*, a written word or a number with dashes, is stored and looked up."""
    if "-" in word:
        return [word]
    word = normalize("NFC", word)
    if _CUT.search(word) is None or rx_all.search(word):
        return []
    forms = [_LEFT_OUT.sub("", word), _RAISED_SIGN.sub("", _LEFT_OUT.sub("", word))]
    forms = [normalize("NFKC", form) for form in dict.fromkeys(forms)]
    return [
        form
        for form in forms
        if form and len(form) <= LONGEST and [*written_words(form)] == [(0, len(form))] and [form] != runs(word)
    ]


def word_parts(word: str) -> list[str]:
    """Return the parts of *word* between underscores, [] without one inside."""
    parts = [part for part in word.split("_") if part]
    return [word for part in parts for word in runs(part)] if len(parts) > 1 else []


def other_words(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, word) of each word that is stored for *text* besides those of the splitter, not normalized."""
    if _CUT.search(text) is None and _DASHED.search(text) is None:
        return
    for token in _TOKEN.finditer(text):
        if token[0].isalnum() and token[0].isascii():
            continue
        if token[0][0].isdigit() and "-" in token[0]:
            yield (*token.span(), token[0])
        elif _CUT.search(token[0]):
            for start, end in written_words(token[0]):
                word = token[0][start:end]
                for other in (*whole_words(word), *word_parts(word)):
                    yield token.start() + start, token.start() + end, other


def dashed(words: Sequence[str]) -> str | None:
    """Return the number with dashes of which the splitter makes *words*; None if they are not several numbers."""
    return "-".join(words) if len(words) > 1 and all(map(str.isdigit, words)) else None
