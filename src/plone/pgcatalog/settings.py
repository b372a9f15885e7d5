"""Settings: what the environment says, else what the site's control panel says, else the default.

A search asks for some of them, so nothing is looked up in the registry then: a subscriber copies the registry's
records to the catalog tool, which a search has at hand, and which ZODB keeps in step in all processes.
"""

from Acquisition import aq_base
from collections.abc import Callable
from functools import cache
from plone.pgcatalog.fulltext.bm25 import PlainBackend
from plone.pgcatalog.fulltext.ranking import SearchBackend
from plone.pgcatalog.fulltext.ranking import Weights
from plone.pgcatalog.fulltext.stemming import Stemming
from plone.pgcatalog.fulltext.textsearch import TextSearchBackend
from plone.pgcatalog.fulltext.tuned import SiteTuning
from plone.pgcatalog.fulltext.tuning import tuning_in
from plone.pgcatalog.interfaces import IPGSearchBackend
from plone.pgcatalog.request import request_language
from typing import Any
from zope.component import queryUtility

import logging
import os


PLAIN = PlainBackend()
#: What ranks, by the name that the environment gives it; only a utility counts more.
BACKENDS: dict[str, SearchBackend] = {"plain": PLAIN, "pg_textsearch": TextSearchBackend(PLAIN)}

logger = logging.getLogger(__name__)

#: The largest number that a variable may have; PostgreSQL's integers and Python's floats end somewhere beyond.
LARGEST = 1e9
#: A page of so many takes 50 ms and more.
RANKED_ROWS = 5000
DEFAULTS: dict[str, Any] = {
    "slow_query_ms": 10.0,
    "slow_query_mask": (),
    "result_cache_mb": 64.0,
    "search_timeout": 20.0,
    "stemming": True,
    "parts_of_words": False,
}
#: The attribute of the tool that holds the site's settings.
ATTRIBUTE = "_settings"
#: The setting with the codes of the site's languages, its default first: a copy of Plone's own.
LANGUAGES = "languages"


def slow_query_ms(tool: Any = None) -> float:
    """Return from how many milliseconds on a search of the catalog *tool* is slow; 0 when none is."""
    kept = site_setting(tool, "slow_query_ms")
    return number("PGCATALOG_SLOW_QUERY_MS", os.environ.get("PGCATALOG_SLOW_QUERY_MS"), kept)


def slow_query_mask(tool: Any = None) -> frozenset[str]:
    """Return the indexes of the catalog *tool* whose search terms are not recorded; ``*`` stands for all."""
    return names(os.environ.get("PGCATALOG_SLOW_QUERY_MASK"), tuple(site_setting(tool, "slow_query_mask")))


def result_cache_mb(tool: Any = None) -> float:
    """Return how many megabytes of answers the process may keep, 0 for none; *tool* is a catalog that is asked."""
    kept = site_setting(tool, "result_cache_mb")
    if not 0 <= kept <= LARGEST:
        # The field of the control panel lets NaN and 1e308 through.
        kept = DEFAULTS["result_cache_mb"]
    return number("PGCATALOG_RESULT_CACHE_MB", os.environ.get("PGCATALOG_RESULT_CACHE_MB"), kept)


def search_timeout(tool: Any = None) -> float | None:
    """Return how many seconds a statement of a search of the catalog *tool* may take, None for any time."""
    kept = site_setting(tool, "search_timeout")
    if not 0 <= kept <= LARGEST:
        kept = DEFAULTS["search_timeout"]
    return number("PGCATALOG_SEARCH_TIMEOUT", os.environ.get("PGCATALOG_SEARCH_TIMEOUT"), kept) or None


def parts_of_words(tool: Any = None) -> bool:
    """Return whether a search for a word finds the words that contain it, too, in the site of the catalog *tool*."""
    return bool(site_setting(tool, "parts_of_words"))


def site_tuning(tool: Any, find_site: Callable[[], str | None]) -> SiteTuning | None:
    """Return how the site of the catalog *tool* tunes its search; None for not at all.

    *find_site* returns the path of the site, None for a catalog that is no site's; it may have to load objects.
    """
    tuning = tuning_in(getattr(aq_base(tool), ATTRIBUTE, {}))
    site = None if tuning is None else find_site()
    return None if tuning is None or site is None else SiteTuning(tuning, site, request_language)


def search_weights(tool: Any) -> Weights:
    """Return what words count in titles, descriptions, keywords and bodies in the site of the catalog *tool*."""
    return Weights.of(getattr(aq_base(tool), ATTRIBUTE, {}))


def stemming(tool: Any = None) -> bool:
    """Return whether searches of the catalog *tool* find other forms of words."""
    kept = int(site_setting(tool, "stemming"))
    return bool(whole_number("PGCATALOG_STEMMING", os.environ.get("PGCATALOG_STEMMING"), kept, 1))


def site_stemming(tool: Any) -> Stemming | None:
    """Return the stemming of the site of the catalog *tool*; None when it is off, or there are no stemmers."""
    languages = getattr(aq_base(tool), ATTRIBUTE, {}).get(LANGUAGES, ())
    return Stemming.of(languages) if stemming(tool) else None


def search_backend() -> SearchBackend:
    """Return what ranks results in the current site."""
    utility: SearchBackend | None = queryUtility(IPGSearchBackend)
    return utility or named_backend(os.environ.get("PGCATALOG_RANKING"))


@cache
def named_backend(name: str | None) -> SearchBackend:
    """Return the backend called *name*; the built-in one, with one warning, if there is none."""
    wanted = (name or "plain").strip() or "plain"
    if wanted not in BACKENDS:
        logger.warning("PGCATALOG_RANKING=%r is none of %s; plain is used", name, ", ".join(BACKENDS))
    return BACKENDS.get(wanted, PLAIN)


def ranked_rows() -> int:
    """Return how many rows of a large catalog are ranked at the most, 0 for all."""
    return whole_number("PGCATALOG_RANKED_ROWS", os.environ.get("PGCATALOG_RANKED_ROWS"), RANKED_ROWS)


def site_setting(tool: Any, name: str) -> Any:
    """Return the setting *name* as the control panel of the site of *tool* has it, else its default."""
    return getattr(aq_base(tool), ATTRIBUTE, DEFAULTS).get(name, DEFAULTS[name])


def number(variable: str, text: str | None, default: float, largest: float = LARGEST) -> float:
    """Return the number *text*, which the environment's *variable* has; *default* when it has none, or a wrong one.

    Right are numbers from 0 to *largest*.  A wrong one is logged once.
    """
    found = parsed(variable, text, largest, False)
    return default if found is None else found


def whole_number(variable: str, text: str | None, default: int, largest: float = LARGEST) -> int:
    """Return the whole number *text*, see ``number``."""
    found = parsed(variable, text, largest, True)
    return default if found is None else int(found)


@cache
def parsed(variable: str, text: str | None, largest: float, whole: bool) -> float | None:
    """Return the number *text*, a *whole* one if that is wanted; None for an empty text, and with a warning for another."""
    if text is None or not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if 0 <= value <= largest and (value.is_integer() or not whole):
        return value
    logger.warning(
        "%s=%r is not a %snumber from 0 to %.0f: it is ignored, and the default is used",
        variable,
        text,
        "whole " if whole else "",
        largest,
    )
    return None


@cache
def names(text: str | None, default: tuple[str, ...]) -> frozenset[str]:
    """Return the names in *text*, parted by commas or blanks; *default* when it is empty."""
    found = (text or "").replace(",", " ").split()
    return frozenset(found or default)
