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
from plone.pgcatalog.discovery.passages import headings
from plone.pgcatalog.discovery.passages import passages
from plone.pgcatalog.discovery.suggest import by_meaning_alone
from plone.pgcatalog.discovery.suggest import LIMIT
from plone.pgcatalog.discovery.suggest import suggest
from plone.pgcatalog.fulltext.lexicon import query_words
from plone.pgcatalog.fulltext.typed import with_exclusions
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.meaning.question import as_site_searches
from plone.pgcatalog.observe import searches
from plone.pgcatalog.request import number_in
from plone.pgcatalog.restapi.additions import Additions
from plone.pgcatalog.restapi.additions import ADDITIONS_KEY
from plone.pgcatalog.restapi.cursor import page_behind
from plone.pgcatalog.restapi.parameters import Parameters
from plone.pgcatalog.restapi.parameters import parsing
from plone.pgcatalog.restapi.searchpage import SEARCH_PAGE
from plone.pgcatalog.restapi.searchpage import search_page
from plone.pgcatalog.restapi.sites import SitesAnswer
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.searchpage.sites import SITES
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.restapi.deserializer.dxfields import DefaultFieldDeserializer
from plone.restapi.interfaces import IFieldDeserializer
from plone.restapi.interfaces import ISerializeToJsonSummary
from plone.restapi.search.handler import SearchHandler
from plone.restapi.search.utils import unflatten_dotted_dict
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


def passages_as_json(results: CatalogSearchResults, count: int, request: Any) -> list[dict[str, Any]]:
    """Return up to *count* passages that match the search of *results* best, as JSON data."""
    found = passages(results, count) if count else []
    above = headings(results.catalog.tool, found, "/".join(getSite().getPhysicalPath()))
    return [
        {
            "@id": passage.brain.getURL(),
            "UID": passage.brain.UID,
            "title": passage.brain.Title,
            "headings": above[passage.brain.getPath()],
            "text": passage.text,
            "similarity": None if passage.similarity is None else round(passage.similarity, 4),
            **({"file_page": file_page(passage.brain, request, passage.page)} if passage.page else {}),
        }
        for passage in found
    ]


class SearchGet(Service):
    """Searches below the context for objects that the user may see; parameters and response are in the reference."""

    def reply(self) -> dict[str, Any]:
        if self.request.form.get(SEARCH_PAGE) == "1":
            return search_page(self.context, self.request)
        if SITES in self.request.form:
            return {"@id": address(self.request), **SitesAnswer(self.context, self.request, documents)()}
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
            found = parameters.search(parameters.query(), 0, parameters.passages)
            answer["passages"] = passages_as_json(found, parameters.passages if parameters.text else 0, self.request)
        answer |= self._facets(parameters, counted(facets))
        if parameters.text and (not total or has_no_words.value() or parameters.flag("spellcheck", False)):
            answer["did_you_mean"] = parameters.corrected_text()
        return answer

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
        return as_site_searches(catalog, query, self.context) if IPGCatalogTool.providedBy(catalog) else query


class SiteSearchGet(SearchGetOfPlone):
    """``@search``: plone.restapi's, extended for requests with the site's search settings."""

    def reply(self) -> Any:
        query = unflatten_dotted_dict(self.request.form.copy())
        if "use_site_search_settings" not in query:
            # Editors' widgets search by it for each typed letter.
            searches.leave_out(self.request)
        query.pop(searches.CORRECTED_FROM, None)
        indexes = getToolByName(self.context, "portal_catalog").indexes()
        additions = Additions.taken_from(query, indexes)
        IAnnotations(self.request)[ADDITIONS_KEY] = lambda: additions
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
            terms = suggest(catalog, text, LIMIT, place) if text else []
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
