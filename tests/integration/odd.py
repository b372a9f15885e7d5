"""A catalog that indexes ``odd`` in every way, for content with values of all kinds."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from plone.dexterity.interfaces import IDexterityContent
from plone.indexer import indexer
from tests.integration.content import create
from types import SimpleNamespace
from typing import Any
from zope.component import getGlobalSiteManager


#: Index id -> type and options; each indexes the attribute ``odd`` of objects.
INDEXES: dict[str, Any] = {
    "odd-field": ("FieldIndex", SimpleNamespace(indexed_attrs="odd")),
    "odd-keyword": ("KeywordIndex", SimpleNamespace(indexed_attrs="odd")),
    "odd-bool": ("BooleanIndex", SimpleNamespace(indexed_attrs="odd")),
    "odd-uuid": ("UUIDIndex", SimpleNamespace(indexed_attrs="odd")),
    "odd-text": (
        "ZCTextIndex",
        SimpleNamespace(doc_attr="odd", lexicon_id="plone_lexicon", index_type="Okapi BM25 Rank"),
    ),
    "odd-range": ("DateRangeIndex", SimpleNamespace(since_field="odd", until_field="odd_until")),
    "odd-path": ("PathIndex", None),
}


@contextmanager
def indexed(name: str, value: Callable[[Any], Any]) -> Iterator[None]:
    """Within the block, objects have *value* (a function of the object) as the catalog's attribute *name*."""

    @indexer(IDexterityContent)
    def factory(obj: Any) -> Any:
        return value(obj)

    manager = getGlobalSiteManager()
    manager.registerAdapter(factory, name=name)
    try:
        yield
    finally:
        manager.unregisterAdapter(factory, name=name)


def found(catalog: Any, **query: Any) -> list[str]:
    return [brain.getPath() for brain in catalog.unrestrictedSearchResults(**query)]


def fill(portal: Any) -> None:
    """Add every kind of index of ``odd`` to the catalog; create a page, which tests change, between two others."""
    catalog = portal.portal_catalog
    for id, (kind, extra) in INDEXES.items():
        catalog.addIndex(id, kind, extra)
    # These types have no option for the attribute: it is their id.
    catalog.addIndex("odd", "DateIndex")
    catalog.addIndex("odd_start", "DateRecurringIndex", SimpleNamespace(recurdef="odd_rule", until=""))
    catalog.addColumn("odd")
    for id in ("before", "page", "zafter"):
        create(portal, "Document", id, title=f"Needle {id}", subject=("tag",))
