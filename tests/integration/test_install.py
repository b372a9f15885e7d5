"""Installing and uninstalling: the parts that the profile converts, leaves, refuses and restores."""

from Acquisition import aq_base
from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.queue.worker import Worker
from plone.pgcatalog.setuphandlers import UnsupportedStorage
from Products.CMFPlone.CatalogTool import CatalogTool
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from typing import Any
from zope.component.hooks import setSite

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


def relations(dsn: str) -> set[str]:
    """Return the relations of catalogs that do not wait to be dropped."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relname ~ '^pgcatalog_[0-9a-f]+$'"
            " EXCEPT SELECT relation FROM pgcatalog_retired"
        )
        return {name for (name,) in rows}


def test_install_converts_indexes_columns_lexicons_and_entries(stock: Any) -> None:
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


def test_install_leaves_no_btree(stock: Any, stock_dsn: str) -> None:
    run(stock, DEFAULT)
    transaction.commit()
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


def test_aborted_install_leaves_the_old_catalog(stock: Any, stock_dsn: str) -> None:
    run(stock, DEFAULT)
    transaction.abort()
    assert isinstance(aq_base(stock.portal_catalog), CatalogTool)
    assert relations(stock_dsn) == set()
    assert len(stock.portal_catalog(getId="page")) == 1


@pytest.mark.parametrize("profile", ["profile-Products.CMFPlone:plone", "profile-Products.CMFPlone:dependencies"])
def test_catalog_survives_plones_own_toolset(portal: Any, profile: str) -> None:
    tool = aq_base(portal.portal_catalog)
    portal.portal_setup.runImportStepFromProfile(profile, "toolset")
    assert aq_base(portal.portal_catalog) is tool


def test_profile_registers_no_import_step_twice(portal: Any) -> None:
    from Products.GenericSetup.browser.manage import ImportStepsView

    view = ImportStepsView(portal.portal_setup, None)
    assert view.doubleSteps() == []
    assert view.invalidSteps() == []


@pytest.mark.parametrize("profile", ["profile-Products.CMFPlone:plone", "profile-Products.CMFPlone:dependencies"])
def test_catalog_survives_plones_own_toolset_without_our_overrides(stock: Any, profile: str) -> None:
    from Products.GenericSetup.registry import _import_step_registry

    ours = _import_step_registry.getStepMetadata("toolset")
    _import_step_registry.registerStep("toolset", handler="Products.GenericSetup.tool.importToolset")
    try:
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


def test_install_refuses_another_storage(zope: None) -> None:
    from OFS.Application import AppInitializer
    from OFS.Application import Application
    from Products.CMFPlone.factory import addPloneSite
    from ZODB.DB import DB
    from ZODB.MappingStorage import MappingStorage

    db = DB(MappingStorage())
    connection = db.open()
    connection.root()["Application"] = Application()
    transaction.commit()
    connection.close()
    with sites.application(db) as app:
        AppInitializer(app).initialize()
        app.acl_users._doAddUser("admin", "secret", ["Manager"], [])
        sites.login(app)
        portal = addPloneSite(app, "plone", setup_content=False)
        transaction.commit()
        setSite(portal)
        with pytest.raises(UnsupportedStorage, match="zodb-pgjsonb"):
            run(portal, DEFAULT)
        assert isinstance(aq_base(portal.portal_catalog), CatalogTool)
        assert not portal._p_jar._registered_objects
    db.close()


def test_uninstall_restores_a_working_zcatalog(portal: Any, dsn: str) -> None:
    tool = portal.portal_catalog
    tool.addIndex("odd-name", "KeywordIndex", {"indexed_attrs": "Subject"})
    tool.addColumn("getLayout")
    populate(portal)
    transaction.commit()
    assert len(relations(dsn)) == 1
    before = settings(tool), set(tool.schema()), sorted(tool._catalog.uids)
    run(portal, UNINSTALL)
    transaction.commit()
    tool = portal.portal_catalog
    assert type(aq_base(tool)) is CatalogTool
    assert (settings(tool), set(tool.schema()), sorted(tool._catalog.uids)) == before
    assert [b.getId for b in tool(SearchableText="quick AND fox")] == ["page"]
    assert [b.getId for b in tool(**{"odd-name": "x y"})] == ["page"]
    assert (
        next(b.getId for b in tool(path={"query": "/plone", "depth": 1}, sort_on="getObjPositionInParent"))
        == "my_folder"
    )
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


def test_a_restart_does_no_ddl(dsn: str, postgres: Any) -> None:
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


def test_deleting_the_site_drops_its_relation(app: Any, dsn: str) -> None:
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


def test_aborted_deletion_of_the_tool_leaves_its_relation(portal: Any, dsn: str) -> None:
    create(portal, "Document", "page")
    transaction.commit()
    portal._delObject("portal_catalog")
    transaction.abort()
    assert len(portal.portal_catalog(getId="page")) == 1
    assert len(relations(dsn)) == 1


def test_second_catalog_has_its_own_idx(portal: Any, catalog: Any) -> None:
    folder = create(portal, "Folder", "folder")
    page = create(portal, "Document", "page", title="One")
    transaction.commit()
    second = PlonePGCatalogTool()
    folder._setOb("portal_catalog", second)
    second = folder.portal_catalog
    second._catalog.addIndex("getId", aq_base(catalog)._indexes["getId"])
    second.addColumn("Title")
    second.addColumn("portal_type")
    second.catalog_object(page, "/plone/page")
    page.title = "Two"
    second.catalog_object(page, "/plone/page")
    for _ in range(2):
        assert [(b.Title, b.portal_type) for b in second.unrestrictedSearchResults(getId="page")] == [
            ("Two", "Document")
        ]
        assert [b.Title for b in catalog.unrestrictedSearchResults(getId="page")] == ["One"]
        transaction.commit()
    second.manage_catalogClear()
    transaction.commit()
    assert [b.Title for b in catalog.unrestrictedSearchResults(getId="page")] == ["One"]
