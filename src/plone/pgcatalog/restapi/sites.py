"""``@pgsearch`` with ``sites``: a search in several sites of the database."""

from Acquisition import aq_base
from collections.abc import Sequence
from plone.pgcatalog.restapi.parameters import Parameters
from plone.pgcatalog.searchpage.sites import merged
from plone.pgcatalog.searchpage.sites import MOST_HITS
from plone.pgcatalog.searchpage.sites import MOST_SITES
from plone.pgcatalog.searchpage.sites import search_together
from plone.pgcatalog.searchpage.sites import shown
from plone.pgcatalog.searchpage.sites import Site
from plone.pgcatalog.searchpage.sites import SiteHits
from plone.pgcatalog.searchpage.sites import SITES
from plone.pgcatalog.searchpage.sites import sites_of
from typing import Any
from zExceptions import BadRequest
from zope.component.hooks import getSite


#: The value of SITES for all sites.
ALL = "*"
#: Parameters of a search in one site only.
OF_ONE_SITE = (
    *("cursor", "facets", "facet_conditions", "facet_ranges", "passages", "path", "path_prefix"),
    *("sort", "sort_on", "sort_order"),
)


class SitesAnswer:
    """The search of *request* in several sites; *to_documents* returns brains as JSON data (``search.documents``)."""

    def __init__(self, context: Any, request: Any, to_documents: Any) -> None:
        self._request = request
        self._to_documents = to_documents
        self._own = Parameters(context, request)
        self._check(context)

    def _check(self, context: Any) -> None:
        parameters = self._own
        if aq_base(context) is not aq_base(getSite()):
            raise BadRequest(f"{SITES} is a parameter of searches at the root of a site")
        given = {name.partition(".")[0] for name in parameters.form}.intersection(OF_ONE_SITE)
        if given:
            raise BadRequest(f"{SITES} cannot be combined with {', '.join(sorted(given))}")
        if not parameters.text.strip("*"):
            raise BadRequest(f"{SITES} needs a text, q")
        if parameters.start + parameters.rows > MOST_HITS:
            raise BadRequest(f"a search in several sites has {MOST_HITS} hits at most")

    def _sites(self) -> Sequence[Site]:
        """Return the requested sites; raises BadRequest for a name of a site that the user cannot search from here."""
        names = self._own.names(SITES)
        sites = sites_of(getSite())
        if names == [ALL]:
            return sites
        by_name = {site.name: site for site in sites}
        if not names or len(names) > MOST_SITES or not by_name.keys() >= set(names):
            raise BadRequest(f"{SITES} must be {ALL}, or a list of these: {', '.join(by_name)}")
        return [by_name[name] for name in dict.fromkeys(names)]

    def __call__(self) -> dict[str, Any]:
        """Return the answer as JSON data."""
        own, sites = self._own, self._sites()
        parts = [SiteHits(site, self._find) for site in sites]
        search_together(own.catalog._core.session, parts, lambda: None, self._request)
        found = merged(parts)[own.start :][: own.rows]
        counts = [[part.site.name, part.total] for part in parts if part.total]
        answer: dict[str, Any] = {
            "response": {"numFound": sum(part.total for part in parts), "start": own.start, "docs": self._docs(found)},
            "facet_fields": [[{"name": SITES, "label": SITES, "truncated": False}, counts]],
            "sites": [{"@id": site.url, "name": site.name, "title": site.title} for site in sites],
            "failed_sites": [part.site.name for part in parts if part.has_failed],
        }
        if own.count_limit:
            answer["response"]["numFoundExact"] = not any(part.is_limited for part in parts)
        return answer

    def _find(self, portal: Any) -> tuple[Parameters, Any]:
        """Return the parameters and results of the search in *portal*, the current site."""
        parameters = Parameters(portal, self._request)
        results = parameters.search(parameters.query(), 0, max(1, self._own.start + self._own.rows))
        if parameters.count_limit:
            results.count_up_to(parameters.count_limit)
        results.count_with_page()
        return parameters, results

    def _docs(self, found: Sequence[tuple[SiteHits, Any]]) -> list[dict[str, Any]]:
        """Return the documents of *found*, each with the name of its site."""

        def show(part: SiteHits, brains: list[Any], texts: Any, marks: Any) -> list[dict[str, Any]]:
            listed = self._to_documents(brains, self._request, texts, marks)
            return [document | {"site": part.site.name} for document in listed]

        length = self._own.snippet_length if self._own.flag("snippets", True) else 0
        return shown(self._own.catalog._core.session, found, show, length)
