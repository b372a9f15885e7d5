"""What a site's editors want of its search: boosts, pinned pages, synonyms and stop words, read from lines of text.

Everything counts when a search is made, in the words of a lexicon; nothing has to be reindexed for it.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from functools import lru_cache
from plone.pgcatalog.fulltext.lexicon import query_words
from plone.pgcatalog.fulltext.lexicon import storable_text
from plone.pgcatalog.fulltext.lexicon import term_words
from plone.pgcatalog.fulltext.stop_words import listed
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import MessageError
from plone.pgcatalog.settings import MAX_BOOST
from typing import Any

import logging
import re


# -- lines of settings


logger = logging.getLogger(__name__)

#: Words of one line of synonyms or stop words.
MAX_WORDS = 500

_UID = re.compile(r"[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8})*")


class LineError(MessageError, ValueError):
    """A line of a setting cannot be read; the message says why."""


@dataclass(frozen=True)
class Synonyms:
    """A search for one of *words* finds *alternatives*, too."""

    words: tuple[str, ...]
    alternatives: tuple[str, ...]


@dataclass(frozen=True)
class Pin:
    """A search for *words*, in any order, has the page *target* on top: a path in the site, or a UID."""

    words: str
    target: str


@dataclass(frozen=True)
class Tuning:
    """All of it; ``types`` are (portal type, factor) pairs, ``stop_words`` (language, words) pairs."""

    types: tuple[tuple[str, float], ...] = ()
    pins: tuple[Pin, ...] = ()
    synonyms: tuple[Synonyms, ...] = ()
    stop_words: tuple[tuple[str, tuple[str, ...]], ...] = ()


def read_boost(line: str) -> tuple[str, float]:
    """Return (portal type, factor) of a line such as ``News Item = 2.5``."""
    name, equals, number = (part.strip() for part in line.rpartition("="))
    if not (name and equals):
        raise LineError(_("${line} is not of the form: portal type = number", {"line": repr(line)}))
    return name, factor(number)


def factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MAX_BOOST:
        raise LineError(_("${text} is not a number from 0 to ${most}", {"text": repr(text), "most": f"{MAX_BOOST:g}"}))
    return value


def read_pin(line: str) -> Pin:
    """Return the Pin of a line such as ``opening hours = /contact``."""
    words, equals, target = (part.strip() for part in line.rpartition("="))
    if not (words and equals and target):
        raise LineError(_("${line} is not of the form: words = /path/in/site or UID", {"line": repr(line)}))
    if _UID.fullmatch(target):
        return Pin(words, target)
    if not target.startswith("/") or not target.strip("/"):
        raise LineError(
            _(
                "${target} is neither a path in the site, which begins with a slash, nor a UID",
                {"target": repr(target)},
            )
        )
    return Pin(words, "/" + target.strip("/"))


def read_synonyms(line: str) -> Synonyms:
    """Return the Synonyms of ``car, automobile`` (each for the others), or of ``tv => television`` (one way)."""
    left, arrow, right = line.partition("=>")
    words = _listed(left)
    alternatives = _listed(right) if arrow else words
    if not words or not alternatives or len(set(words + alternatives)) < 2:
        raise LineError(_("${line} is not of the form: word, synonym, … or word => synonym, …", {"line": repr(line)}))
    return Synonyms(words, alternatives)


def read_stop_words(line: str) -> tuple[str, tuple[str, ...]]:
    """Return (language, words) of a line such as ``en: the, a, of``; a language may have none."""
    language, colon, words = line.partition(":")
    code = language_code(language)
    if not colon or not _LANGUAGE.fullmatch(code):
        raise LineError(_("${line} is not of the form: language code: word, word, …", {"line": repr(line)}))
    return code, _listed(words)


def language_code(text: str) -> str:
    """Return the language code *text* as all are compared: ``pt-br`` for ``pt_BR``."""
    return text.strip().lower().replace("_", "-")


def _listed(text: str) -> tuple[str, ...]:
    words = tuple(word for part in text.split(",") if (word := part.strip()))
    if len(words) > MAX_WORDS:
        raise LineError(_("more than ${number} words in a line", {"number": str(MAX_WORDS)}))
    return words


READERS: dict[str, Callable[[str], Any]] = {
    "type_boosts": read_boost,
    "pins": read_pin,
    "synonyms": read_synonyms,
    "stop_words": read_stop_words,
}


def read_lines(name: str, text: str) -> Iterator[tuple[Any, str | None]]:
    """Yield (value, None) for each line of *text*, the setting *name*; (None, what is wrong) for one that is.

    Empty lines count, as editors see them, and mean nothing.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            if storable_text(line) != line:
                raise LineError(_("it has characters that no text can have"))
            yield READERS[name](line.strip()), None
        except LineError as error:
            yield None, _("Line ${number}: ${problem}", {"number": str(number), "problem": error.message})


def problems(name: str, text: str) -> list[str]:
    """Return what is wrong with *text* as the setting *name*, a message per line."""
    return [problem for _value, problem in read_lines(name, text) if problem is not None]


def tuning_in(settings: Mapping[str, Any]) -> Tuning | None:
    """Return the Tuning in *settings*, those of a site by name; None when there is nothing in them."""
    texts = tuple(settings.get(name) or "" for name in READERS)
    return _tuning(*texts) if any(texts) else None


@lru_cache(maxsize=64)
def _tuning(*texts: str) -> Tuning | None:
    """Return the Tuning of *texts*, in the order of READERS; what cannot be read is left out, with one warning."""
    values: list[tuple[Any, ...]] = []
    for name, text in zip(READERS, texts, strict=True):
        lines = list(read_lines(name, text))
        for _value, problem in lines:
            if problem is not None:
                logger.warning("Setting %s: %s; it is left out", name, english(problem))
        values.append(tuple(value for value, problem in lines if problem is None))
    types, pins, synonyms, stop_words = values
    tuning = Tuning(types, pins, synonyms, stop_words)
    return None if tuning == Tuning() else tuning


#: Types whose hits come behind pages on search pages if their words are equally good, and what their relevance is multiplied by.
#: With the default weights a word in a title counts 2 to 4.2 times its rarity, one in a text of usual length 1 to 1.6 times: half
#: of the first is less than a page's title, and more than a page's text.
LIGHT_TYPES = (("Link", 0.5), ("File", 0.5), ("Image", 0.5))


@lru_cache(maxsize=64)
def on_search_pages(tuning: Tuning, languages: tuple[str, ...]) -> Tuning:
    """Return *tuning* for search pages: with LIGHT_TYPES and the listed stop words of *languages*, where it names none itself."""
    named = {name for name, _ in tuning.types}
    types = (*tuning.types, *((name, factor) for name, factor in LIGHT_TYPES if name not in named))
    with_words = {language for language, _ in tuning.stop_words}
    codes = dict.fromkeys(language_code(language).partition("-")[0] for language in languages)
    lists = ((code, listed().get(code, ())) for code in codes if code not in with_words)
    stop_words = (*tuning.stop_words, *((code, words) for code, words in lists if words))
    return replace(tuning, types=types, stop_words=stop_words)


# -- in the words of a lexicon


#: One or more words: several for what a lexicon takes apart (``e-mail``).
Words = tuple[str, ...]

_CACHE = "_v_pgcatalog_words"
#: The tuning of a site, that of its search pages, and those that an editor tries.
MOST_TUNINGS = 4


@dataclass(frozen=True)
class Meaning:
    """What plain words of a query stand for: *synonyms*; *stop_words* can be missing.

    With *has_phrases* a query of stop words alone finds them as a phrase, and a single one nothing; else it finds them as ever.
    """

    synonyms: dict[Words, tuple[Words, ...]]
    stop_words: frozenset[Words]
    #: word -> words that contain it
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    has_phrases: bool = False

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
            of_language = frozenset(filter(None, (normal_words(lexicon, text) for text in texts)))
            self._stop_words[language] = self._stop_words.get(language, frozenset()) | of_language
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
    """Return *tuning* in the words of *lexicon*, which remembers the last MOST_TUNINGS until it changes."""
    remembered: dict[Tuning, QueryWords]
    pipeline, remembered = getattr(lexicon, _CACHE, None) or (None, {})
    if pipeline is not lexicon._pipeline or len(remembered) > MOST_TUNINGS:
        remembered = {}
    words = remembered.get(tuning)
    if words is None:
        words = QueryWords(tuning, lexicon)
        # No dict that another thread iterates is changed.
        setattr(lexicon, _CACHE, (lexicon._pipeline, {**remembered, tuning: words}))
    return words
