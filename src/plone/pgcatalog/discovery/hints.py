"""Places in a text where searched words may be, found by regular expressions, so that few words of it are compared.

They hold for lexicons of Plone's splitter and normalizers, and find at least the words that become searched ones there.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from functools import cache
from plone.pgcatalog.fulltext.places import PART
from Products.CMFPlone.UnicodeSplitter.splitter import I18NNormalizer
from unicodedata import normalize

import re


#: Most letters of a word in a regular expression.
LETTERS = 8
_WILDCARD = re.compile(r"[*?]")
#: Blocks with accented letters, and with Cyrillic ones, which only change their case unless a word begins with a Latin one.
_LATIN = (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
_CYRILLIC = (*range(0x400, 0x483), *range(0x48A, 0x500))
#: Letters of Chinese, Japanese and Korean that become themselves; the splitter parts them from other scripts.
_UNCHANGED = "\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
#: Signs that part words.
_SIGNS = (
    "\xa0\xa1\xa7\xa9\xab\xac\xae\xb0\xb1\xb6\xb7\xbb\xbf\xd7\xf7\u2010-\u2016\u2018-\u2027\u2030\u2039\u203a"
    "\u2190-\u21ff\u2500-\u25ff\u3001-\u3003\u3008-\u3011\u3014-\u301b\u30fb\uff01-\uff0f\uff1a-\uff20"
)


class Hints:
    """The places of words that begin with one of *beginnings*, contain one of *parts*, or match one of *patterns*.

    These are in the form of a lexicon; *patterns* have ``*`` and ``?``.
    """

    def __init__(self, beginnings: Iterable[str], parts: Iterable[str], patterns: Iterable[str]) -> None:
        begun, inside = {*beginnings}, {*parts}
        for pattern in patterns:
            first, *others = _WILDCARD.split(pattern)
            if first:
                begun.add(first)
            else:
                inside.add(max(others, key=len))
        # A word with another first letter may follow a Latin one.
        inside |= {word for word in begun if not (word.isascii() and word[:1].isalnum())}
        self._is_anywhere = "" in inside
        self._expressions = [
            _expression({word[:LETTERS] for word in words}, before)
            for words, before in ((begun - inside, "(?<![0-9A-Za-z].)"), (inside, ""))
            if words and not self._is_anywhere
        ]

    def tokens(self, text: str) -> Iterator[re.Match[str]]:
        """Return the matches of PART in *text* that may have such words, in order."""
        return PART.finditer(text) if self._is_anywhere else self._tokens(text)

    def _tokens(self, text: str) -> Iterator[re.Match[str]]:
        expressions = self._expressions if text.isascii() else (*self._expressions, *_unusual())
        places = sorted(match.start() for each in expressions for match in each.finditer(text))
        end = 0
        for place in places:
            if place >= end:
                # A token has no blanks.
                start = max(end, text.rfind(" ", end, place) + 1)
                tokens = PART.finditer(text, start)
                token = next(tokens)
                while token.end() <= place:
                    token = next(tokens)
                yield token
                end = token.end()


def _expression(words: Collection[str], before: str) -> re.Pattern[str]:
    """Return the expression of the places of *words* where *before*, of two characters, matches.

    It begins with a class of letters, because Python's engine skips characters outside of that very fast.
    """
    # Where a longer word may be, the shorter one that it begins with may be, too.
    shortest = [word for word in sorted(words) if not any(word[:length] in words for length in range(1, len(word)))]
    classes = [[*map(_class, word)] for word in shortest]
    alternatives = (f"(?<=[{first}])" + "".join(f"[{each}]" for each in others) for first, *others in classes)
    return re.compile(f"[{''.join(first for first, *_ in classes)}]{before}(?:{'|'.join(alternatives)})", re.DOTALL)


def _class(letter: str) -> str:
    """Return the letters that may become *letter*, for a class of a regular expression."""
    return re.escape(letter + letter.upper() * letter.isascii() + _sources().get(letter, ""))


@cache
def _sources() -> dict[str, str]:
    """Return letter -> usual letters besides ASCII that may become it."""
    sources: dict[str, str] = {}
    for char in (*_latin(), *map(chr, _CYRILLIC)):
        for letter in {_in_latin_word(char), char.lower()}:
            sources[letter] = sources.get(letter, "") + char
    return sources


@cache
def _latin() -> list[str]:
    """Return the letters of _LATIN that become one letter."""
    return [
        char
        for char in map(chr, _LATIN)
        if char.isalpha() and normalize("NFKC", char) == char and len(char.lower()) == len(_in_latin_word(char)) == 1
    ]


def _in_latin_word(char: str) -> str:
    """Return the normal form of *char* in a word that begins with a Latin letter."""
    form: str = I18NNormalizer().process([f"a{char}"])[0]
    return form[1:]


@cache
def _unusual() -> tuple[re.Pattern[str], ...]:
    """Return expressions for other characters, and for Cyrillic letters behind Latin ones: their words may become others."""
    latin, cyrillic = "".join(_latin()), "".join(map(chr, _CYRILLIC))
    return (
        re.compile(f"[^\0-\x7f{latin}{cyrillic}{_UNCHANGED}{_SIGNS}]+"),
        re.compile(f"[{cyrillic}](?<=[0-9A-Za-z_{latin}].)"),
    )
