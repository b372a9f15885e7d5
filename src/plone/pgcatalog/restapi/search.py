"""``@pgsearch``: a page of results with facets, snippets and suggestions in one response."""

from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.core.searcher import bad_values
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.discovery.facet_statement import Facet
from plone.pgcatalog.discovery.facets import FACET_SECONDS
from plone.pgcatalog.discovery.suggest import did_you_mean
from plone.pgcatalog.restapi.documents import documents
from plone.pgcatalog.restapi.parameters import Parameters
from plone.restapi.serializer.converters import json_compatible
from plone.restapi.services import Service
from Products.CMFCore.utils import getToolByName
from typing import Any
from zope.component.hooks import getSite


class SearchGet(Service):
    """Searches below the context for what the user may see; see the reference for parameters and response."""

    def reply(self) -> dict[str, Any]:
        parameters = Parameters(self.context, self.request)
        catalog = getToolByName(self.context, "portal_catalog")
        query = parameters.query() | {"b_start": parameters.start, "b_size": parameters.rows}
        with bad_values():
            results = catalog.searchResults(**query)
        if limit := parameters.count_limit:
            results.count_up_to(limit)
        brains = list(results)
        total = results.actual_result_count
        snippets = {}
        if parameters.flag("snippets", True):
            snippets = results.snippets(brains, parameters.snippet_length)
        answer = {
            "@id": self.request["ACTUAL_URL"] + "?" * bool(self.request["QUERY_STRING"]) + self.request["QUERY_STRING"],
            "response": {
                "numFound": total,
                "start": parameters.start,
                "docs": documents(brains, self.request, snippets, results.highlighter()),
            },
            "portal_path": "/".join(getSite().getPhysicalPath()),
            "facet_groups": [["All", total]],
        }
        if limit:
            answer["response"]["numFoundExact"] = not results.is_limited
        answer |= self._facets(parameters, results)
        if parameters.text and (not total or parameters.flag("spellcheck", False)):
            place = {k: v for k, v in parameters.query().items() if k != "SearchableText"}
            answer["did_you_mean"] = did_you_mean(catalog, parameters.text, place)
        return answer

    def _facets(self, parameters: Parameters, results: Any) -> dict[str, Any]:
        names = list(dict.fromkeys([*parameters.facets, *parameters.conditions]))
        facets = count_facets(parameters, names, results)
        if facets is None:
            return {"facet_fields": [], "facets_timed_out": True}
        return {"facet_fields": [self._facet(parameters, name, facet) for name, facet in facets.items()]}

    def _facet(self, parameters: Parameters, name: str, facet: Facet) -> list[Any]:
        """Return [what the facet is, [[value, number of rows], …]]."""
        pairs = matching_values(parameters, name, facet)
        limit = len(pairs) if name in parameters.ranges else parameters.facet_limit(name)
        field = {"name": name, "label": name, "truncated": facet.truncated or len(pairs) > limit}
        return [field, pairs[:limit]]


def count_facets(parameters: Parameters, names: Sequence[str], results: Any) -> Mapping[str, Facet] | None:
    """Return the facets *names*, and the ranges of *parameters*, of *results*; None if counting takes too long."""
    if not names and not parameters.ranges:
        return {}
    # One more than wanted would not do where only some of the values are shown.
    parted = any(condition.get("p") for condition in parameters.conditions.values())
    limit = None if parted else max((parameters.facet_limit(name) for name in names), default=None)
    try:
        with bad_values():
            found: Mapping[str, Facet] = results.facets(
                names, ranges=parameters.ranges, exclude_own=True, limit=limit, timeout=FACET_SECONDS
            )
    except SearchTimeout:
        return None
    return found


def matching_values(parameters: Parameters, name: str, facet: Facet) -> list[list[Any]]:
    """Return [value, number of rows] of those values of *facet* that contain what *parameters* look for."""
    part = parameters.conditions.get(name, {}).get("p", "").casefold()
    pairs = [[json_compatible(value), count] for value, count in facet.items()]
    return [pair for pair in pairs if part in str(pair[0]).casefold()]
