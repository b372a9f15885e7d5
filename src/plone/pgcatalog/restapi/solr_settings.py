"""What a site shows in a front-end for kitconcept.solr: the tabs of its search page, and their facets."""

from copy import deepcopy
from plone.pgcatalog.i18n import _
from plone.registry.interfaces import IRegistry
from plone.schema import JSONField
from typing import Any
from zope.component import getUtility
from zope.interface import Interface

import json


RECORD = "plone.pgcatalog.solr"
_NAMED = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}}
_TAB = {
    "type": "object",
    "additionalProperties": False,
    "required": ["label"],
    "properties": {
        "label": {"type": "string", "minLength": 1},
        "query": {"type": "object"},
        "facetFields": {"type": "array", "items": _NAMED},
        "layouts": {"type": "array", "items": {"type": "string"}},
    },
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "searchTabs": {"type": "array", "items": _TAB},
        "fieldList": {"type": "array", "items": {"type": "string"}},
        "vocabularies": {
            "type": "array",
            "items": {"type": "object", "required": ["field", "name"]},
        },
    },
}
#: The tabs whose labels the front-end translates.
DEFAULT: dict[str, Any] = {
    "searchTabs": [
        {"label": "All", "query": {}},
        {"label": "Pages", "query": {"portal_type": ["Document"]}},
        {"label": "Events", "query": {"portal_type": ["Event"]}},
        {"label": "Images", "query": {"portal_type": ["Image"]}},
        {"label": "Files", "query": {"portal_type": ["File"]}},
    ]
}


class ISolrSettings(Interface):
    """What ``@solr`` answers."""

    solr = JSONField(
        title=_("Search tabs of a Solr front-end"),
        description=_(
            "Tabs, facets, layouts and further fields of the service @solr; see the reference of REST services."
        ),
        schema=json.dumps(SCHEMA),
        required=False,
        default=DEFAULT,
    )


def solr_settings() -> dict[str, Any]:
    """Return the settings of the site, the defaults where it has none."""
    found = getUtility(IRegistry).get(RECORD)
    return deepcopy(DEFAULT if found is None else found)
