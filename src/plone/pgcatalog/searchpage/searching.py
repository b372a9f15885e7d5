"""One search of the search page: its rows, their highlighting, and the counts of its facets."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from functools import cached_property
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.discovery.facet_groups import FacetQuery
from plone.pgcatalog.discovery.facet_groups import Facets
from plone.pgcatalog.discovery.facets import FACET_SECONDS
from plone.pgcatalog.discovery.facets import FacetCounting
from plone.pgcatalog.discovery.file_pages import Snippet
from plone.pgcatalog.discovery.passages import also_about
from plone.pgcatalog.discovery.passages import AlsoAbout
from plone.pgcatalog.discovery.similar import more_like_this
from plone.pgcatalog.discovery.snippets import snippets
from plone.pgcatalog.discovery.suggest import correct
from plone.pgcatalog.discovery.suggest import Correction
from plone.pgcatalog.discovery.suggest import titles_of
from plone.pgcatalog.query.criteria import expression_in
from plone.pgcatalog.query.expression import Expression
from plone.pgcatalog.query.expression import WHERE
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.searchpage.facets import OFFERED
from plone.pgcatalog.searchpage.facets import PageFacet
from plone.pgcatalog.settings import SOURCE_INDEX
from typing import Any


SORTING = ("sort_on", "sort_order", "sort_limit")
#: Maximum number of pages similar to one page.
MOST_SIMILAR = 50


@dataclass(frozen=True)
class PageSearch:
    """The search of *catalog*, a tool, by the query dict *base* and the values chosen in *facets*.

    *start* and *size* are the part of the hits on the page; *similar* is the UID of a page that the hits are similar to.
    Everything is lazy: nothing is queried before it is used.
    """

    catalog: Any
    base: Mapping[str, Any]
    facets: Sequence[PageFacet]
    start: int
    size: int
    similar: str | None = None
    #: maximum number of hits that are counted, 0 for all
    limit: int = 0
    #: False if the facets only filter the search, and another request counts their values
    counts_facets: bool = True
    _corrections: dict[str, Fetch[Correction | None]] = field(default_factory=dict)

    @cached_property
    def _criteria(self) -> dict[str, Any]:
        """The base, with the criterion of similarity."""
        if self.similar is None:
            return dict(self.base)
        with self.catalog._core.session.batch():
            similar = more_like_this(self.catalog, self.similar, MOST_SIMILAR, self.base)
            self._similar_page.read_first(1)
        return {**self.base, WHERE: expression_in(similar.value().criteria)}

    @cached_property
    def similar_title(self) -> str | None:
        """The title of the page that the hits are similar to; None if the visitor may not see it."""
        return next((brain.Title for brain in self._similar_page), None) if self.similar else None

    @cached_property
    def _similar_page(self) -> Any:
        """The page that the hits are similar to, as a search result."""
        return self._part({"UID": self.similar}, 0, 1)

    @cached_property
    def _chosen(self) -> dict[str, Expression]:
        expressions = ((facet.name, facet.expression()) for facet in self.facets)
        return {name: expression for name, expression in expressions if expression is not None}

    @cached_property
    def _query(self) -> dict[str, Any]:
        """The whole query dict."""
        query = dict(self._criteria)
        if self._chosen:
            given = query.get(WHERE)
            query[WHERE] = And(*([] if given is None else [given]), *self._chosen.values())
        return query

    @cached_property
    def results(self) -> Any:
        """The results of the page; without counted facets, the number of hits is counted in the same round trip."""
        results = self._part(self._query, self.start, self.size)
        if self.limit:
            results.count_up_to(self.limit)
        if self._counting is None:
            results.count_with_page()
        return results

    @property
    def listed(self) -> Any:
        """The hits of the page, with the number of all as ``actual_result_count``."""
        return self.results

    def compile(self) -> Any:
        """Return the unread results; reading them reads the counts of the facets as well."""
        return self.results

    def _part(self, query: Mapping[str, Any], start: int, size: int) -> Any:
        """Return the hits of *query* from *start* on, *size* of them at most."""
        return self.catalog.searchResults(**query, b_start=start, b_size=size)

    def read(self) -> None:
        """Read the page, the statements of an open batch, and the counts of the facets, in one round trip."""
        with self.catalog._core.session.batch():
            self.results.read_first(1)

    @property
    def is_empty(self) -> bool:
        """True if there are no hits; an empty page further back is checked by the total."""
        return not self.results and (self.start == 0 or self.total == 0)

    @cached_property
    def total(self) -> int:
        """The number of hits, up to ``limit``; taken from the facets if they are counted."""
        total: int | None = self.counts.total
        if total is None:
            return int(self.results.actual_result_count)
        self.results.actual_result_count = total
        return total

    @property
    def is_limited(self) -> bool:
        """True if there are more hits than ``total``."""
        return self.total == self.limit > 0 and bool(self.results.is_limited)

    @cached_property
    def highlighter(self) -> Any:
        """The highlighter of the words of the search; false if there are no words."""
        return self.results.highlighter()

    def look_up(self, text: str) -> None:
        """Add the corrections of *text* to the open batch, for ``better``."""
        self._corrections[text] = correct(self.catalog, text, self._place)

    def better(self, text: str) -> str | None:
        """Return a correction of *text* from words in content that the user may see; None if there is no correction.

        A search for it may have no results.
        """
        better = self._correction(text)
        return None if better is None else better.text

    def _correction(self, text: str) -> Correction | None:
        if text not in self._corrections:
            self.look_up(text)
        return self._corrections[text].value()

    def spelled(self, text: str, meant: "PageSearch") -> str:
        """Return the correction of *text*, spelled as in the hits of *meant*, the search for it; *text* if there is none."""
        better = self._correction(text)
        return text if better is None else better.spelled(titles_of(meant.results))

    @property
    def _place(self) -> dict[str, Any]:
        """The query without its text and order: the filter of the rows whose words are candidates for a correction."""
        return {name: value for name, value in self._query.items() if name not in (SOURCE_INDEX, *SORTING)}

    def snippets(self, brains: Iterable[Any]) -> Fetch[dict[int, Snippet]]:
        """Return a fetch of record id -> HTML for *brains*, hits of this page; see ``discovery.snippets``."""
        return snippets(self.results, brains) if self.highlighter else Fetch.of({})

    def also(self) -> Fetch[list[AlsoAbout]]:
        """Return a fetch of pages about the same topic without the words, on the first page only; see ``also_about``."""
        return also_about(self.results) if self.start == 0 and self.similar is None else Fetch.of([])

    @cached_property
    def _counting(self) -> FacetCounting | None:
        """The running count of the facets; None if no facet is counted."""
        if not self.facets or not self.counts_facets:
            return None
        options: dict[str, Any] = {"names": [], "ranges": {}, "children": {}}
        for facet in self.facets:
            facet.count(options)
        query = {k: v for k, v in self._criteria.items() if k not in SORTING}
        results = self.catalog.searchResults(query, b_size=0)
        facets = FacetQuery(results.criteria, results.sort, limit=OFFERED, chosen=self._chosen, **options)
        return FacetCounting(results, facets, FACET_SECONDS)

    @cached_property
    def counts(self) -> Facets:
        """The counted facets by index; empty if counting took too long."""
        self.read()
        try:
            return Facets() if self._counting is None else self._counting.value()
        except SearchTimeout:
            return Facets()
