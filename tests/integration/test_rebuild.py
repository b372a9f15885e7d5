"""A rebuild beside the live catalog: no change is lost, all answers are right meanwhile, and it continues after a kill."""

from plone.pgcatalog.database import schema
from plone.pgcatalog.indexing import rebuild_relation
from plone.pgcatalog.indexing import rebuild_worker
from plone.pgcatalog.indexing.rebuild import BrokenObject
from plone.pgcatalog.indexing.rebuild import RebuildGone
from plone.pgcatalog.indexing.rebuild import RebuildRunning
from plone.pgcatalog.indexing.rebuild_worker import RebuildWorker
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from tests.integration.rebuilding import differences
from tests.integration.rebuilding import everything
from tests.integration.rebuilding import inside
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import rebuilding
from tests.integration.rebuilding import second_site
from tests.integration.rebuilding import sql
from tests.integration.rebuilding import tables
from tests.integration.waiting import until
from typing import Any

import itertools
import psycopg
import pytest
import re
import transaction


SLEEPS = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"


@pytest.fixture
def dsn(site_with: SiteWith, dsn: str, request: pytest.FixtureRequest) -> str:
    return site_with(populate) if "filled" in request.fixturenames else dsn


@pytest.fixture
def filled(portal: Any) -> Any:
    return portal


def test_rebuilt_catalog_has_the_same_data(filled: Any, db: Any) -> None:
    before = everything(filled)
    generation = filled.portal_catalog.getCounter()
    rebuild(db)
    transaction.begin()
    assert everything(filled) == before
    assert differences(filled) == []
    assert filled.portal_catalog.getCounter() > generation


def test_sql_indexes_are_those_of_the_old_relation(filled: Any, db: Any, dsn: str) -> None:
    def definitions() -> set[str]:
        [(relation,)] = sql(dsn, "SELECT relation FROM pgcatalog_state")
        rows = sql(dsn, f"SELECT indexdef FROM pg_indexes WHERE tablename = '{relation}'")
        # A rebuild leaves out NULLs where most rows have no value: see test_sparse_columns.
        return {row[0].replace(relation, "r").partition(" WHERE ")[0] for row in rows}

    before = definitions()
    rebuild(db)
    assert definitions() == before


def test_table_settings_are_those_of_the_old_relation(filled: Any, db: Any, dsn: str) -> None:
    def settings() -> list[set[str]]:
        query = "SELECT reloptions FROM pg_class WHERE oid = %s OR oid = (SELECT reltoastrelid FROM pg_class WHERE oid = %s)"
        relation = "(SELECT relation FROM pgcatalog_state)::regclass"
        return [set(options) for (options,) in sql(dsn, f"{query.replace('%s', relation)} ORDER BY relkind")]

    before = settings()
    table, toast = before
    assert "autovacuum_vacuum_scale_factor=0.02" in table
    assert "autovacuum_vacuum_scale_factor=0.05" in toast
    rebuild(db)
    assert settings() == before


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("DELETE FROM {}", marks=pytest.mark.slow),
        "UPDATE {} SET subject = ARRAY['wrong'], searchable_text = 'wrong'",
        pytest.param("UPDATE {} SET path = '/plone/nowhere' WHERE get_id = 'page'", marks=pytest.mark.slow),
        "UPDATE object_state SET idx = idx || '{{\"Title\": \"wrong\"}}' WHERE idx ->> 'getId' = 'page'",
        pytest.param("UPDATE object_state SET idx = NULL", marks=pytest.mark.slow),
        pytest.param("DELETE FROM pgcatalog_state", marks=pytest.mark.slow),
    ],
)
def test_damaged_catalog_is_restored(filled: Any, db: Any, dsn: str, statement: str) -> None:
    transaction.begin()
    before = everything(filled)
    sql(dsn, statement)
    if statement == "DELETE FROM pgcatalog_state":
        # A database into which another storage was copied has no table, either.
        with psycopg.connect(dsn, autocommit=True) as connection:
            transaction.abort()
            connection.execute(f"DROP TABLE {' '.join(tables(dsn))} CASCADE")
    rebuild(db)
    transaction.begin()
    assert everything(filled) == before
    assert differences(filled) == []


FOLDERS = 9
EDITS = ["create", "edit", "delete", "move", "rename", "security", "metadata", "order", "uncatalog", "by hand"]


def edit(portal: Any, kind: str, number: int) -> None:
    """Change the site, each time in the next folder."""
    folder = portal[f"f{number % FOLDERS}"]
    if kind == "create":
        create(folder, "Document", f"new{number}", title=f"New {number}", subject=("fresh",))
    elif kind == "edit":
        folder.d0.title = f"Edited {number}"
        folder.d0.reindexObject()
    elif kind == "delete" and "d1" in folder:
        folder.manage_delObjects(["d1"])
    elif kind == "move" and "d2" in folder:
        portal.target.manage_pasteObjects(folder.manage_cutObjects(["d2"]))
        portal.target.manage_renameObject("d2", f"moved{number}")
    elif kind == "rename":
        name = folder.getId()
        portal.manage_renameObject(name, f"renamed{number}")
        portal.manage_renameObject(f"renamed{number}", name)
    elif kind == "security":
        folder.manage_setLocalRoles("admin", ["Reader"])
        folder.reindexObjectSecurity()
    elif kind == "metadata":
        folder.d0.description = f"Described {number}"
        folder.d0.reindexObject(idxs=["Description"])
    elif kind == "order":
        folder.moveObjectsToTop(["d0"])
    elif kind == "uncatalog":
        portal.portal_catalog.uncatalog_object(f"/plone/{folder.getId()}/d3")
    elif kind == "by hand":
        portal.portal_catalog.catalog_object(folder.d3, "/plone/by-hand")
        portal.portal_catalog.uncatalog_object("/plone/by-hand")


@pytest.fixture
def tree(portal: Any, monkeypatch: Any) -> Any:
    """Folders with four documents each, and a target for moves; a rebuild visits few of them at a time."""
    create(portal, "Folder", "target")
    for number in range(FOLDERS):
        folder = create(portal, "Folder", f"f{number}", title=f"Folder {number}")
        for i in range(4):
            create(folder, "Document", f"d{i}", title=f"Document {i} of {number}", subject=("all", f"s{i}"))
    transaction.commit()
    monkeypatch.setattr(rebuild_worker, "BATCH", 8)
    monkeypatch.setattr(rebuild_relation, "SLICE", 8)
    return portal


@pytest.mark.slow
def test_changes_between_any_two_steps_are_not_lost(tree: Any, db: Any) -> None:
    """Each kind of change is made before and after the walk passes, and the old relation shows it at once."""
    kinds = enumerate(itertools.cycle(EDITS))
    with rebuilding(db) as steps:
        while steps.step() != "done":
            for number, kind in itertools.islice(kinds, 3):
                edit(tree, kind, number)
                transaction.commit()
            transaction.begin()
            found = {b.getPath() for b in tree.portal_catalog.unrestrictedSearchResults(portal_type="Folder")}
            assert len(found) == FOLDERS + 1
            catalogued = set(tree.portal_catalog._catalog.uids)
        assert next(kinds)[0] > 3 * len(EDITS)
    left = differences(tree)
    assert set(tree.portal_catalog._catalog.uids) == catalogued
    # Objects uncatalogued after the start of the rebuild stay uncatalogued.
    assert left
    assert all(re.fullmatch(r"missing: /plone/f\d/d3", difference) for difference in left)


def test_every_snapshot_has_its_catalog(filled: Any, db: Any) -> None:
    """A transaction that began before the swap reads the old relation to its end."""
    transaction.begin()
    catalog = filled.portal_catalog
    results = catalog.unrestrictedSearchResults(sort_on="getId")
    before = everything(filled)
    paths = [b.getPath() for b in results]
    with second_site(db) as other:
        other.my_folder.page.title = "Changed meanwhile"
        with inside(other):
            other.my_folder.page.reindexObject()
            other._p_jar.transaction_manager.commit()
    rebuild(db)
    assert everything(filled) == before
    assert [b.getPath() for b in catalog.unrestrictedSearchResults(sort_on="getId")] == paths
    transaction.begin()
    assert [b.Title for b in catalog.unrestrictedSearchResults(getId="page")] == ["Changed meanwhile"]


def test_a_transaction_that_began_before_the_swap_is_in_the_new_relation(filled: Any, db: Any) -> None:
    """It may conflict with the swap, once; then it is repeated, as Zope does."""
    swapped = False
    for attempt in transaction.manager.attempts(2):
        with attempt:
            create(filled.my_folder, "Document", "late", title="Late")
            filled.my_folder.page.title = "Late too"
            filled.my_folder.page.reindexObject()
            assert len(filled.portal_catalog.unrestrictedSearchResults(Title="late")) == 2
            if not swapped:
                rebuild(db)
                swapped = True
    assert differences(filled) == []
    assert len(filled.portal_catalog.unrestrictedSearchResults(Title="late")) == 2


def test_changes_in_the_very_last_moment_are_included(filled: Any, db: Any) -> None:
    """A commit between the last read of the log and the swap."""
    with rebuilding(db) as steps:
        steps.run("replay")
        original = steps.rebuild._replay

        def replay_then_edit(target: Any) -> int:
            count = original(target)
            with inside(filled):
                filled.my_folder.manage_delObjects(["page2"])
                filled.manage_renameObject("my-folder", "renamed")
                create(filled, "Document", "last", title="The very last")
                transaction.commit()
            return count

        steps.rebuild._replay = replay_then_edit
        steps.run()
    assert differences(filled) == []
    assert [b.getPath() for b in filled.portal_catalog.unrestrictedSearchResults(Title="very")] == ["/plone/last"]


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["walk", "rest", "index", "replay"])
def test_killed_rebuild_continues(tree: Any, db: Any, dsn: str, phase: str) -> None:
    with rebuilding(db) as steps:
        steps.run(phase)
        if phase == "walk":
            steps.step()
    [(relation, done)] = sql(dsn, "SELECT relation, done FROM pgcatalog_rebuild")
    tree.f1.d1.title = "While nobody rebuilds"
    tree.f1.d1.reindexObject()
    transaction.commit()
    with rebuilding(db) as steps:
        steps.step()
        assert sql(dsn, "SELECT relation FROM pgcatalog_rebuild") == [(relation,)]
        assert sql(dsn, "SELECT done FROM pgcatalog_rebuild")[0][0] >= done
        assert steps.phase == phase
        steps.run()
    assert differences(tree) == []
    assert [b.getPath() for b in tree.portal_catalog.unrestrictedSearchResults(Title="nobody")] == ["/plone/f1/d1"]


def test_indexes_built_by_a_killed_rebuild_are_not_built_again(
    filled: Any, db: Any, dsn: str, monkeypatch: Any
) -> None:
    """On a million rows one takes minutes."""
    made = (
        "SELECT indexrelid FROM pg_index WHERE indrelid = (SELECT relation::regclass FROM pgcatalog_rebuild) ORDER BY 1"
    )
    create_indexes, calls = schema.create_indexes, itertools.count(1)

    def interrupted(cursor: Any, relation: str, indexes: Any) -> None:
        if next(calls) > 5:
            raise KeyboardInterrupt
        create_indexes(cursor, relation, indexes)

    with rebuilding(db) as steps:
        steps.run("index")
        monkeypatch.setattr(schema, "create_indexes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            steps.step()
    monkeypatch.undo()
    before = sql(dsn, made)
    with rebuilding(db) as steps:
        steps.run("replay")
        assert set(before) < set(sql(dsn, made))
        steps.run()
    assert differences(filled) == []


def test_rebuild_leaves_nothing_behind(filled: Any, db: Any, dsn: str) -> None:
    for _ in range(2):
        rebuild(db)
        transaction.begin()
        transaction.abort()
    assert sql(dsn, "SELECT * FROM pgcatalog_queue WHERE kind = 'visit'") == []
    for table in ("pgcatalog_rebuild", "pgcatalog_rebuild_change"):
        assert sql(dsn, f"SELECT * FROM {table}") == []
    [(relation,)] = sql(dsn, "SELECT relation FROM pgcatalog_state")
    retired = {name for (name,) in sql(dsn, "SELECT relation FROM pgcatalog_retired")}
    assert tables(dsn) - retired == {relation}


def test_no_change_is_logged_without_a_rebuild(filled: Any, dsn: str) -> None:
    filled.my_folder.page.reindexObject()
    transaction.commit()
    assert sql(dsn, "SELECT * FROM pgcatalog_rebuild_change") == []


def test_a_second_rebuild_is_refused(filled: Any, db: Any) -> None:
    with rebuilding(db) as first, rebuilding(db) as second:
        first.step()
        with pytest.raises(RebuildRunning):
            second.step()
        first.run()
    assert differences(filled) == []


def test_an_interrupt_in_the_middle_of_a_statement_is_no_error_and_leaves_no_lock(
    filled: Any, db: Any, monkeypatch: Any
) -> None:
    """Ctrl-C: the connection still waits for an answer then."""
    with rebuilding(db) as steps:

        def interrupted() -> None:
            connection = steps.rebuild.connection
            connection.pgconn.send_query(b"SELECT pg_sleep(1200)")
            # A cancel request before the server has begun has no effect.
            with psycopg.connect(connection.info.dsn, autocommit=True) as other:
                until(lambda: other.execute(SLEEPS, [connection.info.backend_pid]).fetchall())
            raise KeyboardInterrupt

        monkeypatch.setattr(steps.rebuild.worker, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            steps.run()

    def is_rebuilt() -> bool:
        try:
            rebuild(db)
        except RebuildRunning:
            return False
        return True

    until(is_rebuilt)
    assert differences(filled) == []


def test_workers_share_the_tasks(tree: Any, db: Any) -> None:
    with rebuilding(db) as steps, second_site(db) as other:
        steps.step()
        helper = RebuildWorker(other.portal_catalog, rebuild_worker.rebuild_connection(other.portal_catalog))
        visited = 0
        while steps.phase in ("", "walk"):
            with inside(other):
                visited += helper.step() or 0
            steps.step()
        helper.connection.close()
        steps.run()
    assert visited
    assert differences(tree) == []


def test_killed_worker_releases_its_tasks(tree: Any, db: Any) -> None:
    with rebuilding(db) as steps, second_site(db) as other:
        steps.step()
        worker = RebuildWorker(other.portal_catalog, rebuild_worker.rebuild_connection(other.portal_catalog))
        with inside(other):
            cursor = worker.connection.cursor()
            cursor.execute("BEGIN")
            assert worker._step(cursor)
        worker.connection.close()
        steps.run()
    assert differences(tree) == []


def add_index(portal: Any) -> None:
    portal.portal_catalog.addIndex("odd", "FieldIndex")


def retype_index(portal: Any) -> None:
    portal.portal_catalog.delIndex("Subject")
    portal.portal_catalog.addIndex("Subject", "FieldIndex")
    portal.portal_catalog.manage_reindexIndex(["Subject"])


def clear(portal: Any) -> None:
    portal.portal_catalog.manage_catalogClear()


def clear_and_rebuild(portal: Any) -> None:
    portal.portal_catalog.clearFindAndRebuild()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "phase"), [(add_index, "walk"), (retype_index, "replay"), (clear, "walk"), (clear_and_rebuild, "replay")]
)
def test_changed_indexes_restart_the_rebuild(filled: Any, db: Any, dsn: str, action: Any, phase: str) -> None:
    with rebuilding(db) as steps:
        steps.run(phase)
        action(filled)
        transaction.commit()
        steps.run()
    assert differences(filled) == []
    assert sql(dsn, "SELECT * FROM pgcatalog_rebuild") == []


def test_removed_catalog_removes_its_rebuild(filled: Any, db: Any, dsn: str) -> None:
    with rebuilding(db) as steps:
        steps.step()
        filled.portal_setup.runAllImportStepsFromProfile("profile-plone.pgcatalog:uninstall")
        transaction.commit()
        with pytest.raises(RebuildGone):
            steps.run()
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT * FROM pgcatalog_rebuild").fetchall() == []
        retired = {name for (name,) in connection.execute("SELECT relation FROM pgcatalog_retired")}
    assert tables(dsn) <= retired


def test_object_that_cannot_be_catalogued_stops_the_rebuild(filled: Any, db: Any, monkeypatch: Any) -> None:
    before = everything(filled)
    from plone.dexterity.content import Item

    original = Item.Title

    def Title(self: Any) -> str:
        if self.getId() == "page2":
            raise RuntimeError("broken on purpose")
        return original(self)

    monkeypatch.setattr("plone.app.contenttypes.content.Document.Title", Title, raising=False)
    with rebuilding(db) as steps, pytest.raises(BrokenObject, match="/plone/my_folder/page2: RuntimeError: broken"):
        steps.run()
    monkeypatch.undo()
    transaction.begin()
    assert everything(filled) == before
    rebuild(db)
    assert differences(filled) == []


def test_broken_objects_can_be_left_out(filled: Any, db: Any, monkeypatch: Any, caplog: Any) -> None:
    from plone.dexterity.content import Item

    original = Item.Title

    def Title(self: Any) -> str:
        if self.getId() in ("page2", "my_folder"):
            raise RuntimeError("broken on purpose")
        return original(self)

    for name in ("Document", "Folder"):
        monkeypatch.setattr(f"plone.app.contenttypes.content.{name}.Title", Title, raising=False)
    rebuild(db, skip_broken=True)
    monkeypatch.undo()
    assert set(differences(filled)) == {"missing: /plone/my_folder/page2", "missing: /plone/my_folder"}
    assert "/plone/my_folder/page2: left out of the rebuilt catalog" in caplog.text


def test_an_abandoned_rebuild_leaves_the_catalog_as_it_is(filled: Any, db: Any, dsn: str) -> None:
    before = everything(filled)
    relations = tables(dsn)
    with rebuilding(db) as steps:
        steps.run("replay")
    with rebuilding(db) as steps:
        assert str(steps.rebuild.abandon()).startswith("pgcatalog_")
    transaction.begin()
    assert everything(filled) == before
    retired = {name for (name,) in sql(dsn, "SELECT relation FROM pgcatalog_retired")}
    assert tables(dsn) - retired == relations
    assert sql(dsn, "SELECT * FROM pgcatalog_rebuild") == []
    rebuild(db)
    assert differences(filled) == []


def test_rebuild_preserves_an_object_under_two_paths(filled: Any, db: Any) -> None:
    """An object catalogued by code under another path that leads to it has a row there after the rebuild, too."""
    catalog = filled.portal_catalog
    catalog.uncatalog_object("/plone/my_folder/page")
    catalog.catalog_object(filled.my_folder.page, "/plone/my_folder/elsewhere")
    transaction.commit()
    rebuild(db)
    assert differences(filled) == []
    assert catalog.getrid("/plone/my_folder/elsewhere") is None
    assert [b.getPath() for b in catalog.unrestrictedSearchResults(getId="page")] == ["/plone/my_folder/page"]
