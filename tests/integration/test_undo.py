"""History-preserving storages: after undo and pack the catalog answers as the content does."""

from plone.pgcatalog.indexing.transition import is_unfilled
from plone.pgcatalog.indexing.verify import Verifier
from tests.integration import site as sites
from tests.integration.content import create
from typing import Any
from zope.component.hooks import setSite

import psycopg
import pytest
import time
import transaction


@pytest.fixture
def portal(dsn: str) -> Any:
    """The site on a history-preserving storage."""
    with sites.opened(dsn, history_preserving=True) as db, sites.application(db) as app:
        sites.login(app)
        setSite(app.plone)
        yield app.plone


def undo_last(portal: Any) -> None:
    db = portal._p_jar.db()
    db.undo(db.undoInfo(0, 1)[0]["id"])
    transaction.commit()
    transaction.begin()


def paths(portal: Any, **query: Any) -> list[str]:
    return sorted(b.getPath() for b in portal.portal_catalog.unrestrictedSearchResults(**query))


def assert_sound(portal: Any) -> None:
    assert [str(d) for d in Verifier(portal.portal_catalog).differences()] == []


def test_undo_of_an_edit(portal: Any) -> None:
    page = create(portal, "Document", "page", title="Old")
    transaction.commit()
    page.title = "New"
    page.reindexObject()
    transaction.commit()
    undo_last(portal)
    assert (paths(portal, Title="old"), paths(portal, Title="new")) == (["/plone/page"], [])
    assert [b.Title for b in portal.portal_catalog.unrestrictedSearchResults(getId="page")] == ["Old"]
    assert_sound(portal)


def test_undo_of_a_creation(portal: Any) -> None:
    create(portal, "Document", "page")
    transaction.commit()
    undo_last(portal)
    assert paths(portal, getId="page") == []
    assert_sound(portal)


def test_undo_of_a_deletion(portal: Any) -> None:
    folder = create(portal, "Folder", "folder")
    create(folder, "Document", "page")
    transaction.commit()
    portal.manage_delObjects(["folder"])
    transaction.commit()
    assert paths(portal, getId="page") == []
    undo_last(portal)
    assert paths(portal, path="/plone/folder") == ["/plone/folder", "/plone/folder/page"]
    assert_sound(portal)


def test_undo_of_a_move(portal: Any) -> None:
    folder = create(portal, "Folder", "folder")
    create(folder, "Document", "page")
    transaction.commit()
    portal.manage_renameObject("folder", "moved")
    transaction.commit()
    undo_last(portal)
    assert paths(portal, portal_type=["Folder", "Document"]) == ["/plone/folder", "/plone/folder/page"]
    assert_sound(portal)


def test_undo_of_a_clear(portal: Any) -> None:
    create(portal, "Document", "page")
    transaction.commit()
    portal.portal_catalog.manage_catalogClear()
    portal.title = "Cleared"  # ZODB undoes only what is stored
    transaction.commit()
    assert paths(portal, getId="page") == []
    undo_last(portal)
    assert paths(portal, getId="page") == ["/plone/page"]
    assert_sound(portal)


def test_pack_leaves_no_orphans(portal: Any, dsn: str) -> None:
    create(portal, "Document", "page")
    create(portal, "Document", "kept")
    transaction.commit()
    portal.manage_delObjects(["page"])
    transaction.commit()
    portal._p_jar.db().pack(time.time() + 1)
    transaction.begin()
    assert paths(portal, portal_type="Document") == ["/plone/kept"]
    assert_sound(portal)
    with psycopg.connect(dsn) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state")
        orphans = connection.execute(
            f'SELECT count(*) FROM "{relation}" c WHERE NOT EXISTS (SELECT FROM object_state o WHERE o.zoid = c.zoid)'
        ).fetchone()
    assert orphans == (0,)


def test_undo_of_the_deletion_of_the_site(portal: Any) -> None:
    create(portal, "Document", "page")
    transaction.commit()
    root = portal.getPhysicalRoot()
    before = paths(portal, path="/plone")
    root._delObject("plone")
    setSite(None)
    transaction.commit()
    undo_last(root)
    setSite(root.plone)
    assert paths(root.plone, path="/plone") == before
    assert_sound(root.plone)
    assert not is_unfilled(root.plone.portal_catalog._catalog)
