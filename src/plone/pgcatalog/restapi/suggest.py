"""``@pgsuggest``: pages and words that begin with what has been typed so far."""

from collections.abc import Iterable
from plone.pgcatalog.core.searcher import bad_values
from plone.pgcatalog.discovery.suggest import LIMIT
from plone.pgcatalog.discovery.suggest import suggest
from plone.pgcatalog.fulltext.lexicon import query_words
from plone.pgcatalog.protocols import CatalogTool
from plone.pgcatalog.restapi.documents import summaries
from plone.pgcatalog.restapi.parameters import Parameters
from plone.restapi.services import Service
from Products.CMFCore.utils import getToolByName
from typing import Any


class SuggestGet(Service):
    """Suggests to *query*, what has been typed; the pages are those the user may see."""

    def reply(self) -> dict[str, Any]:
        parameters = Parameters(self.context, self.request)
        text = self.request.form.get("query", parameters.text)
        text = text.strip() if isinstance(text, str) else ""
        catalog = getToolByName(self.context, "portal_catalog")
        query = parameters.query()
        query.pop("SearchableText", None)
        with bad_values():
            pages = self._pages(catalog, query, text) if text else []
            terms = suggest(catalog, text, LIMIT, query) if text else []
        return {
            "@id": self.request["ACTUAL_URL"],
            "suggestions": summaries(pages, self.request),
            "terms": terms,
        }

    def _pages(self, catalog: CatalogTool, query: dict[str, Any], text: str) -> Iterable[Any]:
        search = beginning(catalog, text)
        return catalog.searchResults(**query | {"Title": search}, b_start=0, b_size=LIMIT) if search else []


def beginning(catalog: CatalogTool, text: str) -> str:
    """Return a search for titles with all words of *text*, the last of which may be its beginning only."""
    words = query_words(catalog._core.translator("Title").index.getLexicon(), text.replace("*", " ").replace("?", " "))
    if not words:
        return ""
    return " AND ".join([*(f'"{word}"' for word in words[:-1]), f"{words[-1]}*"])
