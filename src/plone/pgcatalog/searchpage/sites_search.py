"""The search of the search page in several sites."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import cached_property
from plone.pgcatalog.discovery.file_pages import Snippet
from plone.pgcatalog.searchpage.hits import Hit
from plone.pgcatalog.searchpage.hits import hits
from plone.pgcatalog.searchpage.searching import PageSearch
from plone.pgcatalog.searchpage.sites import merged
from plone.pgcatalog.searchpage.sites import MOST_HITS
from plone.pgcatalog.searchpage.sites import search_together
from plone.pgcatalog.searchpage.sites import shown
from plone.pgcatalog.searchpage.sites import Site
from plone.pgcatalog.searchpage.sites import SiteHits
from typing import Any
from typing import Self


class HitList(list[Any]):
    """Brains of one page, with the number of all hits that pages show."""

    actual_result_count = 0


@dataclass(frozen=True)
class SitesSearch(PageSearch):
    """The search of *page* in its site, and in *parts*: merged hits of the sites *shown*, or hits of its own site alone.

    The hits ``[first:first + most]`` of the merged ones are on the page.
    """

    page: Any = None
    parts: Sequence[SiteHits] = ()
    first: int = 0
    most: int = 0

    @classmethod
    def of(cls, page: Any, text: str, start: int, size: int) -> Self:
        """Return the search of *page*, a SiteSearch, for *text*."""
        is_merged = page.is_merged
        window = min(start + size, MOST_HITS) if is_merged else 1

        def find(portal: Any) -> tuple[Any, Any]:
            there = page.in_site(portal)
            return there, PageSearch(**there.arguments(text, 0, window, is_part=True)).results

        own = SiteHits(page.sites[0], lambda portal: (page, search.results))
        parts = [*([own] if is_merged else []), *(SiteHits(site, find) for site in page.sites[1:])]
        arguments = page.arguments(text, 0, window, is_part=True) if is_merged else page.arguments(text, start, size)
        # A part searches when the search exists.
        search = cls(**arguments, page=page, parts=parts, first=start, most=size)
        return search

    @cached_property
    def _searched(self) -> Sequence[SiteHits]:
        """The parts, after the search in all sites."""
        read_own = self.parts[0].read if self.page.is_merged else lambda: self.results.read_first(1)
        search_together(self.catalog._core.session, self.parts, read_own, self.page.request)
        return self.parts

    @cached_property
    def _shown(self) -> list[SiteHits]:
        """The parts whose hits are shown."""
        chosen = self.page.site_facet.tokens
        return [part for part in self._searched if not chosen or part.site.name in chosen]

    @property
    def failed(self) -> list[Site]:
        """The sites in which the search has failed."""
        return [part.site for part in self._searched if part.has_failed]

    def read(self) -> None:
        """See PageSearch."""
        _ = self._searched

    @property
    def is_empty(self) -> bool:
        """See PageSearch."""
        return not self.total if self.page.is_merged else super().is_empty

    @cached_property
    def total(self) -> int:
        """See PageSearch."""
        return sum(part.total for part in self._shown) if self.page.is_merged else super().total

    @property
    def is_limited(self) -> bool:
        """See PageSearch."""
        return any(part.is_limited for part in self._shown) if self.page.is_merged else super().is_limited

    @cached_property
    def site_counts(self) -> dict[str, int]:
        """The number of hits by name of the site; sites without hits are left out."""
        own = {} if self.page.is_merged else {self.page.sites[0].name: self.total}
        counts = own | {part.site.name: part.total for part in self._searched}
        return {name: count for name, count in counts.items() if count}

    @cached_property
    def _page_hits(self) -> list[tuple[SiteHits, Any]]:
        return merged(self._shown)[self.first :][: self.most]

    @cached_property
    def listed(self) -> Any:
        """See PageSearch."""
        if not self.page.is_merged:
            return self.results
        listed = HitList(brain for _, brain in self._page_hits)
        listed.actual_result_count = min(self.total, MOST_HITS)
        return listed

    def hits(self, find_folders: Callable[[], Mapping[str, Any]]) -> list[Hit]:
        """Return the merged hits of the page; the folders that *find_folders* returns are read along with their texts."""

        def show(part: SiteHits, brains: list[Any], texts: Mapping[int, Snippet], marks: Any) -> list[Hit]:
            found = hits(part.finder, brains, texts, find_folders() if part.site.is_own else {}, marks)
            return [_with_site(hit, part.site) for hit in found]

        return shown(self.catalog._core.session, self._page_hits, show, read_more=find_folders)


def _with_site(hit: Hit, site: Site) -> Hit:
    """Return *hit* with its *site* as the outermost folder, and without links that only its own site can answer."""
    hit = replace(hit, crumbs=((site.title, site.url), *hit.crumbs))
    return hit if site.is_own else replace(hit, uid="", author="", author_id="")
