"""``@pgsearch`` with ``search_page=1``: the site's search page as JSON, for the addresses of the page in Classic UI."""

from collections.abc import Iterator
from functools import cached_property
from plone.pgcatalog.core.searcher import bad_values
from plone.pgcatalog.restapi.page_facets import box_as_json
from plone.pgcatalog.searchpage.hits import Hit
from plone.pgcatalog.searchpage.page import SiteSearch
from plone.pgcatalog.searchpage.request import Address
from plone.pgcatalog.searchpage.request import ALONE
from plone.pgcatalog.searchpage.request import Pair
from plone.pgcatalog.searchpage.request import plain
from plone.pgcatalog.searchpage.request import WITH_PAGE
from plone.pgcatalog.settings import record_opened
from plone.restapi.interfaces import ISerializeToJsonSummary
from typing import Any
from urllib.parse import parse_qsl
from zope.component import getMultiAdapter
from zope.component.hooks import getSite


#: The parameter that requests the search page.
SEARCH_PAGE = "search_page"


class SearchPageData(SiteSearch):
    """The search page of a request of Volto; its links are query strings, with the parameters of the page in Classic UI.

    A ``path`` of Volto starts at the site; a path of the catalog starts at Zope's root.  Both are accepted.
    """

    def __init__(self, context: Any, request: Any) -> None:
        super().__init__(context, request)
        if isinstance(path := request.form.get("path"), str):
            request.form["path"] = [path]
        if isinstance(paths := request.form.get("path"), list) and all(isinstance(path, str) for path in paths):
            request.form["path"] = list(filter(None, map(self._physical, paths)))

    def own_address(self) -> Address:
        """See PageRequest."""
        return Address("", tuple(self._pairs()))

    def _pairs(self) -> Iterator[Pair]:
        for name, value in parse_qsl(self.request.get("QUERY_STRING", ""), keep_blank_values=True):
            if plain(name) == "path":
                if path := self._physical(value):
                    yield "path:list", path
            elif name != SEARCH_PAGE:
                yield name, value

    def _physical(self, path: str) -> str:
        """Return *path* as a path of the catalog; "" for the searched root."""
        path = path.rstrip("/")
        if path != self._site_path and not path.startswith(f"{self._site_path}/"):
            path = f"{self._site_path}/{path.lstrip('/')}".rstrip("/")
        return "" if path in (self._site_path, self.root) else path

    @cached_property
    def _site_path(self) -> str:
        return "/".join(getSite().getPhysicalPath())


def search_page(context: Any, request: Any) -> dict[str, Any]:
    """Return the search page of *request* as JSON data.  Raises BadRequest for values that the indexes cannot read."""
    page = SearchPageData(context, request)
    with bad_values():
        page.update()
        facets = {
            "@id": request["ACTUAL_URL"],
            "facets": [box_as_json(box) for box in page.boxes],
            "chips": [{"title": chip.title, "value": chip.value, "query": chip.url} for chip in page.chips],
        }
        if page.facets_are(ALONE):
            return facets
        return {
            **facets,
            **_search(page),
            "items": [_hit(page, hit) for hit in page.hits],
            "also_about": [_hit(page, hit) for hit in page.also],
            "facets_follow": page.facets_follow,
            "pages": _pages(page),
            "links": {
                "along": page.facets_url(WITH_PAGE) if page.facets_follow else None,
                "rss": page.rss_url,
                "as_typed": page.as_typed_url if page.corrected else None,
                "suggestion": page.suggestion_url if page.suggestion else None,
                "unfiltered": page.unfiltered_url,
            },
            "hidden_fields": [list(field) for field in page.hidden_fields()],
        }


def _search(page: SiteSearch) -> dict[str, Any]:
    """Return the texts, the number of hits, and the choices of order and size of *page*."""
    return {
        "text": page.text,
        "counts_opened": bool(page.text and record_opened(page.catalog)),
        "corrected": page.corrected,
        "suggestion": page.suggestion,
        "has_stop_words_only": not page.found.total and page.has_stop_words_only,
        "items_total": page.found.total,
        "items_total_exact": not page.found.is_limited,
        **({"failed_sites": [site.title for site in page.failed_sites]} if page.sites else {}),
        "start": page.start,
        "size": page.size,
        "sizes": list(page.sizes),
        "sort": [
            {"value": key, "title": page.titles.translated(title), "is_chosen": is_chosen}
            for key, title, is_chosen in page.sort_choices()
        ],
    }


def _hit(page: SiteSearch, hit: Hit) -> dict[str, Any]:
    """Return plone.restapi's summary of *hit*, with what the page shows besides."""
    summary: dict[str, Any] = getMultiAdapter((hit.brain, page.request), ISerializeToJsonSummary)()
    return summary | {
        "highlighting": {"Title": [hit.title], "text": [hit.text] if hit.text else []},
        "file_page": {"title": hit.file_page, "url": hit.file_page_url} if hit.file_page else None,
        "type_title": hit.kind,
        "author": hit.author,
        "published": hit.published,
        "modified": hit.modified,
        "breadcrumbs": [{"title": title, "@id": url} for title, url in hit.crumbs],
        "tags": [{"title": tag, "query": page.tag_url(tag)} for tag in hit.tags],
        "similar": page.similar_url(hit) if hit.uid else None,
        "is_pinned": hit.is_pinned,
    }


def _pages(page: SiteSearch) -> list[dict[str, Any]]:
    """Return the links to other pages of results, in the order of the page; [] if there is one page only."""
    batch = page.batch
    if not batch or not batch.multiple_pages:
        return []
    links = [(number, str(number), page.paging_rel()) for number in page.page_numbers]
    if batch.has_previous:
        links.insert(0, (batch.previouspage, "previous", page.paging_rel("prev")))
    if batch.has_next:
        links.append((batch.nextpage, "next", page.paging_rel("next")))
    return [
        {"label": label, "query": page.page_url(number), "rel": rel, "is_present": number == batch.pagenumber}
        for number, label, rel in links
    ]
