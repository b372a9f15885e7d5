"""A site's synonyms, stop words and pins in the words of a lexicon, as queries have them."""

from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from plone.pgcatalog.fulltext.lexicon import query_words
from plone.pgcatalog.fulltext.lexicon import term_words
from plone.pgcatalog.fulltext.tuning import language_code
from plone.pgcatalog.fulltext.tuning import Tuning
from typing import Any


#: One or more words: several for what a lexicon takes apart (``e-mail``).
Words = tuple[str, ...]

_CACHE = "_v_pgcatalog_words"


@dataclass(frozen=True)
class Meaning:
    """What plain words of a query stand for: *synonyms*; *stop_words* can be missing."""

    synonyms: dict[Words, tuple[Words, ...]]
    stop_words: frozenset[Words]
    #: word -> words that contain it
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def alternatives(self, words: Words) -> tuple[Words, ...]:
        """Return what else is found by a search for *words*."""
        containing = self.parts.get(words[0], ()) if len(words) == 1 else ()
        return (*self.synonyms.get(words, ()), *((word,) for word in containing))


class QueryWords:
    """*tuning* in the words of *lexicon*."""

    def __init__(self, tuning: Tuning, lexicon: Any) -> None:
        self._synonyms: dict[Words, tuple[Words, ...]] = {}
        for line in tuning.synonyms:
            alternatives = [normal_words(lexicon, text) for text in line.alternatives]
            for words in (normal_words(lexicon, text) for text in line.words):
                more = [a for a in alternatives if a and a != words]
                if words:
                    self._synonyms[words] = tuple(dict.fromkeys((*self._synonyms.get(words, ()), *more)))
        self._stop_words: dict[str, frozenset[Words]] = {}
        for language, texts in tuning.stop_words:
            found = frozenset(filter(None, (normal_words(lexicon, text) for text in texts)))
            self._stop_words[language] = self._stop_words.get(language, frozenset()) | found
        self._pins: dict[frozenset[str], tuple[str, ...]] = {}
        for pin in tuning.pins:
            if key := frozenset(normal_words(lexicon, pin.words)):
                self._pins[key] = tuple(dict.fromkeys((*self._pins.get(key, ()), pin.target)))

    def meaning(self, languages: Iterable[str]) -> Meaning:
        """Return what words of a query in *languages* stand for."""
        return Meaning(self._synonyms, self.stop_words(languages))

    def stop_words(self, languages: Iterable[str]) -> frozenset[Words]:
        """Return the stop words of *languages*; those of ``pt`` are for ``pt-br``, too."""
        codes = {code for language in languages for code in (language_code(language), language_code(language)[:2])}
        return frozenset().union(*(words for code, words in self._stop_words.items() if code in codes))

    def pinned(self, words: frozenset[str], stop_words: frozenset[Words]) -> tuple[str, ...]:
        """Return the targets that are pinned to a query of *words*, with or without its *stop_words*."""
        with_words = self._pins.get(words, ())
        without = self._pins.get(frozenset(word for word in words if (word,) not in stop_words), ())
        return tuple(dict.fromkeys((*with_words, *without)))


def normal_words(lexicon: Any, text: str) -> Words:
    """Return the words that *lexicon* makes of *text*, without wildcards."""
    return tuple(term_words(lexicon, query_words(lexicon, text)))


def words_in(tuning: Tuning, lexicon: Any) -> QueryWords:
    """Return *tuning* in the words of *lexicon*, which remembers them until one of both changes."""
    known = getattr(lexicon, _CACHE, None)
    if known is None or known[0] is not tuning or known[1] is not lexicon._pipeline:
        known = (tuning, lexicon._pipeline, QueryWords(tuning, lexicon))
        setattr(lexicon, _CACHE, known)
    words: QueryWords = known[2]
    return words
