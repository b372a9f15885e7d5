"""Tuning of a site's search by its editors: boosts, half-lives, pinned and hidden pages, synonyms, stop words.

They are read from lines of text.  Tuning is applied to queries, in the words of a lexicon, so a change needs no reindexing.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from dataclasses import replace
from datetime import date
from datetime import datetime
from functools import cache
from functools import lru_cache
from importlib.resources import files
from plone.pgcatalog.fulltext.lexicon import query_words
from plone.pgcatalog.fulltext.lexicon import storable_text
from plone.pgcatalog.fulltext.lexicon import term_words
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import english
from plone.pgcatalog.i18n import MessageError
from plone.pgcatalog.settings import MAX_BOOST
from typing import Any

import logging
import re


# -- lines of settings


logger = logging.getLogger(__name__)

#: Most words in one line of synonyms or stop words.
MAX_WORDS = 500

_UID = re.compile(r"[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8})*")
_DAYS = re.compile(r"([1-9][0-9]{0,4}) days?")
#: Words of the conditions behind the page of a pin, and the page, in quotes if its path contains one of them.
_CONDITIONS = {"below", "from", "until"}
_PAGE = re.compile(r'"(?P<quoted>[^"]*+)"|(?P<plain>(?:(?!\s(?:below|from|until)(?:\s|$)).)++)')


class LineError(MessageError, ValueError):
    """A line of a setting cannot be read; the message says why."""


@dataclass(frozen=True)
class Synonyms:
    """A line of synonyms: a search for one of *words* also finds *alternatives*."""

    words: tuple[str, ...]
    alternatives: tuple[str, ...]


@dataclass(frozen=True)
class Pin:
    """A pinned page: a search for *words*, in any order, has the page *target* on top, a path in the site or a UID.

    - *is_left_out*: the page is left out of these searches instead
    - *section*: only in searches from this path in the site; "" for all searches
    - *first*, *last*: the days in which it applies, both included; None if there is no limit
    """

    words: str
    target: str
    is_left_out: bool = False
    section: str = ""
    first: date | None = None
    last: date | None = None

    def has_begun(self, day: date) -> bool:
        return self.first is None or self.first <= day

    def has_ended(self, day: date) -> bool:
        return self.last is not None and self.last < day


@dataclass(frozen=True)
class Tuning:
    """The tuning of a site, in the order of READERS.

    - ``types``: (portal type, factor) pairs
    - ``stop_words``: (language, words) pairs
    - ``half_lives``: (portal type, days) pairs
    - ``hidden``: pages that searches of visitors leave out, as paths in the site (with the pages below) or UIDs
    """

    types: tuple[tuple[str, float], ...] = ()
    pins: tuple[Pin, ...] = ()
    synonyms: tuple[Synonyms, ...] = ()
    stop_words: tuple[tuple[str, tuple[str, ...]], ...] = ()
    half_lives: tuple[tuple[str, int], ...] = ()
    hidden: tuple[str, ...] = ()


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


def read_half_life(line: str) -> tuple[str, int]:
    """Return (portal type, days) of a line such as ``News Item = 90 days``."""
    name, _equals, text = (part.strip() for part in line.rpartition("="))
    days = _DAYS.fullmatch(text)
    if not name or days is None:
        raise LineError(_("${line} is not of the form: portal type = number days", {"line": repr(line)}))
    return name, int(days[1])


def read_pin(line: str) -> Pin:
    """Return the Pin of a line such as ``opening hours = /contact`` or ``opening hours => -/old-contact``.

    Behind the page are, in any order and each at most once, ``below /section``, ``from 2026-12-01`` and ``until 2026-12-24``.
    """
    words, _equals, rest = (part.strip() for part in line.rpartition("="))
    rest = rest.removeprefix(">").strip()
    is_left_out = rest.startswith("-")
    page = _PAGE.match(rest.removeprefix("-").strip())
    if not words or page is None:
        raise LineError(_("${line} is not of the form: words = /path/in/site or UID", {"line": repr(line)}))
    target = page_target(page["plain"] or page["quoted"] or "")
    conditions = _conditions(page.string[page.end() :], line)
    first, last = _day(conditions.get("from")), _day(conditions.get("until"))
    if first and last and last < first:
        raise LineError(_("${line} ends before it begins", {"line": repr(line)}))
    section = page_target(conditions["below"]) if "below" in conditions else ""
    if section and not section.startswith("/"):
        raise LineError(_("${target} is not a path in the site", {"target": repr(section)}))
    return Pin(words, target, is_left_out, section, first, last)


def _conditions(text: str, line: str) -> dict[str, str]:
    """Return word -> value of the conditions *text* behind the page of a pin, a part of *line*."""
    words = text.split()
    found = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) != 2 * len(found) or not _CONDITIONS.issuperset(found) or (words and not text[0].isspace()):
        form = "words = /path below /section from 2026-12-01 until 2026-12-24"
        raise LineError(
            _(
                "${line} is not of the form: ${form}; a path with these words is put in quotes",
                {"line": repr(line), "form": form},
            )
        )
    return found


def _day(text: str | None) -> date | None:
    try:
        return None if text is None else datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError as error:
        raise LineError(_("${text} is not a day such as 2026-12-24", {"text": repr(text)})) from error


def page_target(text: str) -> str:
    """Return *text* as a path in the site without a slash at its end, or as a UID.  Raises LineError for anything else."""
    target = text.strip()
    if _UID.fullmatch(target):
        return target
    if not target.startswith("/") or not target.strip("/"):
        raise LineError(
            _(
                "${target} is neither a path in the site, which begins with a slash, nor a UID",
                {"target": repr(target)},
            )
        )
    return "/" + target.strip("/")


def read_hidden(line: str) -> str:
    """Return the path or UID of a line such as ``hide = /archive``; ``hide =`` may be missing."""
    word, equals, target = line.partition("=")
    return page_target(target if equals and word.strip() == "hide" else line)


def read_synonyms(line: str) -> Synonyms:
    """Return the Synonyms of a line such as ``car, automobile`` (in both directions) or ``tv => television`` (in one)."""
    left, arrow, right = line.partition("=>")
    words = _listed(left)
    alternatives = _listed(right) if arrow else words
    if not words or not alternatives or len(set(words + alternatives)) < 2:
        raise LineError(_("${line} is not of the form: word, synonym, … or word => synonym, …", {"line": repr(line)}))
    return Synonyms(words, alternatives)


def read_stop_words(line: str) -> tuple[str, tuple[str, ...]]:
    """Return (language, words) of a line such as ``en: the, a, of``; the words may be missing."""
    language, colon, words = line.partition(":")
    code = language_code(language)
    if not colon or not _LANGUAGE.fullmatch(code):
        raise LineError(_("${line} is not of the form: language code: word, word, …", {"line": repr(line)}))
    return code, _listed(words)


def language_code(text: str) -> str:
    """Return the language code *text* in the form that is compared: ``pt-br`` for ``pt_BR``."""
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
    "half_lives": read_half_life,
    "hidden_pages": read_hidden,
}


def read_line(name: str, line: str) -> Any:
    """Return the value of *line*, one of the setting *name*.  Raises LineError."""
    if storable_text(line) != line:
        raise LineError(_("it contains invalid characters"))
    return READERS[name](line.strip())


def read_lines(name: str, text: str) -> Iterator[tuple[Any, str | None]]:
    """Yield (value, None) for each valid line of *text*, the setting *name*, and (None, message) for each invalid line.

    Empty lines are skipped, but count for the line numbers in messages.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield read_line(name, line), None
        except LineError as error:
            yield None, _("Line ${number}: ${problem}", {"number": str(number), "problem": error.message})


def problems(name: str, text: str) -> list[str]:
    """Return a message for each invalid line of *text*, the setting *name*."""
    return [problem for _value, problem in read_lines(name, text) if problem is not None]


def tuning_in(settings: Mapping[str, Any]) -> Tuning | None:
    """Return the Tuning in *settings* (name -> value) of a site; None if they contain no tuning."""
    texts = tuple(settings.get(name) or "" for name in READERS)
    return _tuning(*texts) if any(texts) else None


@lru_cache(maxsize=64)
def _tuning(*texts: str) -> Tuning | None:
    """Return the Tuning of *texts*, in the order of READERS; lines that cannot be read are left out, each with a warning."""
    values: list[tuple[Any, ...]] = []
    for name, text in zip(READERS, texts, strict=True):
        lines = list(read_lines(name, text))
        for _value, problem in lines:
            if problem is not None:
                logger.warning("Setting %s: %s; the line is ignored", name, english(problem))
        values.append(tuple(value for value, problem in lines if problem is None))
    tuning = Tuning(*values)
    return None if tuning == Tuning() else tuning


@cache
def listed_stop_words() -> dict[str, tuple[str, ...]]:
    """Return language code -> stop words, from PostgreSQL's own text search; languages without a list are left out."""
    lines = (files(__package__) / "stop_words.txt").read_text("utf-8").splitlines()
    entries = (line.partition(":") for line in lines if not line.startswith("#"))
    return {code: tuple(words.split()) for code, _, words in entries}


#: Types and the factor of their relevance on search pages: with equally good words they rank behind pages.  With the default
#: weights a word in a title scores 2 to 4.2 times its IDF, a word in a text of usual length 1 to 1.6 times.  So half of a
#: title's score is less than a page's title and more than a page's text.
LIGHT_TYPES = (("Link", 0.5), ("File", 0.5), ("Image", 0.5))


@lru_cache(maxsize=64)
def on_search_pages(tuning: Tuning, languages: tuple[str, ...]) -> Tuning:
    """Return *tuning* for search pages: with the factors of LIGHT_TYPES and the default stop words of *languages*.

    Types and languages that *tuning* has itself are left as they are.
    """
    named = {name for name, _ in tuning.types}
    types = (*tuning.types, *((name, factor) for name, factor in LIGHT_TYPES if name not in named))
    with_words = {language for language, _ in tuning.stop_words}
    codes = dict.fromkeys(language_code(language).partition("-")[0] for language in languages)
    lists = ((code, listed_stop_words().get(code, ())) for code in codes if code not in with_words)
    stop_words = (*tuning.stop_words, *((code, words) for code, words in lists if words))
    return replace(tuning, types=types, stop_words=stop_words)


# -- in the words of a lexicon


#: The words of a term: several if the lexicon splits it (``e-mail``).
Words = tuple[str, ...]

_CACHE = "_v_pgcatalog_words"
#: Tunings cached on a lexicon: one of the site, one of its search pages, and those that an editor tries in a preview.
MOST_TUNINGS = 4


@dataclass(frozen=True)
class Meaning:
    """The expansion of plain words of a query: *synonyms* match as well, *stop_words* are not required.

    With *has_phrases* a query of stop words only is a phrase, and a single stop word finds nothing; without it, such a query
    is compiled as any other.
    """

    synonyms: dict[Words, tuple[Words, ...]]
    stop_words: frozenset[Words]
    #: word -> words that contain it
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    has_phrases: bool = False

    def alternatives(self, words: Words) -> tuple[Words, ...]:
        """Return the alternatives to *words*, the words of one term: its synonyms, and words that contain it."""
        containing = self.parts.get(words[0], ()) if len(words) == 1 else ()
        return (*self.synonyms.get(words, ()), *((word,) for word in containing))


class QueryWords:
    """A *tuning* in the words of a *lexicon*."""

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
        self._pins: dict[frozenset[str], tuple[Pin, ...]] = {}
        for pin in tuning.pins:
            if key := frozenset(normal_words(lexicon, pin.words)):
                self._pins[key] = (*self._pins.get(key, ()), pin)

    def meaning(self, languages: Iterable[str]) -> Meaning:
        """Return the synonyms, and the stop words of *languages*."""
        return Meaning(self._synonyms, self.stop_words(languages))

    def stop_words(self, languages: Iterable[str]) -> frozenset[Words]:
        """Return the stop words of *languages*; ``pt-br`` has those of ``pt`` as well."""
        codes = {code for language in languages for code in (language_code(language), language_code(language)[:2])}
        return frozenset().union(*(words for code, words in self._stop_words.items() if code in codes))

    def pins(self, words: frozenset[str], stop_words: frozenset[Words]) -> tuple[Pin, ...]:
        """Return the pins for *words*, and those for *words* without *stop_words*."""
        with_words = self._pins.get(words, ())
        without = self._pins.get(frozenset(word for word in words if (word,) not in stop_words), ())
        return tuple(dict.fromkeys((*with_words, *without)))


def normal_words(lexicon: Any, text: str) -> Words:
    """Return the words that *lexicon* makes of *text*, without wildcards."""
    return tuple(term_words(lexicon, query_words(lexicon, text)))


def words_in(tuning: Tuning, lexicon: Any) -> QueryWords:
    """Return *tuning* in the words of *lexicon*; a few results are cached on the lexicon until its pipeline changes."""
    remembered: dict[Tuning, QueryWords]
    pipeline, remembered = getattr(lexicon, _CACHE, None) or (None, {})
    if pipeline is not lexicon._pipeline or len(remembered) > MOST_TUNINGS:
        remembered = {}
    words = remembered.get(tuning)
    if words is None:
        words = QueryWords(tuning, lexicon)
        # Other threads may iterate the dict, so it is replaced and not changed.
        setattr(lexicon, _CACHE, (lexicon._pipeline, {**remembered, tuning: words}))
    return words
