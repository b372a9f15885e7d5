"""Counts what visitors search for: words, by day, without who it was; written off the requests' time.

The process collects for LINGER seconds, so a connection is opened once for many searches.
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
from plone.pgcatalog.fulltext.tsquery import KEYWORDS
from plone.pgcatalog.fulltext.typed import wanted_text
from plone.pgcatalog.observe.log import log_sql
from plone.pgcatalog.settings import record_searches
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.storage import dsn_of
from typing import Any
from typing import TYPE_CHECKING
from zope.globalrequest import getRequest

import atexit
import logging
import psycopg
import re


if TYPE_CHECKING:
    from plone.pgcatalog.core.catalog import Catalog


logger = logging.getLogger(__name__)

#: Searches that may wait to be written; more are not counted.
QUEUE_SIZE = 1000
#: Seconds to collect searches for.
LINGER = 20.0
#: For how many days a catalog keeps its words, and how many of a day: the most frequent ones.
KEPT_DAYS, KEPT_WORDS = 28, 500
#: A text with more words or characters is not counted: nobody types it, or only once.
MAX_WORDS, MAX_LENGTH = 8, 80

#: Where a request keeps the first search for words that was made in it.
NOTED = "plone.pgcatalog.text_search"
#: The pages and services by which people search; live search asks for what is not yet typed.
ASKED_BY = ("search", "@search", "@pgsearch", "@querystring-search")

_WORD = re.compile(r"\w+")
#: A mail address, a telephone number, an account: nothing that other people should read.
_PERSONAL = re.compile(r"@|(?:\d[\s./-]*){6}")


@dataclass(frozen=True, slots=True)
class Counted:
    """How often *words* were searched for in the last weeks, and how often nothing was found."""

    words: str
    searches: int
    without_results: int


def words_of(text: str) -> str:
    """Return the words of *text*, a search, as they are counted, without excluded ones; empty for what is not."""
    if _PERSONAL.search(text):
        return ""
    wanted = storable_text(wanted_text(text)).casefold()
    words = [word for word in _WORD.findall(wanted) if word.upper() not in KEYWORDS]
    joined = " ".join(words)
    return joined if len(words) <= MAX_WORDS and len(joined) <= MAX_LENGTH else ""


class Recorder:
    """Writes into the database *dsn*."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._worker: BatchWorker[tuple[int, str, bool]] = BatchWorker("searches", self._write, LINGER)

    def put(self, catalog: int, words: str, has_results: bool) -> None:
        """Let a search for *words* in *catalog* be counted; never waits, never fails."""
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
                connection.execute(log_sql("prune_searches"), {"days": KEPT_DAYS, "words": KEPT_WORDS})
        except psycopg.Error as error:
            logger.warning("%d searches could not be counted: %s", len(searches), error)


recorders = PerDatabase(Recorder)


def record(dsn: str, catalog: int, text: str, has_results: bool) -> None:
    """Count a search for *text* in the catalog with tool oid *catalog* of the database *dsn*."""
    if words := words_of(text):
        recorders[dsn].put(catalog, words, has_results)


def note(catalog: "Catalog", value: Any, has_results: bool) -> None:
    """Note in the request that *value*, a query for words, was answered by *catalog*, and whether it *has_results*.

    Only the first search of a visitor who has not logged in, whom nothing but public pages answer.
    """
    other = getattr(getRequest(), "other", None)
    if other is None or NOTED in other or not record_searches(catalog.tool):
        return
    text = value.get("query") if isinstance(value, Mapping) else value
    if isinstance(text, str) and getSecurityManager().getUser().getId() is None:
        other[NOTED] = (dsn_of(catalog.jar), catalog.zoid, text, has_results)


def count_noted(request: Any) -> None:
    """Count the search of a *request* that has ended, if it was for the first page of a search."""
    noted = request.other.get(NOTED)
    name = getattr(request.other.get("PUBLISHED"), "__name__", "")
    if noted is not None and name.rpartition("_")[2] in ASKED_BY and request.form.get("b_start") in (None, "", 0, "0"):
        record(*noted)


def flush(timeout: float = EXIT_SECONDS) -> bool:
    """Wait until all recorders have written everything, *timeout* seconds each at most; return whether they have."""
    return False not in [recorder.flush(timeout) for recorder in recorders.all()]


def top_searches_statement(catalog: int, limit: int = 10) -> Statement:
    """Return the statement whose rows ``top_searches`` takes: the most frequent searches in *catalog*, and others."""
    query, params = positional(log_sql("top_searches"), {"catalog": catalog, "limit": limit, "days": KEPT_DAYS})
    return Statement(query, tuple(params))


def top_searches(rows: Iterable[Sequence[Any]]) -> tuple[list[Counted], list[Counted]]:
    """Return the most frequent searches, and those that found nothing, made of *rows*."""
    kinds: tuple[list[Counted], list[Counted]] = ([], [])
    for missed, words, searches, without_results in rows:
        kinds[missed].append(Counted(words, searches, without_results))
    return kinds


atexit.register(flush)
