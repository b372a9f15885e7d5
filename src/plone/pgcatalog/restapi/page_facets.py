"""Facets of the search page in the response of ``@querystring-search``: their chosen values filter the hits."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from plone.base.navigationroot import get_navigation_root
from plone.pgcatalog.core.searcher import bad_values
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.discovery.facet_groups import FacetQuery
from plone.pgcatalog.discovery.facet_groups import Facets
from plone.pgcatalog.discovery.facets import FACET_SECONDS
from plone.pgcatalog.discovery.facets import FacetCounting
from plone.pgcatalog.query.expression import WHERE
from plone.pgcatalog.query.objects import And
from plone.pgcatalog.results.loader import IDX_BATCH
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.searchpage.boxes import Box
from plone.pgcatalog.searchpage.boxes import boxes_of
from plone.pgcatalog.searchpage.boxes import folders_at
from plone.pgcatalog.searchpage.boxes import place_paths
from plone.pgcatalog.searchpage.boxes import valued
from plone.pgcatalog.searchpage.facets import FacetValue
from plone.pgcatalog.searchpage.facets import OFFERED
from plone.pgcatalog.searchpage.facets import page_facets
from plone.pgcatalog.searchpage.hits import Titles
from plone.pgcatalog.searchpage.request import site_zone
from typing import Any


#: Maximum number of facets of a request.
MOST_FACETS = 20
SORTING = ("sort_on", "sort_order", "sort_limit")


class PageFacets:
    """The facets of *chosen*, {index: chosen values}, of the unread *results* of a request in *context*.

    An index without a facet on a search page is left out: the block of a page remains if the index of a facet is removed.
    """

    def __init__(
        self, results: CatalogSearchResults, chosen: Mapping[str, Sequence[str]], context: Any, request: Any
    ) -> None:
        self._base = results
        self._catalog = results.catalog.tool
        self._titles = Titles(context, request)
        indexes = {index.getId(): index for index in self._catalog.index_objects() if index.getId() in chosen}
        zone = site_zone()
        # Years and months have a parameter of their own.
        form = {**chosen, **{f"facet.{name}": values for name, values in chosen.items()}}
        wanted = [indexes[name] for name in chosen if name in indexes]
        self._facets = page_facets(wanted, form, root=self._root(context), zone=zone, now=datetime.now(zone).year)
        expressions = ((facet.name, facet.expression()) for facet in self._facets)
        self._chosen = {name: expression for name, expression in expressions if expression is not None}

    def _root(self, context: Any) -> str:
        """Return the path whose folders are places: the searched one, if there is one, else the navigation root."""
        path = self._base.criteria.get("path")
        query = path.get("query") if isinstance(path, Mapping) else path
        paths = [query] if isinstance(query, str) else query
        root: str = get_navigation_root(context)
        return paths[0].rstrip("/") if isinstance(paths, list) and len(paths) == 1 and paths[0] else root

    @cached_property
    def results(self) -> CatalogSearchResults:
        """The results that have the chosen values."""
        if not self._chosen:
            return self._base
        criteria = self._base.criteria
        given = criteria.get(WHERE)
        where = And(*([] if given is None else [given]), *self._chosen.values())
        narrowed: CatalogSearchResults = self._catalog.searchResults({**criteria, WHERE: where})
        return narrowed

    @cached_property
    def counting(self) -> FacetCounting:
        """The running count of the values, each facet without its own chosen ones."""
        options: dict[str, Any] = {"names": [], "ranges": {}, "children": {}}
        for facet in self._facets:
            facet.count(options)
        criteria = {name: value for name, value in self._base.criteria.items() if name not in SORTING}
        with bad_values():
            query = FacetQuery(criteria, (), limit=OFFERED, chosen=self._chosen, **options)
            return FacetCounting(self._base, query, FACET_SECONDS)

    def as_json(self, total: int) -> list[dict[str, Any]]:
        """Return the facets that can narrow the *total* hits, or already do; without counts if counting takes too long."""
        try:
            counts = self.counting.value()
        except SearchTimeout:
            counts = Facets()
        folders = folders_at(self._catalog, place_paths(self._facets, counts, IDX_BATCH))
        values = valued(self._facets, counts, self._titles, folders)
        return [box_as_json(box) for box in boxes_of(values, total, self._titles)]


def box_as_json(box: Box) -> dict[str, Any]:
    """Return the facet of *box*; its first ``shown`` values are shown at first."""
    return {
        "name": box.facet.name,
        "field": box.facet.field,
        "title": box.title,
        "shown": len(box.shown),
        "values": _values((*box.shown, *box.more)),
    }


def _values(values: Iterable[FacetValue]) -> list[dict[str, Any]]:
    return [
        {
            "value": value.token,
            "title": value.title,
            "count": value.count,
            "is_chosen": value.is_chosen,
            "parts": _values(value.parts),
        }
        for value in values
    ]
