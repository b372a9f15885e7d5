"""Stems of words: ``runs`` and ``running`` both have the stem ``run``, so that a search for one finds the other.

The stemmers are Snowball's, in C (PyStemmer), so they need no round trip and are the same on every server.  A tsvector
stores all words of a text unchanged.  A word that differs from its stem has the stem at the same position, marked with the
language so that it equals no word, as in ``\\2en:run``.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from functools import cache
from functools import lru_cache
from itertools import product
from plone.pgcatalog.fulltext.lexicon import STEM
from typing import Any
from unicodedata import normalize

import snowballstemmer
import threading


_STEMMERS = """
ar:arabic ca:catalan cs:czech da:danish de:german el:greek en:english eo:esperanto es:spanish
et:estonian eu:basque fa:persian fi:finnish fr:french ga:irish hi:hindi hu:hungarian hy:armenian
id:indonesian it:italian lt:lithuanian nb:norwegian ne:nepali nl:dutch nn:norwegian no:norwegian
pl:polish pt:portuguese ro:romanian ru:russian sr:serbian sv:swedish ta:tamil tr:turkish yi:yiddish
"""
#: Languages that have a stemmer: ISO 639-1 code -> Snowball's name.
STEMMERS = dict(entry.split(":") for entry in _STEMMERS.split())
#: Scripts of which a lexicon does not remove the signs of letters.
_GREEK_TO_ARABIC = range(0x370, 0x700)
#: First letters in Latin script, each with those of the same words in Cyrillic script.
_SERBIAN_LETTERS = "aа bб cц čч ćћ dдџ đђd eе fф gг hх iи jј kк lлљ mм nнњ oо pп rр sс šш tт uу vв zз žж"
_SERBIAN = {letters[0]: letters[1:] for letters in _SERBIAN_LETTERS.split()}
#: Function from a word to the stems of its parts; () for a word that is no compound.
Split = Callable[[str], tuple[str, ...]]
#: Size of the cache of stems.
REMEMBERED = 100_000
#: Fewest and most letters of a word that has a stem.
SHORTEST = 3
LONGEST = 60


class _Stemmers(threading.local):
    """The stemmers of a thread; not shared, since a stemmer stores the word that it is working on."""

    def __init__(self) -> None:
        self.stemmers: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        if name not in self.stemmers:
            self.stemmers[name] = snowballstemmer.stemmer(name)
            # The cache of ``stem`` serves all threads.
            self.stemmers[name].maxCacheSize = 0
        return self.stemmers[name]


_stemmers = _Stemmers()


def has_stemmer(language: str) -> bool:
    """True if the installed Snowball has a stemmer for *language*, a code such as ``de``."""
    return STEMMERS.get(language) in snowballstemmer.algorithms()


def is_plain(word: str) -> bool:
    """True for a word of SHORTEST to LONGEST letters only; other words have no stems."""
    return SHORTEST <= len(word) <= LONGEST and word.isalpha()


@lru_cache(maxsize=REMEMBERED)
def stem(language: str, word: str) -> str:
    """Return the stem of *word*, a normalized word of a lexicon; the word itself if it is not plain (``is_plain``)."""
    if not is_plain(word):
        return word
    return _stemmers.get(STEMMERS[language]).stemWord(word) or word


def beginnings(language: str, stem: str) -> set[str]:
    """Return the prefixes of words of *language* with *stem*, in the form of a lexicon.

    They are from Snowball's definitions of stemmers, and from trials with Plone's texts and 98,877 other words.
    """
    first = stem[:1]
    usual = {"".join(each) for each in product(*map(_with_signs, stem[: min(2, len(stem) // 2)]))}
    match language:
        case "ar":  # kitab, al-kitab, wa-bi-l-kitab
            return {*_with_signs(first), *"اأإآلبوفكسيتنـ"}
        case "de" if first in tuple("aou"):  # Übung, Uebung
            return {*usual, first + "e"}
        case "eo":  # ĉevalo, cxevalo
            return _with_signs(first)
        case "fa":  # khabar, akhbar
            return {*usual, "ا"}
        case "ga":  # bád, bhád, mbád
            return {first, "bhf", *(letter + first for letter in "bdghmnt")}
        case "id":  # baca, membaca, dibaca
            return {*usual, "be", "di", "ke", "me", "pe", "te"}
        case "nl":  # pak, gepakt
            return {*usual, "ge"}
        case "sr":  # knjiga, књига
            return {first, *_SERBIAN.get(first, "")}
    return usual


def _with_signs(letter: str) -> set[str]:
    """Return the letters that differ from *letter* by signs only, as ά from α; a lexicon has removed those of Latin ones."""
    base = normalize("NFD", letter)[0]
    return {base, *_signed().get(base, "")}


@cache
def _signed() -> dict[str, str]:
    """Return letter -> the letters that consist of it and signs."""
    letters: dict[str, str] = {}
    for char in map(chr, _GREEK_TO_ARABIC):
        base = normalize("NFD", char)[0]
        letters[base] = letters.get(base, "") + char
    return letters


def mark(language: str, stem: str) -> str:
    """Return the lexeme that stands for *stem* of *language* in a tsvector."""
    return f"{STEM}{language}:{stem}"


def code(language: str) -> str:
    """Return the code of *language* without its country: ``pt`` for ``pt-br``."""
    return language.replace("_", "-").partition("-")[0].lower()


@dataclass(frozen=True)
class Stemming:
    """The stemming of a site: *languages* are the codes of its languages with a stemmer.

    - *default*: the code for texts without a language
    - *find_splits*: None, or returns language -> function from a compound to the stems of its parts; see ``compounds``
    """

    default: str
    languages: tuple[str, ...]
    find_splits: Callable[[], Mapping[str, Split]] | None = field(default=None, compare=False)

    @property
    def splits(self) -> Mapping[str, Split]:
        """Language -> function that splits its compounds; read from the database at the first use in a connection."""
        return {} if self.find_splits is None else self.find_splits()

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, languages: tuple[str, ...]) -> "Stemming | None":
        """Return the stemming of a site with *languages*, the default first; None if no language has a stemmer."""
        codes = tuple(dict.fromkeys(map(code, languages)))
        languages_with_stems = tuple(filter(has_stemmer, codes))
        return cls(codes[0], languages_with_stems) if languages_with_stems else None

    def lexemes_of(self, language: str) -> Callable[[str], tuple[str, ...]] | None:
        """Return a function from a word to its marked stem (unless it is its own stem) and those of its parts.

        It is for texts in *language*; None if *language* has no stemmer or is no language of the site.
        """
        language = code(language) or self.default
        split = self.splits.get(language)

        def marked(word: str) -> tuple[str, ...]:
            stem_of_word = stem(language, word)
            own = () if stem_of_word == word else (mark(language, stem_of_word),)
            return own if split is None else (*own, *(mark(language, part) for part in split(word)))

        return marked if language in self.languages else None

    def related(self, word: str) -> tuple[tuple[str, ...], ...]:
        """Return the groups of lexemes that match besides *word*: its marked stems, one per language; its stems as words."""
        if not is_plain(word):
            return ()
        stems = [(language, stem(language, word)) for language in self.languages]
        bare = dict.fromkeys(each for _, each in stems if each != word)
        return tuple(filter(None, (tuple(mark(language, each) for language, each in stems), tuple(bare))))

    def stems(self, word: str) -> Iterator[tuple[str, str]]:
        """Yield (language, stem of *word*) for each of the languages."""
        return ((language, stem(language, word)) for language in self.languages)

    def marks(self, word: str) -> set[str]:
        """Return the marked stems of *word* in all languages; words with a common one are forms of each other."""
        return {mark(*each) for each in self.stems(word)}

    def part_marks(self, word: str) -> set[str]:
        """Return the marked stems of the parts of *word*, a compound, in all languages."""
        return {mark(language, part) for language, split in self.splits.items() for part in split(word)}
