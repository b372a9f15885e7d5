"""catalog.xml: exported and imported by GenericSetup, from an add-on's profile, Plone's own, or our own export."""

from Acquisition import aq_base
from OFS.ObjectManager import REPLACEABLE
from plone.pgcatalog.catalog import PlonePGCatalogTool
from Products.CMFCore.indexing import processQueue
from tests.integration import site as sites
from tests.integration.catalog_xml import exported
from tests.integration.catalog_xml import importable
from tests.integration.catalog_xml import imported
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from tests.integration.pages import second_connection
from typing import Any

import pathlib
import Products.CMFPlone
import pytest
import transaction


PLONES = pathlib.Path(Products.CMFPlone.__file__).parent / "profiles" / "default" / "catalog.xml"
ADD_ON = """\
<object name="portal_catalog">
  <object name="addon_lexicon" meta_type="ZCTextIndex Lexicon">
    <element name="Whitespace splitter" group="Word Splitter"/>
    <element name="Case Normalizer" group="Case Normalizer"/>
  </object>
  <index name="addon_text" meta_type="ZCTextIndex">
    <indexed_attr value="Description"/>
    <extra name="index_type" value="Okapi BM25 Rank"/>
    <extra name="lexicon_id" value="addon_lexicon"/>
  </index>
  <index name="addon_field" meta_type="FieldIndex"><indexed_attr value="getId"/></index>
  <index name="addon_keywords" meta_type="KeywordIndex"><indexed_attr value="Subject"/></index>
  <index name="addon_range" meta_type="DateRangeIndex" since_field="created" until_field="expires"/>
  <index name="addon_date" meta_type="DateIndex"><property name="index_naive_time_as_local">True</property></index>
  <index name="addon_between" meta_type="DateRangeInRangeIndex">
    <startindex value="created"/><endindex value="expires"/>
  </index>
  <index name="addon_topic" meta_type="TopicIndex">
    <filtered_set name="pages" meta_type="PythonFilteredSet" expression="o.portal_type == 'Document'"/>
  </index>
  <index name="Subject" remove="True"/>
  <index name="nobody" remove="True"/>
  <column value="addon_column"/>
  <column value="Creator" remove="True"/>
  <column value="nobody" remove="True"/>
</object>
"""


CONTENT = populate


def reindexed(catalog: Any) -> None:
    processQueue()
    catalog.refreshCatalog(clear=0)
    transaction.commit()


def entries_of(catalog: Any) -> dict[str, int]:
    return {name: catalog.Indexes[name].numObjects() for name in catalog.indexes()}


@pytest.mark.parametrize("purge", [False, True])
def test_an_export_is_imported_again(catalog: Any, purge: bool) -> None:
    text = exported(catalog)
    assert 'name="portal_catalog" meta_type="PG Catalog Tool"' in text
    rows, entries = len(catalog), entries_of(catalog)
    imported(catalog, importable(text), purge)
    for end in (lambda: None, transaction.commit):
        end()
        assert exported(catalog) == (importable(text) if purge else text)
    assert len(catalog) == rows
    # An equal index is not emptied, a new one is empty.
    assert len(catalog.unrestrictedSearchResults(getId="page")) == (0 if purge else 1)
    assert purge or entries_of(catalog) == entries
    reindexed(catalog)
    assert [b.Title for b in catalog(getId="page", SearchableText="quick")] == ["Page one"]
    assert answer(catalog, {"path": "/plone", "sort_on": "getId"}) == answer(
        make_oracle(catalog.aq_parent), {"path": "/plone", "sort_on": "getId"}
    )


@pytest.mark.parametrize("purge", [False, True])
def test_plones_own_profile_is_imported(catalog: Any, purge: bool) -> None:
    before = set(catalog.indexes())
    text = PLONES.read_text("utf-8")
    imported(catalog, text if purge else importable(text), purge)
    transaction.commit()
    assert isinstance(catalog.aq_base, PlonePGCatalogTool)
    assert set(catalog.indexes()) <= before
    reindexed(catalog)
    oracle = make_oracle(catalog.aq_parent)
    for query in ({"SearchableText": "quick"}, {"path": "/plone", "sort_on": "modified"}, {"Subject": "Rot"}):
        assert sorted(answer(catalog, query)[0]) == sorted(answer(oracle, query)[0])


def test_an_add_ons_profile_is_imported(catalog: Any) -> None:
    for _ in range(2):  # an upgrade imports it again
        imported(catalog, ADD_ON)
        transaction.commit()
    assert "addon_lexicon" in catalog.objectIds()
    assert "Subject" not in catalog.indexes()
    assert "addon_column" in catalog.schema()
    assert "Creator" not in catalog.schema()
    reindexed(catalog)
    oracle = make_oracle(catalog.aq_parent)
    for query in (
        {"addon_text": "quick"},
        {"addon_field": "page", "sort_on": "addon_field"},
        {"addon_keywords": ["Rot"]},
        {"addon_topic": "pages"},
        {"addon_between": {"start": "2020-01-01", "end": catalog.aq_parent.my_folder.page.created() + 1}},
        {"addon_range": catalog.aq_parent.my_folder.page.created() + 1},
    ):
        assert answer(catalog, query) == answer(oracle, query)
        assert answer(catalog, query)[1] > 0
    text = importable(exported(catalog))
    imported(catalog, text, purge=True)
    assert exported(catalog) == text


def test_a_changed_attribute_stays_and_empties_the_index(catalog: Any, db: Any) -> None:
    text = importable(exported(catalog))
    old = '<index name="getId" meta_type="FieldIndex">\n  <indexed_attr value="getId"/>'
    assert old in text
    imported(catalog, text.replace(old, old.replace('value="getId"', 'value="Title"')))
    assert len(catalog(getId="page")) == 0
    transaction.commit()
    with second_connection(db) as (_, other):
        assert other.portal_catalog.Indexes["getId"].getIndexSourceNames() == ["Title"]
        assert len(other.portal_catalog.unrestrictedSearchResults(getId="page")) == 0
    catalog.reindexIndex("getId", None)
    assert len(catalog(getId="Page one")) == 2


def test_export_equals_that_of_zcatalog(stock_dsn: str) -> None:
    with sites.opened(stock_dsn) as db, sites.inside(db) as portal:
        before = exported(portal.portal_catalog)
        portal.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:default")
        after = exported(portal.portal_catalog)
    assert after.replace("PG Catalog Tool", "Plone Catalog Tool") == before


def test_pasted_tool_has_the_same_settings_and_its_own_rows(portal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlonePGCatalogTool, "__replaceable__", REPLACEABLE, raising=False)
    create(portal, "Folder", "folder")
    create(portal, "Document", "page", title="Fox")
    transaction.commit()
    portal.folder.manage_pasteObjects(portal.manage_copyObjects(["portal_catalog"]))
    original, pasted = portal.portal_catalog, portal.folder.portal_catalog
    assert aq_base(pasted) is aq_base(portal.folder).portal_catalog is not aq_base(original)
    assert "SearchableText" in pasted.indexes()
    for names in ("indexes", "schema", "objectIds"):
        assert getattr(pasted, names)() == getattr(original, names)()
    assert hasattr(aq_base(pasted), "plaintext_lexicon")
    transaction.commit()
    pasted.clearFindAndRebuild()
    transaction.commit()
    create(portal, "Document", "later", title="Later")
    pasted.uncatalog_object("/plone/page")
    transaction.commit()
    for catalog, rows in ((original, 1), (pasted, 0)):
        for title in ("Fox", "Later"):
            assert len(catalog.unrestrictedSearchResults(Title=title)) == rows
