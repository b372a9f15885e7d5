"""Failing queries and ended connections: the fault stays local, and no acknowledged commit is lost."""

from concurrent.futures import ThreadPoolExecutor
from plone.pgcatalog.database import schema
from plone.pgcatalog.database.errors import CatalogLocked
from plone.pgcatalog.unavailable import NO_ROOM
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.fixtures import SiteWith
from tests.integration.pages import make_many_pages
from tests.integration.publishing import handlers
from tests.integration.storage import assert_sound
from tests.integration.storage import backend
from tests.integration.storage import ids
from tests.integration.storage import terminate
from tests.integration.waiting import until
from tests.integration.web import MANAGER
from tests.integration.web import Response
from tests.integration.web import Site
from transaction.interfaces import TransientError
from typing import Any
from ZODB.utils import u64

import psycopg
import pytest
import transaction


SORTING = "(SELECT max(i) FROM (SELECT i FROM generate_series(1, 200000) i ORDER BY md5(i::text)) AS t)"


@pytest.mark.parametrize(
    ("setting", "value", "expression", "error"),
    [
        ("work_mem", "4MB", "1 / 0", psycopg.errors.DivisionByZero),
        ("statement_timeout", "20ms", "pg_sleep(5)", psycopg.errors.QueryCanceled),
        # As with a full disk.
        ("temp_file_limit", "64kB", SORTING, psycopg.errors.ConfigurationLimitExceeded),
    ],
    ids=["wrong query", "timeout", "no room for sorting"],
)
def test_a_failing_query_costs_only_itself(portal: Any, setting: str, value: str, expression: str, error: Any) -> None:
    create(portal, "Document", "page")
    transaction.commit()
    portal.title = "pending"
    portal.reindexObject()
    view = portal.portal_catalog._core.view()
    for _ in range(3):
        view.session.messages.run(f"SET LOCAL {setting} = '{value}'")
        with pytest.raises(error):
            view.select(expression).value()
        view.session.messages.run(f"RESET {setting}")
        assert ids(portal, getId="page") == ["page"]
        assert ids(portal, Title="pending") == ["plone"]
    portal._p_jar.cacheMinimize()
    assert portal.page.getId() == "page"
    transaction.commit()
    assert ids(portal, Title="pending") == ["plone"]
    assert_sound(portal)


GONE = "SELECT WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)"


def until_rows(dsn: str, query: str, *values: Any) -> None:
    """Repeat *query* on a connection of its own until it returns rows."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        until(lambda: admin.execute(query, values).fetchall())


@pytest.fixture
def kept(portal: Any) -> Any:
    """The site with a saved page."""
    create(portal, "Document", "kept", title="Stored")
    transaction.commit()
    return portal


def goes_on(portal: Any) -> None:
    """Check that only the saved page is there, and that the next save succeeds."""
    transaction.abort()
    assert ids(portal, portal_type="Document") == ["kept"]
    create(portal, "Document", "later")
    transaction.commit()
    assert ids(portal, portal_type="Document") == ["kept", "later"]
    assert_sound(portal)


@pytest.mark.parametrize("is_idle", [True, False], ids=["idle too long", "terminated"])
@pytest.mark.parametrize("saves", [True, False], ids=["commit", "search"])
def test_an_ended_connection_loses_the_transaction_only(kept: Any, dsn: str, saves: bool, is_idle: bool) -> None:
    create(kept, "Document", "lost")
    pid = backend(kept)
    if is_idle:
        kept._p_jar._normal_storage.pg_connection.execute("SET idle_in_transaction_session_timeout = '10ms'")
        until_rows(dsn, GONE, pid)
    else:
        terminate(dsn, pid)
    with pytest.raises(psycopg.OperationalError) as caught:
        transaction.commit() if saves else ids(kept, getId="kept")
    # Zope repeats a request whose search has failed.
    assert saves or isinstance(caught.value, TransientError)
    goes_on(kept)


@pytest.mark.parametrize("moment", ["process", "finalize"])
def test_an_error_inside_the_commit_leaves_nothing(kept: Any, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from plone.pgcatalog.indexing.processor import PGCatalogStateProcessor

    create(kept, "Document", "lost")
    original = getattr(PGCatalogStateProcessor, moment)

    def fail(*args: Any) -> Any:
        original(*args)
        raise RuntimeError("fault")

    monkeypatch.setattr(PGCatalogStateProcessor, moment, fail)
    with pytest.raises(RuntimeError, match="fault"):
        transaction.commit()
    monkeypatch.undo()
    goes_on(kept)


def test_a_cancelled_query_costs_only_itself(portal: Any, dsn: str) -> None:
    """As an administrator does it, with pending changes that are committed all the same."""
    create(portal, "Document", "page")
    view = portal.portal_catalog._core.view()
    assert ids(portal, getId="page") == ["page"]
    pid = backend(portal)
    query = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
    with ThreadPoolExecutor(1) as administrator:
        cancelled = administrator.submit(until_rows, dsn, query, pid)
        with pytest.raises(psycopg.errors.QueryCanceled):
            view.select("pg_sleep(60)").value()
        cancelled.result()
    assert ids(portal, getId="page") == ["page"]
    transaction.commit()
    assert ids(portal, getId="page") == ["page"]
    assert_sound(portal)


FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END$$;
CREATE TRIGGER full_disk BEFORE {event} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION full_disk()
"""


@pytest.mark.parametrize("table", ["object_state", "pgcatalog_state", "the catalog"])
def test_a_full_disk_fails_the_commit_and_nothing_else(kept: Any, dsn: str, table: str) -> None:
    """A trigger raises PostgreSQL's error for a file that cannot be extended."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        [(relation,)] = admin.execute("SELECT relation FROM pgcatalog_state")
        name = f'"{relation}"' if table == "the catalog" else table
        kept.kept.title = "Not stored"
        kept.kept.reindexObject()
        create(kept, "Document", "lost")
        # Readers lock the table: the trigger is created between two of their transactions.
        admin.execute("SET lock_timeout = '5s'")
        kept._p_jar._normal_storage.pg_connection.execute("COMMIT")
        admin.execute(FULL.format(event="INSERT OR UPDATE", table=name))
        with pytest.raises(psycopg.errors.DiskFull):
            transaction.commit()
        transaction.abort()
        assert ids(kept, portal_type="Document") == ["kept"]
        kept._p_jar._normal_storage.pg_connection.execute("COMMIT")
        admin.execute("DROP FUNCTION full_disk CASCADE")
    goes_on(kept)
    assert ids(kept, Title="stored") == ["kept"]
    assert ids(kept, Title="not") == []


def fill(portal: Any) -> None:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")


SHARED = fill


def assert_told(response: Response) -> None:
    """Check that the visitor gets our message, not PostgreSQL's."""
    assert response.status == 503
    assert NO_ROOM in response.text
    assert "could not extend" not in response.text


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_shortage_of_room_is_reported_to_the_visitor(shared_site: Site, accept: str) -> None:
    """``tests/unit/test_unavailable.py`` has all SQLSTATEs of shortages."""
    page = {"@type": "Document", "title": "Lost"}
    with psycopg.connect(shared_site.dsn, autocommit=True) as admin:
        admin.execute(FULL.format(event="INSERT OR UPDATE", table="object_state"))
        assert_told(shared_site.web.send_json("POST", "/plone", MANAGER, page))
        admin.execute("DROP FUNCTION full_disk CASCADE")
    assert shared_site.web.send_json("POST", "/plone", MANAGER, page).status == 201
    fails = "DO $$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END$$"

    def handler(event: Any) -> None:
        event.request["PARENTS"][0].portal_catalog._core.session.messages.run(fails)

    with handlers(IPubAfterTraversal=handler):
        assert_told(shared_site.web.get("/plone/@@search", accept=accept))
    assert shared_site.web.get("/plone/@@search", accept=accept).status == 200


@pytest.mark.direct("a pooler leaves a client connected if its session ends between two transactions")
def test_a_connection_that_idles_between_requests_is_replaced(db: Any, dsn: str) -> None:
    manager = transaction.TransactionManager()
    with sites.application(db, manager) as app:
        connection = app._p_jar._normal_storage.pg_connection
        connection.execute("SET idle_session_timeout = '10ms'")
    until_rows(dsn, GONE, connection.info.backend_pid)
    with sites.application(db, manager) as app:
        assert ids(app.plone, portal_type="Plone Site") == ["plone"]
        assert app._p_jar._normal_storage.pg_connection is not connection


@pytest.mark.parametrize("touch", [lambda r: r[120], lambda r: r[99].Title, len], ids=["page", "metadata", "count"])
def test_a_connection_ended_within_a_result(site_with: SiteWith, touch: Any) -> None:
    """Rows not read yet raise; rows already read stay."""
    dsn = site_with(make_many_pages)
    query = {"portal_type": "Document", "sort_on": "getId"}
    with sites.opened(dsn) as db, sites.inside(db) as portal:
        results = portal.portal_catalog.unrestrictedSearchResults(query)
        assert results[3].Title == "Page 003"
        terminate(dsn, backend(portal))
        with pytest.raises(psycopg.OperationalError):
            touch(results)
        assert (results[3].Title, results[4].getPath()) == ("Page 003", "/plone/page004")
        transaction.abort()
        again = portal.portal_catalog.unrestrictedSearchResults(query)
        assert (len(again), again[129].Title) == (130, "Page 129")


@pytest.mark.parametrize("lock", ["the catalog", "object_state", "pgcatalog_state"])
def test_a_commit_that_waits_too_long_for_a_lock_may_be_repeated(
    kept: Any, dsn: str, lock: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(schema, "LOCK_TIMEOUT", "20ms")
    with psycopg.connect(dsn) as admin:
        [(relation,)] = admin.execute("SELECT relation FROM pgcatalog_state")
        admin.commit()
        name = f'"{relation}"' if lock == "the catalog" else lock
        create(kept, "Document", "new")
        if lock == "object_state":
            kept.kept.reindexObject(idxs=["Title"])
            # A row of it: the storage itself waits for the whole table.
            admin.execute("SELECT FROM object_state WHERE zoid = %s FOR UPDATE", [u64(kept.kept._p_oid)])
        else:
            admin.execute(f"LOCK TABLE {name} IN SHARE MODE")
        with pytest.raises(CatalogLocked):
            transaction.commit()
        transaction.abort()
        assert ids(kept, portal_type="Document") == ["kept"]
    goes_on(kept)


def test_a_deadlock_may_be_repeated(portal: Any, dsn: str) -> None:
    """Another session holds a lock that our commit needs, and needs a lock that our commit holds."""
    for id in ("one", "two"):
        create(portal, "Document", id)
    transaction.commit()
    with psycopg.connect(dsn) as other:
        [(relation,)] = other.execute("SELECT relation FROM pgcatalog_state")
        other.commit()
        # The commit must be the one to detect the deadlock, after the usual second: a session checks only once, after its
        # own timeout.
        other.execute("SET LOCAL deadlock_timeout = '1h'")
        other.execute(f'SELECT FROM "{relation}" WHERE get_id = %s FOR UPDATE', ["two"])
        for id in ("one", "two"):
            portal[id].title = "Changed"
            portal[id].reindexObject()

        def lock_when_the_commit_waits() -> None:
            until_rows(dsn, "SELECT FROM pg_locks WHERE NOT granted")
            other.execute("SELECT FROM pgcatalog_state FOR UPDATE")

        with ThreadPoolExecutor(1) as worker:
            waiting = worker.submit(lock_when_the_commit_waits)
            with pytest.raises(CatalogLocked):
                transaction.commit()
            waiting.result()
        other.rollback()
    transaction.abort()
    assert [b.Title for b in portal.portal_catalog(getId="two")] != ["Changed"]
    assert_sound(portal)


@pytest.mark.direct("a setting of a session does not outlive a transaction")
def test_a_server_that_cannot_write_is_searched(portal: Any) -> None:
    """As a hot standby, or a database that is read-only."""
    create(portal, "Document", "page")
    transaction.commit()
    portal._p_jar._normal_storage.pg_connection.execute("COMMIT")
    portal._p_jar._normal_storage.pg_connection.execute("SET default_transaction_read_only = on")
    transaction.begin()
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        portal.portal_catalog._core.view().session.messages.run("CREATE TEMP TABLE t ()")
    assert ids(portal, getId="page") == ["page"]
    assert [b.Title for b in portal.portal_catalog(SearchableText="page", sort_on="modified")] == [portal.page.title]
    assert "page" in portal.portal_catalog.uniqueValuesFor("getId")
    transaction.commit()
