"""A transaction sees its own catalog changes, others do not, abort and rollback take them back."""

from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.indexing.transition import is_unfilled
from plone.pgcatalog.indexing.verify import Verifier
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.fixtures import SiteWith
from tests.integration.pages import make_many_pages
from tests.integration.pages import MANY
from typing import Any
from zope.component.hooks import setSite

import psycopg
import pytest
import time
import transaction


def ids(catalog: Any, **query: Any) -> list[str]:
    return [brain.getPath().rpartition("/")[2] for brain in catalog.unrestrictedSearchResults(**query)]


@pytest.fixture
def other(db: Any) -> Any:
    """The catalog as a second connection, with a transaction of its own, sees it."""
    manager = transaction.TransactionManager()
    connection = db.open(manager)
    yield lambda: (manager.begin(), connection.root()["Application"].plone.portal_catalog)[1]
    manager.abort()
    connection.close()


def nothing(portal: Any) -> None:
    """Fill a site with nothing."""


def test_created_objects_are_found_before_commit(portal: Any, catalog: Any, other: Any) -> None:
    create(portal, "Document", "page", title="Brand new", subject=("tag",))
    assert (
        ids(catalog, Title="brand") == ids(catalog, Subject="tag") == ids(catalog, portal_type="Document") == ["page"]
    )
    brain = catalog(getId="page")[0]
    assert (brain.Title, brain.Subject, brain.getURL()) == ("Brand new", ("tag",), "http://nohost/plone/page")
    assert ids(other(), getId="page") == []
    transaction.commit()
    assert ids(catalog, Title="brand") == ["page"]
    assert ids(other(), getId="page") == ["page"]


def test_edited_objects_match_by_the_new_values_only(portal: Any, catalog: Any) -> None:
    page = create(portal, "Document", "page", title="Old")
    transaction.commit()
    page.title = "New"
    page.reindexObject()
    assert ids(catalog, Title="old") == []
    assert [b.Title for b in catalog(Title="new")] == ["New"]
    transaction.abort()
    assert ids(catalog, Title="old") == ["page"]
    assert ids(catalog, Title="new") == []


def test_deleted_objects_are_gone(portal: Any, catalog: Any, other: Any) -> None:
    create(portal, "Document", "page")
    transaction.commit()
    portal.manage_delObjects(["page"])
    assert ids(catalog, getId="page") == []
    assert ids(other(), getId="page") == ["page"]
    transaction.commit()
    assert ids(catalog, getId="page") == ids(other(), getId="page") == []


def test_moved_trees_are_at_the_new_path_only(portal: Any, catalog: Any) -> None:
    folder = create(portal, "Folder", "my_folder")
    create(folder, "Document", "page")
    create(create(portal, "Folder", "my-folder"), "Document", "sibling")
    transaction.commit()
    rid = catalog.getrid("/plone/my_folder/page")
    portal.manage_renameObject("my_folder", "moved")
    for _ in range(2):
        assert ids(catalog, path="/plone/my_folder") == []
        assert sorted(ids(catalog, path="/plone/moved")) == ["moved", "page"]
        assert sorted(ids(catalog, path="/plone/my-folder")) == ["my-folder", "sibling"]
        assert catalog.getrid("/plone/moved/page") == rid
        transaction.commit()


def test_swapped_names(portal: Any, catalog: Any) -> None:
    create(portal, "Document", "a", title="was a")
    create(portal, "Document", "b", title="was b")
    transaction.commit()
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        portal.manage_renameObject(old, new)
    for _ in range(2):
        assert [b.Title for b in catalog(path="/plone/a")] == ["was b"]
        assert [b.Title for b in catalog(path="/plone/b")] == ["was a"]
        transaction.commit()


def test_an_object_replaced_under_the_same_id(portal: Any, catalog: Any) -> None:
    create(portal, "Document", "page", title="first")
    transaction.commit()
    portal.manage_delObjects(["page"])
    create(portal, "Folder", "page", title="second")
    for _ in range(2):
        assert [(b.Title, b.portal_type) for b in catalog(path="/plone/page")] == [("second", "Folder")]
        transaction.commit()


def test_copies_are_rows_of_their_own(portal: Any, catalog: Any) -> None:
    folder = create(portal, "Folder", "folder")
    create(folder, "Document", "page", title="Copied")
    transaction.commit()
    portal.manage_pasteObjects(portal.manage_copyObjects(["folder"]))
    assert sorted(b.getPath() for b in catalog(Title="copied")) == ["/plone/copy_of_folder/page", "/plone/folder/page"]
    transaction.commit()
    assert len(catalog(Title="copied")) == 2
    assert len({b.UID for b in catalog(Title="copied")}) == 2


def test_savepoint_rollback_takes_back_what_came_after(portal: Any, catalog: Any) -> None:
    create(portal, "Document", "before")
    savepoint = transaction.savepoint()
    create(portal, "Document", "after")
    portal.before.title = "Changed"
    portal.before.reindexObject()
    assert sorted(ids(catalog, portal_type="Document")) == ["after", "before"]
    savepoint.rollback()
    assert ids(catalog, portal_type="Document") == ["before"]
    assert ids(catalog, Title="changed") == []
    transaction.commit()
    assert ids(catalog, portal_type="Document") == ["before"]


@pytest.mark.parametrize("stock", [False, True])
def test_a_search_is_repeated_after_a_rollback(site_with: SiteWith, stock: bool) -> None:
    """Deviation search-after-rollback: ZCatalog's cache has record ids that the rollback took back."""
    with sites.opened(site_with(nothing, stock)) as db, sites.inside(db) as portal:
        portal.invokeFactory("Document", "page")
        savepoint = transaction.savepoint()
        assert ids(portal.portal_catalog, getId="page") == ["page"]
        savepoint.rollback()
        for end in (lambda: None, transaction.commit):
            end()
            assert "page" in portal
            if stock:
                with pytest.raises(KeyError):
                    ids(portal.portal_catalog, getId="page")
            else:
                assert ids(portal.portal_catalog, getId="page") == ["page"]


def test_rollback_to_a_savepoint_before_the_first_change(portal: Any, catalog: Any) -> None:
    savepoint = transaction.savepoint()
    create(portal, "Document", "page")
    assert ids(catalog, getId="page") == ["page"]
    savepoint.rollback()
    assert ids(catalog, getId="page") == []
    create(portal, "Document", "again")
    transaction.commit()
    assert ids(catalog, portal_type="Document") == ["again"]


def test_workflow_changes_state_and_visibility(portal: Any, catalog: Any) -> None:
    portal.portal_workflow.setChainForPortalTypes(("Document",), "simple_publication_workflow")
    page = create(portal, "Document", "page")
    transaction.commit()
    portal.portal_workflow.doActionFor(page, "publish")
    for _ in range(2):
        assert ids(catalog, review_state="published") == ["page"]
        assert ids(catalog, getId="page", allowedRolesAndUsers=["Anonymous"]) == ["page"]
        transaction.commit()


def test_partial_reindex_leaves_the_rest_alone(portal: Any, catalog: Any) -> None:
    page = create(portal, "Document", "page", title="Title", subject=("one",))
    transaction.commit()
    before = catalog.getIndexDataForUID("/plone/page"), catalog.getMetadataForUID("/plone/page")
    page.title = "Unseen"
    page.setSubject(("two",))
    page.reindexObject(idxs=["Subject"])
    for _ in range(2):
        assert ids(catalog, Subject="two") == ["page"]  # works off the indexing queue
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
        assert ids(catalog, path="/plone/page") == []
    catalog.catalog_object(page, "/plone/page", idxs=["getId"])
    for _ in range(2):
        assert ids(catalog, path="/plone") == ["plone"]  # its path was not indexed again
        assert ids(catalog, getId="page") == ["page"]
        assert ids(catalog, portal_type="Document") == []
        assert len(catalog) == 2
        transaction.commit()


def test_another_object_under_a_taken_path_has_only_values_of_its_own(portal: Any, catalog: Any) -> None:
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
    assert ids(catalog, allowedRolesAndUsers=["user:someone"]) == ["page"]
    transaction.commit()
    assert ids(catalog, allowedRolesAndUsers=["user:someone"]) == ["page"]
    changed = page._p_serial
    assert changed != serial  # the local role is in the object
    catalog.catalog_object(page, "/plone/page", idxs=["allowedRolesAndUsers"], update_metadata=0)
    transaction.commit()
    assert page._p_serial == changed  # a reindex does not rewrite it


def test_clear_is_inside_the_transaction(portal: Any, catalog: Any, other: Any) -> None:
    create(portal, "Document", "page")
    transaction.commit()
    catalog.manage_catalogClear()
    assert len(catalog) == 0
    assert ids(catalog, portal_type="Document") == []
    transaction.abort()
    assert ids(catalog, portal_type="Document") == ["page"]
    seen = other()
    assert ids(seen, portal_type="Document") == ["page"]
    catalog.manage_catalogClear()
    transaction.commit()
    assert len(catalog) == 0
    assert ids(seen, portal_type="Document") == ["page"]  # its snapshot is older
    assert ids(other(), portal_type="Document") == []


def test_clear_forgets_what_was_pending(portal: Any, catalog: Any) -> None:
    create(portal, "Document", "page")
    assert ids(catalog, portal_type="Document") == ["page"]
    catalog.manage_catalogClear()
    assert ids(catalog, portal_type="Document") == []
    create(portal, "Document", "later")
    assert ids(catalog, portal_type="Document") == ["later"]


def test_clear_find_and_rebuild_finds_the_same(portal: Any, catalog: Any) -> None:
    folder = create(portal, "Folder", "folder")
    create(folder, "Document", "page", title="Rebuilt")
    transaction.commit()
    before = sorted(catalog._catalog.uids)
    catalog.clearFindAndRebuild()
    for _ in range(2):
        assert [b.Title for b in catalog(Title="rebuilt")] == ["Rebuilt"]
        assert sorted(catalog._catalog.uids) == before
        transaction.commit()


def test_indexes_and_columns_are_inside_the_transaction(portal: Any, catalog: Any) -> None:
    page = create(portal, "Document", "page", title="Title")
    transaction.commit()
    catalog.addIndex("layout", "FieldIndex", {"indexed_attrs": "getLayout"})
    catalog.addColumn("getLayout")
    page.reindexObject()
    assert [b.getLayout for b in catalog(layout="document_view")] == ["document_view"]
    transaction.abort()
    assert "layout" not in catalog.indexes()
    assert "getLayout" not in catalog.schema()
    assert ids(catalog, layout="document_view", getId="page") == ["page"]  # an unknown index is ignored
    catalog.addIndex("layout", "FieldIndex", {"indexed_attrs": "getLayout"})
    page.reindexObject(idxs=["layout"])
    transaction.commit()
    assert ids(catalog, layout="document_view") == ["page"]
    catalog.clearIndex("layout")
    assert ids(catalog, layout="document_view") == []
    transaction.commit()
    assert ids(catalog, layout="document_view") == []
    catalog.manage_reindexIndex(ids=["layout"])
    assert ids(catalog, layout="document_view", portal_type="Document") == ["page"]
    catalog.delIndex("layout")
    assert "layout" not in catalog.indexes()
    transaction.commit()
    assert ids(catalog, getId="page") == ["page"]


def test_counter_changes_with_every_catalog_change(portal: Any, catalog: Any) -> None:
    counters = [catalog.getCounter()]
    for number in range(3):
        create(portal, "Document", f"page{number}")
        counters.append(catalog.getCounter())
        transaction.commit()
        # What is committed has a number of its own: the transaction's id, which is not known before.
        counters.append(catalog.getCounter())
    assert counters == sorted(set(counters))
    create(portal, "Document", "never")
    transaction.abort()
    assert catalog.getCounter() == counters[-1]
    portal.title = "not catalogued"
    transaction.commit()
    assert catalog.getCounter() == counters[-1]


def test_a_snapshot_does_not_change_under_a_reader(portal: Any, catalog: Any, other: Any) -> None:
    seen = other()
    assert ids(seen, portal_type="Document") == []
    create(portal, "Document", "page")
    transaction.commit()
    assert ids(seen, portal_type="Document") == []
    assert ids(other(), portal_type="Document") == ["page"]


def test_results_keep_what_they_found(site_with: SiteWith) -> None:
    """A lazy result answers for the moment of its search, also beyond the first window."""
    with sites.opened(site_with(make_many_pages)) as db, sites.inside(db) as portal:
        catalog = portal.portal_catalog
        everything = catalog(portal_type="Document", sort_on="getId")
        page = catalog(portal_type="Document", sort_on="getId", b_start=0, b_size=10)
        portal.manage_delObjects([f"page{number:03}" for number in range(MANY)])
        assert len(catalog(portal_type="Document")) == 0
        assert len(everything) == MANY
        assert everything[MANY - 1].getPath() == f"/plone/page{MANY - 1}"
        assert (len(page), page.actual_result_count) == (10, MANY)


def test_two_editors_do_not_conflict(portal: Any, catalog: Any, db: Any) -> None:
    folder = create(portal, "Folder", "folder")
    for id in ("one", "two"):
        create(folder, "Document", id)
    transaction.commit()
    manager = transaction.TransactionManager()
    with sites.application(db, manager) as app:
        theirs = app.plone.folder.two
        mine = portal.folder.one
        mine.title, theirs.title = "Mine", "Theirs"
        app.plone.portal_catalog.catalog_object(theirs, "/plone/folder/two")
        mine.reindexObject()
        manager.commit()
        transaction.commit()
    found = catalog.unrestrictedSearchResults(portal_type="Document")
    assert sorted(b.Title for b in found) == ["Mine", "Theirs"]


def test_somebody_elses_commit_is_no_lost_history(portal: Any, catalog: Any, db: Any) -> None:
    """Whoever commits with an older snapshot than a commit of the same process is not told to repeat it."""
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
def portal(dsn: str) -> Any:
    """The site on a history-preserving storage."""
    with sites.opened(dsn, history_preserving=True) as db, sites.inside(db) as portal:
        yield portal


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
    assert not is_unfilled(root.plone.portal_catalog._core)
