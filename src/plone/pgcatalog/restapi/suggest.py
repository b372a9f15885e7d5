"""``@pgsuggest``: pages and words that begin with what has been typed so far."""

from importlib import import_module
from importlib.util import find_spec
from plone.pgcatalog.restapi.parameters import Parameters
from plone.pgcatalog.search.lexicon import query_words
from plone.restapi.interfaces import ISerializeToJsonSummary
from plone.restapi.services import Service
from Products.CMFCore.utils import getToolByName
from typing import Any
from zope.component import getMultiAdapter


#: What suggests words, where there is such a module.
SUGGESTER = "plone.pgcatalog.search.suggest"
suggester: Any = import_module(SUGGESTER) if find_spec(SUGGESTER) else None

LIMIT = 10


class SuggestGet(Service):  # type: ignore[misc]
    """Suggests to *query*, what has been typed; the pages are those the user may see."""

    def reply(self) -> dict[str, Any]:
        parameters = Parameters(self.context, self.request)
        text = self.request.form.get("query", parameters.text)
        text = text.strip() if isinstance(text, str) else ""
        catalog = getToolByName(self.context, "portal_catalog")
        return {
            "@id": self.request["ACTUAL_URL"],
            "suggestions": self._pages(catalog, parameters, text) if text else [],
            "terms": suggested_words(catalog, text) if text else [],
        }

    def _pages(self, catalog: Any, parameters: Parameters, text: str) -> list[dict[str, Any]]:
        search = beginning(catalog, text)
        if not search:
            return []
        query = parameters.query() | {"Title": search}
        query.pop("SearchableText", None)
        brains = catalog.searchResults(**query, b_start=0, b_size=LIMIT)
        return [getMultiAdapter((brain, self.request), ISerializeToJsonSummary)() for brain in brains]


def beginning(catalog: Any, text: str) -> str:
    """Return a search for titles with all words of *text*, the last of which may be its beginning only."""
    words = query_words(
        catalog._catalog.translator("Title").index.getLexicon(), text.replace("*", " ").replace("?", " ")
    )
    if not words:
        return ""
    return " AND ".join([*(f'"{word}"' for word in words[:-1]), f"{words[-1]}*"])


def suggested_words(catalog: Any, text: str) -> list[str]:
    """Return words of the site that begin with the last word of *text*."""
    return [] if suggester is None else list(suggester.suggest(catalog, text, LIMIT))


def did_you_mean(catalog: Any, text: str) -> str | None:
    """Return *text* with words of the site in place of unknown ones, None if there is nothing better."""
    better: str | None = None if suggester is None else suggester.did_you_mean(catalog, text)
    return better
