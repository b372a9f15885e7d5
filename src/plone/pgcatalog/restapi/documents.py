"""Brains as the documents of a response."""

from collections.abc import Iterable
from collections.abc import Mapping
from plone.pgcatalog.discovery.highlight import Highlighter
from plone.restapi.interfaces import ISerializeToJsonSummary
from plone.restapi.serializer.converters import json_compatible
from typing import Any
from zope.component import getMultiAdapter

import Missing


#: Metadata columns that every document has, as far as the catalog has them.
FIELDS = (
    "UID",
    "Title",
    "Description",
    "Type",
    "Subject",
    "effective",
    "created",
    "modified",
    "start",
    "end",
    "mime_type",
    "location",
    "image_field",
    "image_scales",
)


def summaries(brains: Iterable[Any], request: Any) -> list[dict[str, Any]]:
    """Return *brains* as JSON: plone.restapi's summary."""
    return [getMultiAdapter((brain, request), ISerializeToJsonSummary)() for brain in brains]


def columns(brain: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the metadata columns *names* of *brain* as JSON, those that it has."""
    return {
        name: json_compatible(value)
        for name in names
        if name in brain and (value := getattr(brain, name)) is not Missing.Value
    }


def documents(
    brains: Iterable[Any], request: Any, snippets: Mapping[int, str], highlighter: Highlighter
) -> list[dict[str, Any]]:
    """Return *brains* as JSON: plone.restapi's summary, FIELDS, where it is, and what matched, as HTML."""
    answer = []
    for brain in brains:
        document = columns(brain, FIELDS)
        document |= getMultiAdapter((brain, request), ISerializeToJsonSummary)()
        document["path_string"] = brain.getPath()
        if brain.getRID() in snippets:
            document["highlighting"] = {"text": [snippets[brain.getRID()]]}
            if highlighter and isinstance(brain.Title, str):
                document["highlighting"]["Title"] = [highlighter.mark(brain.Title)]
        answer.append(document)
    return answer
