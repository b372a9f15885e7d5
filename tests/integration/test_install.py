"""Installing and uninstalling: the parts that the profile converts, leaves, refuses and restores."""

from Acquisition import aq_base
from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.setuphandlers import UnsupportedStorage
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.GenericSetup.browser.manage import ImportStepsView
from Products.GenericSetup.registry import _import_step_registry
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
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


@pytest.fixture
def stock_dsn(site_with: SiteWith) -> str:
    return site_with(fill, stock=True)


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
    create(portal, "Document", "page")
    transaction.commit()
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
    fill(portal)
    transaction.commit()
    assert len(tables(dsn)) == 1
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
    assert tables(dsn) == set()
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
        for (relation,) in connection.execute("TABLE pgcatalog_retired").fetchall():
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
        create(portal, "Document", "page")
        transaction.commit()
        assert len(portal.portal_catalog(getId="page")) == 1
    assert catalog_version() == before


def test_deletion_of_a_site_drops_its_relation_unless_it_is_aborted(app: Any, dsn: str) -> None:
    create(app.plone, "Document", "page")
    transaction.commit()
    app.plone._delObject("portal_catalog")
    transaction.abort()
    assert len(app.plone.portal_catalog(getId="page")) == 1
    assert len(tables(dsn)) == 1
    app._delObject("plone")
    transaction.commit()
    assert tables(dsn) == set()
