"""Indexes as add-ons create them."""

from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from types import SimpleNamespace
from typing import Any


#: Settings that index classes read, for all types.
EXTRA = SimpleNamespace(
    since_field="effective",
    until_field="expires",
    recurdef="recurrence",
    until="",
    lexicon_id="plone_lexicon",
    index_type="Okapi BM25 Rank",
    doc_attr="Title",
    startindex="effective",
    endindex="expires",
)
COMPONENTS = [
    {"id": "portal_type", "meta_type": "FieldIndex", "attributes": "portal_type"},
    {"id": "Subject", "meta_type": "KeywordIndex", "attributes": "Subject"},
    {"id": "is_folderish", "meta_type": "BooleanIndex", "attributes": "is_folderish"},
]


def make_index(cls: Any, catalog: Any, name: str = "") -> Any:
    """Return a new index of type *cls*, with the id *name* (default: the name of the class)."""
    name = name or f"a{cls.__name__}"
    parameters = cls.__init__.__code__.co_varnames
    if "extra" in parameters:
        return cls(name, extra=COMPONENTS if cls.__name__ == "CompositeIndex" else EXTRA, caller=catalog)
    return cls(name, caller=catalog) if "caller" in parameters else cls(name)


class LengthIndex(FieldIndex):
    """An index type of an add-on that has no translator for it: indexes the length of a text."""

    meta_type = "LengthIndex"

    def _get_object_datum(self, obj: Any, attr: str) -> Any:
        value = super()._get_object_datum(obj, attr)
        return len(value) if isinstance(value, str) else value
