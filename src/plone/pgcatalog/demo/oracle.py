"""The oracle: a stock ZCatalog in memory, filled from the content of the site.

It is made from the definition that the site's catalog had before ours took its place,
and is not stored: it has no data manager, and the transaction is aborted anyway.
"""

from Acquisition import aq_base
from collections.abc import Callable
from collections.abc import Iterator
from plone.dexterity.interfaces import IDexterityContent
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.GenericSetup.context import DirectoryImportContext
from Products.GenericSetup.interfaces import IBody
from typing import Any
from zope.component import getMultiAdapter


FORGET_EVERY = 200


def make(site: Any, definition: str) -> Any:
    """Return an empty CatalogTool, defined by a catalog.xml, in the site's context."""
    catalog = CatalogTool().__of__(site)
    context = DirectoryImportContext(site.portal_setup, "")
    getMultiAdapter((catalog, context), IBody).body = definition.encode()
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
