"""The services ``@pgsearch``, ``@pgsuggest`` and ``@pgsimilar``, and hits as their documents."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from plone.dexterity.interfaces import IDexterityContent
from plone.pgcatalog.core.searcher import bad_values
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.discovery.facet_groups import Facet
from plone.pgcatalog.discovery.facet_groups import FacetQuery
from plone.pgcatalog.discovery.facet_groups import visible_facets
from plone.pgcatalog.discovery.facets import FACET_SECONDS
from plone.pgcatalog.discovery.facets import FacetCounting
from plone.pgcatalog.discovery.file_pages import FilePage
from plone.pgcatalog.discovery.file_pages import Snippet
from plone.pgcatalog.discovery.highlight import Highlighter
from plone.pgcatalog.discovery.passages import also_about
from plone.pgcatalog.discovery.passages import AlsoAbout
from plone.pgcatalog.discovery.passages import headings
from plone.pgcatalog.discovery.passages import passages
from plone.pgcatalog.discovery.suggest import by_meaning_alone
from plone.pgcatalog.discovery.suggest import did_you_mean
from plone.pgcatalog.discovery.suggest import LIMIT
from plone.pgcatalog.discovery.suggest import suggest
from plone.pgcatalog.fulltext.lexicon import query_words
from plone.pgcatalog.fulltext.typed import with_exclusions
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.meaning.question import as_site_searches
from plone.pgcatalog.observe import searches
from plone.pgcatalog.request import number_in
from plone.pgcatalog.restapi.cursor import page_behind
from plone.pgcatalog.restapi.parameters import MAX_ROWS
from plone.pgcatalog.restapi.parameters import Parameters
from plone.pgcatalog.restapi.parameters import parsing
from plone.pgcatalog.results.loader import IDX_BATCH
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.restapi.batching import HypermediaBatch
from plone.restapi.deserializer.dxfields import DefaultFieldDeserializer
from plone.restapi.interfaces import IFieldDeserializer
from plone.restapi.interfaces import ISerializeToJson
from plone.restapi.interfaces import ISerializeToJsonSummary
from plone.restapi.search.handler import SearchHandler
from plone.restapi.search.utils import unflatten_dotted_dict
from plone.restapi.serializer.catalog import LazyCatalogResultSerializer
from plone.restapi.serializer.converters import json_compatible
from plone.restapi.services import Service
from plone.restapi.services.search.get import SearchGet as SearchGetOfPlone
from Products.CMFCore.utils import getToolByName
from typing import Any
from zExceptions import BadRequest
from zope.annotation.interfaces import IAnnotations
from zope.component import adapter
from zope.component import getMultiAdapter
from zope.component.hooks import getSite
from zope.i18n import translate
from zope.interface import implementer
from zope.schema.interfaces import IFloat

import Missing
import sys


#: Metadata columns of every document, if the catalog has them.
DOCUMENT_COLUMNS = (
    *("UID", "Title", "Description", "Type", "Subject", "effective", "created", "modified", "start", "end"),
    *("mime_type", "location", "image_field", "image_scales"),
)


#: Annotation of a request: a function that takes the results and returns a fetch of additions to the response.
EXTRA_KEY = "plone.pgcatalog.along"
#: Keys of a query that select order and size, not rows.
ORDER_AND_SIZE = ("b_size", "b_start", "sort_limit", "sort_on", "sort_order")


def summaries(brains: Iterable[Any], request: Any) -> list[dict[str, Any]]:
    """Return plone.restapi's summaries of *brains*, as JSON data."""
    return [getMultiAdapter((brain, request), ISerializeToJsonSummary)() for brain in brains]


def address(request: Any) -> str:
    """Return the URL of *request*, with its parameters."""
    query = request["QUERY_STRING"]
    return f"{request['ACTUAL_URL']}?{query}" if query else str(request["ACTUAL_URL"])


def columns(brain: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the metadata columns *names* of *brain* as JSON data; columns without a value are left out."""
    return {
        name: json_compatible(value)
        for name in names
        if name in brain and (value := getattr(brain, name)) is not Missing.Value
    }


def highlighted(brain: Any, request: Any, snippet: Snippet) -> dict[str, Any]:
    """Return *snippet* of *brain* as JSON data, with the page of a file that it is from as ``file_page``."""
    page = snippet.page
    answer: dict[str, Any] = {"highlighting": {"text": [snippet]}}
    return answer if page is None else answer | {"file_page": file_page(brain, request, page)}


def file_page(brain: Any, request: Any, page: FilePage) -> dict[str, Any]:
    """Return the *page* of the file of *brain* as JSON data."""
    title = translate(page.title, context=request)
    return {"number": page.number, "unit": page.unit, "title": title, "url": page.url(brain.getURL())}


def documents(
    brains: Iterable[Any], request: Any, snippets: Mapping[int, Snippet], highlighter: Highlighter
) -> list[dict[str, Any]]:
    """Return *brains* as JSON data: plone.restapi's summary, DOCUMENT_COLUMNS, the path, and highlighted matches as HTML."""
    answer = []
    for brain in brains:
        [summary] = summaries([brain], request)
        document = columns(brain, DOCUMENT_COLUMNS) | summary | {"path_string": brain.getPath()}
        if brain.getRID() in snippets:
            document |= highlighted(brain, request, snippets[brain.getRID()])
            if highlighter and isinstance(brain.Title, str):
                document["highlighting"]["Title"] = [highlighter.mark(brain.Title)]
        answer.append(document)
    return answer


@implementer(ISerializeToJson)
@adapter(CatalogSearchResults, IPGCatalogLayer)
class ResultsSerializer(LazyCatalogResultSerializer):
    """plone.restapi's response with a page of results; page and total are read in one round trip.  It adds:

    - with ``snippets=1``: highlighted matches in the first MAX_ROWS items, and a correction if no item has the words
    - on the first page of a search by the site's settings: pages near to the question
    """

    def __call__(self, fullobjects: bool = False) -> Any:
        shown = HypermediaBatch(self.request, ())
        marks = self.request.form.get("snippets") == "1" and not fullobjects and self.lazy_resultset.highlighter()
        # Removed, because full objects may have results of their own.
        extra = IAnnotations(self.request).pop(EXTRA_KEY, None)
        with self.lazy_resultset.view.session.batch():
            more = Fetch.of({}) if extra is None else extra(self.lazy_resultset)
            has_no_words = by_meaning_alone(self.lazy_resultset) if marks else None
            if 0 < (end := shown.b_start + shown.b_size) <= IDX_BATCH:
                self.lazy_resultset.count_with_page()
                self.lazy_resultset.read_first(end)
            total = self.lazy_resultset.actual_result_count
        answer = super().__call__(fullobjects) | more.value()
        is_as_site = "use_site_search_settings" in self.request.form and shown.b_start == 0
        with self.lazy_resultset.view.session.batch():
            also = also_about(self.lazy_resultset) if is_as_site else Fetch.of([])
            if marks:
                self._add_snippets(answer["items"])
        if pages := also.value():
            answer["also_about"] = [self._near(page) for page in pages]
        if has_no_words is not None and (not total or has_no_words.value()):
            answer["did_you_mean"] = self._meant()
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

    def _meant(self) -> str | None:
        """Return the correction of the text, without the asterisk that Volto appends; None if there is none."""
        criteria = dict(self.lazy_resultset.criteria)
        text = criteria.pop(SOURCE_INDEX, "")
        text = text.get("query") if isinstance(text, Mapping) else text
        place = {name: value for name, value in criteria.items() if name not in ORDER_AND_SIZE}
        typed = text.strip().removesuffix("*") if isinstance(text, str) else ""
        return did_you_mean(getToolByName(getSite(), "portal_catalog"), typed, place).value()


class SearchGet(Service):
    """Searches below the context for objects that the user may see; parameters and response are in the reference."""

    def reply(self) -> dict[str, Any]:
        parameters = Parameters(self.context, self.request)
        query, more = parameters.query(), {}
        cursor = parameters.cursor
        is_first = parameters.start == 0 and cursor in (None, "*") and parameters.rows > 0
        if not is_first or not parameters.text or any(map(parameters.chosen, parameters.conditions)):
            searches.leave_out(self.request)
        results = parameters.search(query, parameters.start, parameters.rows if cursor is None else None)
        limit = parameters.count_limit
        if limit:
            results.count_up_to(limit)
        names = list(dict.fromkeys([*parameters.facets, *parameters.conditions]))
        # The page, the number of hits and the facets are read in one round trip.
        with results.view.session.batch():
            facets = counting(parameters, names, results)
            has_no_words = by_meaning_alone(results)
            if cursor is None:
                total = results.actual_result_count
            else:
                brains, more["next_cursor"] = page_behind(cursor, results, query, parameters.rows)
        if cursor is None:
            brains = list(results)
        else:
            total = results.actual_result_count
        wanted = brains if parameters.flag("snippets", True) else []
        highlighter = results.highlighter()
        with results.view.session.batch():
            also = also_about(results) if is_first and parameters.text else Fetch.of([])
            snippets = results.snippets(wanted, parameters.snippet_length)
        answer: dict[str, Any] = {
            "@id": address(self.request),
            "response": {
                "numFound": total,
                "start": parameters.start,
                "docs": documents(brains, self.request, snippets, highlighter),
            },
            "portal_path": "/".join(getSite().getPhysicalPath()),
            "facet_groups": [["All", total]],
            **more,
        }
        if limit:
            answer["response"]["numFoundExact"] = not results.is_limited
        if pages := also.value():
            passages_of = {page.brain.getRID(): page.passage for page in pages}
            near = [page.brain for page in pages]
            answer["also_about"] = documents(near, self.request, passages_of, highlighter.of_whole_words())
        if parameters.passages:
            answer["passages"] = self._passages(parameters)
        answer |= self._facets(parameters, counted(facets))
        if parameters.text and (not total or has_no_words.value() or parameters.flag("spellcheck", False)):
            answer["did_you_mean"] = parameters.corrected_text()
        return answer

    def _passages(self, parameters: Parameters) -> list[dict[str, Any]]:
        """Return the passages that match the search best, whichever page is requested."""
        results = parameters.search(parameters.query(), 0, parameters.passages)
        found = passages(results, parameters.passages) if parameters.text else []
        root = "/".join(getSite().getPhysicalPath())
        above = headings(parameters.catalog, found, root)
        return [
            {
                "@id": passage.brain.getURL(),
                "UID": passage.brain.UID,
                "title": passage.brain.Title,
                "headings": above[passage.brain.getPath()],
                "text": passage.text,
                "similarity": None if passage.similarity is None else round(passage.similarity, 4),
                **({"file_page": file_page(passage.brain, self.request, passage.page)} if passage.page else {}),
            }
            for passage in found
        ]

    def _facets(self, parameters: Parameters, facets: Mapping[str, Facet] | None) -> dict[str, Any]:
        if facets is None:
            return {"facet_fields": [], "facets_timed_out": True}
        return {"facet_fields": [self._facet(parameters, name, facet) for name, facet in facets.items()]}

    def _facet(self, parameters: Parameters, name: str, facet: Facet) -> list[Any]:
        """Return [description of the facet, [[value, number of rows], …]]."""
        pairs = matching_values(parameters, name, facet)
        limit = len(pairs) if name in parameters.ranges else parameters.facet_limit(name)
        field = {"name": name, "label": name, "truncated": facet.truncated or len(pairs) > limit}
        return [field, pairs[:limit]]


def counting(parameters: Parameters, names: Sequence[str], results: Any) -> FacetCounting | None:
    """Return the counting of the facets *names* and the ranges of *parameters* in *results*, each without its own criterion.

    In an open batch it is read in the same round trip.  Facets whose values the user may not see are left out; None if no
    facet is left.
    """
    visible = set(visible_facets([*names, *parameters.ranges], parameters.context, parameters.request))
    names = [name for name in names if name in visible]
    ranges = {name: of for name, of in parameters.ranges.items() if name in visible}
    # A limit would not do if only some of the values are shown.
    parted = any(condition.get("p") for condition in parameters.conditions.values())
    limit = None if parted else max((parameters.facet_limit(name) for name in names), default=None)
    return counting_of(results, names, ranges, limit) if visible else None


def counting_of(results: Any, names: Sequence[str], ranges: Any, limit: int | None) -> FacetCounting:
    """Return the counting of the facets *names* and *ranges* of *results*, each without its own criterion."""
    with bad_values():
        query = FacetQuery(results.criteria, results.sort, names, ranges, True, limit)
        return FacetCounting(results, query, FACET_SECONDS)


def counted(facets: FacetCounting | None) -> Mapping[str, Facet] | None:
    """Return the counted *facets*; None if counting takes too long."""
    try:
        with bad_values():
            return {} if facets is None else facets.value()
    except SearchTimeout:
        return None


def matching_values(parameters: Parameters, name: str, facet: Facet) -> list[list[Any]]:
    """Return [value, number of rows] for the values of *facet* that contain the text in *parameters*."""
    part = parameters.conditions.get(name, {}).get("p", "").casefold()
    pairs = [[json_compatible(value), count] for value, count in facet.items()]
    return [pair for pair in pairs if part in str(pair[0]).casefold()]


class CheckedSearches:
    """The searches of *catalog* for a handler of plone.restapi; values that indexes cannot read raise BadRequest."""

    def __init__(self, catalog: Any) -> None:
        self.catalog = catalog

    def searchResults(self, **query: Any) -> Any:
        with bad_values():
            return self.catalog.searchResults(**query)


class CheckedHandler(SearchHandler):
    """plone.restapi's handler; invalid values raise BadRequest (400) instead of an error (500)."""

    catalog: Any

    def __init__(self, context: Any, request: Any) -> None:
        super().__init__(context, request)
        self.catalog = CheckedSearches(self.catalog)

    def search(self, query: Any = None) -> Any:
        """Return plone.restapi's response; raises BadRequest also for a start or a size that is not a whole number."""
        for name in ("b_start", "b_size"):
            number = number_in(str(self.request.form.get(name, 0)))
            if number is None or (name == "b_size" and number < 0):
                raise BadRequest(f"{name} must be an integer")
        return super().search(query)

    def _parse_query(self, query: Any) -> Any:
        with parsing():
            return super()._parse_query(query)


class SiteSearchHandler(CheckedHandler):
    """A handler that excludes words as the search page does, with the site's stop words."""

    def filter_query(self, query: Any) -> Any:
        query = super().filter_query(query)
        if SOURCE_INDEX in query and IPGCatalogTool.providedBy(self.catalog.catalog):
            # Volto appends an asterisk to the typed text.
            query[SOURCE_INDEX] = with_exclusions(query[SOURCE_INDEX], is_completed=True)
        return query

    def _parse_query(self, query: Any) -> Any:
        query, catalog = super()._parse_query(query), self.catalog.catalog
        return as_site_searches(catalog, query) if IPGCatalogTool.providedBy(catalog) else query


class SiteSearchGet(SearchGetOfPlone):
    """``@search``: plone.restapi's, extended for requests with the site's search settings."""

    def reply(self) -> Any:
        query = unflatten_dotted_dict(self.request.form.copy())
        if "use_site_search_settings" not in query:
            # Editors' widgets search by it for each typed letter.
            searches.leave_out(self.request)
        query.pop(searches.CORRECTED_FROM, None)
        # An option of ResultsSerializer; plone.restapi would log that there is no such index.
        query.pop("snippets", None)
        handler = SiteSearchHandler if "use_site_search_settings" in query else CheckedHandler
        return handler(self.context, self.request).search(query)


class SuggestGet(Service):
    """Suggests words and pages for the typed text *query*; pages are those that the user may see."""

    parameters = Parameters

    def reply(self) -> dict[str, Any]:
        parameters = self.parameters(self.context, self.request)
        text = self.request.form.get("query", parameters.text)
        text = text.strip() if isinstance(text, str) else ""
        catalog, place = parameters.catalog, parameters.place
        search = beginning(catalog, text)
        pages = parameters.search(place | {"Title": search}, 0, LIMIT) if search else []
        with bad_values():
            terms = suggest(catalog, text, LIMIT, place).value() if text else []
        return {
            "@id": self.request["ACTUAL_URL"],
            "suggestions": summaries(pages, self.request),
            "terms": terms,
        }


def beginning(catalog: Any, text: str) -> str:
    """Return a query for titles with all words of *text*, the last one as a prefix; "" if it has no words."""
    words = query_words(catalog._core.translator("Title").index.getLexicon(), text.replace("*", " ").replace("?", " "))
    return " AND ".join([*(f'"{word}"' for word in words[:-1]), *(f"{word}*" for word in words[-1:])])


class SimilarGet(Service):
    """Finds objects in the site whose text is most similar to the context's; parameters as for a search."""

    def reply(self) -> dict[str, Any]:
        parameters = Parameters(getSite(), self.request)
        with bad_values():
            brains = list(parameters.catalog.more_like_this(self.context, parameters.rows, **parameters.query()))
        return {
            "@id": address(self.request),
            "items": summaries(brains, self.request),
        }


@implementer(IFieldDeserializer)
@adapter(IFloat, IDexterityContent, IPGCatalogLayer)
class NumberDeserializer(DefaultFieldDeserializer):
    """Accepts whole numbers for a float field, as this package's settings are; plone.restapi's own raises WrongType.

    It is registered for all float fields, because the registry accepts neither subclasses nor marked fields.
    """

    def __call__(self, value: Any) -> Any:
        if type(value) is int and abs(value) <= sys.float_info.max:
            value = float(value)
        return super().__call__(value)
