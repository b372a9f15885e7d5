"""plone.restapi's response with a page of results, and the additions that the request wants."""

from collections.abc import Mapping
from plone.pgcatalog.discovery.facet_groups import Facet
from plone.pgcatalog.discovery.passages import also_about
from plone.pgcatalog.discovery.passages import AlsoAbout
from plone.pgcatalog.discovery.suggest import by_meaning_alone
from plone.pgcatalog.discovery.suggest import did_you_mean
from plone.pgcatalog.discovery.suggest import fetch_suggestions
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.restapi.additions import Additions
from plone.pgcatalog.restapi.additions import ADDITIONS_KEY
from plone.pgcatalog.restapi.page_facets import PageFacets
from plone.pgcatalog.restapi.parameters import MAX_ROWS
from plone.pgcatalog.restapi.search import counted
from plone.pgcatalog.restapi.search import counting_of
from plone.pgcatalog.restapi.search import highlighted
from plone.pgcatalog.restapi.search import passages_as_json
from plone.pgcatalog.restapi.search import summaries
from plone.pgcatalog.results.loader import IDX_BATCH
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.restapi.batching import HypermediaBatch
from plone.restapi.interfaces import ISerializeToJson
from plone.restapi.serializer.catalog import LazyCatalogResultSerializer
from plone.restapi.serializer.converters import json_compatible
from typing import Any
from zope.annotation.interfaces import IAnnotations
from zope.component import adapter
from zope.component.hooks import getSite
from zope.interface import implementer


#: Keys of a query that select order and size, not rows.
ORDER_AND_SIZE = ("b_size", "b_start", "sort_limit", "sort_on", "sort_order")


@implementer(ISerializeToJson)
@adapter(CatalogSearchResults, IPGCatalogLayer)
class ResultsSerializer(LazyCatalogResultSerializer):
    """plone.restapi's response with a page of results; page and total are read in one round trip.

    It has the Additions of the request, and on the first page of a search by the site's settings pages near to the question.
    """

    lazy_resultset: Any

    def __call__(self, fullobjects: bool = False) -> Any:
        shown = HypermediaBatch(self.request, ())
        # Removed, because full objects may have results of their own.
        of_request = IAnnotations(self.request).pop(ADDITIONS_KEY, Additions)
        wanted = of_request().seen_by(getSite(), self.request)
        chosen = None
        if wanted.page_facets:
            chosen = PageFacets(self.lazy_resultset, wanted.page_facets, getSite(), self.request)
            self.lazy_resultset = chosen.results
        results = self.lazy_resultset
        marks = wanted.has_snippets and not fullobjects and results.highlighter()
        with results.view.session.batch():
            facets = None
            if wanted.facets or wanted.ranges:
                facets = counting_of(results, wanted.facets, wanted.ranges, wanted.limit)
            if chosen:
                # Counted in the round trip of the page.
                _ = chosen.counting
            has_no_words = by_meaning_alone(results) if marks else None
            terms = self._terms(wanted.terms)
            if 0 < (end := shown.b_start + shown.b_size) <= IDX_BATCH:
                results.count_with_page()
                results.read_first(end)
            total = results.actual_result_count
        answer = super().__call__(fullobjects)
        if facets is not None:
            answer |= _facets_part(counted(facets))
        if chosen:
            answer["page_facets"] = chosen.as_json(total)
        if wanted.terms:
            answer["terms"] = terms.value()
        if wanted.passages:
            answer["passages"] = passages_as_json(results, wanted.passages if self._text else 0, self.request)
        is_as_site = "use_site_search_settings" in self.request.form and shown.b_start == 0
        with results.view.session.batch():
            also = also_about(results) if is_as_site else Fetch.of([])
            if marks:
                self._add_snippets(answer["items"])
        if pages := also.value():
            answer["also_about"] = [self._near(page) for page in pages]
        if has_no_words is not None and (not total or has_no_words.value()):
            answer["did_you_mean"] = did_you_mean(results.catalog.tool, self._text, self._place)
        return answer

    def _add_snippets(self, items: list[dict[str, Any]]) -> None:
        """Add to *items*, the summaries of the page, their highlighted matches, as HTML."""
        brains = list(HypermediaBatch(self.request, self.lazy_resultset))
        snippets = self.lazy_resultset.snippets(brains[:MAX_ROWS])
        for item, brain in zip(items, brains, strict=True):
            if brain.getRID() in snippets:
                item.update(highlighted(brain, self.request, snippets[brain.getRID()]))

    def _near(self, page: AlsoAbout) -> dict[str, Any]:
        """Return the summary of *page* with its passage as HTML."""
        [summary] = summaries([page.brain], self.request)
        return summary | highlighted(page.brain, self.request, page.passage)

    def _terms(self, most: int) -> Fetch[list[str]]:
        """Return a fetch of up to *most* words of the searched place that complete the last word of the text."""
        if not most or not self._text:
            return Fetch.of([])
        return fetch_suggestions(self.lazy_resultset.catalog.tool, self._text, most, self._place)

    @property
    def _text(self) -> str:
        """The text of the search, without the asterisk that Volto appends; "" if there is none."""
        text = self.lazy_resultset.criteria.get(SOURCE_INDEX)
        text = text.get("query") if isinstance(text, Mapping) else text
        return text.strip().removesuffix("*") if isinstance(text, str) else ""

    @property
    def _place(self) -> dict[str, Any]:
        """The query without its text: the filter of the rows whose words are suggested."""
        without = {SOURCE_INDEX, *ORDER_AND_SIZE}
        return {name: value for name, value in self.lazy_resultset.criteria.items() if name not in without}


def _facets_part(facets: Mapping[str, Facet] | None) -> dict[str, Any]:
    """Return *facets* as a part of the response; None means that counting took too long."""
    if facets is None:
        return {"facets": {}, "facets_timed_out": True}
    return {"facets": {name: facet_as_json(facet) for name, facet in facets.items()}}


def facet_as_json(facet: Facet) -> dict[str, Any]:
    """Return the values with their numbers of rows, the most frequent first; keys are converted to strings for JSON."""
    return {"data": {json_compatible(value): count for value, count in facet.items()}, "truncated": facet.truncated}
