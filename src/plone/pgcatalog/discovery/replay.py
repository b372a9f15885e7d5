"""Replay: the most frequent searches of visitors with the saved settings and with others, and what changes in their hits."""

from AccessControl.SecurityManagement import getSecurityManager
from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SecurityManagement import setSecurityManager
from AccessControl.SpecialUsers import nobody
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.discovery.preview import searched_with
from plone.pgcatalog.fulltext.typed import search_text
from plone.pgcatalog.meaning.question import as_site_searches
from plone.pgcatalog.observe.search_lists import read_searches
from plone.pgcatalog.observe.search_lists import SearchCount
from plone.pgcatalog.observe.search_lists import top_searches
from plone.pgcatalog.settings import SOURCE_INDEX
from Products.CMFPlone.browser.search import Search
from time import monotonic
from typing import Any


#: Most searches that are replayed, first hits that are compared, and seconds after which no further search begins.
MOST_REPLAYED, FIRST, SECONDS = 50, 5, 10.0


@dataclass(frozen=True, slots=True)
class Hits:
    """The first hits of a search, as record ids, and the number of all hits."""

    first: tuple[int, ...]
    total: int


@dataclass(frozen=True, slots=True)
class ReplayedSearch:
    """A *counted* search, with its hits *before* and *after* the change of settings."""

    counted: SearchCount
    before: Hits
    after: Hits

    @property
    def has_other_first(self) -> bool:
        return self.before.first[:1] != self.after.first[:1]

    @property
    def has_other_five(self) -> bool:
        return self.before.first != self.after.first

    @property
    def has_other_total(self) -> bool:
        return self.before.total != self.after.total

    @property
    def is_changed(self) -> bool:
        return self.has_other_five or self.has_other_total


@dataclass(frozen=True, slots=True)
class Replay:
    """The replayed *searches*; *left* is the number of searches for which the time was too short."""

    searches: tuple[ReplayedSearch, ...]
    left: int = 0

    @property
    def changed(self) -> list[ReplayedSearch]:
        return [search for search in self.searches if search.is_changed]

    def figures(self) -> dict[str, int]:
        """Return the numbers of searches: all, and those with another first hit, other first five hits, another total."""
        return {
            "searches": len(self.searches),
            "first": sum(search.has_other_first for search in self.searches),
            "five": sum(search.has_other_five for search in self.searches),
            "total": sum(search.has_other_total for search in self.searches),
        }


def visitors_query(site: Any, request: Any, text: str) -> dict[str, Any]:
    """Return the query dict of the search page of *site* for the typed *text*, in the order of relevance."""
    query = Search(site, request).filter_query({SOURCE_INDEX: text}) or {}
    query = {name: value for name, value in query.items() if not name.startswith("sort_")}
    return as_site_searches(site.portal_catalog, {**query, SOURCE_INDEX: search_text(text)})


def frequent_searches(tool: Any) -> list[SearchCount]:
    """Return the most frequent searches that the site of the catalog *tool* has counted, MOST_REPLAYED at most."""
    read = read_searches(tool, MOST_REPLAYED)
    return [] if read is None else top_searches(read.value()).top


def replay(
    site: Any, request: Any, searches: Sequence[SearchCount], settings: Mapping[str, Any], seconds: float = SECONDS
) -> Replay:
    """Return the replay of the first MOST_REPLAYED *searches* on *site*, for its anonymous visitors.

    *settings*, name -> value, replace those of the site and are not saved.  Two statements for each search, in one round trip.
    No search begins after *seconds*; a search that exceeds the time limit of searches counts as one that is left.
    """
    searches, end = searches[:MOST_REPLAYED], monotonic() + seconds
    replayed = []
    with as_visitor(site):
        # The types and the place are the same for all texts.
        base = visitors_query(site, request, "a") if searches else {}
        for counted in searches:
            if monotonic() >= end:
                break
            try:
                replayed.append(_replayed(site.portal_catalog, base, counted, settings))
            except SearchTimeout:
                continue
    return Replay(tuple(replayed), len(searches) - len(replayed))


def _replayed(tool: Any, base: Mapping[str, Any], counted: SearchCount, settings: Mapping[str, Any]) -> ReplayedSearch:
    query = {**base, SOURCE_INDEX: search_text(counted.words), "b_start": 0, "b_size": FIRST}
    before = tool.searchResults(**query)
    after = searched_with(tool, query, before, settings)
    with tool._core.session.batch():
        for results in (before, after):
            results.count_with_page()
            results.read_first(1)
    return ReplayedSearch(counted, _hits(before), _hits(after))


def _hits(results: Any) -> Hits:
    return Hits(tuple(brain.getRID() for brain in results[:FIRST]), results.actual_result_count)


@contextmanager
def as_visitor(site: Any) -> Iterator[None]:
    """Act as an anonymous visitor of *site* within the block."""
    before = getSecurityManager()
    newSecurityManager(None, nobody.__of__(site.acl_users))
    try:
        yield
    finally:
        setSecurityManager(before)
