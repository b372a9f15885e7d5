"""The tool copied and pasted: what ``TestCatalogBugs`` of Products.CMFPlone asks of the class it patches itself."""

from Acquisition import aq_base
from OFS.ObjectManager import REPLACEABLE
from plone.pgcatalog.catalog import PlonePGCatalogTool
from tests.integration.content import create
from typing import Any

import pytest
import transaction


@pytest.fixture
def pasted(portal: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A copy of the site's catalog in a folder."""
    monkeypatch.setattr(PlonePGCatalogTool, "__replaceable__", REPLACEABLE, raising=False)
    create(portal, "Folder", "folder")
    create(portal, "Document", "page", title="Fox")
    transaction.commit()
    portal.folder.manage_pasteObjects(portal.manage_copyObjects(["portal_catalog"]))
    return portal.folder.portal_catalog


def test_a_tool_can_be_pasted(pasted: Any, portal: Any) -> None:
    assert hasattr(aq_base(portal.folder), "portal_catalog")
    assert aq_base(pasted) is not aq_base(portal.portal_catalog)


def test_the_copy_keeps_indexes_columns_and_lexicons(pasted: Any, portal: Any) -> None:
    original = portal.portal_catalog
    assert "SearchableText" in pasted.indexes()
    assert (pasted.indexes(), pasted.schema(), pasted.objectIds()) == (
        original.indexes(),
        original.schema(),
        original.objectIds(),
    )
    assert hasattr(aq_base(pasted), "plaintext_lexicon")


def test_the_copy_has_rows_of_its_own(pasted: Any, portal: Any) -> None:
    transaction.commit()
    pasted.clearFindAndRebuild()
    transaction.commit()
    create(portal, "Document", "later", title="Later")
    pasted.uncatalog_object("/plone/page")
    transaction.commit()
    assert len(portal.portal_catalog.unrestrictedSearchResults(Title="Later")) == 1
    assert len(portal.portal_catalog.unrestrictedSearchResults(Title="Fox")) == 1
    assert len(pasted.unrestrictedSearchResults(Title="Fox")) == 0
    assert len(pasted.unrestrictedSearchResults(Title="Later")) == 0
