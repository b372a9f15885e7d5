"""``@querystring-search`` with additions, such as facet counts: all that a search block of Volto needs, in one response.

A query with a text is the search of a visitor, as on the search page: hidden pages are left out.  A listing is not.
"""

from plone.app.querystring.querybuilder import QueryBuilder
from plone.pgcatalog.discovery.facet_groups import Facet
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.meaning.question import as_site_searches
from plone.pgcatalog.observe import searches
from plone.pgcatalog.query.objects import VALUE_ERRORS
from plone.pgcatalog.request import number_in
from plone.pgcatalog.restapi.additions import Additions
from plone.pgcatalog.restapi.additions import ADDITIONS_KEY
from plone.pgcatalog.restapi.parameters import parsing
from plone.pgcatalog.restapi.serializer import facet_as_json
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.restapi.bbb import IPloneSiteRoot
from plone.restapi.deserializer import json_body
from plone.restapi.services.querystringsearch.get import QuerystringSearchGet
from plone.restapi.services.querystringsearch.get import QuerystringSearchPost
from Products.CMFCore.utils import getToolByName
from typing import Any
from zExceptions import BadRequest
from zope.annotation.interfaces import IAnnotations
from zope.component import getMultiAdapter


class SiteQueryBuilder(QueryBuilder):
    """Plone's view of the results of a query; a text in a query of ``@querystring-search`` is the search of a visitor."""

    def filter_query(self, query: dict[str, Any]) -> dict[str, Any]:
        """See QueryBuilder."""
        query = super().filter_query(query)
        catalog = getToolByName(self.context, "portal_catalog")
        is_of_service = ADDITIONS_KEY in IAnnotations(self.request, ())
        if not is_of_service or not query.get(SOURCE_INDEX) or not IPGCatalogTool.providedBy(catalog):
            return query
        return as_site_searches(catalog, query, self.context)


class Faceted:
    """Mixin for plone.restapi's services: adds what the request wants."""

    context: Any
    request: Any

    def reply(self) -> dict[str, Any]:
        # Read by the serializer: a GET has its query in the request only then.
        IAnnotations(self.request)[ADDITIONS_KEY] = lambda: Additions.of_json(json_body(self.request))
        answer = self._answer()
        data = json_body(self.request)
        if data.get("b_start") not in (None, "", 0, "0"):
            searches.leave_out(self.request)
        wanted = Additions.of_json(data).seen_by(self.context, self.request)
        if wanted.facets or wanted.ranges:
            # There was no search if the query has no known index.
            answer.setdefault("facets", {name: facet_as_json(Facet()) for name in (*wanted.facets, *wanted.ranges)})
        return answer

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
