"""Suggestions on Plone's own pages: completions and corrections in the live search, *Did you mean* on the search page."""

from functools import cached_property
from plone.pgcatalog.core.searcher import bad_values
from plone.pgcatalog.discovery.passages import also_about
from plone.pgcatalog.discovery.passages import AlsoAbout
from plone.pgcatalog.discovery.snippets import plain_text
from plone.pgcatalog.discovery.suggest import correct
from plone.pgcatalog.discovery.suggest import did_you_mean
from plone.pgcatalog.discovery.suggest import fetch_suggestions
from plone.pgcatalog.discovery.suggest import finds_something
from plone.pgcatalog.discovery.suggest import MAX_TEXT
from plone.pgcatalog.discovery.suggest import titles_of
from plone.pgcatalog.fulltext.places import last_word
from plone.pgcatalog.fulltext.typed import search_text
from plone.pgcatalog.fulltext.typed import wanted_text
from plone.pgcatalog.i18n import _
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.meaning.question import as_site_searches
from plone.pgcatalog.request import number_in
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.searchpage.page import if_possible
from plone.pgcatalog.searchpage.request import Address
from plone.pgcatalog.searchpage.request import check_order
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.registry.interfaces import IRegistry
from plone.transformchain.interfaces import ITransform
from Products.CMFCore.utils import getToolByName
from Products.CMFPlone.browser.search import AjaxSearch
from Products.CMFPlone.browser.search import Search
from Products.Five.browser import BrowserView
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from typing import Any
from urllib.parse import urlencode
from zope.component import adapter
from zope.component import getUtility
from zope.i18n import translate
from zope.interface import implementer

import json
import re


#: Maximum number of suggested words.
MOST_WORDS = 3
#: Maximum number of pages in ``also``.
MOST_ALSO = 3
#: Maximum number of rows that are read to find out whether there are more.
MAX_ROWS = 50
#: Maximum of the parameters ``page`` and ``perPage``.
MOST_PAGES = 10_000

#: The "0 results" of Plone's page, and the start of its results; both patterns look at each character once.
NOTHING_FOUND = re.compile(r'<(?>[^<>]*?\bid="search-results-number")[^<>]*+>\s*+0\s*+<')
RESULTS = re.compile(r'<(?>[^<>]*?\bid="search-results")[^<>]*+>')
#: Parameters of the page that are not repeated in the search for a suggestion.
NOT_REPEATED = (SOURCE_INDEX, "b_start", "ajax_load")


class LiveSearch(AjaxSearch):
    """The live search for the text typed so far, as JSON, in up to three round trips to PostgreSQL.

    Plone's pattern requests and shows it as before; ``livesearch.js`` shows the additions and makes it a combobox.

    - ``total``, ``items``: as Plone's; those of the corrected text if the typed one has no results
    - ``corrected``: the corrected text, with ``label`` and ``url`` of its search
    - ``words``: completions of the typed text, each with ``label`` and ``url``
    - ``also``: on the first page, ``label`` and ``pages`` near to the question; see ``also_about``
    - ``short``: without a text, a hint that more letters are needed; the browser inserts the number
    """

    corrected: str | None = None
    #: pages about the topic of the text, or of the corrected text
    _also: Fetch[list[AlsoAbout]] = Fetch.of([])
    #: completions of the last word, read in the round trip of the results
    _words: Fetch[list[str]] | None = None

    def __call__(self) -> str:
        if not IPGCatalogTool.providedBy(getToolByName(self.context, "portal_catalog")):
            return str(super().__call__())
        for name in ("page", "perPage"):
            # Plone's view calculates with them without checking them.
            number = number_in(str(self.request.form.pop(name, "")))
            if number is not None and 0 < number <= MOST_PAGES:
                self.request.form[name] = str(number)
        answer = json.loads(super().__call__())
        answer["label"] = translate(_("Suggestions and pages"), context=self.request)
        if not self._text:
            answer["short"] = translate(_("Type at least ${number} letters"), context=self.request)
        if self.corrected is not None:
            message = _("Showing results for ${text}", {"text": self.corrected})
            answer["corrected"] = self._link(self.corrected, message)
        if also := self._also.value():
            label = translate(_("Related results"), context=self.request)
            answer["also"] = {"label": label, "pages": self._as_json(also)}
        answer["words"] = [
            self._link(text, _("Search for ${text}", {"text": text})) for text in self._completions(answer["total"])
        ]
        return json.dumps(answer)

    def results(self, *args: Any, **options: Any) -> Any:
        """Return the results of Search, or those for the corrected text.  Raises BadRequest for an invalid query."""
        with bad_values():
            return self._results(*args, **options)

    def _results(self, *args: Any, **options: Any) -> Any:
        catalog, text = getToolByName(self.context, "portal_catalog"), self._text
        if not text or not IPGCatalogTool.providedBy(catalog):
            return super().results(*args, **options)
        with catalog._core.session.batch():
            last = last_word(text[-MAX_TEXT:])
            if last and wanted_text(text).endswith(last) and self.request.form.get("page", "1") == "1":
                self._words = fetch_suggestions(catalog, text, MOST_WORDS + 1, self._place)
            typed = super().results(*args, **options)
            also = self._also_about(typed)
            has_rows = self._read(typed)
        self._also = also
        if has_rows:
            return typed
        correction = correct(catalog, text, self._place).value()
        if correction is None:
            return typed
        text = self.request.form[SOURCE_INDEX]
        self.request.form[SOURCE_INDEX] = correction.text
        try:
            with catalog._core.session.batch():
                corrected = super().results(*args, **options)
                also = self._also_about(corrected)
                has_rows = self._read(corrected)
        finally:
            self.request.form[SOURCE_INDEX] = text
        if not has_rows:
            return typed
        brains = corrected[:MOST_WORDS] if isinstance(corrected, CatalogSearchResults) else ()
        self.corrected, self._also = correction.spelled(titles_of(brains)), also
        return corrected

    def filter_query(self, query: Any) -> Any:
        """See Search; without excluded words, ranked by the site's settings.  Raises BadRequest for a forbidden order."""
        typed = query.get(SOURCE_INDEX) or self.request.form.get(SOURCE_INDEX)
        query = super().filter_query(query)
        catalog = getToolByName(self.context, "portal_catalog")
        if not query or not IPGCatalogTool.providedBy(catalog):
            return query
        if SOURCE_INDEX in query and isinstance(typed, str):
            query[SOURCE_INDEX] = search_text(typed)
        check_order(query, self.context, self.request)
        return as_site_searches(catalog, query, self.context)

    @property
    def _text(self) -> str:
        text = self.request.form.get(SOURCE_INDEX)
        return text.strip() if isinstance(text, str) else ""

    @cached_property
    def _place(self) -> dict[str, Any]:
        """Return the query without its text and order: the filter of the rows whose words are suggested."""
        left_out = (SOURCE_INDEX, "sort_on", "sort_order", "sort_limit")
        return {name: value for name, value in self.filter_query({}).items() if name not in left_out}

    def filter_types(self, types: Any) -> Any:
        """See Search; cached, because Plone's translates and sorts the vocabulary of all types each time."""
        key = str(types)
        if key not in self._types:
            self._types[key] = super().filter_types(types)
        return self._types[key]

    @cached_property
    def _types(self) -> dict[str, Any]:
        return {}

    def get_image_tag(self, item: Any, image_scale: str) -> Any:
        """See AjaxSearch; avoids that Plone's loads a page without an image and stores an empty list of scales in it."""
        return super().get_image_tag(item, image_scale) if getattr(item, "getIcon", True) else None

    def _read(self, results: Any) -> bool:
        """Return whether *results* has rows.

        It reads one row more than is shown: if there are fewer, the rows need not be counted.
        """
        try:
            rows = int(self.request.form.get("page", 1)) * int(self.request.form.get("perPage", 10)) + 1
        except (TypeError, ValueError):
            rows = 1
        if not isinstance(results, CatalogSearchResults):
            return bool(results)
        results.count_with_page()
        return len(results[: max(1, min(rows, MAX_ROWS))]) > 0

    def _also_about(self, results: Any) -> Fetch[list[AlsoAbout]]:
        """Return ``also_about`` for *results*; an empty fetch on other pages than the first."""
        is_first = isinstance(results, CatalogSearchResults) and self.request.form.get("page", "1") == "1"
        return also_about(results, MOST_ALSO) if is_first else Fetch.of([])

    def _as_json(self, also: list[AlsoAbout]) -> list[dict[str, str]]:
        """Return title, URL and passage of each page."""
        viewed = getUtility(IRegistry).get("plone.types_use_view_action_in_listings", [])
        return [
            {
                "title": page.brain.Title or page.brain.getId,
                "url": page.brain.getURL() + ("/view" if page.brain.portal_type in viewed else ""),
                "text": plain_text(page.passage),
            }
            for page in also
        ]

    def _completions(self, total: int) -> list[str]:
        """Return completions of the typed text; [] on later pages, and beside a correction."""
        last = last_word(self._text[-MAX_TEXT:])
        if self._words is None or not last or not total or self.corrected is not None:
            return []
        begin = self._text.removesuffix(last)
        return [begin + word for word in self._words.value() if word.lower() != last.lower()][:MOST_WORDS]

    def _link(self, text: str, label: Any) -> dict[str, str]:
        url = f"{self.context.absolute_url()}/@@search?{urlencode({SOURCE_INDEX: text})}"
        return {"text": text, "label": translate(label, context=self.request), "url": url}


@implementer(ITransform)
@adapter(Search, IPGCatalogLayer)
class DidYouMeanTransform:
    """Adds a suggestion to Plone's search page if it has no results; other pages are left unchanged.

    A viewlet would not do: after a search, the page's script replaces only the results (``#search-results``).
    """

    #: before the transforms of themes, which may move elements
    order = 7000

    def __init__(self, published: Any, request: Any) -> None:
        self._view = published
        self._request = request

    def transformBytes(self, result: bytes, encoding: str) -> str | None:
        """See ITransform."""
        return self.transformUnicode(result.decode(encoding, "replace"), encoding)

    def transformIterable(self, result: Any, encoding: str) -> str | None:
        """See ITransform; handles only a body that is a list of bytes, not one that another transform has parsed."""
        return self.transformBytes(b"".join(result), encoding) if isinstance(result, list) else None

    def transformUnicode(self, result: str, encoding: str) -> str | None:
        """See ITransform."""
        # This package's search page corrects the text itself.
        is_own = getattr(self._view, "is_on", False)
        if is_own or self._request.get("REQUEST_METHOD") != "GET" or not NOTHING_FOUND.search(result):
            return None
        place = RESULTS.search(result)
        suggestion = DidYouMean(self._view, self._request).render() if place else ""
        return result[: place.end()] + suggestion + result[place.end() :] if place and suggestion else None


class DidYouMean(BrowserView):
    """A suggestion for the search page in its context, if that has no results; not a published view."""

    template = ViewPageTemplateFile("did_you_mean.pt")
    text: str | None = None

    def render(self) -> str:
        """Return HTML; "" if there is no suggestion."""
        self.text = if_possible(self._better)
        html: str = self.template() if self.text else ""
        return html

    def _better(self) -> str | None:
        page = self.context
        catalog = getToolByName(page.context, "portal_catalog")
        text = self.request.form.get(SOURCE_INDEX)
        if not isinstance(text, str) or not IPGCatalogTool.providedBy(catalog):
            return None
        place = {name: value for name, value in page.filter_query({}).items() if name != SOURCE_INDEX}
        better = did_you_mean(catalog, text, place)
        # The suggestion may have no results: the page takes operators as words, and all words as prefixes.
        return better if better and finds_something(catalog, page.filter_query({SOURCE_INDEX: better})) else None

    def url(self) -> str:
        """Return the URL of the page with the suggestion as its text and the other parameters unchanged."""
        return str(Address.of(self.request).without(*NOT_REPEATED).having(SOURCE_INDEX, self.text or ""))
