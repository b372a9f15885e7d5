"""Counts the words that people search for, by day, in a thread outside of requests.

Searches are collected for LINGER seconds and written on one connection.  Of a member only a hash is stored, for the rest of
the day; nothing of a visitor who has not logged in.
"""

from AccessControl import getSecurityManager
from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from hashlib import blake2b
from itertools import groupby
from plone.pgcatalog.database.background import BatchWorker
from plone.pgcatalog.database.background import EXIT_SECONDS
from plone.pgcatalog.database.background import PerDatabase
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.fulltext.lexicon import quoted
from plone.pgcatalog.fulltext.lexicon import storable_text
from plone.pgcatalog.fulltext.lexicon import words as lexicon_words
from plone.pgcatalog.fulltext.places import written_words
from plone.pgcatalog.fulltext.tsquery import KEYWORDS
from plone.pgcatalog.fulltext.typed import wanted_text
from plone.pgcatalog.observe.log import log_sql
from plone.pgcatalog.settings import record_member_searches
from plone.pgcatalog.settings import record_opened
from plone.pgcatalog.settings import record_searches
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.pgcatalog.settings import suggest_searches
from plone.pgcatalog.storage import dsn_of
from plone.pgcatalog.storage import is_read_only
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
#: Days for which a catalog stores words, also where searches are suggested, and the number of most frequent searches per day
#: that are stored.
SEARCH_DAYS, SUGGESTED_DAYS, SEARCH_WORDS = 28, 90, 500
#: Number of different members from which their searches for the same words are shown.
PEOPLE = 3
#: A text with more words or characters is not counted: it was pasted, or will not be searched for again.
MAX_WORDS, MAX_LENGTH = 8, 80
#: Most characters of a text, with those between its words, that is read.
LONGEST = 1000

#: Key in ``request.other`` of the first text search of the request; None for a request that is not counted.
NOTED = "plone.pgcatalog.text_search"
#: Names of the pages and services whose searches count.  Live search is left out: its text is still being typed.
SEARCH_VIEWS = ("search", "@search", "@pgsearch", "@querystring-search")
#: A search block of Volto searches during typing.
TYPED = "@querystring-search"
#: Parameter of a search for a correction: the text that it replaces.
CORRECTED_FROM = "corrected_from"

#: A mail address, a telephone number or an account: personal data, which is not stored.
_PERSONAL = re.compile(r"@|(?:\d[\s./-]*){6}")


@dataclass(frozen=True, slots=True)
class Search:
    """A search for *words* in *catalog*, the tool oid.

    - *user*: id of the member, None for a visitor who has not logged in
    - *correction*: the words that were found instead; "" without a correction
    - *tsquery*: the words in the lexicon of the site; "" if searches are not suggested
    - *days*: days for which the catalog stores searches
    - *is_typed*: whether the text may be the beginning of a longer one
    - *searches*: 0 if only the correction, or an opened hit, counts
    - *counts_opened*: whether the site counts the hits that are opened
    - *opened*: 1 if a hit of the search was opened, which is no search itself
    """

    catalog: int
    words: str
    has_results: bool
    user: str | None = None
    correction: str = ""
    tsquery: str = ""
    days: int = SEARCH_DAYS
    is_typed: bool = False
    searches: int = 1
    counts_opened: bool = False
    opened: int = 0

    @property
    def row(self) -> tuple[int, bool, str]:
        """The key of its row in the table of a day."""
        return self.catalog, self.user is not None, self.words


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
        self._worker: BatchWorker[Search] = BatchWorker("searches", self._write, LINGER)

    def put(self, search: Search) -> None:
        """Queue *search* to be counted; never waits, never fails."""
        self._worker.put(search, QUEUE_SIZE)

    def flush(self, timeout: float) -> bool:
        """Wait until everything is written, *timeout* seconds at most; return whether it is."""
        return self._worker.flush(timeout)

    def _write(self, searches: list[Search]) -> None:
        days = {search.catalog: search.days for search in searches}
        stored = {"catalogs": list(days), "days": list(days.values()), "most": SUGGESTED_DAYS, "words": SEARCH_WORDS}
        try:
            with connect(self.dsn, "searches", seconds=5) as connection:
                [(day, salt)] = connection.execute(log_sql("search_salt")).fetchall()
                with connection.cursor() as cursor:
                    rows = _rows(final([s for s in searches if not s.opened]), day, salt.bytes)
                    cursor.executemany(log_sql("count_search"), rows)
                    opened = Counter((s.catalog, s.words) for s in searches if s.opened)
                    values = [(number, catalog, day, words) for (catalog, words), number in sorted(opened.items())]
                    cursor.executemany(log_sql("count_opened"), values)
                connection.execute(log_sql("prune_searches"), stored)
                connection.execute(log_sql("forget_searchers"))
        except psycopg.Error as error:
            logger.warning("counting %d searches failed: %s", len(searches), error)


def final(searches: Sequence[Search]) -> list[Search]:
    """Return *searches* without those that the same person, or another one without a login, has typed on."""
    typed: dict[tuple[int, str | None], list[str]] = {}
    wanted = []
    for search in reversed(searches):
        if search.is_typed:
            longer = typed.setdefault((search.catalog, search.user), [])
            if any(words != search.words and words.startswith(search.words) for words in longer):
                continue
            longer.append(search.words)
        wanted.append(search)
    return wanted[::-1]


def _rows(searches: Iterable[Search], day: Any, salt: bytes) -> list[tuple[Any, ...]]:
    """Return the values of ``count_search`` for *searches*, one tuple per row of the table, in an order without deadlocks."""
    rows = []
    for key, group in groupby(sorted(searches, key=lambda search: search.row), key=lambda search: search.row):
        same = list(group)
        number = sum(search.searches for search in same)
        missed = sum(search.searches for search in same if not search.has_results)
        corrections = [search.correction for search in same if search.correction]
        hashes = list({hash_of(search, salt) for search in same if search.user is not None})[:PEOPLE]
        opened = 0 if same[-1].counts_opened else None
        more = len(corrections), (corrections or [""])[-1], opened, same[-1].tsquery, hashes, hashes, PEOPLE
        catalog, by_members, words = key
        rows.append((catalog, day, by_members, words, number, missed, *more))
    return rows


def hash_of(search: Search, salt: bytes) -> bytes:
    """Return a hash of the member of *search* with *salt*; it differs for other words, so that a member has no profile."""
    member = f"{search.catalog}\0{search.words}\0{search.user}".encode("utf-8", "surrogatepass")
    return blake2b(member, key=salt, digest_size=16).digest()


search_recorders = PerDatabase(SearchRecorder)


def record(dsn: str, catalog: int, text: str, has_results: bool, **more: Any) -> None:
    """Count a search for *text* in the catalog with tool oid *catalog* of the database *dsn*; *more*: see ``Search``."""
    if words := words_of(text):
        search_recorders[dsn].put(Search(catalog, words, has_results, **more))


def note(catalog: "Catalog", value: Any, has_results: bool) -> None:
    """Store in the request that *catalog* answered the text query *value*, and whether it *has_results*.

    Only the first text search of a request is stored, and only if the site counts searches: those of members and those of
    visitors who have not logged in, whose results are public pages, each by a setting.
    """
    other = getattr(getRequest(), "other", None)
    if other is None or NOTED in other or _view(other) not in SEARCH_VIEWS:
        return
    user = getSecurityManager().getUser().getId()
    if not (record_searches if user is None else record_member_searches)(catalog.tool):
        return
    text = value.get("query") if isinstance(value, Mapping) else value
    if isinstance(text, str) and (words := words_of(text)):
        tool, days = catalog.tool, days_of(catalog.tool)
        tsquery = _tsquery(catalog, words) if suggest_searches(tool) else ""
        counts_opened = record_opened(tool)
        search = Search(catalog.zoid, words, has_results, user, tsquery=tsquery, days=days, counts_opened=counts_opened)
        other[NOTED] = dsn_of(catalog.jar), search


def count_opened(catalog: "Catalog", text: Any) -> None:
    """Count that a hit of the search for *text* in *catalog* was opened, if the site counts that.

    Without effect for a text that is no search of today.
    """
    if not record_opened(catalog.tool) or is_read_only(catalog.jar) or not isinstance(text, str) or len(text) > LONGEST:
        return
    if words := words_of(text):
        days = days_of(catalog.tool)
        search_recorders[dsn_of(catalog.jar)].put(Search(catalog.zoid, words, True, days=days, searches=0, opened=1))


def _view(other: Mapping[str, Any]) -> str:
    """Return the name of the view or service that the request with the variables *other* is for."""
    return str(getattr(other.get("PUBLISHED"), "__name__", "")).rpartition("_")[2]


def days_of(tool: Any) -> int:
    """Return the days for which the catalog *tool* stores searches."""
    return SUGGESTED_DAYS if suggest_searches(tool) else SEARCH_DAYS


def _tsquery(catalog: "Catalog", text: str) -> str:
    """Return the tsquery for all words of *text* in the lexicon of *catalog*; "" without one."""
    index = catalog.translator(SOURCE_INDEX).index
    words = lexicon_words(index.getLexicon(), [text]) if hasattr(index, "getLexicon") else []
    return " & ".join(map(quoted, words))


def leave_out(request: Any) -> None:
    """Do not count the text search of *request*, for example because it is for a later page of the results."""
    request.other[NOTED] = None


def note_no_more(request: Any) -> None:
    """Do not count further text searches of *request*, such as those in other sites."""
    request.other.setdefault(NOTED, None)


def note_correction(request: Any, correction: str) -> None:
    """Store in *request* that its text search was answered by the hits of *correction*."""
    if noted := request.other.get(NOTED):
        dsn, search = noted
        request.other[NOTED] = dsn, replace(search, correction=words_of(correction))


def count_noted(request: Any) -> None:
    """Count the stored search of the ended *request*, if it was for the first page of results."""
    noted = request.other.get(NOTED)
    if noted is None or request.form.get("b_start") not in (None, "", 0, "0"):
        return
    dsn, search = noted
    typed = request.form.get(CORRECTED_FROM)
    if isinstance(typed, str) and (words := words_of(typed)):
        search = replace(search, words=words, correction=search.words, tsquery="", searches=0)
    search_recorders[dsn].put(replace(search, is_typed=_view(request.other) == TYPED))


def flush(timeout: float = EXIT_SECONDS) -> bool:
    """Wait until all recorders have written everything, *timeout* seconds each at most; return whether they have."""
    return False not in [recorder.flush(timeout) for recorder in search_recorders.all()]


atexit.register(flush)
