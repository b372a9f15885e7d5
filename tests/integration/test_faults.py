"""Failing queries, ended connections and a killed server: the fault stays local, nothing acknowledged is lost."""

from plone.pgcatalog.database.embedded import EmbeddedPostgres
from plone.pgcatalog.database.embedded import TEST_SETTINGS
from plone.pgcatalog.indexing.verify import Verifier
from tests.integration import site as sites
from tests.integration.content import create
from typing import Any
from zope.component.hooks import setSite

import contextlib
import psycopg
import pytest
import transaction


def ids(portal: Any, **query: Any) -> list[str]:
    return sorted(b.getPath().rpartition("/")[2] for b in portal.portal_catalog.unrestrictedSearchResults(**query))


def backend(portal: Any) -> int:
    pid: int = portal._p_jar._normal_storage.pg_connection.info.backend_pid
    return pid


def terminate(dsn: str, pid: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 1000)", [pid])


def assert_sound(portal: Any) -> None:
    assert [str(d) for d in Verifier(portal.portal_catalog).differences()] == []


def test_a_failing_query_costs_only_itself(portal: Any) -> None:
    create(portal, "Document", "page")
    transaction.commit()
    portal.title = "pending"
    portal.reindexObject()
    view = portal.portal_catalog._catalog.view()
    for _ in range(3):
        with pytest.raises(psycopg.errors.DivisionByZero):
            view.select("1 / 0")
        assert ids(portal, getId="page") == ["page"]
        assert ids(portal, Title="pending") == ["plone"]
    portal._p_jar.cacheMinimize()
    assert portal.page.getId() == "page"
    transaction.commit()
    assert ids(portal, Title="pending") == ["plone"]


def test_a_statement_timeout_costs_only_its_query(portal: Any) -> None:
    view = portal.portal_catalog._catalog.view()
    view.session.run("SET LOCAL statement_timeout = '20ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        view.select("pg_sleep(5)")
    assert ids(portal, portal_type="Plone Site") == ["plone"]
    create(portal, "Document", "page")
    transaction.commit()
    assert ids(portal, getId="page") == ["page"]


def test_an_ended_connection_is_replaced(portal: Any, dsn: str) -> None:
    create(portal, "Document", "page")
    transaction.commit()
    terminate(dsn, backend(portal))
    with pytest.raises(psycopg.OperationalError):
        ids(portal, getId="page")
    transaction.abort()
    assert ids(portal, getId="page") == ["page"]


def test_a_connection_ended_before_commit_loses_the_transaction_only(portal: Any, dsn: str) -> None:
    create(portal, "Document", "kept")
    transaction.commit()
    create(portal, "Document", "lost")
    terminate(dsn, backend(portal))
    with pytest.raises(psycopg.OperationalError):
        transaction.commit()
    transaction.abort()
    assert ids(portal, portal_type="Document") == ["kept"]
    create(portal, "Document", "later")
    transaction.commit()
    assert ids(portal, portal_type="Document") == ["kept", "later"]
    assert_sound(portal)


@pytest.mark.parametrize("moment", ["process", "finalize"])
def test_an_error_inside_the_commit_leaves_nothing(portal: Any, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from plone.pgcatalog.indexing.processor import PGCatalogStateProcessor

    create(portal, "Document", "kept")
    transaction.commit()
    create(portal, "Document", "lost")
    original = getattr(PGCatalogStateProcessor, moment)

    def fail(*args: Any) -> Any:
        original(*args)
        raise RuntimeError("fault")

    monkeypatch.setattr(PGCatalogStateProcessor, moment, fail)
    with pytest.raises(RuntimeError, match="fault"):
        transaction.commit()
    monkeypatch.undo()
    transaction.abort()
    assert ids(portal, portal_type="Document") == ["kept"]
    create(portal, "Document", "later")
    transaction.commit()
    assert ids(portal, portal_type="Document") == ["kept", "later"]
    assert_sound(portal)


def test_every_acknowledged_commit_survives_a_killed_server(zope: None) -> None:
    settings = TEST_SETTINGS | {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    with EmbeddedPostgres(settings=settings) as server:
        dsn = server.createdb("site")
        sites.create_site(dsn, profiles=("plone.pgcatalog:default",))
        with sites.opened(dsn) as db, sites.application(db) as app:
            sites.login(app)
            setSite(app.plone)
            acknowledged = []
            for number in range(6):
                create(app.plone, "Document", f"page{number}")
                if number == 3:
                    server.kill()
                    server.start()
                try:
                    transaction.commit()
                    acknowledged.append(f"page{number}")
                except psycopg.OperationalError:
                    transaction.abort()
            with contextlib.suppress(psycopg.OperationalError):
                transaction.abort()
            assert ids(app.plone, portal_type="Document") == acknowledged
            assert len(acknowledged) >= 4
            assert_sound(app.plone)
