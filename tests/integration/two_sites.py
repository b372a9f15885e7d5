"""Two Plone sites in one database, changes of one, and the complete catalog content of the other."""

from DateTime import DateTime
from Products.CMFCore.indexing import processQueue
from tests.integration import site as sites
from tests.integration.content import create
from typing import Any
from zope.component.hooks import setSite

import psycopg
import transaction


PROFILE = "plone.pgcatalog:default"


def make_two_sites(dsn: str) -> None:
    """Create ``second`` beside the site ``plone`` of the database *dsn*, and the content of both; commit."""
    sites.create_site(dsn, "second", (PROFILE,))
    with sites.opened(dsn) as db, sites.application(db) as app:
        sites.login(app)
        for site in (app.plone, app.second):
            fill(site)
            transaction.commit()


def enter(site: Any) -> None:
    """Make *site* the current one: CMF's indexing queue is processed for the current site."""
    processQueue()
    setSite(site)


def fill(site: Any) -> None:
    enter(site)
    site.portal_workflow.setChainForPortalTypes(("Document",), ("simple_publication_workflow",))
    folder = create(site, "Folder", "folder", title=f"Folder of {site.id}", subject=("both", f"only {site.id}"))
    create(folder, "Document", "page", title=f"Needle {site.id}", subject=("both",))
    site.portal_workflow.doActionFor(create(folder, "Document", "open", title="Needle open"), "publish")
    create(site, "Event", "event", title="Event", start=DateTime("2026/01/01").asdatetime())


QUERIES: list[dict[str, Any]] = [
    {"path": "/"},
    {"path": {"query": "/", "depth": 3}},
    {"path": {"query": "/plone", "depth": 1}},
    {"path": {"query": "/second", "depth": 1}},
    {"path": ["/plone", "/second"]},
    {"path": {"query": ["/plone/folder/page", "/second/folder/page"], "depth": 0}},
    {"path": {"query": "/plone/folder", "navtree": 1}},
    {"path": {"query": "folder", "level": 1}},
    {"portal_type": {"not": "nothing"}},
    {"portal_type": ["Document", "Folder", "Event", "Plone Site"]},
    *({"getId": "page"}, {"Subject": "both"}, {"Subject": ["only plone", "only second"]}),
    *({"SearchableText": "needle"}, {"SearchableText": "plone OR second"}, {"UID": {"not": "nobody"}}),
    {"effectiveRange": DateTime()},
    {"created": {"query": DateTime("2000/01/01"), "range": "min"}},
    {"start": {"query": DateTime("2000/01/01"), "range": "min"}},
    {"allowedRolesAndUsers": "Manager"},
    {"is_folderish": True, "sort_on": "getId"},
    {"path": "/", "sort_on": "created", "sort_limit": 3},
]


def root(site: Any) -> str:
    return "/".join(site.getPhysicalPath())


def view(site: Any) -> Any:
    """Return all data of the catalog of *site*."""
    enter(site)
    catalog = site.portal_catalog
    rids = catalog._catalog.paths.keys()
    return (
        [[b.getPath() for b in catalog.unrestrictedSearchResults(**query)] for query in QUERIES],
        {path: catalog.getMetadataForRID(rid) for rid, path in catalog._catalog.paths.items()},
        [catalog.getIndexDataForRID(rid) for rid in rids],
        [list(catalog._catalog.getIndex(name).uniqueValues(withLengths=True)) for name in ("Subject", "getId")],
        {name: len(index) for name, index in catalog._catalog.indexes.items()},
        catalog.indexes(),
        list(catalog.schema()),
        catalog.getCounter(),
        len(catalog),
    )


def relations(dsn: str) -> dict[int, str]:
    """Return tool oid -> relation of all catalogs; check that each exists."""
    with psycopg.connect(dsn) as connection:
        found = dict(connection.execute("SELECT catalog, relation FROM pgcatalog_state").fetchall())
        for relation in found.values():
            connection.execute(f'SELECT count(*) FROM "{relation}"')
        return found


def oid(obj: Any) -> int:
    return int.from_bytes(obj._p_oid)


def clear(site: Any) -> None:
    site.portal_catalog.manage_catalogClear()


def rebuild(site: Any) -> None:
    site.portal_catalog.manage_catalogRebuild()


def clear_index(site: Any) -> None:
    site.portal_catalog.manage_clearIndex(["Subject", "SearchableText"])


def drop_index(site: Any) -> None:
    site.portal_catalog.delIndex("Subject")


def add_index(site: Any) -> None:
    site.portal_catalog.addIndex("odd", "FieldIndex")
    site.portal_catalog.addColumn("odd")


def retype_index(site: Any) -> None:
    site.portal_catalog.delIndex("Subject")
    site.portal_catalog.addIndex("Subject", "FieldIndex")
    site.portal_catalog.manage_reindexIndex(["Subject"])


def edit(site: Any) -> None:
    site.folder.page.title = "Edited"
    site.folder.page.reindexObject()


def publish(site: Any) -> None:
    site.portal_workflow.doActionFor(site.folder.page, "publish")


def rename(site: Any) -> None:
    site.manage_renameObject("folder", "renamed")


def delete(site: Any) -> None:
    """Delete the folder, whatever its name."""
    site.manage_delObjects([name for name in ("folder", "renamed") if name in site])


def uncatalog(site: Any) -> None:
    for path in list(site.portal_catalog._catalog.uids):
        site.portal_catalog.uncatalog_object(path)


def uncatalog_the_others(site: Any) -> None:
    for other in ("plone", "second"):
        if other != site.id:
            site.portal_catalog.uncatalog_object(f"/{other}/folder/page")


def uninstall(site: Any) -> None:
    site.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")


def reinstall(site: Any) -> None:
    uninstall(site)
    site.portal_setup.runAllImportStepsFromProfile(f"profile-{PROFILE}")


def delete_site(site: Any) -> None:
    site.getPhysicalRoot()._delObject(site.id)


#: In an order in which each action still finds the content that it changes.
ACTIONS = [
    *(edit, publish, clear_index, add_index, retype_index, drop_index, rebuild, uncatalog_the_others, rename, delete),
    *(uncatalog, clear, reinstall, uninstall, delete_site),
]
