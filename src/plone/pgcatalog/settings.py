"""Settings: values from the site's registry, and the few environment variables that override one or configure a process.

A search reads some settings without access to the registry: a subscriber copies the registry's records to the catalog tool,
which each search has loaded, and which the ZODB updates in all processes.
"""

from Acquisition import aq_base
from dataclasses import dataclass
from functools import cache
from typing import Any

import logging
import os


logger = logging.getLogger(__name__)

#: The indexes that restrict a search; values and options of the caller for them are replaced or removed.
RESTRICTIONS = ("allowedRolesAndUsers", "effectiveRange")
#: The text index whose texts are stored, for snippets, and to whose searches the tuning of a site applies.
SOURCE_INDEX = "SearchableText"

#: The largest number that a setting may have, well within the range of PostgreSQL's integers.
LARGEST = 1e9
#: Up to this many hits of a search are all ranked, of more only candidates.  0: all, which reads the text of each hit.
RANKED_ROWS = 600
#: Whether words that Plone's splitter cuts or joins are stored as a whole besides: the deviation ``text-whole-words``.
WHOLE_WORDS = True
#: Whether words with signs, such as ``C++``, are stored besides, and rank first: the deviation ``text-signs``.
WORDS_WITH_SIGNS = True
#: The largest factor for the relevance of a content type, and weight of a word.
MAX_BOOST = 1000.0
#: The attribute of the tool that holds the site's settings.
SETTINGS_ATTRIBUTE = "_settings"
#: The setting with the codes of the site's languages, its default first: a copy of Plone's own.
LANGUAGES = "languages"
#: The setting with the time zone of the site, and whether a type has the behavior *Search*: copies of Plone's own.
TIME_ZONE, HAS_MARKED_PAGES = "time_zone", "has_marked_pages"


@dataclass(frozen=True)
class Setting[T]:
    """A setting of a site: the registry's record ``plone.pgcatalog.<name>``, and an entry of SETTINGS.

    A call with a catalog tool returns its value: of the environment's *variable*, else of the site, else *default*.
    A number outside of 0 to *most* is replaced by *default*: the fields of the control panels accept NaN and 1e308.
    """

    name: str
    default: T
    read_by: str
    variable: str | None = None
    most: float = LARGEST

    def __post_init__(self) -> None:
        SETTINGS[self.name] = self

    def __call__(self, tool: Any = None) -> T:
        value: Any = None if self.variable is None else number(self.variable, os.environ.get(self.variable))
        if value is None:
            value = site_setting(tool, self.name)
        is_wrong = isinstance(value, int | float) and not 0 <= value <= self.most
        return self.default if is_wrong else value


#: Name -> setting: the table of docs/reference/environment.md.
SETTINGS: dict[str, Setting[Any]] = {}

slow_query_ms = Setting("slow_query_ms", 10.0, "each search", variable="PGCATALOG_SLOW_QUERY_MS")
slow_query_mask = Setting[tuple[str, ...]]("slow_query_mask", (), "records of slow searches")
result_cache_mb = Setting("result_cache_mb", 96.0, "each search", variable="PGCATALOG_RESULT_CACHE_MB")
search_timeout = Setting("search_timeout", 20.0, "each search")
stemming = Setting("stemming", True, "searches for words, cataloguing")
split_compounds = Setting("split_compounds", True, "cataloguing, rebuilds")
parts_of_words = Setting("parts_of_words", False, "searches for words")

search_page = Setting("search_page", True, "search page")
search_facets = Setting("search_facets", ("portal_type", "Subject", "Date", "Creator", "path"), "search page")
count_limit = Setting("count_limit", 0, "search page")
all_sites = Setting("all_sites", False, "search page")
offered_to_sites = Setting("offered_to_sites", False, "searches of other sites")
public_url = Setting("public_url", "", "searches of other sites")

weight_title = Setting("weight_title", 3.0, "searches for words", most=MAX_BOOST)
weight_description = Setting("weight_description", 2.0, "searches for words", most=MAX_BOOST)
weight_keywords = Setting("weight_keywords", 1.5, "searches for words", most=MAX_BOOST)
weight_body = Setting("weight_body", 1.0, "searches for words", most=MAX_BOOST)
type_boosts = Setting("type_boosts", "", "searches for words")
pins = Setting("pins", "", "searches for words")
synonyms = Setting("synonyms", "", "searches for words")
stop_words = Setting("stop_words", "", "searches for words")
half_lives = Setting("half_lives", "", "searches for words")
hidden_pages = Setting("hidden_pages", "", "search page, live search, @search, suggestions, similar pages")
related_pages = Setting("related_pages", 0, "viewlet below a page", most=10)
text_of_files = Setting("text_of_files", True, "cataloguing")
text_of_scans = Setting("text_of_scans", False, "workers")
#: The base URL of an API, such as http://127.0.0.1:8000/v1; empty: no search by meaning.
embedder_url = Setting("embedder_url", "", "workers, searches by meaning")
embedder_model = Setting("embedder_model", "", "workers, searches by meaning")
embedder_question_prefix = Setting("embedder_question_prefix", "", "searches by meaning")
embedder_passage_prefix = Setting("embedder_passage_prefix", "", "workers")
meaning_of_private = Setting("meaning_of_private", True, "workers")
meaning_threshold = Setting("meaning_threshold", 0.0, "searches by meaning", most=1.0)
search_by_meaning = Setting("search_by_meaning", False, "search page, live search, @search")
record_searches = Setting("record_searches", True, "search page, @search")
record_member_searches = Setting("record_member_searches", True, "search page, @search")
record_opened = Setting("record_opened", False, "search page")
suggest_searches = Setting("suggest_searches", False, "suggestions, live search")


def site_settings(tool: Any) -> dict[str, Any]:
    """Return the settings of the site of the catalog *tool*, by name; those without a record are missing."""
    settings: dict[str, Any] = getattr(aq_base(tool), SETTINGS_ATTRIBUTE, {})
    return settings


def site_setting(tool: Any, name: str) -> Any:
    """Return the value of the setting *name* in the site of *tool*, else its default."""
    return site_settings(tool).get(name, SETTINGS[name].default)


@cache
def number(variable: str, text: str | None, whole: bool = False) -> float | None:
    """Return the number *text*, the value of the environment's *variable*; None if it is empty or invalid.

    Valid are numbers from 0 to LARGEST, without a fraction if *whole*.  An invalid one is logged once.
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
        "%s=%r is not a %snumber from 0 to %.0f; the default is used",
        variable,
        text,
        "whole " if whole else "",
        LARGEST,
    )
    return None
