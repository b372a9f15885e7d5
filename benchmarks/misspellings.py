"""Lists of words with typing errors: a public one (codespell), and German ones with the errors that people make."""

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from random import Random


#: Fewest letters of a mistyped German word, and fewest documents with the word.
SHORTEST, FREQUENT = 5, 20
_ROWS = ("qwertzuiopü", "asdfghjklöä", "yxcvbnm")
#: Spellings that people confuse: the first is written for the second, and the other way round.
_CONFUSED = (
    *(("ae", "a"), ("oe", "o"), ("ue", "u"), ("ss", "s"), ("ie", "i"), ("ei", "ie"), ("ai", "ei"), ("eu", "oi")),
    *(("f", "v"), ("ph", "f"), ("d", "t"), ("b", "p"), ("g", "k"), ("ck", "k"), ("tz", "z"), ("eh", "e"), ("ah", "a")),
)


@dataclass(frozen=True)
class Misspelling:
    """A word as it was *typed*, and the words that may be *meant*."""

    typed: str
    meant: tuple[str, ...]


def public_misspellings(vocabulary: Mapping[str, int], stored: Callable[[str], str | None]) -> list[Misspelling]:
    """Return the pairs of codespell whose right word is in *vocabulary*, and the wrong one not; in the list's order.

    *stored* returns the form of a word in the vocabulary; None if it is not a single word.
    """
    pairs = []
    for line in (files("codespell_lib") / "data" / "dictionary.txt").read_text("utf-8").splitlines():
        wrong, _, right = line.partition("->")
        typed = stored(wrong)
        meant = dict.fromkeys(filter(None, (stored(each.strip()) for each in right.split(",") if each.strip())))
        known = tuple(word for word in meant if word in vocabulary)
        if typed is not None and typed not in vocabulary and known:
            pairs.append(Misspelling(typed, known))
    return pairs


def german_misspellings(counts: Mapping[str, int], vocabulary: Mapping[str, int], seed: int) -> list[Misspelling]:
    """Return a mistyped form, which is not in *vocabulary*, of each frequent word of *counts*: word -> number of documents."""
    chance = Random(seed)
    words = sorted(w for w, n in counts.items() if n >= FREQUENT and len(w) >= SHORTEST and w.isalpha())
    pairs = []
    for word in words:
        typed = mistyped(word, chance)
        if typed != word and typed not in vocabulary:
            pairs.append(Misspelling(typed, (word,)))
    return pairs


def mistyped(word: str, chance: Random) -> str:
    """Return *word* with one error: a letter beside the right one, doubled, left out, swapped, or spoken alike."""
    at = chance.randrange(1, len(word))
    head, letter, rest = word[:at], word[at], word[at + 1 :]
    kind = chance.choice(("beside", "doubled", "missing", "swapped", "alike", "alike"))
    if kind == "alike":
        possible = [
            (a, b) for pair in _CONFUSED for a, b in (pair, pair[::-1]) if a in word[1:] and word.find(a, 1) >= 0
        ]
        if possible:
            a, b = chance.choice(possible)
            return word[0] + word[1:].replace(a, b, 1)
        kind = "missing"
    if kind == "swapped" and rest:
        return head + rest[0] + letter + rest[1:]
    if kind == "beside":
        return head + chance.choice(neighbours(letter)) + rest
    return head + letter * 2 + rest if kind == "doubled" else head + rest


def neighbours(letter: str) -> list[str]:
    """Return the letters beside *letter* on a German keyboard; itself if it is not there."""
    found = [
        row[at] for row in _ROWS for x in [row.find(letter)] if x >= 0 for at in (x - 1, x + 1) if 0 <= at < len(row)
    ]
    return found or [letter]
