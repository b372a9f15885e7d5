"""The indexer of the add-on."""

from plone.app.contenttypes.interfaces import IDocument
from plone.indexer import indexer
from shelves import shelf
from typing import Any


@indexer(IDocument)
def shelf_of(obj: Any) -> str:
    return shelf(obj)
