"""How likely a person who typed one word meant another one.

Each edit has a weight: errors that people make often, such as a doubled or swapped letter, weigh less than other ones.  The
weights were chosen with one half of the misspellings of the package ``codespell``, and measured with the other
(``benchmarks/corrections.py``).
"""

from itertools import product
from math import log


#: Weights of edits: a letter is doubled or not, swapped with the next one, replaced by one that is pronounced alike, by
#: another vowel, by a neighbour on the keyboard, or by any other letter; a letter is too much, or missing.
DOUBLED, SWAPPED, ALIKE, VOWEL, NEIGHBOUR, REPLACED = 0.45, 0.55, 0.7, 0.65, 0.9, 1.2
ADDED, MISSING = 0.85, 0.5
#: Further weight of an edit of the first letter, which is seldom wrong.
FIRST = 0.5
#: How much a frequent word is preferred, and how much a word in few texts, which may itself be mistyped, is avoided.
FREQUENT, RARE = 0.1, 0.2

_VOWELS = frozenset("aeiouy")
_ALIKE = {frozenset(pair) for pair in "ck cs sz fv pb td gj qk uw mn gk".split()}  # noqa: SIM905
_KEYBOARDS = (("qwertyuiop", "asdfghjkl", "zxcvbnm"), ("qwertzuiop", "asdfghjkl", "yxcvbnm"))


def _neighbours(rows: tuple[str, ...]) -> set[frozenset[str]]:
    """Return the pairs of letters that touch each other on a keyboard with *rows* of letters."""
    places = {letter: (x + 0.4 * y, y) for y, row in enumerate(rows) for x, letter in enumerate(row)}
    return {
        frozenset((a, b))
        for (a, (x, y)), (b, (u, v)) in product(places.items(), repeat=2)
        if a != b and abs(x - u) <= 1.1 and abs(y - v) <= 1
    }


_NEIGHBOURS = frozenset().union(*map(_neighbours, _KEYBOARDS))


def unlikelihood(typed: str, word: str, documents: int) -> float:
    """Return a number that is smaller, the more likely *word*, which *documents* contain, was meant by *typed*."""
    return effort(typed, word) - FREQUENT * log(1 + documents) + RARE / max(documents, 1)


def effort(typed: str, word: str) -> float:
    """Return the least sum of the weights of edits that turn *word* into *typed*; 0 for the same word.

    The time is proportional to the product of the lengths.
    """
    before: list[float] = []
    row = _beginning(word)
    for i, letter in enumerate(typed, 1):
        earlier, before = before, row
        added = DOUBLED if letter in _around(typed, i) else ADDED
        row = [before[0] + added + FIRST * (i == 1)]
        for j, meant in enumerate(word, 1):
            first = FIRST * (i == 1 and j == 1)
            replaced = 0.0 if letter == meant else _replaced(letter, meant) + first
            least = min(before[j] + added + first, row[j - 1] + _missing(word, j) + first, before[j - 1] + replaced)
            if i > 1 and j > 1 and letter == word[j - 2] and typed[i - 2] == meant:
                least = min(least, earlier[j - 2] + SWAPPED + FIRST * (i == 2))
            row.append(least)
    return row[-1]


def _beginning(word: str) -> list[float]:
    """Return the weights of the beginnings of *word*, if nothing was typed."""
    row = [0.0]
    for j in range(1, len(word) + 1):
        row.append(row[-1] + _missing(word, j) + FIRST * (j == 1))
    return row


def _around(word: str, number: int) -> str:
    """Return the letters before and after the letter of *word* with the *number*, which counts from 1."""
    return word[max(number - 2, 0) : number - 1] + word[number : number + 1]


def _missing(word: str, number: int) -> float:
    """Return the weight of not typing the letter of *word* with the *number*."""
    return DOUBLED if word[number - 1] in _around(word, number) else MISSING


def _replaced(typed: str, meant: str) -> float:
    """Return the weight of typing one letter instead of another one."""
    pair = frozenset((typed, meant))
    if pair <= _VOWELS:
        return VOWEL
    return ALIKE if pair in _ALIKE else NEIGHBOUR if pair in _NEIGHBOURS else REPLACED
