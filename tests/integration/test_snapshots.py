"""A transaction begins by one message to PostgreSQL, and sees earlier commits of others."""

from collections.abc import Iterator
from contextlib import contextmanager
from persistent.mapping import PersistentMapping
from plone.pgcatalog import storage
from plone.pgcatalog.database import schema
from plone.pgcatalog.database.errors import CatalogLocked
from plone.pgcatalog.database.prepared import PreparedStatements
from plone.pgcatalog.results.cache import result_cache
from psycopg.pq import TransactionStatus
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.editors import abort
from tests.integration.editors import begin
from tests.integration.editors import distant_editor
from tests.integration.editors import Editor
from tests.integration.editors import editor
from tests.integration.fixtures import SiteWith
from tests.integration.pages import make_many_pages
from tests.integration.pages import MANY
from tests.integration.pages import second_connection
from tests.integration.patched import is_patched
from tests.integration.storage import clear_storage_cache
from tests.integration.storage import jar as jar
from tests.integration.storage import other as other
from tests.integration.storage import save
from tests.integration.waiting import until
from threading import Thread
from transaction import TransactionManager
from typing import Any
from ZODB.utils import u64

import os
import psycopg
import pytest
import signal
import transaction


@pytest.fixture
def sent(jar: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The messages on the connection of *jar*, each as its commands."""
    sent: list[str] = []
    run, end, execute = PreparedStatements.run, PreparedStatements.end, psycopg.Cursor.execute
    connection = storage.connection(jar)

    def noted_run(prepared: Any, statements: Any, before: Any = (), *args: Any) -> Any:
        if prepared is PreparedStatements.of(connection):
            sent.append("; ".join([*before, *(sql for sql, _ in statements)]))
        return run(prepared, statements, before, *args)

    def noted_end(prepared: Any) -> None:
        if prepared is PreparedStatements.of(connection):
            sent.append("COMMIT")
        end(prepared)

    def noted_execute(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        if cursor.connection is connection:
            sent.append(str(query))
        return execute(cursor, query, *args, **options)

    monkeypatch.setattr(PreparedStatements, "run", noted_run)
    monkeypatch.setattr(PreparedStatements, "end", noted_end)
    monkeypatch.setattr(psycopg.Cursor, "execute", noted_execute)
    return sent


BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT coalesce(max(tid), 0) FROM transaction_log"


def test_a_transaction_begins_by_one_message(jar: Any, sent: list[str]) -> None:
    jar.transaction_manager.abort()
    sent.clear()
    jar.transaction_manager.begin()
    assert sent == [f"COMMIT; {BEGIN}"]
    assert jar.root()["number"] == 0
    assert len(sent) == 1


def test_no_snapshot_is_held_between_requests(jar: Any, sent: list[str]) -> None:
    """A connection in the pool of ZODB has none; the next request begins one."""
    db, manager = jar.db(), jar.transaction_manager
    manager.abort()
    sent.clear()
    jar.close()
    assert sent == ["COMMIT"]
    assert storage.snapshot_tid(jar) is None
    assert db.open(manager) is jar
    assert sent == ["COMMIT", BEGIN]
    assert storage.snapshot_tid(jar) is not None


def test_end_of_snapshot_is_not_waited_for(jar: Any) -> None:
    """The server's process is stopped while the connection is closed."""
    connection = storage.connection(jar)
    # The server's own process, also behind a pooler.
    process = connection.execute("SELECT pg_backend_pid() AS pid").fetchone()["pid"]
    closing = Thread(target=jar.close)
    os.kill(process, signal.SIGSTOP)
    try:
        closing.start()
        until(lambda: not closing.is_alive())
        assert connection.info.transaction_status == TransactionStatus.ACTIVE
    finally:
        os.kill(process, signal.SIGCONT)
        closing.join()
    # The next user of the connection finds it idle.
    assert connection.execute("SELECT 1 AS one").fetchall() == [{"one": 1}]
    connection.rollback()
    assert jar.db().open(jar.transaction_manager) is jar
    assert jar.root()["number"] == 0


def test_connection_goes_back_to_the_pool_idle(jar: Any, caplog: pytest.LogCaptureFixture) -> None:
    closed = jar.db().open(TransactionManager())
    connection, pool = storage.connection(closed), storage.pool_of(jar.db())
    closed.close()
    closed._normal_storage.release()
    assert connection.info.transaction_status == TransactionStatus.IDLE
    assert "returns_bad" not in pool.get_stats()
    assert caplog.messages == []


def test_snapshot_stays_during_other_commits(jar: Any, other: Any) -> None:
    jar.transaction_manager.begin()
    save(other, 1)
    jar.cacheMinimize()
    clear_storage_cache(jar)
    assert jar.root()["number"] == 0


def test_changes_of_others_are_read_again_also_after_a_failed_statement(jar: Any, other: Any) -> None:
    """PostgreSQL refuses further statements in such a transaction, and psycopg clears its prepared statements."""
    for number in range(1, 4):
        with pytest.raises(psycopg.errors.DivisionByZero):
            storage.connection(jar).execute("SELECT 1 / 0")
        save(other, number)
        jar.transaction_manager.begin()
        assert jar.root()["number"] == number


@pytest.mark.direct("a pooler passes DEALLOCATE ALL on, and closes who uses what it has removed")
def test_statements_removed_by_other_code_are_prepared_again(jar: Any, sent: list[str]) -> None:
    storage.connection(jar).execute("DEALLOCATE ALL")
    for _ in range(4):
        jar.transaction_manager.begin()
        assert jar.root()["number"] == 0
    assert sent[-1] == f"COMMIT; {BEGIN}"


# -- new objects


def test_oids_of_new_objects_come_in_blocks(jar: Any, sent: list[str]) -> None:
    """... so that a commit with many of them needs few requests."""
    for number in range(storage.FIRST_OIDS * 3):
        jar.root()[f"new{number}"] = PersistentMapping()
    jar.transaction_manager.commit()
    assert sum(storage.OIDS in text for text in sent) == 2
    assert len({obj._p_oid for obj in jar.root().values() if isinstance(obj, PersistentMapping)}) == 96


def test_two_processes_never_get_the_same_oid(jar: Any, other: Any) -> None:
    second = other.open(TransactionManager())
    mine, others = [[each.new_oid() for _ in range(100)] for each in (jar, second)]
    assert len({*mine, *others}) == 200
    second.close()


def test_a_transaction_leaves_no_oids_to_the_next(jar: Any) -> None:
    """After a failover the sequence may return them again."""
    first = u64(jar.new_oid())
    jar.transaction_manager.begin()
    assert u64(jar.new_oid()) == first + storage.FIRST_OIDS


@pytest.mark.skipif(is_patched(), reason="a storage with its patches takes oids from the transaction that has failed")
def test_oids_can_be_fetched_after_an_error_of_a_search(jar: Any) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        storage.connection(jar).execute("SELECT 1 / 0")
    assert len({jar.new_oid() for _ in range(3)}) == 3


def fill(portal: Any) -> None:
    portal.portal_workflow.setChainForPortalTypes(("Document",), ("simple_publication_workflow",))
    folder = create(portal, "Folder", "folder", title="Folder", subject=("one",))
    for id in ("a", "b"):
        create(folder, "Document", id, title=f"Needle {id}", subject=("one", id))
    create(folder, "Folder", "inner", title="Inner")
    create(folder.inner, "Document", "deep", title="Needle deep")


CONTENT = fill


@contextmanager
def open_editor(kind: str, db: Any, dsn: str) -> Iterator[Editor]:
    with editor(db) if kind == "thread" else distant_editor(dsn) as opened:
        yield opened


QUERIES: list[dict[str, Any]] = [
    {"path": "/plone"},
    {"path": {"query": "/plone/folder", "depth": 1}, "sort_on": "getObjPositionInParent"},
    {"SearchableText": "needle"},
    {"portal_type": "Document", "sort_on": "sortable_title", "sort_order": "reverse"},
    {"portal_type": "Document", "sort_on": "modified", "sort_limit": 2},
    {"Subject": "one", "sort_on": "getId"},
    {"review_state": "published"},
    {"allowedRolesAndUsers": ["Anonymous", "user:mara"]},
    {"portal_type": {"not": "Folder"}, "sort_on": "path"},
    {"layout": "document_view", "sort_on": "getId"},
]


def observe(site: Any) -> dict[str, Any]:
    """Return everything that a transaction can read from the catalog."""
    catalog = site.portal_catalog
    results = [catalog.unrestrictedSearchResults(**query) for query in QUERIES]
    rids = sorted(catalog._catalog.paths.keys())
    return {
        "counts": [(len(r), r.actual_result_count) for r in results],
        "found": [[(b.getPath(), b.getRID(), b.Title, b.review_state) for b in r] for r in results],
        "restricted": sorted(b.getPath() for b in catalog(SearchableText="needle")),
        "metadata": {rid: catalog.getMetadataForRID(rid) for rid in rids},
        "index data": {rid: catalog.getIndexDataForRID(rid) for rid in rids},
        "unique values": {name: catalog.uniqueValuesFor(name) for name in ("Subject", "portal_type", "getId")},
        "paths": [catalog.getpath(rid) for rid in rids],
        "counter": catalog.getCounter(),
        "length": len(catalog),
    }


def add(site: Any) -> None:
    create(site.folder, "Document", "new", title="Needle new", subject=("new",))


def edit(site: Any) -> None:
    site.folder.a.title = "Haystack"
    site.folder.a.setSubject(("other",))
    site.folder.a.reindexObject()


def delete(site: Any) -> None:
    site.folder.manage_delObjects(["a"])


def delete_tree(site: Any) -> None:
    site.manage_delObjects(["folder"])


def publish(site: Any) -> None:
    site.portal_workflow.doActionFor(site.folder.a, "publish")


def share(site: Any) -> None:
    site.folder.manage_setLocalRoles("mara", ["Reader"])
    site.folder.reindexObjectSecurity()


def rename_tree(site: Any) -> None:
    site.manage_renameObject("folder", "renamed")


def clear(site: Any) -> None:
    site.portal_catalog.manage_catalogClear()


def rebuild(site: Any) -> None:
    site.folder.a.title = "Haystack"
    site.portal_catalog.clearFindAndRebuild()


def add_index(site: Any) -> None:
    site.portal_catalog.addIndex("layout", "FieldIndex", {"indexed_attrs": "getLayout"})
    site.portal_catalog.manage_reindexIndex(["layout"])


def clear_index(site: Any) -> None:
    site.portal_catalog.manage_clearIndex(["Subject"])


CHANGES = [add, edit, delete, delete_tree, publish, share, rename_tree, clear, rebuild, clear_index]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *(("thread", change) for change in CHANGES),
        *(("process", change) for change in (add, share, rename_tree, rebuild)),
    ],
)
def test_a_snapshot_stays_until_its_end_whatever_others_abort_or_commit(
    db: Any, dsn: str, kind: str, change: Any
) -> None:
    """*early* reads before and after the other's commit, *late* only after it: both have the older snapshot."""
    with open_editor(kind, db, dsn) as writer, editor(db) as early, editor(db) as late:
        late.begin()
        before = early.do(observe)
        writer.do(change)
        assert early.do(observe) == before  # not committed
        writer.do(abort)
        assert writer.do(observe) == before
        writer.do(change)
        writer.commit()
        assert late.do(observe) == before
        assert early.do(observe) == before
        late.begin()
        after = late.do(observe)
        assert after != before
        assert after["counter"] != before["counter"]
        early.begin()
        writer.do(begin)
        assert early.do(observe) == writer.do(observe) == after


@pytest.mark.slow
def test_new_index_waits_for_readers_of_the_table(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its column is an ALTER TABLE: it waits for a reader's transaction, then the commit fails and may be repeated."""
    monkeypatch.setattr(schema, "LOCK_TIMEOUT", "50ms")
    with editor(db) as writer, editor(db) as early, editor(db) as late:
        late.begin()
        before = early.do(observe)
        writer.do(add_index)
        with pytest.raises(CatalogLocked):
            writer.commit()
        writer.do(abort)
        assert early.do(observe) == before
        early.begin()
        writer.do(add_index)
        writer.commit()
        assert late.do(observe) == before
        late.begin()
        assert late.do(observe)["found"] != before["found"]


@pytest.mark.slow
@pytest.mark.parametrize("change", [rename_tree, delete_tree, edit])
def test_pending_changes_are_shown_on_the_own_snapshot(db: Any, change: Any) -> None:
    """The pending rows do not show commits of others made meanwhile."""
    with editor(db) as one, editor(db) as other:
        one.do(lambda site: create(site, "Document", "mine", title="Needle mine"))
        before = one.do(observe)
        other.do(change)
        other.commit()
        assert one.do(observe) == before


def replace_all(site: Any) -> None:
    site.manage_delObjects([f"page{number:03}" for number in range(0, MANY, 2)])
    for number in range(1, MANY, 2):
        page = site[f"page{number:03}"]
        page.title = f"New {number:03}"
        page.reindexObject()


@pytest.mark.slow
def test_later_pages_come_from_the_snapshot_of_the_search(site_with: SiteWith) -> None:
    kept: list[Any] = []
    titles = [f"Page {number:03}" for number in range(MANY)]

    def begin_to_read(site: Any) -> None:
        query = {"portal_type": "Document", "sort_on": "getId"}
        kept.extend(site.portal_catalog.unrestrictedSearchResults(**query) for _ in range(4))
        assert [results[3].Title for results in kept] == ["Page 003"] * 4

    def read_on(site: Any) -> None:
        by_index, by_slices, in_a_loop, counted = kept
        result_cache().clear()
        assert [by_index[number].Title for number in range(MANY)] == titles
        result_cache().clear()
        assert [brain.Title for start in range(0, MANY, 20) for brain in by_slices[start : start + 20]] == titles
        result_cache().clear()
        assert [brain.Title for brain in in_a_loop] == titles
        result_cache().clear()
        assert (len(counted), counted.actual_result_count, counted[-1].Title) == (MANY, MANY, titles[-1])

    with sites.opened(site_with(make_many_pages)) as db, editor(db) as reader, editor(db) as writer:
        reader.do(begin_to_read)
        writer.do(replace_all)
        writer.commit()
        reader.do(read_on)
        kept.clear()


def test_a_new_connection_shows_what_others_have_changed(dsn: str) -> None:
    """Whatever is in the cache shared by all connections of the process."""
    with sites.opened(dsn) as ours, sites.opened(dsn) as others, second_connection(ours) as (_, site):
        assert site.title == "Test"
        with sites.inside(others) as other:
            other.title = "changed"
            transaction.commit()
        with second_connection(ours) as (_, opened_later):
            assert opened_later.title == "changed"
        # All connections in the pool.
        with second_connection(ours) as (_, one), second_connection(ours) as (_, two):
            assert {one.title, two.title} == {"changed"}
