"""The words of a text, and their places in the text as it is written.

Plone's splitter reads the NFKC form of a text, and takes each run of letters and digits for a word.  In that form a letter
may have another length (``ﬁ``, a half-width kana with its sound mark, a decomposed ``ö``), and most signs of Hindi, Thai,
Hebrew and Arabic are no letters.  The lexicon needs the words only (``runs``); marks, suggestions and corrections need their
places, which begin with a letter and end behind the signs that belong to the last one.
"""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from Products.CMFPlone.UnicodeSplitter.config import pattern
from unicodedata import category
from unicodedata import normalize

import re


_RUN = re.compile(r"\w+")
#: Characters of ASCII words, and all others that are not ASCII: a part of a text that NFKC treats like the whole text.
PART = re.compile(r"(?:\w|[^\x00-\x7f])++")
#: Characters without width, which a reader does not see inside a word: soft hyphen, zero-width space, joiners, byte order mark.
INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word in one kind of script: its NFKC form, and for each character of it the place of its letter."""

    form: str
    starts: Sequence[int]
    ends: Sequence[int]

    def place(self, first: int, last: int) -> tuple[int, int]:
        """Return (start, end) in the word of the characters from *first* to *last* of the form."""
        return self.starts[first], self.ends[last - 1]


def runs(text: str) -> list[str]:
    """Return the runs of letters and digits in the NFKC form of *text*: the words of Plone's splitter before bigrams."""
    return _RUN.findall(normalize("NFKC", text))


def belongs_to_letter(char: str) -> bool:
    """Return whether *char* belongs to the letter before it.

    Such are combining signs, vowels and final consonants of a decomposed Hangul syllable, and characters without width.
    """
    return not char.isascii() and (
        _is_sign(char) or "\u1160" <= normalize("NFKD", char)[0] <= "\u11ff" or char in INVISIBLE
    )


def _is_sign(char: str) -> bool:
    return category(normalize("NFKD", char)[0])[0] == "M"


def written_words(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each word of *text* as a reader sees it: letters and digits with the signs that belong to them.

    The lexicon may make several words of it: of ``हिन्दी``, and of a sentence without spaces.
    """
    for part in PART.finditer(text):
        if part[0].isascii() or (part[0].isalnum() and normalize("NFKC", part[0]) == part[0]):
            yield part.span()
            continue
        for has_word, group in groupby(_letters(part[0]), lambda letter: _RUN.search(letter[2]) is not None):
            if has_word:
                letters = list(group)
                yield part.start() + letters[0][0], part.start() + letters[-1][1]


def last_word(text: str) -> str:
    """Return the written word at the end of *text*; "" if it ends with another character."""
    start, end = next(iter(reversed([*written_words(text)])), (0, 0))
    return text[start:] if end == len(text) else ""


def pieces(word: str) -> list[Piece]:
    """Return the pieces of *word*, a written word, that Plone's splitter treats by themselves.

    It makes one word of a piece, or bigrams of one in Chinese, Japanese, Korean or Thai.
    """
    forms: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end, form in _letters(word):
        forms.append(form)
        starts += [start] * len(form)
        ends += [end] * len(form)
    whole = "".join(forms)
    places = (
        (run.start() + piece.start(), run.start() + piece.end())
        for run in _RUN.finditer(whole)
        for piece in pattern.finditer(run[0])
    )
    return [Piece(whole[first:last], starts[first:last], ends[first:last]) for first, last in places]


def _letters(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, NFKC form) of each character of *text* with the ones that belong to it.

    The forms joined are the NFKC form of *text*: no character composes with one of the next letter.
    """
    start = 0
    for place in range(1, len(text) + 1):
        # A text may begin with signs, behind which a vowel of Hangul is a letter of its own.
        if place == len(text) or not (_is_sign if _is_sign(text[start]) else belongs_to_letter)(text[place]):
            yield start, place, normalize("NFKC", text[start:place])
            start = place
