"""The search page of a site: the search, the correction of a text without hits, facets, chips and links to other pages."""

from Acquisition import aq_inner
from Acquisition import aq_parent
from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from plone.app.contentlisting.interfaces import IContentListing
from plone.base.batch import Batch
from plone.pgcatalog.core.searcher import bad_values
from plone.pgcatalog.discovery.passages import folders_above
from plone.pgcatalog.i18n import _
from plone.pgcatalog.observe import searches
from plone.pgcatalog.observe.searches import CORRECTED_FROM
from plone.pgcatalog.results.loader import IDX_BATCH
from plone.pgcatalog.searchpage.boxes import Box
from plone.pgcatalog.searchpage.boxes import boxes_of
from plone.pgcatalog.searchpage.boxes import folders_at
from plone.pgcatalog.searchpage.boxes import place_paths
from plone.pgcatalog.searchpage.boxes import valued
from plone.pgcatalog.searchpage.boxes import ValuedFacet
from plone.pgcatalog.searchpage.facets import PageFacet
from plone.pgcatalog.searchpage.facets import PlaceFacet
from plone.pgcatalog.searchpage.facets import SiteFacet
from plone.pgcatalog.searchpage.hits import Hit
from plone.pgcatalog.searchpage.hits import hits
from plone.pgcatalog.searchpage.hits import Titles
from plone.pgcatalog.searchpage.request import Address
from plone.pgcatalog.searchpage.request import ALONE
from plone.pgcatalog.searchpage.request import AS_TYPED
from plone.pgcatalog.searchpage.request import FACETS
from plone.pgcatalog.searchpage.request import FORM_FIELDS
from plone.pgcatalog.searchpage.request import PageRequest
from plone.pgcatalog.searchpage.request import Pair
from plone.pgcatalog.searchpage.request import plain
from plone.pgcatalog.searchpage.request import SIMILAR
from plone.pgcatalog.searchpage.request import SIZES
from plone.pgcatalog.searchpage.request import WITH_PAGE
from plone.pgcatalog.searchpage.searching import PageSearch
from plone.pgcatalog.searchpage.searching import SORTING
from plone.pgcatalog.searchpage.sites import Site
from plone.pgcatalog.searchpage.sites import sites_of
from plone.pgcatalog.searchpage.sites_search import SitesSearch
from plone.pgcatalog.settings import all_sites
from plone.pgcatalog.settings import count_limit
from plone.pgcatalog.settings import SOURCE_INDEX
from typing import Any

import logging


logger = logging.getLogger(__name__)

#: Number of pages before and after the present one that have a link.
NEIGHBOURS = 2
#: Minimum number of offered places whose titles are looked up, however many folders the hits have.
FEWEST_PLACES = 20
#: Number of rows of a catalog up to which the page waits for its facets.
QUICK_ROWS = 30_000


def if_possible(better: Callable[[], str | None]) -> str | None:
    """Return the result of *better*; if it fails, log a warning and return None: the page works without it."""
    try:
        return better()
    except Exception:  # whatever the error, the rest of the page must be delivered
        logger.warning("no suggestion for the search page", exc_info=True)
        return None


@dataclass(frozen=True)
class Chip:
    """A filter of the search, and the URL of the page without it."""

    title: str
    value: str
    url: str


class SiteSearch(PageRequest):
    """The search of a request for the search page, and everything that the page shows of it; ``update`` searches."""

    sizes = SIZES
    #: the corrected text that was searched for, because the typed text has no results
    corrected: str | None = None
    #: the corrected text, if the typed one has no results and the request does not want it corrected
    suggestion: str | None = None

    def update(self) -> None:
        """Search for the text and, if it has no results, for its correction."""
        self.address = self.address_of_links()
        if self._is_repeated:
            searches.leave_out(self.request)
        session = self.catalog._core.session
        with session.batch(across=bool(self.sites)):
            with bad_values():
                self.found = self._search(self.text)
                self.found.compile()
            self.found.read()
        if not self.text or not self.found.is_empty:
            return
        better = if_possible(lambda: self.found.better(self.text))
        if not better:
            return
        meant = self._search(better)
        meant.read()
        # The correction may have no results: the page takes operators as words, and all words as prefixes.
        if meant.is_empty:
            return
        better = if_possible(lambda: self.found.spelled(self.text, meant)) or better
        if self.request.form.get(AS_TYPED) == self.text:
            self.suggestion = better
        else:
            self.corrected, self.found = better, meant
            searches.note_correction(self.request, better)

    @property
    def _is_repeated(self) -> bool:
        """True if the text was already searched for: the request is for facets, by their values, or for the text as typed."""
        is_narrowed = any(facet.tokens for facet in self._filters if not isinstance(facet, PlaceFacet))
        return is_narrowed or self.facets_are(ALONE) or self.request.form.get(AS_TYPED) == self.text

    def _search(self, text: str) -> PageSearch:
        start, size = (0, 1) if self.facets_are(ALONE) else (self.start, self.size)
        if self.sites:
            return SitesSearch.of(self, text, start, size)
        return PageSearch(**self.arguments(text, start, size))

    def arguments(self, text: str, start: int, size: int, is_part: bool = False) -> dict[str, Any]:
        """Return the arguments of a PageSearch for *text* in this site.

        *is_part*: it is part of a search in several sites, whose hits are ranked, and whose facets are not counted.
        """
        base = self.base(text)
        if is_part:
            base = {name: value for name, value in base.items() if name not in SORTING}
        return {
            "catalog": self.catalog,
            "base": base,
            "facets": self.facets,
            "start": start,
            "size": size,
            "similar": self.similar,
            "limit": count_limit(self.catalog),
            "counts_facets": not is_part and not self._is_large,
        }

    def in_site(self, portal: Any) -> "SiteSearch":
        """Return the same search in another site, *portal*."""
        return SiteSearch(portal, self.request)

    @cached_property
    def sites(self) -> list[Site]:
        """The sites that are searched, this one first; [] if this one is searched alone, as without a text."""
        if not self.text or self.similar or not all_sites(self.catalog):
            return []
        sites = sites_of(aq_parent(aq_inner(self.catalog)))
        return sites if len(sites) > 1 else []

    @cached_property
    def site_facet(self) -> SiteFacet | None:
        """The facet of the sites; None if this one is searched alone."""
        return SiteFacet([site.name for site in self.sites], self.request.form) if self.sites else None

    @property
    def failed_sites(self) -> list[Site]:
        """The sites in which the search has failed."""
        return self.found.failed if isinstance(self.found, SitesSearch) else []

    @property
    def is_merged(self) -> bool:
        """True if the page shows hits of other sites."""
        return self.site_facet is not None and self.site_facet.tokens != [self.sites[0].name]

    @property
    def _filters(self) -> list[PageFacet]:
        return [*([] if self.site_facet is None else [self.site_facet]), *self.facets]

    @cached_property
    def _is_large(self) -> bool:
        """True if the page does not wait for the counts of its facets."""
        if not self.facets or self.is_merged or self.facets_are(WITH_PAGE) or self.facets_are(ALONE):
            return False
        return bool(self.catalog._core.search_view().rows > QUICK_ROWS)

    @cached_property
    def facets_follow(self) -> bool:
        """True if facets are loaded after the page: by its script or, without scripts, by a link."""
        return self._is_large and (self.found.total > 1 or any(facet.tokens for facet in self.facets))

    @property
    def has_stop_words_only(self) -> bool:
        """True if the text consists of stop words, which are not searched for alone."""
        results = self.found.results
        text_index = results.context.indexes.get(SOURCE_INDEX)
        return text_index is not None and not text_index.has_meaning(results.criteria, results.context)

    # -- for the page

    @cached_property
    def titles(self) -> Titles:
        return Titles(self.context, self.request)

    @cached_property
    def batch(self) -> Any:
        # The total is read first, so that the batch need not count.
        return Batch(IContentListing(self.found.listed), self.size, self.start) if self.found.total else ()

    def paging_rel(self, *rel: str) -> str | None:
        """Return the ``rel`` of a link to another page of results; "nofollow" for crawlers if the search is filtered."""
        is_narrowed = self.similar or self.facets_are(WITH_PAGE) or any(facet.tokens for facet in self._filters)
        return " ".join((*rel, "nofollow") if is_narrowed else rel) or None

    @property
    def page_numbers(self) -> list[int]:
        """The numbers of the pages with a link: the first, the last, and those around the present one."""
        last, present = self.batch.numpages, self.batch.pagenumber
        return [n for n in range(1, last + 1) if n in (1, last) or abs(n - present) <= NEIGHBOURS]

    @cached_property
    def _brains(self) -> list[Any]:
        return [item.getDataOrigin() for item in self.batch]

    @cached_property
    def _folders(self) -> dict[str, Any]:
        """Brains of the folders on the page, by path: of the hits, and of the place facet."""
        paths = {path for brain in self._brains for path in folders_above(brain.getPath(), self.root)}
        room = max(FEWEST_PLACES, IDX_BATCH - len(paths))
        return folders_at(self.catalog, paths | place_paths(self.facets, self.found.counts, room))

    @cached_property
    def hits(self) -> list[Hit]:
        return self._listed[0]

    @cached_property
    def also(self) -> list[Hit]:
        """The pages about the topic of the search that do not contain its words; their texts are passages."""
        return self._listed[1]

    @cached_property
    def _listed(self) -> tuple[list[Hit], list[Hit]]:
        """The hits of the page, and those of ``also``, read in one round trip."""
        if self.is_merged and isinstance(self.found, SitesSearch):
            return self.found.hits(lambda: self._folders), []
        with self.catalog._core.session.batch():
            snippets, also = self.found.snippets(self._brains), self.found.also()
            folders = self._folders
        pages = also.value()
        passages = {page.brain.getRID(): page.passage for page in pages}
        marks = self.found.highlighter
        listed = hits(self, self._brains, snippets.value(), folders, marks)
        whole = marks.of_whole_words() if marks else None
        return listed, hits(self, [page.brain for page in pages], passages, {}, whole)

    @cached_property
    def _values(self) -> list[ValuedFacet]:
        values = valued(self.facets, self.found.counts, self.titles, self._folders)
        if self.site_facet is None or not isinstance(self.found, SitesSearch):
            return values
        titles = {site.name: site.title for site in self.sites}
        return [(self.site_facet, self.site_facet.values(self.found.site_counts, titles)), *values]

    @cached_property
    def boxes(self) -> list[Box]:
        """The facets that can narrow the search, or already do."""
        return boxes_of(self._values, self.found.total, self.titles)

    @cached_property
    def chips(self) -> list[Chip]:
        """The filters of the search: a page that hits are similar to, and chosen values."""
        address = self.address.without("b_start")
        chips = []
        if self.similar:
            title = self.found.similar_title or self.similar
            chips.append(Chip(self.titles.translated(_("Similar to")), title, str(address.without(SIMILAR))))
        for facet, values in self._values:
            title = self.titles.facet(facet.name)
            for value in facet.chosen(values):
                url = str(address.without_values(facet.parameter, facet.removed(value.token)))
                chips.append(Chip(title, value.title, url))
        return chips

    @property
    def suggestion_url(self) -> str:
        """The URL of the search for the suggestion, which counts as a correction."""
        address = self.address.without("b_start", AS_TYPED, SOURCE_INDEX).having(SOURCE_INDEX, self.suggestion or "")
        return str(address.having(CORRECTED_FROM, self.text))

    def similar_url(self, hit: Hit) -> str:
        """Return the URL of the search for pages similar to *hit*."""
        return str(Address(self.address.url).having(SIMILAR, hit.uid))

    def hidden_fields(self) -> Iterator[Pair]:
        """Yield the other parameters of the address, which the form must preserve."""
        shown = {*FORM_FIELDS, *(facet.parameter for facet in self._filters)}
        for name, value in self.address.pairs:
            if plain(name) not in shown:
                yield name, value
        if self.similar:
            yield SIMILAR, self.similar
        if self.request.form.get(AS_TYPED) == self.text:
            yield AS_TYPED, self.text
        if self.facets_are(WITH_PAGE):
            yield FACETS, WITH_PAGE

    def sort_choices(self) -> list[tuple[str, Any, bool]]:
        """Return (key, title, is chosen) of the sort orders; [] for similar pages and several sites, which have one order."""
        if self.similar or self.is_merged:
            return []
        chosen = self.request.form.get("sort_on") or (self.default_sort_on if self.text else "Date")
        options = [(option.sortkey, option.title) for option in self.sort_options()]
        return [(key, title, key == chosen) for key, title in options if self.text or key != "relevance"]
