"""The settings of a site for its full-text search: ranking backend, weights, stemming and tuning.

``SiteTuning`` applies the tuning (boosts, pins, synonyms, stop words) to the rows and the order of a text search.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from datetime import datetime
from plone.pgcatalog.fulltext import tsquery
from plone.pgcatalog.fulltext.compounds import splits_of
from plone.pgcatalog.fulltext.ranking import PlainBackend
from plone.pgcatalog.fulltext.ranking import SearchBackend
from plone.pgcatalog.fulltext.ranking import Weights
from plone.pgcatalog.fulltext.stemming import Stemming
from plone.pgcatalog.fulltext.tuning import Meaning
from plone.pgcatalog.fulltext.tuning import on_search_pages
from plone.pgcatalog.fulltext.tuning import Pin
from plone.pgcatalog.fulltext.tuning import Tuning
from plone.pgcatalog.fulltext.tuning import tuning_in
from plone.pgcatalog.fulltext.tuning import Words
from plone.pgcatalog.fulltext.tuning import words_in
from plone.pgcatalog.indexes.base import any_of
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import HIGHEST_SCORE
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.date import DateIndexTranslator
from plone.pgcatalog.interfaces import INotInSearch
from plone.pgcatalog.interfaces import IPGSearchBackend
from plone.pgcatalog.query.nearest import SECTION
from plone.pgcatalog.settings import HAS_MARKED_PAGES
from plone.pgcatalog.settings import LANGUAGES
from plone.pgcatalog.settings import site_settings
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.settings import split_compounds
from plone.pgcatalog.settings import stemming
from plone.pgcatalog.settings import TIME_ZONE
from plone.pgcatalog.sql.column import PATH
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.predicate import below
from plone.pgcatalog.sql.predicate import equals
from typing import Any
from zoneinfo import ZoneInfo
from zope.component import queryUtility
from zope.globalrequest import getRequest


#: The score of the first pinned page; each following one has one less.
PINNED = HIGHEST_SCORE * 1000
#: The score of a word with signs: above those of words, and below that of a pinned page.
SIGNED_SCORE = HIGHEST_SCORE / 1000
#: The factor for the age of a page: 1 without a date (Plone then indexes 1969) or in the future.  It stops falling after 100
#: half-lives, because PostgreSQL refuses numbers that are too small.
FRESHNESS = (
    "CASE WHEN {effective} > '1970-01-03' THEN 0.5::float8 ^ least(100,"
    " greatest(0, extract(epoch FROM %s::timestamptz - {effective})) / %s::float8) ELSE 1 END"
)
DAY = 24 * 60 * 60

Lookup = Callable[[str], IndexTranslator]


@dataclass(frozen=True)
class SiteTuning:
    """The *tuning* of the site at the path *site*, in the time zone *zone*.

    *language* returns the language code of the request, or None.
    """

    tuning: Tuning
    site: str
    language: Callable[[], str | None]
    zone: str = "UTC"
    #: True for searches of visitors; see ``on_search_pages``.
    is_visitors: bool = False

    def stop_languages(self, query: Mapping[str, Any]) -> list[str]:
        """Return the codes of the languages whose stop words apply.

        They come from the ``Language`` of *query*, else from the request, else they are all languages with stop words.
        """
        if not self.tuning.stop_words:
            return []
        value = query.get("Language")
        value = value.get("query") if isinstance(value, Mapping) else value
        values = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
        codes = [each for each in values if isinstance(each, str) and each]
        if not codes and (current := self.language()):
            codes = [current]
        return codes or [language for language, _ in self.tuning.stop_words]

    def meaning(self, lexicon: Any, query: Mapping[str, Any]) -> Meaning | None:
        """Return the synonyms and stop words that apply to *query*; None if the site has neither."""
        if not (self.tuning.synonyms or self.tuning.stop_words):
            return None
        meaning = words_in(self.tuning, lexicon).meaning(self.stop_languages(query))
        return replace(meaning, has_phrases=True) if self.is_visitors else meaning

    def stop_words(self, lexicon: Any, query: Mapping[str, Any]) -> frozenset[Words]:
        """Return the stop words that apply to *query*, each as a tuple of words of *lexicon*."""
        if not self.tuning.stop_words:
            return frozenset()
        return words_in(self.tuning, lexicon).stop_words(self.stop_languages(query))

    def synonyms(self, lexicon: Any, text: str) -> list[Words]:
        """Return the distinct synonyms of the terms in the search text *text* that are neither quoted nor excluded."""
        meaning = self.meaning(lexicon, {}) if self.tuning.synonyms else None
        tree = tsquery.parse(lexicon, text)
        if meaning is None or tree is None:
            return []
        return list(
            dict.fromkeys(a for words in tsquery.plain_terms(lexicon, tree) for a in meaning.alternatives(words))
        )

    def pinned(self, lexicon: Any, text: str, query: Mapping[str, Any], lookup: Lookup) -> list[Condition]:
        """Return one condition for each page that is pinned to the search text *text*, in the order of the pins."""
        return self._pages((pin for pin in self._pins(lexicon, text, query) if not pin.is_left_out), lookup)

    def left_out(self, lexicon: Any, text: str, query: Mapping[str, Any], lookup: Lookup) -> list[Condition]:
        """Return one condition for each page that searches of visitors for *text* leave out."""
        return self._pages((pin for pin in self._pins(lexicon, text, query) if pin.is_left_out), lookup)

    def _pages(self, pins: Iterable[Pin], lookup: Lookup) -> list[Condition]:
        targets = dict.fromkeys(pin.target for pin in pins)
        return [page for target in targets if (page := self._page(target, lookup)) is not None]

    def _pins(self, lexicon: Any, text: str, query: Mapping[str, Any]) -> list[Pin]:
        """Return the pins for *text* that apply today, and in the section of *query*."""
        if not self.tuning.pins:
            return []
        tree = tsquery.parse(lexicon, text)
        wanted = None if tree is None else tsquery.wanted_words(lexicon, tree)
        if not wanted:
            return []
        words = words_in(self.tuning, lexicon)
        pins = words.pins(wanted, words.stop_words(self.stop_languages(query)))
        return [pin for pin in pins if self._is_in_period(pin) and self._is_in_section(pin, query)]

    def _is_in_period(self, pin: Pin) -> bool:
        if pin.first is None and pin.last is None:
            return True
        day = midnight(self.zone).date()
        return pin.has_begun(day) and not pin.has_ended(day)

    def _is_in_section(self, pin: Pin, query: Mapping[str, Any]) -> bool:
        """Return whether *pin* applies to *query*: all its paths, or the page of the visitor, are in the section."""
        if not pin.section:
            return True
        paths = query.get("path")
        paths = paths.get("query") if isinstance(paths, Mapping) else paths
        paths = [paths] if isinstance(paths, str) else paths if isinstance(paths, list | tuple) else []
        start = f"{self.site}{pin.section}/"
        return any(
            places and all(isinstance(path, str) and f"{path}/".startswith(start) for path in places)
            for places in (paths, [query.get(SECTION)])
        )

    def hidden(self, lookup: Lookup) -> list[Condition]:
        """Return the conditions of the pages that all searches of visitors leave out."""
        pages = (
            below(PATH, self.site + target) if target.startswith("/") else self._page(target, lookup)
            for target in self.tuning.hidden
        )
        return [page for page in pages if page is not None]

    def _page(self, target: str, lookup: Lookup) -> Condition | None:
        if target.startswith("/"):
            return equals(PATH, self.site + target)
        uid = _translator(lookup, "UID")
        return None if uid is None else uid.match_key(target.replace("-", "").lower())

    def ranked(self, score: Fragment, lookup: Lookup) -> Fragment:
        """Return *score* multiplied by the boost and freshness of the row's type."""
        return self._aged(self._boosted(score, lookup), lookup)

    def preferred(self, pins: Sequence[Condition], lookup: Lookup) -> list[tuple[Condition, ...]]:
        """Return conditions for rows that may score high whatever their text is: *pins*, and types with a boost above 1.

        See ``Score.preferred``.
        """
        portal_type = _translator(lookup, "portal_type")
        boosted = [name for name, factor in self.tuning.types if factor > 1]
        types = [portal_type.match_key(name) for name in boosted] if portal_type is not None else []
        return [(any_of(conditions),) for conditions in (pins, types) if conditions]

    def _boosted(self, score: Fragment, lookup: Lookup) -> Fragment:
        portal_type = _translator(lookup, "portal_type")
        factors = [(name, factor) for name, factor in self.tuning.types if factor != 1]
        if portal_type is None or not factors:
            return score
        cases = [(portal_type.match_key(name), factor) for name, factor in factors]
        sql = " ".join(f"WHEN {of_type.sql} THEN %s::float8" for of_type, _ in cases)
        params = [param for of_type, factor in cases for param in (*of_type.params, factor)]
        return Fragment(f"({score.sql}) * CASE {sql} ELSE 1 END", (*score.params, *params))

    def _aged(self, score: Fragment, lookup: Lookup) -> Fragment:
        """Return *score*, halved for each half-life of the row's type since its publication, up to today's midnight."""
        portal_type, effective = _translator(lookup, "portal_type"), _translator(lookup, "effective")
        if not self.tuning.half_lives or portal_type is None or not isinstance(effective, DateIndexTranslator):
            return score
        now, freshness = midnight(self.zone), FRESHNESS.format(effective=effective.column.quoted)
        cases = [(portal_type.match_key(name), days) for name, days in self.tuning.half_lives]
        sql = " ".join(f"WHEN {of_type.sql} THEN {freshness}" for of_type, _ in cases)
        params = [param for of_type, days in cases for param in (*of_type.params, now, days * DAY)]
        return Fragment(f"({score.sql}) * CASE {sql} ELSE 1 END", (*score.params, *params))


def midnight(zone: str) -> datetime:
    """Return the beginning of today in the time zone *zone*; in UTC if the zone is unknown."""
    try:
        info = ZoneInfo(zone)
    except (KeyError, ValueError):
        info = ZoneInfo("UTC")
    return datetime.now(info).replace(hour=0, minute=0, second=0, microsecond=0)


def signed_first(score: Fragment, signed: Sequence[Condition]) -> Fragment:
    """Return *score*, an SQL number, changed so that rows score the higher, the more conditions of *signed* they fulfil."""
    if not signed:
        return score
    cases = " + ".join(f"CASE WHEN {word.sql} THEN {SIGNED_SCORE:.0f}::float8 ELSE 0 END" for word in signed)
    return Fragment(f"({score.sql}) + {cases}", (*score.params, *(param for word in signed for param in word.params)))


def pinned_first(score: Fragment, pins: Sequence[Condition]) -> Fragment:
    """Return *score*, an SQL number, changed so that rows of *pins* score above all others, in the order of *pins*."""
    if not pins:
        return score
    cases = " ".join(f"WHEN {pin.sql} THEN {PINNED - number:.0f}::float8" for number, pin in enumerate(pins))
    params = [param for pin in pins for param in pin.params]
    return Fragment(f"CASE {cases} ELSE {score.sql} END", (*params, *score.params))


def _translator(lookup: Lookup, name: str) -> IndexTranslator | None:
    try:
        return lookup(name)
    except KeyError:
        return None


PLAIN_BACKEND = PlainBackend()


def site_tuning(settings: Mapping[str, Any], find_site: Callable[[], str | None]) -> SiteTuning | None:
    """Return the tuning in *settings*; None if there is none, or the catalog belongs to no site.

    *find_site* returns the path of the site, or None.  It may load objects, so it is called only if there is a tuning.
    """
    tuning = tuning_in(settings)
    site = None if tuning is None else find_site()
    if tuning is None or site is None:
        return None
    return SiteTuning(tuning, site, request_language, settings.get(TIME_ZONE) or "UTC")


def visitors_tuning(tuning: SiteTuning | None, tool: Any) -> SiteTuning:
    """Return *tuning*, of the site of the catalog *tool*, with the defaults for search pages; see ``on_search_pages``."""
    tuning = tuning or SiteTuning(Tuning(), "", request_language)
    return replace(tuning, tuning=on_search_pages(tuning.tuning, site_languages(tool)), is_visitors=True)


def left_out(
    tuning: SiteTuning | None,
    settings: Mapping[str, Any],
    texts: Iterable[str],
    query: Mapping[str, Any],
    lookup: Lookup,
) -> Condition | None:
    """Return the condition of the pages that a search of visitors by *query* for *texts* leaves out; None without such pages.

    They are hidden by *tuning* or, with the behavior *Search*, by their editors.
    """
    pages = [] if tuning is None else tuning.hidden(lookup)
    provides = _translator(lookup, "object_provides") if settings.get(HAS_MARKED_PAGES) else None
    if provides is not None:
        pages.append(provides.match_key(INotInSearch.__identifier__))
    if tuning is not None and any(pin.is_left_out for pin in tuning.tuning.pins):
        lexicon = lookup(SOURCE_INDEX).index.getLexicon()
        pages += [page for text in texts for page in tuning.left_out(lexicon, text, query, lookup)]
    return any_of(pages) if pages else None


def request_language() -> str | None:
    """Return the language code of the current request; None without a request or a language."""
    request = getRequest()
    language = None if request is None else request.get("LANGUAGE")
    return language if isinstance(language, str) and language else None


def search_weights(tool: Any) -> Weights:
    """Return the weights of titles, descriptions, keywords and bodies in the site of the catalog *tool*."""
    return Weights.of(site_settings(tool))


def site_languages(tool: Any) -> tuple[str, ...]:
    """Return the language codes of the site of the catalog *tool*, the default language first."""
    return tuple(site_settings(tool).get(LANGUAGES, ()))


def site_stemming(tool: Any) -> Stemming | None:
    """Return the stemming of the site of the catalog *tool*; None if it is off, or no language of the site has a stemmer."""
    of_site = Stemming.of(site_languages(tool)) if stemming(tool) else None
    if of_site is None or not split_compounds(tool):
        return of_site
    return replace(of_site, find_splits=lambda: splits_of(tool))


def search_backend() -> SearchBackend:
    """Return the ranking backend of the current site: the utility for IPGSearchBackend, else the built-in one."""
    utility: SearchBackend | None = queryUtility(IPGSearchBackend)
    return utility or PLAIN_BACKEND
