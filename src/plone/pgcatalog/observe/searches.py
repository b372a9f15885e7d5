"""Counts the words that visitors search for, by day and anonymously, in a thread outside of requests.

Searches are collected for LINGER seconds and written on one connection.
"""

from AccessControl import getSecurityManager
from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from plone.pgcatalog.database.background import BatchWorker
from plone.pgcatalog.database.background import EXIT_SECONDS
from plone.pgcatalog.database.background import PerDatabase
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.prepared import positional
from plone.pgcatalog.fulltext.lexicon import storable_text
from plone.pgcatalog.fulltext.places import written_words
from plone.pgcatalog.fulltext.tsquery import KEYWORDS
from plone.pgcatalog.fulltext.typed import wanted_text
from plone.pgcatalog.observe.log import log_sql
from plone.pgcatalog.settings import record_searches
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.storage import dsn_of
from typing import Any
from typing import TYPE_CHECKING
from unicodedata import normalize
from zope.globalrequest import getRequest

import atexit
import logging
import psycopg
import re


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


logger = logging.getLogger(__name__)

#: Maximum number of searches that wait to be written; further ones are not counted.
QUEUE_SIZE = 1000
#: Seconds for which searches are collected.
LINGER = 20.0
#: Days for which a catalog stores words, and the number of most frequent searches per day that are stored.
SEARCH_DAYS, SEARCH_WORDS = 28, 500
#: A text with more words or characters is not counted: it was pasted, or will not be searched for again.
MAX_WORDS, MAX_LENGTH = 8, 80
#: Most characters of a text, with those between its words, that is read.
LONGEST = 1000

#: Key in ``request.other`` of the first text search of the request.
NOTED = "plone.pgcatalog.text_search"
#: Names of the pages and services whose searches count.  Live search is left out: its text is still being typed.
SEARCH_VIEWS = ("search", "@search", "@pgsearch", "@querystring-search")

#: A mail address, a telephone number or an account: personal data, which is not stored.
_PERSONAL = re.compile(r"@|(?:\d[\s./-]*){6}")


@dataclass(frozen=True, slots=True)
class SearchCount:
    """The number of searches for *words* in the last weeks, and the number of those without results."""

    words: str
    searches: int
    without_results: int


def words_of(text: str) -> str:
    """Return the words of the search *text* in the form that is counted, without excluded ones; "" if it is not counted."""
    if _PERSONAL.search(text):
        return ""
    wanted = normalize("NFKC", storable_text(wanted_text(text)).casefold())
    if len(wanted) > LONGEST:
        return ""
    words = [word for start, end in written_words(wanted) if (word := wanted[start:end]).upper() not in KEYWORDS]
    joined = " ".join(words)
    return joined if len(words) <= MAX_WORDS and len(joined) <= MAX_LENGTH else ""


class SearchRecorder:
    """Writes counted searches into the database *dsn*."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._worker: BatchWorker[tuple[int, str, bool]] = BatchWorker("searches", self._write, LINGER)

    def put(self, catalog: int, words: str, has_results: bool) -> None:
        """Queue a search for *words* in *catalog*; never waits, never fails."""
        self._worker.put((catalog, words, has_results), QUEUE_SIZE)

    def flush(self, timeout: float) -> bool:
        """Wait until everything is written, *timeout* seconds at most; return whether it is."""
        return self._worker.flush(timeout)

    def _write(self, searches: list[tuple[int, str, bool]]) -> None:
        counted = Counter((catalog, words) for catalog, words, _ in searches)
        missed = Counter((catalog, words) for catalog, words, has_results in searches if not has_results)
        rows = [(*key, number, missed[key]) for key, number in sorted(counted.items())]
        try:
            with connect(self.dsn, "searches", seconds=5) as connection:
                with connection.cursor() as cursor:
                    cursor.executemany(log_sql("count_search"), rows)
                connection.execute(log_sql("prune_searches"), {"days": SEARCH_DAYS, "words": SEARCH_WORDS})
        except psycopg.Error as error:
            logger.warning("counting %d searches failed: %s", len(searches), error)


search_recorders = PerDatabase(SearchRecorder)


def record(dsn: str, catalog: int, text: str, has_results: bool) -> None:
    """Count a search for *text* in the catalog with tool oid *catalog* of the database *dsn*."""
    if words := words_of(text):
        search_recorders[dsn].put(catalog, words, has_results)


def note(catalog: "Catalog", value: Any, has_results: bool) -> None:
    """Store in the request that *catalog* answered the text query *value*, and whether it *has_results*.

    Only the first text search of a request by an anonymous visitor is stored, whose results are public pages, and only if
    the site records searches.
    """
    other = getattr(getRequest(), "other", None)
    if other is None or NOTED in other or not record_searches(catalog.tool):
        return
    text = value.get("query") if isinstance(value, Mapping) else value
    if isinstance(text, str) and getSecurityManager().getUser().getId() is None:
        other[NOTED] = (dsn_of(catalog.jar), catalog.zoid, text, has_results)


def count_noted(request: Any) -> None:
    """Count the stored search of the ended *request*, if it was for the first page of results."""
    noted = request.other.get(NOTED)
    name = getattr(request.other.get("PUBLISHED"), "__name__", "")
    if (
        noted is not None
        and name.rpartition("_")[2] in SEARCH_VIEWS
        and request.form.get("b_start") in (None, "", 0, "0")
    ):
        record(*noted)


def flush(timeout: float = EXIT_SECONDS) -> bool:
    """Wait until all recorders have written everything, *timeout* seconds each at most; return whether they have."""
    return False not in [recorder.flush(timeout) for recorder in search_recorders.all()]


def top_searches_statement(catalog: int, limit: int = 10) -> Statement:
    """Return the statement for ``top_searches``: the most frequent searches in *catalog*, and those without results."""
    statement, params = positional(log_sql("top_searches"), {"catalog": catalog, "limit": limit, "days": SEARCH_DAYS})
    return Statement(statement, tuple(params))


def top_searches(rows: Iterable[Sequence[Any]]) -> tuple[list[SearchCount], list[SearchCount]]:
    """Return (the most frequent searches, the searches mostly without results) from *rows* of ``top_searches_statement``."""
    kinds: tuple[list[SearchCount], list[SearchCount]] = ([], [])
    for missed, words, searches, without_results in rows:
        kinds[missed].append(SearchCount(words, searches, without_results))
    return kinds


atexit.register(flush)
