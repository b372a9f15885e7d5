"""Stems of words: ``runs`` and ``running`` both have ``run``, so that a search for one finds the other.

The stemmers are Snowball's, in C (PyStemmer): no round trip, and the same on every server.  A tsvector has all words of a text
as they are.  Beside each word whose stem is another one, at the same place, it has the stem, marked with the language: as
``\\2en:run``, which no word can be.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from plone.pgcatalog.fulltext.lexicon import STEM
from typing import Any

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
#: Words that are remembered with their stems.
REMEMBERED = 100_000
SHORTEST = 3
LONGEST = 60


class _Stemmers(threading.local):
    """The stemmers of a thread: they keep the word they are at work on."""

    def __init__(self) -> None:
        self.stemmers: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        if name not in self.stemmers:
            self.stemmers[name] = snowballstemmer.stemmer(name)
            # ``stem`` caches, for all threads.
            self.stemmers[name].maxCacheSize = 0
        return self.stemmers[name]


_stemmers = _Stemmers()


def has_stemmer(language: str) -> bool:
    """True when words of *language*, a code such as ``de``, have stems; a Snowball of today may know more or fewer."""
    return STEMMERS.get(language) in snowballstemmer.algorithms()


def is_plain(word: str) -> bool:
    """True for words of letters of a usual length; others have no stems."""
    return SHORTEST <= len(word) <= LONGEST and word.isalpha()


@lru_cache(maxsize=REMEMBERED)
def stem(language: str, word: str) -> str:
    """Return the stem of *word*, as a lexicon makes it; the word itself for what is no word of letters."""
    if not is_plain(word):
        return word
    return _stemmers.get(STEMMERS[language]).stemWord(word) or word


def mark(language: str, stem: str) -> str:
    """Return the lexeme by which a tsvector has *stem* of *language*."""
    return f"{STEM}{language}:{stem}"


def code(language: str) -> str:
    """Return the code of *language* without its country: ``pt`` for ``pt-br``."""
    return language.replace("_", "-").partition("-")[0].lower()


@dataclass(frozen=True)
class Stemming:
    """The stems of a site: of texts in *languages*, codes of those that have a stemmer; *default* is of texts in none."""

    default: str
    languages: tuple[str, ...]

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, languages: tuple[str, ...]) -> "Stemming | None":
        """Return the one for a site with *languages*, its default first; None when none of them has a stemmer."""
        codes = tuple(dict.fromkeys(map(code, languages)))
        languages_with_stems = tuple(filter(has_stemmer, codes))
        return cls(codes[0], languages_with_stems) if languages_with_stems else None

    def lexeme_of(self, language: str) -> Callable[[str], str | None] | None:
        """Return what gives the marked stem of a word in a text in *language*, None for a word that is its stem.

        None for a text without stems: in a language of the site without a stemmer, or in none of its languages.
        """
        language = code(language) or self.default

        def marked(word: str) -> str | None:
            stem_of_word = stem(language, word)
            return None if stem_of_word == word else mark(language, stem_of_word)

        return marked if language in self.languages else None

    def related(self, word: str) -> tuple[tuple[str, ...], ...]:
        """Return what is found besides *word*: marked stems, one for each language, and words that are stems."""
        if not is_plain(word):
            return ()
        stems = [(language, stem(language, word)) for language in self.languages]
        bare = dict.fromkeys(each for _, each in stems if each != word)
        return tuple(filter(None, (tuple(mark(language, each) for language, each in stems), tuple(bare))))

    def marks(self, word: str) -> set[str]:
        """Return the marked stems of *word*; words with one in common are forms of each other."""
        return {mark(language, stem(language, word)) for language in self.languages}
