"""``catalog_object`` with names of columns in ``update_metadata`` computes these columns only: deviation named-columns."""

from plone.indexer import indexer
from Products.ZCatalog.Catalog import CatalogError
from tests.integration.content import create
from typing import Any
from zope.component import getGlobalSiteManager
from zope.interface import Interface

import pytest
import transaction


BOTH, NEITHER = ("new", "new"), ("old", "old")


def columns_of(catalog: Any) -> tuple[str, str]:
    [brain] = catalog.unrestrictedSearchResults(getId="page")
    return brain.Title, brain.Description


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["Title"], ("new", "old")),
        (("Description",), ("old", "new")),
        ({"Title", "Description"}, BOTH),
        (frozenset({"Title"}), ("new", "old")),
        (True, BOTH),
        (1, BOTH),
        ("Title", BOTH),
        ({"Title": 1}, BOTH),
        ([], NEITHER),
        (0, NEITHER),
        (None, NEITHER),
    ],
)
@pytest.mark.parametrize("idxs", [["UID"], None])
def test_named_columns_are_updated_and_others_stay(
    portal: Any, catalog: Any, value: Any, expected: tuple[str, str], idxs: list[str] | None
) -> None:
    page = create(portal, "Document", "page", title="old", description="old")
    transaction.commit()
    page.title = page.description = "new"
    catalog.catalog_object(page, "/plone/page", idxs=idxs, update_metadata=value)
    assert columns_of(catalog) == expected
    transaction.commit()
    assert columns_of(catalog) == expected
    assert len(catalog.unrestrictedSearchResults(Title="new")) == (idxs is None)


def test_path_without_row_gets_all_columns(portal: Any, catalog: Any) -> None:
    page = create(portal, "Document", "page", title="new", description="new")
    catalog.uncatalog_object("/plone/page")
    transaction.commit()
    catalog.catalog_object(page, "/plone/page", idxs=["getId"], update_metadata=["Title"])
    assert columns_of(catalog) == BOTH
    transaction.commit()
    assert columns_of(catalog) == BOTH


def test_named_columns_do_not_undo_a_pending_reindexing(portal: Any, catalog: Any) -> None:
    page = create(portal, "Document", "page", title="old", description="old")
    transaction.commit()
    page.title = page.description = "new"
    page.reindexObject()
    catalog.catalog_object(page, "/plone/page", idxs=["UID"], update_metadata=["Title"])
    transaction.commit()
    assert columns_of(catalog) == BOTH


def test_other_columns_are_not_computed(portal: Any, catalog: Any) -> None:
    computed: list[str] = []

    @indexer(Interface)
    def costly(obj: Any) -> str:
        computed.append(obj.getId())
        return "value"

    catalog.addColumn("costly")
    page = create(portal, "Document", "page", title="old")
    transaction.commit()
    getGlobalSiteManager().registerAdapter(costly, name="costly")
    try:
        catalog.catalog_object(page, "/plone/page", idxs=["UID"], update_metadata=["Title"])
        transaction.commit()
        assert not computed
        catalog.catalog_object(page, "/plone/page", idxs=["UID"], update_metadata=["costly"])
        assert computed == ["page"]
    finally:
        getGlobalSiteManager().unregisterAdapter(costly, name="costly")


@pytest.mark.parametrize("names", [["Titel"], ["Title", "no"], [1]])
def test_unknown_column_is_an_error_and_changes_nothing(portal: Any, catalog: Any, names: list[Any]) -> None:
    page = create(portal, "Document", "page", title="old", description="old")
    transaction.commit()
    page.title = page.description = "new"
    with pytest.raises(CatalogError, match="names no metadata column"):
        catalog.catalog_object(page, "/plone/page", update_metadata=names)
    assert columns_of(catalog) == NEITHER
