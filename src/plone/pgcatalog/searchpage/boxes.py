"""Facets to show: the values of each facet with their titles, and the ones that are shown at first."""

from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from plone.pgcatalog.discovery.facet_groups import Facet
from plone.pgcatalog.discovery.facet_groups import Facets
from plone.pgcatalog.searchpage.facets import DateFacet
from plone.pgcatalog.searchpage.facets import FacetValue
from plone.pgcatalog.searchpage.facets import PageFacet
from plone.pgcatalog.searchpage.facets import PlaceFacet
from plone.pgcatalog.searchpage.facets import SHOWN
from plone.pgcatalog.searchpage.hits import Titles
from typing import Any


#: A facet and its values.
ValuedFacet = tuple[PageFacet, list[FacetValue]]


@dataclass(frozen=True)
class Box:
    """A facet to show: the values shown at first, and the other ones."""

    facet: PageFacet
    title: str
    shown: tuple[FacetValue, ...]
    more: tuple[FacetValue, ...]


def place_paths(facets: Iterable[PageFacet], counts: Facets, most: int) -> set[str]:
    """Return the paths, up to *most* of a facet, whose titles ``valued`` needs: places that are offered or chosen."""
    return {
        path
        for facet in facets
        if isinstance(facet, PlaceFacet)
        for path in facet.tokens_of(counts.get(facet.name) or Facet())[:most]
    }


def folders_at(catalog: Any, paths: Iterable[str]) -> dict[str, Any]:
    """Return path -> brain of the folders at *paths* that the user may see, by one statement."""
    wanted = sorted(set(paths))
    if not wanted:
        return {}
    query = {"path": {"query": wanted, "depth": 0}, "is_folderish": True}
    return {brain.getPath(): brain for brain in catalog.searchResults(**query, b_start=0, b_size=len(wanted))}


def valued(
    facets: Iterable[PageFacet], counts: Facets, titles: Titles, folders: Mapping[str, Any]
) -> list[ValuedFacet]:
    """Return *facets* with their values by *counts*; *folders* is path -> brain of the places that the user may see."""
    values = []
    for facet in facets:
        counted = counts.get(facet.name) or Facet()
        names = titles.values(facet.name, facet.tokens_of(counted), isinstance(facet, DateFacet))
        if isinstance(facet, PlaceFacet):
            names = {path: brain.Title or brain.getId for path, brain in folders.items()}
        values.append((facet, facet.values(counted, names)))
    return values


def boxes_of(facets: Iterable[ValuedFacet], total: int, titles: Titles) -> list[Box]:
    """Return the *facets* that can narrow a search with *total* hits, or already do."""
    boxes = []
    for facet, values in facets:
        if not _can_narrow(values, total):
            continue
        # Chosen values are always shown.
        chosen = [value for value in values if value.is_in_sight]
        first = chosen + [value for value in values if not value.is_in_sight]
        shown = [v for v in values if v in first[: max(SHOWN, len(chosen))]]
        more = [value for value in values if value not in shown]
        boxes.append(Box(facet, titles.facet(facet.name), tuple(shown), tuple(more)))
    return boxes


def _can_narrow(values: list[FacetValue], total: int) -> bool:
    """Return whether a choice among *values* changes the results; a single value that all hits have does not."""
    return len(values) > 1 or any(value.is_in_sight or value.count != total for value in values)
