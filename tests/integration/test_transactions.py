"""A transaction sees its own catalog changes, others do not; abort and rollback undo them."""

from BTrees.Length import Length
from collections.abc import Callable
from contextlib import nullcontext
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.indexing.transition import is_unfilled
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.fixtures import no_content
from tests.integration.fixtures import SiteWith
from tests.integration.pages import second_connection
from tests.integration.storage import assert_sound
from tests.integration.storage import ids
from typing import Any
from ZODB.POSException import ConflictError
from zope.component.hooks import setSite

import psycopg
import pytest
import time
import transaction


@pytest.fixture
def other(db: Any) -> Any:
    """A function that returns the site as seen by a new transaction of a second connection."""
    with second_connection(db) as (manager, site):
        yield lambda: (manager.begin(), site)[1]


def with_folders(portal: Any) -> Any:
    """Return *portal* with two folders of confusing names, and a page in each."""
    portal.portal_workflow.setChainForPortalTypes(("Document",), ("simple_publication_workflow",))
    create(create(portal, "Folder", "my_folder"), "Document", "page", title="Old")
    create(create(portal, "Folder", "my-folder"), "Document", "sibling", title="was b")
    transaction.commit()
    return portal


@pytest.fixture
def folders(portal: Any) -> Any:
    return with_folders(portal)


def edit(portal: Any) -> None:
    portal.my_folder.page.title = "New"
    portal.my_folder.page.reindexObject()


def swap(portal: Any) -> None:
    for old, new in (("my_folder", "other"), ("my-folder", "my_folder"), ("other", "my-folder")):
        portal.manage_renameObject(old, new)


def replace(portal: Any) -> None:
    portal.my_folder.manage_delObjects(["page"])
    create(portal.my_folder, "Folder", "page", title="second")


#: Possible changes, and for some searches the titles or ids found before and after.
CHANGES: dict[str, tuple[Callable[[Any], Any], list[tuple[dict[str, Any], list[str], list[str]]]]] = {
    "create": (
        lambda portal: create(portal, "Document", "new", title="Brand new", subject=("tag",)),
        [(query, [], ["new"]) for query in ({"Title": "brand"}, {"Subject": "tag"}, {"getId": "new"})],
    ),
    "edit": (edit, [({"Title": "old"}, ["page"], []), ({"Title": "new"}, [], ["page"])]),
    "delete": (
        lambda portal: portal.my_folder.manage_delObjects(["page"]),
        [({"getId": "page"}, ["page"], []), ({"path": "/plone/my_folder"}, ["my_folder", "page"], ["my_folder"])],
    ),
    "move": (
        lambda portal: portal.manage_renameObject("my_folder", "moved"),
        [
            ({"path": "/plone/my_folder"}, ["my_folder", "page"], []),
            ({"path": "/plone/moved"}, [], ["moved", "page"]),
            ({"path": "/plone/my-folder"}, ["my-folder", "sibling"], ["my-folder", "sibling"]),
        ],
    ),
    "swap": (swap, [({"path": "/plone/my_folder"}, ["my_folder", "page"], ["my_folder", "sibling"])]),
    "replace": (replace, [({"Title": "old"}, ["page"], []), ({"Title": "second"}, [], ["page"])]),
    "copy": (
        lambda portal: portal.manage_pasteObjects(portal.manage_copyObjects(["my_folder"])),
        [({"path": "/plone/copy_of_my_folder"}, [], ["copy_of_my_folder", "page"]), ({"Title": "old"}, 1, 2)],
    ),
    "publish": (
        lambda portal: portal.portal_workflow.doActionFor(portal.my_folder.page, "publish"),
        [
            ({"review_state": "published"}, [], ["page"]),
            ({"allowedRolesAndUsers": "Anonymous", "portal_type": "Document"}, [], ["page"]),
        ],
    ),
    "clear": (
        lambda portal: portal.portal_catalog.manage_catalogClear(),
        [({"path": "/"}, 5, 0), ({"portal_type": "Document"}, 2, 0)],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen_at_once_and_by_others_after_the_commit(folders: Any, other: Any, name: str) -> None:
    change, queries = CHANGES[name]
    before, after = [before for _, before, _ in queries], [after for _, _, after in queries]

    def found(portal: Any) -> list[Any]:
        return [
            len(ids(portal, **query)) if isinstance(expected, int) else ids(portal, **query)
            for query, expected, _ in queries
        ]

    change(folders)
    assert (found(folders), found(other())) == (after, before)
    transaction.abort()
    assert found(folders) == before
    change(folders)
    assert found(folders) == after
    snapshot = other()
    assert found(snapshot) == before
    transaction.commit()
    assert (found(folders), found(snapshot)) == (after, before)
    assert found(other()) == after


def test_moved_row_has_its_rid_and_a_copy_another(folders: Any, catalog: Any) -> None:
    portal = folders
    rid = catalog.getrid("/plone/my_folder/page")
    portal.manage_renameObject("my_folder", "moved")
    assert catalog.getrid("/plone/moved/page") == rid
    portal.manage_pasteObjects(portal.manage_copyObjects(["moved"]))
    transaction.commit()
    assert catalog.getrid("/plone/moved/page") == rid
    assert len({(brain.UID, brain.getRID()) for brain in catalog(Title="old")}) == 2


@pytest.mark.parametrize("stock", [False, True])
def test_a_search_is_repeated_after_a_rollback(site_with: SiteWith, stock: bool) -> None:
    """Deviation search-after-rollback: ZCatalog's cache has record ids that were rolled back."""
    with sites.opened(site_with(no_content, stock)) as db, sites.inside(db) as portal:
        portal.invokeFactory("Document", "page")
        savepoint = transaction.savepoint()
        assert ids(portal, getId="page") == ["page"]
        savepoint.rollback()
        for end in (lambda: None, transaction.commit):
            end()
            assert "page" in portal
            with pytest.raises(KeyError) if stock else nullcontext():
                assert ids(portal, getId="page") == ["page"]


def test_savepoint_rollback_undoes_later_changes(portal: Any) -> None:
    first = transaction.savepoint()
    create(portal, "Event", "before")
    savepoint = transaction.savepoint()
    create(portal, "Event", "after")
    portal.before.title = "Changed"
    portal.before.reindexObject()
    assert ids(portal, portal_type="Event") == ["after", "before"]
    savepoint.rollback()
    assert (ids(portal, portal_type="Event"), ids(portal, Title="changed")) == (["before"], [])
    first.rollback()
    assert ids(portal, portal_type="Event") == []
    create(portal, "Event", "again")
    assert ids(portal, portal_type="Event") == ["again"]
    portal.portal_catalog.manage_catalogClear()
    assert ids(portal, portal_type="Event") == []
    create(portal, "Event", "later")
    transaction.commit()
    assert ids(portal, portal_type="Event") == ["later"]


def test_partial_reindex_leaves_other_values_alone(portal: Any, catalog: Any) -> None:
    page = create(portal, "Document", "page", title="Title", subject=("one",))
    transaction.commit()
    before = catalog.getIndexDataForUID("/plone/page"), catalog.getMetadataForUID("/plone/page")
    page.title = "Unseen"
    page.setSubject(("two",))
    page.reindexObject(idxs=["Subject"])
    for _ in range(2):
        assert ids(portal, Subject="two") == ["page"]  # processes the indexing queue
        data, metadata = catalog.getIndexDataForUID("/plone/page"), catalog.getMetadataForUID("/plone/page")
        assert data == before[0] | {"Subject": ["two"]}
        assert metadata["created"] == before[1]["created"]
        assert (metadata["Title"], metadata["Subject"]) == ("Unseen", ("two",))
        transaction.commit()


@pytest.mark.parametrize("look", [True, False])
def test_removed_and_reindexed_in_part_is_one_row(portal: Any, catalog: Any, look: bool) -> None:
    page = create(portal, "Document", "page", title="Title")
    transaction.commit()
    catalog.uncatalog_object("/plone/page")
    if look:
        assert ids(portal, path="/plone/page") == []
    catalog.catalog_object(page, "/plone/page", idxs=["getId"])
    for _ in range(2):
        assert ids(portal, path="/plone") == ["plone"]  # its path was not indexed again
        assert ids(portal, getId="page") == ["page"]
        assert ids(portal, portal_type="Document") == []
        assert len(catalog) == 2
        transaction.commit()


def test_another_object_under_the_same_path_has_only_values_of_its_own(portal: Any, catalog: Any) -> None:
    for name in ("one", "two"):
        create(portal, "Document", name, title=f"Title {name}", subject=(name,))
    catalog.catalog_object(portal["one"], "/plone/alias")
    transaction.commit()
    catalog.catalog_object(portal["two"], "/plone/alias", idxs=["Title"])
    for _ in range(2):
        found = catalog.getIndexDataForRID(catalog.getrid("/plone/alias"))
        assert (found["Title"], found["Subject"]) == (["title", "two"], "")
        transaction.commit()


def test_security_reindex_touches_only_the_roles(portal: Any, catalog: Any) -> None:
    page = create(portal, "Document", "page", title="Title")
    transaction.commit()
    serial = page._p_serial
    page.manage_setLocalRoles("someone", ["Reader"])
    page.reindexObjectSecurity()
    assert ids(portal, allowedRolesAndUsers=["user:someone"]) == ["page"]
    transaction.commit()
    assert ids(portal, allowedRolesAndUsers=["user:someone"]) == ["page"]
    changed = page._p_serial
    assert changed != serial  # the local role is in the object
    catalog.catalog_object(page, "/plone/page", idxs=["allowedRolesAndUsers"], update_metadata=0)
    transaction.commit()
    assert page._p_serial == changed  # a reindex does not rewrite it


def test_counter_changes_with_every_catalog_change(portal: Any, catalog: Any) -> None:
    counters = [catalog.getCounter()]
    for number in range(3):
        create(portal, "Document", f"page{number}")
        counters.append(catalog.getCounter())
        transaction.commit()
        # A committed state has a number of its own: the transaction's id, which is not assigned earlier.
        counters.append(catalog.getCounter())
    assert counters == sorted(set(counters))
    create(portal, "Document", "never")
    transaction.abort()
    assert catalog.getCounter() == counters[-1]
    portal.title = "not catalogued"
    transaction.commit()
    assert catalog.getCounter() == counters[-1]


def test_concurrent_commit_is_no_lost_history(portal: Any, catalog: Any, db: Any) -> None:
    """A commit with an older snapshot than another commit of the same process raises no retry."""
    page = create(portal, "Document", "page")
    transaction.commit()
    history = Generations.of(db).number
    page.reindexObject(idxs=["Title"])
    with sites.application(db, transaction.TransactionManager()) as app:
        app.plone.description = "changed meanwhile"
        app._p_jar.transaction_manager.commit()
    transaction.commit()
    assert Generations.of(db).number == history


@pytest.fixture
def undoable(dsn: str) -> Any:
    """The site on a history-preserving storage."""
    with sites.opened(dsn, history_preserving=True) as db, sites.inside(db) as portal:
        yield portal


def undo_last(portal: Any) -> None:
    db = portal._p_jar.db()
    db.undo(db.undoInfo(0, 1)[0]["id"])
    transaction.commit()
    transaction.begin()


def clear(portal: Any) -> None:
    portal.portal_catalog.manage_catalogClear()
    portal.title = "Cleared"  # ZODB undoes only stored objects


def test_a_change_is_undone(undoable: Any) -> None:
    portal = with_folders(undoable)

    def everything() -> list[tuple[str, str]]:
        return sorted((b.getPath(), b.Title) for b in portal.portal_catalog.unrestrictedSearchResults(path="/"))

    before = everything()
    for change in (*(CHANGES[name][0] for name in ("create", "edit", "delete", "move")), clear):
        change(portal)
        transaction.commit()
        assert everything() != before, change
        undo_last(portal)
        assert everything() == before, change
        assert ids(portal, Title="old") == ["page"], change
        assert_sound(portal)


def test_pack_leaves_no_orphans(undoable: Any, dsn: str) -> None:
    portal = undoable
    create(portal, "Document", "page")
    create(portal, "Document", "kept")
    transaction.commit()
    portal.manage_delObjects(["page"])
    transaction.commit()
    portal._p_jar.db().pack(time.time() + 1)
    transaction.begin()
    assert ids(portal, portal_type="Document") == ["kept"]
    assert_sound(portal)
    with psycopg.connect(dsn) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state")
        orphans = connection.execute(
            f'SELECT count(*) FROM "{relation}" c WHERE NOT EXISTS (SELECT FROM object_state o WHERE o.zoid = c.zoid)'
        ).fetchone()
    assert orphans == (0,)


def test_undo_of_the_deletion_of_the_site(undoable: Any) -> None:
    portal = undoable
    create(portal, "Document", "page")
    transaction.commit()
    root = portal.getPhysicalRoot()
    before = ids(portal, path="/plone")
    root._delObject("plone")
    setSite(None)
    transaction.commit()
    undo_last(root)
    setSite(root.plone)
    assert ids(root.plone, path="/plone") == before
    assert_sound(root.plone)
    assert not is_unfilled(root.plone.portal_catalog._core)


def test_conflict_with_a_missing_first_state_logs_no_error(db: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A storage without history has it in a cache only, which may drop an entry at any time."""
    one, other = (transaction.TransactionManager() for _ in range(2))
    first, second = db.open(one).root(), db.open(other).root()
    first["length"] = Length(1)
    one.commit()
    for is_kept in (True, False):
        other.begin()
        second["length"].change(10)
        one.begin()
        first["length"].change(1)
        one.commit()
        if is_kept:
            other.commit()
        else:
            second._p_jar._normal_storage._serial_cache.clear()
            with pytest.raises(ConflictError):
                other.commit()
            other.abort()
    one.begin()
    assert first["length"].value == 1 + 10 + 1 + 1
    assert [record for record in caplog.records if record.name == "ZODB.ConflictResolution"] == []
    for root in (first, second):
        root._p_jar.close()
