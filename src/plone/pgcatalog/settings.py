"""Settings: values from the site's registry, and the few environment variables that override one or belong to a process.

A search asks for some of them, so nothing is looked up in the registry then: a subscriber copies the registry's
records to the catalog tool, which a search has at hand, and which ZODB keeps in step in all processes.
"""

from Acquisition import aq_base
from functools import cache
from typing import Any

import logging
import os


logger = logging.getLogger(__name__)

#: What restricts a search; a caller's own value, or option of it, is never merged with ours.
RESTRICTIONS = ("allowedRolesAndUsers", "effectiveRange")
#: The text index whose texts are kept, too, to take snippets from; what a site tunes are its searches.
SOURCE_INDEX = "SearchableText"

#: The largest number that a setting may have; PostgreSQL's integers and Python's floats end somewhere beyond.
LARGEST = 1e9
#: How many hits of a search are all ranked; of more only candidates are.  0: all of any number, 8 µs and more each.
RANKED_ROWS = 600
DEFAULTS: dict[str, Any] = {
    "slow_query_ms": 10.0,
    "slow_query_mask": (),
    "result_cache_mb": 64.0,
    "search_timeout": 20.0,
    "stemming": True,
    "parts_of_words": False,
}
#: What those choose who see to the search of the site.
SEARCH_DEFAULTS: dict[str, Any] = {
    "search_page": True,
    "search_facets": ("portal_type", "Subject", "Date", "Creator", "path"),
    "related_pages": 0,
    "record_searches": True,
    "count_limit": 0,
}
#: The most similar pages that are shown below a page.
MAX_RELATED = 10
#: The attribute of the tool that holds the site's settings.
ATTRIBUTE = "_settings"
#: The setting with the codes of the site's languages, its default first: a copy of Plone's own.
LANGUAGES = "languages"


def site_settings(tool: Any) -> dict[str, Any]:
    """Return the settings of the site of the catalog *tool*, by name; those without a record are missing."""
    found: dict[str, Any] = getattr(aq_base(tool), ATTRIBUTE, {})
    return found


def site_setting(tool: Any, name: str) -> Any:
    """Return the setting *name* as the control panel of the site of *tool* has it, else its default."""
    found = site_settings(tool)
    return found[name] if name in found else DEFAULTS[name] if name in DEFAULTS else SEARCH_DEFAULTS[name]


def site_number(tool: Any, name: str) -> float:
    """Return the setting *name*, a number; its default for NaN and 1e308, which the control panel's field lets through."""
    found: float = site_setting(tool, name)
    return found if 0 <= found <= LARGEST else DEFAULTS[name]


def slow_query_ms(tool: Any = None) -> float:
    """Return from how many milliseconds on a search of the catalog *tool* is slow; 0 when none is."""
    found = number("PGCATALOG_SLOW_QUERY_MS", os.environ.get("PGCATALOG_SLOW_QUERY_MS"))
    return site_setting(tool, "slow_query_ms") if found is None else found


def slow_query_mask(tool: Any = None) -> frozenset[str]:
    """Return the indexes of the catalog *tool* whose search terms are not recorded; ``*`` stands for all."""
    return frozenset(site_setting(tool, "slow_query_mask"))


def result_cache_mb(tool: Any = None) -> float:
    """Return how many megabytes of answers the process may keep, 0 for none; *tool* is a catalog that is asked."""
    found = number("PGCATALOG_RESULT_CACHE_MB", os.environ.get("PGCATALOG_RESULT_CACHE_MB"))
    return site_number(tool, "result_cache_mb") if found is None else found


def search_timeout(tool: Any = None) -> float | None:
    """Return how many seconds a statement of a search of the catalog *tool* may take, None for any time."""
    return site_number(tool, "search_timeout") or None


def parts_of_words(tool: Any = None) -> bool:
    """True if a search for a word also finds the words that contain it, in the site of the catalog *tool*."""
    return bool(site_setting(tool, "parts_of_words"))


def search_page(tool: Any = None) -> bool:
    """True if the site of the catalog *tool* has our search page in Classic UI."""
    return bool(site_setting(tool, "search_page"))


def search_facets(tool: Any = None) -> tuple[str, ...]:
    """Return the indexes that the search page of the site of *tool* has facets for, in order."""
    return tuple(site_setting(tool, "search_facets"))


def count_limit(tool: Any) -> int:
    """Return up to how many hits the search of the site of the catalog *tool* counts, 0 for all of them."""
    wanted: int = site_setting(tool, "count_limit")
    return max(0, min(wanted, int(LARGEST)))


def related_pages(tool: Any) -> int:
    """Return how many similar pages are shown below a page in the site of the catalog *tool*, 0 for none."""
    wanted: int = site_setting(tool, "related_pages")
    return max(0, min(wanted, MAX_RELATED))


def record_searches(tool: Any) -> bool:
    """True if the words that visitors search for in the site of the catalog *tool* are counted."""
    return bool(site_setting(tool, "record_searches"))


def stemming(tool: Any = None) -> bool:
    """True if searches of the catalog *tool* find other forms of words."""
    return bool(site_setting(tool, "stemming"))


@cache
def number(variable: str, text: str | None, whole: bool = False) -> float | None:
    """Return the number *text*, the value of the environment's *variable*; None if it is empty or wrong.

    Right are numbers from 0 to LARGEST, without a fraction if *whole*.  A wrong one is logged once.
    """
    if text is None or not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if 0 <= value <= LARGEST and (value.is_integer() or not whole):
        return value
    logger.warning(
        "%s=%r is not a %snumber from 0 to %.0f: it is ignored, and the default is used",
        variable,
        text,
        "whole " if whole else "",
        LARGEST,
    )
    return None
