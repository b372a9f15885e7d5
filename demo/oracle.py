"""The oracle: a stock ZCatalog in memory, filled from the content of the site.

It is made from the definition that the site's catalog had before ours took its place,
and is not stored: it has no data manager, and the transaction is aborted anyway.

(A catalog.xml would be the natural definition.  But what GenericSetup exports of a
DateRangeIndex or a DateRecurringIndex it cannot import into an empty catalog.)
"""

from Acquisition import aq_base
from collections.abc import Callable
from collections.abc import Iterator
from plone.dexterity.interfaces import IDexterityContent
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.ZCTextIndex.ZCTextIndex import PLexicon
from types import SimpleNamespace
from typing import Any
from zope.dottedname.resolve import resolve


FORGET_EVERY = 200
#: How the settings of an index are called by its constructor, and by the index.
SETTINGS = {
    "DateRangeIndex": {"since_field": "_since_field", "until_field": "_until_field"},
    "DateRecurringIndex": {"recurdef": "attr_recurdef", "until": "attr_until"},
    "ZCTextIndex": {
        "lexicon_id": "lexicon_id",
        "index_type": "_index_type",
        "doc_attr": "_fieldname",
    },
}
ATTRIBUTES = {"indexed_attrs": "indexed_attrs"}


def definition(catalog: Any) -> dict[str, Any]:
    """Return the lexicons, indexes and columns of a stock catalog as plain data."""
    indexes = []
    for index in catalog.getIndexObjects():
        names = SETTINGS.get(index.meta_type, ATTRIBUTES)
        settings = {key: getattr(index, name, None) for key, name in names.items()}
        indexes.append((index.getId(), index.meta_type, settings))
    lexicons = {
        lexicon.getId(): [f"{type(step).__module__}.{type(step).__qualname__}" for step in lexicon._pipeline]
        for lexicon in catalog.objectValues("ZCTextIndex Lexicon")
    }
    return {"lexicons": lexicons, "indexes": indexes, "columns": list(catalog.schema())}


def make(site: Any, definition: dict[str, Any]) -> Any:
    """Return an empty CatalogTool of that definition in the site's context."""
    catalog = CatalogTool().__of__(site)
    for name, pipeline in definition["lexicons"].items():
        steps = [resolve(step)() for step in pipeline]
        catalog._setObject(name, PLexicon(name, "", *steps))
    for name, meta_type, settings in definition["indexes"]:
        extra = SimpleNamespace(**{k: v for k, v in settings.items() if v is not None})
        catalog.addIndex(name, meta_type, extra if vars(extra) else None)
    for name in definition["columns"]:
        if name not in catalog.schema():
            catalog.addColumn(name)
    return catalog


def content(folder: Any) -> Iterator[Any]:
    """Yield the folder and all content below it, however deep."""
    yield folder
    for child in folder.objectValues():
        # Tools live in the site, too, and are no content.
        if IDexterityContent.providedBy(aq_base(child)):
            yield from content(child)


def fill(site: Any, catalog: Any, advance: Callable[[], None]) -> int:
    """Catalog every content object at its path; return how many there were."""
    # Paths first: forgetting objects while walking would load the folders again.
    paths = ["/".join(item.getPhysicalPath()) for item in content(site)]
    for number, path in enumerate(paths, 1):
        catalog.catalog_object(site.unrestrictedTraverse(path), path)
        if number % FORGET_EVERY == 0:
            site._p_jar.cacheGC()
        advance()
    return len(paths)
