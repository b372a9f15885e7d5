"""Installing and uninstalling: the parts that the profile converts, leaves, refuses and restores; and catalog.xml."""

from Acquisition import aq_base
from collections.abc import Iterator
from OFS.ObjectManager import REPLACEABLE
from pathlib import Path
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.setuphandlers import UnsupportedStorage
from Products.CMFCore.indexing import processQueue
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.GenericSetup.browser.manage import ImportStepsView
from Products.GenericSetup.registry import _import_step_registry
from tests.integration import site as sites
from tests.integration.catalog_xml import exported
from tests.integration.catalog_xml import importable
from tests.integration.catalog_xml import imported
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from tests.integration.pages import second_connection
from tests.integration.rebuilding import tables
from typing import Any
from ZODB.DB import DB
from ZODB.MappingStorage import MappingStorage

import psycopg
import pytest
import re
import transaction


DEFAULT = "profile-plone.pgcatalog:default"
UNINSTALL = "profile-plone.pgcatalog:uninstall"


def fill(portal: Any) -> None:
    catalog = portal.portal_catalog
    catalog.addIndex("odd-name", "KeywordIndex", {"indexed_attrs": "Subject"})
    catalog.addColumn("getLayout")
    populate(portal)
    catalog.uncatalog_object("/plone/my_folder/page2")


CONTENT = fill


@pytest.fixture
def stock(stock_dsn: str) -> Iterator[Any]:
    """A stock site with content and an add-on's index and column."""
    with sites.opened(stock_dsn) as db, sites.inside(db) as portal:
        yield portal


def run(portal: Any, profile: str) -> None:
    portal.portal_setup.runAllImportStepsFromProfile(profile)


def settings(tool: Any) -> dict[str, Any]:
    """Return name -> (type, settings) of the indexes of *tool*."""
    names = ("indexed_attrs", "_since_field", "_until_field", "attr_recurdef", "attr_until", "lexicon_id")
    return {
        index.getId(): (
            type(aq_base(index)).__name__,
            index.meta_type,
            {name: getattr(aq_base(index), name, None) for name in names},
        )
        for index in tool.getIndexObjects()
    }


def relations(dsn: str) -> set[str]:
    """Return the relations of catalogs that do not wait to be dropped."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relname ~ '^pgcatalog_[0-9a-f]+$'"
            " EXCEPT SELECT relation FROM pgcatalog_retired"
        )
        return {name for (name,) in rows}


def test_install_converts_indexes_columns_lexicons_and_entries_and_leaves_no_btree(stock: Any, stock_dsn: str) -> None:
    old = stock.portal_catalog
    before = settings(old), set(old.schema()), sorted(old._catalog.uids), old.objectIds()
    position = stock.objectIds().index("portal_catalog")
    run(stock, DEFAULT)
    tool = stock.portal_catalog
    assert isinstance(aq_base(tool), PlonePGCatalogTool)
    assert (settings(tool), set(tool.schema()), sorted(tool._catalog.uids), tool.objectIds()) == before
    assert stock.objectIds().index("portal_catalog") == position
    transaction.commit()
    assert sorted(tool._catalog.uids) == before[2]
    assert [b.getId for b in tool(**{"odd-name": "x y"})] == ["page"]
    stock._p_jar.db().pack()
    with psycopg.connect(stock_dsn) as connection:
        left = connection.execute(
            "SELECT class_mod, class_name FROM object_state"
            " WHERE class_mod IN ('Products.ZCatalog.Catalog', 'Products.ZCTextIndex.OkapiIndex')"
        ).fetchall()
        [(trees,)] = connection.execute(
            "SELECT count(*) FROM object_state tree JOIN object_state i ON tree.zoid = ANY(i.refs)"
            " WHERE tree.class_mod LIKE 'BTrees.%' AND i.class_mod LIKE 'Products.PluginIndexes.%'"
        )
    assert (left, trees) == ([], 0)


def test_install_is_idempotent(portal: Any) -> None:
    tool = aq_base(portal.portal_catalog)
    generation = portal.portal_catalog.getCounter()
    run(portal, DEFAULT)
    assert aq_base(portal.portal_catalog) is tool
    assert portal.portal_catalog.getCounter() == generation
    view = ImportStepsView(portal.portal_setup, None)
    assert view.doubleSteps() == view.invalidSteps() == []


def test_aborted_install_leaves_the_old_catalog(stock: Any, stock_dsn: str) -> None:
    run(stock, DEFAULT)
    transaction.abort()
    assert isinstance(aq_base(stock.portal_catalog), CatalogTool)
    assert tables(stock_dsn) == set()
    assert len(stock.portal_catalog(getId="page")) == 1


@pytest.mark.parametrize("profile", ["profile-Products.CMFPlone:plone", "profile-Products.CMFPlone:dependencies"])
def test_catalog_survives_plones_own_toolset_with_and_without_our_overrides(stock: Any, profile: str) -> None:
    ours = _import_step_registry.getStepMetadata("toolset")
    try:
        for handler in (ours["handler"], "Products.GenericSetup.tool.importToolset"):
            _import_step_registry.registerStep("toolset", handler=handler)
            run(stock, DEFAULT)
            tool = aq_base(stock.portal_catalog)
            stock.portal_setup.runImportStepFromProfile(profile, "toolset")
            assert aq_base(stock.portal_catalog) is tool
        run(stock, UNINSTALL)
        assert "toolset" not in stock.portal_setup.getImportStepRegistry().listSteps()
    finally:
        _import_step_registry.registerStep("toolset", handler=ours["handler"])


def test_the_toolset_of_a_site_without_us_is_plones(stock: Any) -> None:
    stock._delObject("portal_catalog")
    stock.portal_setup.runImportStepFromProfile("profile-Products.CMFPlone:plone", "toolset")
    assert type(aq_base(stock.portal_catalog)) is CatalogTool


@pytest.mark.slow
def test_install_refuses_another_storage(zope: None) -> None:
    db = DB(MappingStorage())
    sites.create_site_in(db)
    with sites.inside(db) as portal:
        with pytest.raises(UnsupportedStorage, match="zodb-pgjsonb"):
            run(portal, DEFAULT)
        assert isinstance(aq_base(portal.portal_catalog), CatalogTool)
        assert not portal._p_jar._registered_objects
    db.close()


def test_uninstall_restores_a_working_zcatalog(portal: Any, dsn: str) -> None:
    tool = portal.portal_catalog
    assert len(relations(dsn)) == 1
    before = settings(tool), set(tool.schema()), sorted(tool._catalog.uids)
    run(portal, UNINSTALL)
    transaction.commit()
    tool = portal.portal_catalog
    assert type(aq_base(tool)) is CatalogTool
    assert (settings(tool), set(tool.schema()), sorted(tool._catalog.uids)) == before
    assert [b.getId for b in tool(SearchableText="quick AND fox")] == ["page"]
    assert [b.getId for b in tool(**{"odd-name": "x y"})] == ["page"]
    top = {"path": {"query": "/plone", "depth": 1}, "sort_on": "getObjPositionInParent"}
    assert next(b.getId for b in tool(top)) == "my_folder"
    assert relations(dsn) == set()
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM object_state WHERE idx IS NOT NULL").fetchone() == (0,)
    create(portal, "Document", "later", title="Later")
    assert len(tool(Title="later")) == 1
    run(portal, DEFAULT)
    transaction.commit()
    assert len(portal.portal_catalog(Title="later")) == 1


def test_the_page_leaves_nothing_of_ours_in_the_database(site_template: str, postgres: Any) -> None:
    """By the SQL of uninstall.md, with Zope stopped."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "uninstall.md").read_text("utf-8")
    [block] = re.findall(r"^ *% snippet: drop-all\n *```sql\n(.*?)^ *```", page, re.M | re.S)
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        run(portal, UNINSTALL)
        transaction.commit()
    left = (
        "SELECT relname FROM pg_class WHERE relname LIKE 'pgcatalog%' UNION ALL"
        " SELECT proname FROM pg_proc WHERE proname LIKE 'pgcatalog%' UNION ALL"
        " SELECT attname FROM pg_attribute WHERE attrelid = 'object_state'::regclass AND attname = 'idx'"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert connection.execute(left).fetchall()
        for (relation,) in connection.execute("SELECT relation FROM pgcatalog_retired").fetchall():
            connection.execute(f'DROP VIEW IF EXISTS "{relation}_rows"')
            connection.execute(f'DROP TABLE IF EXISTS "{relation}"')
            connection.execute(f'DROP FUNCTION IF EXISTS "{relation}_count"')
        connection.execute(block)
        assert connection.execute(left).fetchall() == []
    # The package can be installed again.
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        run(portal, DEFAULT)
        transaction.commit()
        assert len(portal.portal_catalog) > 0


def test_a_restart_does_no_ddl(dsn: str) -> None:
    """Opening the storage again, searching and committing creates and alters nothing."""

    def catalog_version() -> Any:
        with psycopg.connect(dsn) as connection:
            return connection.execute(
                "SELECT max(xmin::text::bigint), count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            ).fetchone()

    before = catalog_version()
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        create(portal, "Document", "new")
        transaction.commit()
        assert len(portal.portal_catalog(getId="new")) == 1
    assert catalog_version() == before


def test_deletion_of_a_site_drops_its_relation_unless_it_is_aborted(app: Any, dsn: str) -> None:
    app.plone._delObject("portal_catalog")
    transaction.abort()
    assert len(app.plone.portal_catalog(getId="page")) == 1
    assert len(relations(dsn)) == 1
    app._delObject("plone")
    transaction.commit()
    assert relations(dsn) == set()


def test_worker_drops_a_retired_relation_when_no_session_reads_it(site_template: str, postgres: Any) -> None:
    dsn = sites.clone(postgres, site_template)
    with sites.opened(dsn) as db, psycopg.connect(dsn, autocommit=True) as connection:
        with sites.inside(db) as portal:
            portal.aq_parent._delObject("plone")
            transaction.commit()
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_retired").fetchall()
        with psycopg.connect(dsn) as reader:
            reader.execute(f"SELECT FROM {relation}")
            assert Worker(db, dsn).run_until_empty() == 1
            assert connection.execute("TABLE pgcatalog_retired").fetchall()
        connection.execute("UPDATE pgcatalog_queue SET due = now()")
        assert Worker(db, dsn).run_until_empty() == 1
        assert connection.execute("SELECT to_regclass(%s)", (relation,)).fetchall() == [(None,)]
        assert connection.execute("TABLE pgcatalog_queue").fetchall() == []


# -- catalog.xml, from an add-on's profile, Plone's own, or our own export

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
