"""``@pgsimilar``: pages that are like the context."""

from plone.pgcatalog.core.searcher import bad_values
from plone.pgcatalog.restapi.documents import summaries
from plone.pgcatalog.restapi.parameters import Parameters
from plone.restapi.services import Service
from Products.CMFCore.utils import getToolByName
from typing import Any
from zope.component.hooks import getSite


class SimilarGet(Service):
    """Finds what the user may see in the site and is most like the context by its text; parameters as of a search."""

    def reply(self) -> dict[str, Any]:
        parameters = Parameters(getSite(), self.request)
        catalog = getToolByName(self.context, "portal_catalog")
        with bad_values():
            brains = list(catalog.more_like_this(self.context, parameters.rows, **parameters.query()))
        return {
            "@id": self.request["ACTUAL_URL"] + "?" * bool(self.request["QUERY_STRING"]) + self.request["QUERY_STRING"],
            "items": summaries(brains, self.request),
        }
