"""Words with signs, such as ``C++``, ``.NET``, ``--help``, ``3.13`` and ``§ 823``: the deviation ``text-signs``.

Plone's splitter drops the signs.  SearchableText stores each such word, once and without positions, besides the words of the
splitter.  It finds nothing: of the pages that a search finds, those with the very words come first.

A search text has them as they are typed, or as ``typed`` changes them: ``\\-l`` for ``-l``, ``C*++`` for ``C++``.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from plone.pgcatalog.fulltext.whole_words import LONGEST
from Products.CMFPlone.UnicodeSplitter.config import rx_all

import re


#: Place beside a word -> the signs that belong to it there.  A minus joins ordinary words, so it counts only in front.
SIGNS = {"in front": "-.#@/§", "inside": "+.#@/&", "behind": "+#"}
#: Signs that may stand twice; a blank may follow ``§`` only.
_TWICE = "-+§"
#: Most different words with signs of a text, and of a query.
MOST_STORED, MOST_SEARCHED = 1000, 5

#: A letter or digit of a script with spaces.
_CHARACTER = rf"[^\W{rx_all.pattern[1:-1]}]"


def _signs(place: str) -> str:
    """Return the pattern of the signs at *place*."""
    once = "".join(sign for sign in SIGNS[place] if sign not in _TWICE)
    twice = [f"{re.escape(sign)}{{1,2}}+" for sign in SIGNS[place] if sign in _TWICE]
    return "|".join([f"[{re.escape(once)}]", *twice])


_WORD = re.compile(
    rf"(?:(?<![\w{re.escape(''.join(SIGNS.values()))}])(?P<front>{_signs('in front')})(?:(?<=§)\s)?+)?+"
    rf"(?<!{_CHARACTER})(?P<word>{_CHARACTER}++(?:[{re.escape(SIGNS['inside'])}]{{1,2}}+{_CHARACTER}++)*+)"
    rf"(?P<behind>{_signs('behind')})?+"
)
_ANY = re.compile(f"[{re.escape(''.join(SIGNS.values()))}]")


def signed_words(texts: Iterable[str], most: int) -> list[str]:
    """Return the first *most* different words with signs of *texts*, without blanks inside."""
    found: dict[str, None] = {}
    for word in (word for text in texts for word in _words(text)):
        found[word] = None
        if len(found) == most:
            break
    return list(found)


def _words(text: str) -> Iterator[str]:
    if _ANY.search(text) is None:
        return
    for match in _WORD.finditer(text):
        front, word, behind = match["front"] or "", match["word"], match["behind"] or ""
        if (front or behind or not word.isalnum()) and len(match[0]) <= LONGEST and _ANY.search(match[0]):
            yield f"{front}{word}{behind}"
