"""Attributes that objects lack, and may acquire: a rebuild that looks once per container has the values of ZCatalog."""

from plone.indexer import indexer
from plone.pgcatalog.indexes.cached_attributes import CachedAttributes
from plone.pgcatalog.indexing.extract import MissingAttributeCache
from plone.pgcatalog.indexing.queue import missing_attributes
from Products.CMFCore.indexing import processQueue
from Products.PluginIndexes.FieldIndex.FieldIndex import FieldIndex
from Products.PythonScripts.PythonScript import PythonScript
from Products.ZCatalog.interfaces import IZCatalog
from tests.integration.content import create
from tests.integration.oracle import make_oracle
from tests.integration.rebuilding import differences
from tests.integration.rebuilding import rebuild
from typing import Any
from zope.component import getGlobalSiteManager
from zope.component import provideAdapter
from zope.interface import Interface

import pytest
import transaction


#: Attributes that an object may have, acquire, or lack.
NAMES = ("own", "of_folder", "of_site", "script_of_site", "script_of_folder", "by_indexer", "nobody")


def script(container: Any, name: str, body: str) -> None:
    container._setObject(name, PythonScript(name))
    container[name].ZPythonScript_edit("", body)


def fill(portal: Any) -> None:
    for name in NAMES:
        portal.portal_catalog.addIndex(name, FieldIndex(name))
        portal.portal_catalog.addColumn(name)
    portal.of_site = "of the site"
    script(portal, "script_of_site", "return context.getId() + ' by the site'")
    for number in range(2):
        folder = create(portal, "Folder", f"folder{number}")
        if number:
            folder.of_folder = "of the folder"
            script(folder, "script_of_folder", "return context.getId() + ' by the folder'")
            # Hides the site's attribute.
            folder.script_of_site = "no script"
        for i in range(4):
            create(folder, "Document", f"page{i}")
        folder.page1.own = "own"
        folder.page3.script_of_site = "own"
    transaction.commit()


CONTENT = fill


@pytest.fixture
def with_indexer(portal: Any) -> Any:
    @indexer(Interface, IZCatalog)
    def of_some(obj: Any) -> str:
        if obj.getId() in ("page0", "page1"):
            raise AttributeError("by_indexer")
        return f"{obj.getId()} indexed"

    provideAdapter(of_some, name="by_indexer")
    yield
    getGlobalSiteManager().unregisterAdapter(of_some, name="by_indexer")


def pages(catalog: Any) -> dict[str, Any]:
    """Return path -> (entry, metadata) of each of NAMES."""
    found = {}
    for brain in catalog.unrestrictedSearchResults(portal_type=["Document", "Folder"]):
        entries, metadata = catalog.getIndexDataForRID(brain.getRID()), catalog.getMetadataForRID(brain.getRID())
        found[brain.getPath()] = [(entries[name], metadata[name]) for name in NAMES]
    return found


@pytest.mark.usefixtures("with_indexer")
def test_rebuild_has_the_values_of_zcatalog(portal: Any) -> None:
    rebuild(portal._p_jar.db())
    transaction.begin()
    ours = pages(portal.portal_catalog)
    assert ours == pages(make_oracle(portal))
    assert {entry for (entry, _), *_ in ours.values()} == {"own", ""}
    found = ours["/plone/folder1/page2"]
    assert [entry for entry, _ in found][3:5] == ["", "page2 by the folder"]
    assert ours["/plone/folder0/page2"][3][0] == "page2 by the site"
    # The other way of reading values, one by one.
    assert differences(portal) == []


@pytest.mark.usefixtures("with_indexer")
def test_queue_caches_missing_attributes_while_it_is_processed_and_has_the_values_of_zcatalog(portal: Any) -> None:
    catalog, seen, add = portal.portal_catalog, [], MissingAttributeCache.add

    def noted(self: MissingAttributeCache, name: str) -> None:
        seen.append(missing_attributes() is self)
        add(self, name)

    for path in pages(catalog):
        portal.unrestrictedTraverse(path).reindexObject()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MissingAttributeCache, "add", noted)
        processQueue()
    assert set(seen) == {True}
    assert missing_attributes() is None
    assert pages(catalog) == pages(make_oracle(portal))


def test_missing_attribute_is_looked_up_once() -> None:
    asked: list[str] = []

    class Counted:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            raise AttributeError(name)

    source = CachedAttributes(Counted())
    for _ in range(3):
        assert getattr(source, "start", None) is None
        with pytest.raises(AttributeError):
            source.end  # noqa: B018
    assert asked == ["start", "end"]
