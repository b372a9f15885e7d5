"""``@querystring-search`` with facet counts: what a search block of Volto needs, in one response.

Requests that ask for no facets get plone.restapi's answer as it is.
"""

from collections.abc import Mapping
from plone.pgcatalog.discovery.facet_groups import Facet
from plone.pgcatalog.discovery.facet_groups import told_facets
from plone.pgcatalog.discovery.facets import LIMIT
from plone.pgcatalog.query.objects import VALUE_ERRORS
from plone.pgcatalog.request import number_in
from plone.pgcatalog.restapi.parameters import buckets
from plone.pgcatalog.restapi.parameters import parsing
from plone.pgcatalog.restapi.search import counted
from plone.pgcatalog.restapi.search import counting_of
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.restapi.bbb import IPloneSiteRoot
from plone.restapi.deserializer import json_body
from plone.restapi.serializer.converters import json_compatible
from plone.restapi.services.querystringsearch.get import QuerystringSearchGet
from plone.restapi.services.querystringsearch.get import QuerystringSearchPost
from typing import Any
from zExceptions import BadRequest
from zope.component import getMultiAdapter


#: The most values of a facet that are answered.
MOST_VALUES = 1000


class Faceted:
    """Mixed into plone.restapi's services: adds ``facets`` to the answer if the request names some."""

    context: Any
    request: Any

    def reply(self) -> dict[str, Any]:
        answer = self._answer()
        data = json_body(self.request)
        names, ranges, limit = _names(data), _ranges(data), _limit(data)
        if names or ranges:
            told = told_facets([*names, *ranges], self.context, self.request)
            names = [name for name in names if name in told]
            ranges = {name: of for name, of in ranges.items() if name in told}
            answer |= self._facets(self._results(data), names, ranges, limit)
        return answer

    def _answer(self) -> dict[str, Any]:
        """Return plone.restapi's answer; raises BadRequest for a query that means nothing, where that one is an error."""
        try:
            answer: dict[str, Any] = super().reply()  # type: ignore[misc]
        except (*VALUE_ERRORS, AssertionError):
            data = json_body(self.request)
            if (number_in(str(data.get("b_size", 0))) or 0) < 0:
                raise BadRequest("b_size is a number from 0") from None
            # An error of anything but the query stays one.
            with parsing():
                self._results(data)
            raise
        return answer

    def _results(self, data: dict[str, Any]) -> Any:
        """Return the results of the query in *data*, none of which has to be read to count facets."""
        builder = getMultiAdapter((self.context, self.request), name="querybuilderresults")
        # As plone.restapi does: a page does not list itself.
        itself = None if IPloneSiteRoot.providedBy(self.context) else {"UID": {"not": self.context.UID()}}
        return builder(query=data["query"], brains=True, sort_on=data.get("sort_on"), custom_query=itself)

    def _facets(self, results: Any, names: list[str], ranges: Any, limit: int) -> dict[str, Any]:
        if not isinstance(results, CatalogSearchResults):
            # No index of the query is known, so there was no search.
            return {"facets": {name: _as_json(Facet()) for name in (*names, *ranges)}}
        facets = counted(counting_of(results, names, ranges, limit))
        if facets is None:
            return {"facets": {}, "facets_timed_out": True}
        return {"facets": {name: _as_json(facet) for name, facet in facets.items()}}


class FacetedGet(Faceted, QuerystringSearchGet):
    """The query is JSON in the parameter ``query``."""


class FacetedPost(Faceted, QuerystringSearchPost):
    """The query is the body."""


def _names(data: Mapping[str, Any]) -> list[str]:
    names = data.get("facets") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadRequest("facets is a list of names of indexes")
    return names


def _ranges(data: Mapping[str, Any]) -> dict[str, dict[str, tuple[Any, Any]]]:
    try:
        return buckets(data.get("facet_ranges") or {})
    except ValueError as error:
        raise BadRequest("facet_ranges is {index: {label: [from, up to]}}") from error


def _limit(data: Mapping[str, Any]) -> int:
    limit = data.get("facet_limit", LIMIT)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 <= limit <= MOST_VALUES:
        raise BadRequest(f"facet_limit is a number from 0 to {MOST_VALUES}")
    return limit


def _as_json(facet: Facet) -> dict[str, Any]:
    """Return the values with their numbers of rows, the most frequent first; keys of JSON are texts."""
    return {"data": {json_compatible(value): count for value, count in facet.items()}, "truncated": facet.truncated}
