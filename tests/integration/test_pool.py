"""get_request_connection: the snapshot's connection where there is one, a pooled one elsewhere."""

from plone.pgcatalog.database import pool
from plone.pgcatalog.database.errors import ServiceUnavailable
from transaction.interfaces import TransientError
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import threading


@pytest.fixture(autouse=True)
def closed_pools() -> Any:
    yield
    pool.release_request_connection()
    pool.close_pools()


def test_a_zodb_connection_lends_its_snapshot(portal: Any) -> None:
    connection = pool.get_request_connection(portal._p_jar)
    assert connection is portal._p_jar._normal_storage.pg_connection
    assert pool.get_request_connection() is connection  # the current site's


def test_elsewhere_one_connection_a_thread_until_released(database: str) -> None:
    first = pool.get_request_connection(dsn=database)
    assert pool.get_request_connection(dsn=database) is first
    others: list[Any] = []
    thread = threading.Thread(target=lambda: others.append(pool.get_request_connection(dsn=database)))
    thread.start()
    thread.join()
    assert others[0] is not first
    pool.release_request_connection()
    assert pool.pool_for(database).get_stats()["pool_available"] >= 1


def test_the_environment_names_the_database(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCATALOG_DSN", database)
    assert pool.get_request_connection().execute("SELECT 1 AS one").fetchone() == {"one": 1}


def test_it_cannot_write(database: str) -> None:
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        pool.get_request_connection(dsn=database).execute("CREATE TABLE t ()")


@pytest.mark.direct("a pooler keeps a client between two transactions whose session has ended")
def test_a_connection_the_server_ended_is_replaced(database: str) -> None:
    first = pool.get_request_connection(dsn=database)
    pid = first.info.backend_pid
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s)", [pid])
    with pytest.raises(psycopg.OperationalError):
        first.execute("SELECT 1")
    assert pool.get_request_connection(dsn=database).execute("SELECT 1 AS one").fetchone() == {"one": 1}


def test_without_any_database_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGCATALOG_DSN", raising=False)
    with pytest.raises(LookupError, match="PGCATALOG_DSN"):
        pool.get_request_connection()


def test_the_end_of_a_request_gives_it_back(zope: None, database: str) -> None:
    from zope.event import notify
    from ZPublisher.pubevents import PubSuccess

    pool.get_request_connection(dsn=database)
    notify(PubSuccess(SimpleNamespace(environ={}, other={})))
    stats = pool.pool_for(database).get_stats()
    assert stats["pool_available"] == stats["pool_size"] == 1


def test_when_all_are_taken_it_waits_then_says_so(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "POOL_TIMEOUT", 0.05)
    taken = [pool.pool_for(database).getconn() for _ in range(pool.POOL_SIZE)]
    with pytest.raises(ServiceUnavailable, match="no connection") as caught:
        pool.get_request_connection(dsn=database)
    assert isinstance(caught.value, TransientError)
    pool.pool_for(database).putconn(taken.pop())
    assert pool.get_request_connection(dsn=database).execute("SELECT 1 AS one").fetchone() == {"one": 1}
    for connection in taken:
        pool.pool_for(database).putconn(connection)


def test_a_server_that_cannot_be_reached(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "POOL_TIMEOUT", 0.05)
    with pytest.raises(ServiceUnavailable):
        pool.get_request_connection(dsn=postgres.dsn("no_such_database"))
