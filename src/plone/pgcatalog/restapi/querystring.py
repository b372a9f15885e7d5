"""``@querystring-search`` with facet counts: all that a search block of Volto needs, in one response.

Requests without facets get plone.restapi's response unchanged.
"""

from collections.abc import Mapping
from plone.pgcatalog.discovery.facet_groups import Facet
from plone.pgcatalog.discovery.facet_groups import visible_facets
from plone.pgcatalog.discovery.facets import LIMIT
from plone.pgcatalog.observe import searches
from plone.pgcatalog.query.objects import VALUE_ERRORS
from plone.pgcatalog.request import number_in
from plone.pgcatalog.restapi.parameters import buckets
from plone.pgcatalog.restapi.parameters import parsing
from plone.pgcatalog.restapi.search import counted
from plone.pgcatalog.restapi.search import counting_of
from plone.pgcatalog.restapi.search import EXTRA_KEY
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import Fetch
from plone.restapi.bbb import IPloneSiteRoot
from plone.restapi.deserializer import json_body
from plone.restapi.serializer.converters import json_compatible
from plone.restapi.services.querystringsearch.get import QuerystringSearchGet
from plone.restapi.services.querystringsearch.get import QuerystringSearchPost
from typing import Any
from zExceptions import BadRequest
from zope.annotation.interfaces import IAnnotations
from zope.component import getMultiAdapter


#: Maximum number of values of a facet in a response.
MOST_VALUES = 1000


class Faceted:
    """Mixin for plone.restapi's services: adds ``facets`` to the response if the request names some."""

    context: Any
    request: Any

    def reply(self) -> dict[str, Any]:
        IAnnotations(self.request)[EXTRA_KEY] = self._fetch
        answer = self._answer()
        if json_body(self.request).get("b_start") not in (None, "", 0, "0"):
            searches.leave_out(self.request)
        names, ranges, _ = self._wanted()
        if names or ranges:
            # There was no search if the query has no known index.
            answer.setdefault("facets", {name: _as_json(Facet()) for name in (*names, *ranges)})
        return answer

    def _wanted(self) -> tuple[list[str], dict[str, Any], int]:
        """Return (names of facets, ranges, number of values) of the request, for facets whose values the user may see."""
        data = json_body(self.request)
        names, ranges, limit = _names(data), _ranges(data), _limit(data)
        visible = visible_facets([*names, *ranges], self.context, self.request)
        return [n for n in names if n in visible], {name: of for name, of in ranges.items() if name in visible}, limit

    def _fetch(self, results: CatalogSearchResults) -> Fetch[dict[str, Any]]:
        """Return a fetch of the facets of *results*, as a part of the response."""
        names, ranges, limit = self._wanted()
        if not names and not ranges:
            return Fetch.of({})
        facets = counting_of(results, names, ranges, limit)
        return Fetch(lambda: _part(counted(facets)))

    def _answer(self) -> dict[str, Any]:
        """Return plone.restapi's response; raises BadRequest for an invalid query, for which plone.restapi fails."""
        try:
            answer: dict[str, Any] = super().reply()  # type: ignore[misc]
        except (*VALUE_ERRORS, AssertionError):
            data = json_body(self.request)
            if (number_in(str(data.get("b_size", 0))) or 0) < 0:
                raise BadRequest("b_size must be a number of at least 0") from None
            # Errors that are not about the query are raised again.
            with parsing():
                self._results(data)
            raise
        return answer

    def _results(self, data: dict[str, Any]) -> Any:
        """Return the results of the query in *data*; they are not read."""
        builder = getMultiAdapter((self.context, self.request), name="querybuilderresults")
        # As in plone.restapi: a page does not list itself.
        itself = None if IPloneSiteRoot.providedBy(self.context) else {"UID": {"not": self.context.UID()}}
        return builder(query=data["query"], brains=True, sort_on=data.get("sort_on"), custom_query=itself)


class FacetedGet(Faceted, QuerystringSearchGet):
    """The service for GET, with the query as JSON in the parameter ``query``."""


class FacetedPost(Faceted, QuerystringSearchPost):
    """The service for POST, with the query in the body."""


def _part(facets: Mapping[str, Facet] | None) -> dict[str, Any]:
    """Return *facets* as a part of the response; None means that counting took too long."""
    if facets is None:
        return {"facets": {}, "facets_timed_out": True}
    return {"facets": {name: _as_json(facet) for name, facet in facets.items()}}


def _names(data: Mapping[str, Any]) -> list[str]:
    names = data.get("facets") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadRequest("facets must be a list of names of indexes")
    return names


def _ranges(data: Mapping[str, Any]) -> dict[str, dict[str, tuple[Any, Any]]]:
    try:
        return buckets(data.get("facet_ranges") or {})
    except ValueError as error:
        raise BadRequest("facet_ranges must be {index: {label: [from, up to]}}") from error


def _limit(data: Mapping[str, Any]) -> int:
    limit = data.get("facet_limit", LIMIT)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 <= limit <= MOST_VALUES:
        raise BadRequest(f"facet_limit must be a number from 0 to {MOST_VALUES}")
    return limit


def _as_json(facet: Facet) -> dict[str, Any]:
    """Return the values with their numbers of rows, the most frequent first; keys are converted to strings for JSON."""
    return {"data": {json_compatible(value): count for value, count in facet.items()}, "truncated": facet.truncated}
