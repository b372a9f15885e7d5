"""``@solr`` with kitconcept.solr's interface, for its front-end, and the flag by which the front-end detects it.

It is not registered if kitconcept.solr is installed, which has its own service.
"""

from collections.abc import Mapping
from plone.pgcatalog.discovery.facet_groups import Facet
from plone.pgcatalog.discovery.highlight import Highlighter
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.restapi.search import columns
from plone.pgcatalog.restapi.search import counted
from plone.pgcatalog.restapi.search import counting
from plone.pgcatalog.restapi.search import DOCUMENT_COLUMNS
from plone.pgcatalog.restapi.search import matching_values
from plone.pgcatalog.restapi.search import SuggestGet
from plone.pgcatalog.restapi.solr_parameters import SolrParameters
from plone.pgcatalog.restapi.solr_parameters import WithExtraConditions
from plone.restapi.interfaces import ISiteEndpointExpander
from plone.restapi.services import Service
from typing import Any
from zope.component import adapter
from zope.component.hooks import getSite
from zope.interface import implementer
from zope.interface import Interface

import json


@implementer(ISiteEndpointExpander)
@adapter(Interface, IPGCatalogLayer)
class SolrFlag:
    """Reports in ``@site`` that ``@solr`` exists; otherwise the front-end uses ``@search``."""

    def __init__(self, context: Any, request: Any) -> None:
        """Ignore the arguments: the result is the same in the whole site."""

    def __call__(self, site: dict[str, Any]) -> None:
        site["collective.solr.active"] = True


class SolrGet(Service):
    """Searches for objects that the user may see; parameters and response are in the reference."""

    def reply(self) -> dict[str, Any]:
        parameters = SolrParameters(self.context, self.request)
        results = parameters.search(parameters.query(), parameters.start, parameters.rows)
        spelling: dict[str, Any] = {}
        collates = parameters.flag("collate", False)
        if parameters.text and (collates or parameters.flag("spellcheck", False)):
            typed, corrected = parameters.text, parameters.corrected_text()
            if corrected:
                parameters.text = corrected
                better = parameters.search(parameters.query(), parameters.start, parameters.rows)
                spelling["spellcheck"] = _spellcheck(typed, corrected, better.actual_result_count)
                if collates and not results.actual_result_count:
                    results = better
                    spelling["collation_misspellings"] = _misspellings(typed, corrected)
                else:
                    parameters.text = typed
        return self._answer(parameters, results) | spelling

    def _answer(self, parameters: SolrParameters, results: Any) -> dict[str, Any]:
        # The page, the number of hits and the facets are read in one round trip.
        with results.view.session.batch():
            facet_counting = counting(parameters, parameters.facets, results)
            total = results.actual_result_count
        brains = list(results)
        snippets = results.snippets(brains, parameters.snippet_length)
        fields = (*DOCUMENT_COLUMNS, "review_state", *parameters.settings.get("fieldList", []))
        highlighter = results.highlighter()
        docs = [_document(brain, fields, snippets.get(brain.getRID()), highlighter) for brain in brains]
        groups = [
            [tab["label"], parameters.search(parameters.tab_query(tab), 0, 0).actual_result_count]
            for tab in parameters.tabs
        ]
        facets = counted(facet_counting)
        answer = {
            "response": {"numFound": total, "start": parameters.start, "docs": docs},
            "portal_path": "/".join(getSite().getPhysicalPath()),
            "facet_groups": groups,
            "facet_fields": _facet_fields(parameters, facets or {}),
            # Never empty: the front-end would log an error.
            "layouts": parameters.tab.get("layouts") or ["list"],
            "vocabularies": parameters.settings.get("vocabularies", []),
        }
        if facets is None:
            answer["facets_timed_out"] = True
        if parameters.flag("keep_full_solr_response", False):
            answer |= _as_solr(answer)
        return answer


class SolrSuggestGet(SuggestGet):
    """Suggestions as of ``@pgsuggest``, filtered by ``extra_conditions``."""

    parameters = WithExtraConditions


def _document(brain: Any, fields: tuple[str, ...], snippet: str | None, highlighter: Highlighter) -> dict[str, Any]:
    """Return *brain* in the format of the front-end: scales are JSON in a string, a MIME type is always a string.

    The field of an image is read from its scales, because a site without plone.volto has no column for it.
    """
    document = {"mime_type": ""} | columns(brain, fields) | {"path_string": brain.getPath()}
    if scales := document.pop("image_scales", None):
        document["image_scales"] = json.dumps(scales)
        document["image_field"] = document.get("image_field") or next(iter(scales))
    if snippet is not None and highlighter:
        document["highlighting"] = [snippet]
        for field, name in (("Title", "highlighting_title"), ("Description", "highlighting_description")):
            text = document.get(field)
            if isinstance(text, str) and highlighter.has_match(text):
                document[name] = [highlighter.mark(text)]
    return document


def _facet_fields(parameters: SolrParameters, facets: Mapping[str, Facet]) -> list[list[Any]]:
    """Return [configuration, [[value, number of rows], …]] of each facet; values are strings, empty ones are left out."""
    fields = []
    for field in parameters.tab.get("facetFields", []):
        if field["name"] in facets:
            pairs = matching_values(parameters, field["name"], facets[field["name"]])
            shown = [[_text(value), count] for value, count in pairs if value not in (None, "")]
            fields.append([field, shown[: parameters.facet_limit(field["name"])]])
    return fields


def _text(value: Any) -> str:
    """Return *value* as a string that can be sent back in ``facet_conditions``."""
    return value if isinstance(value, str) else json.dumps(value)


def _misspellings(typed: str, corrected: str) -> list[str]:
    """Return each word of *typed* that *corrected* replaces, followed by its replacement."""
    before, after = typed.split(), corrected.split()
    if len(before) != len(after):
        return [typed, corrected]
    return [word for pair in zip(before, after, strict=True) if pair[0] != pair[1] for word in pair]


def _spellcheck(typed: str, corrected: str, hits: int) -> dict[str, Any]:
    """Return *corrected* in the format of Solr's spellchecker; the frequency of each word is the number of *hits*."""
    pairs = _misspellings(typed, corrected)
    words = [
        part
        for wrong, right in zip(pairs[::2], pairs[1::2], strict=True)
        for part in (wrong, {"numFound": 1, "suggestion": [{"word": right, "freq": hits}]})
    ]
    collation = {"collationQuery": corrected, "hits": hits, "misspellingsAndCorrections": pairs}
    return {"suggestions": words, "correctlySpelled": False, "collations": ["collation", collation]}


def _as_solr(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of *answer* in Solr's own format, under Solr's names."""
    names = {"highlighting": "content", "highlighting_title": "Title", "highlighting_description": "Description"}
    return {
        "facet_counts": {
            "facet_queries": dict(answer["facet_groups"]),
            "facet_fields": {
                field["name"]: [part for pair in pairs for part in pair] for field, pairs in answer["facet_fields"]
            },
        },
        "highlighting": {
            doc["UID"]: {names[key]: doc[key] for key in names if key in doc} for doc in answer["response"]["docs"]
        },
    }
