"""A transaction begins by one message to PostgreSQL, and sees what others have committed before it."""

from collections.abc import Iterator
from persistent.mapping import PersistentMapping
from plone.pgcatalog import storage
from plone.pgcatalog.database.direct import session_of
from plone.pgcatalog.database.prepared import PreparedStatements
from tests.integration import site as sites
from tests.integration.patched import is_patched
from tests.integration.storage import forget_loaded
from transaction import TransactionManager
from typing import Any
from ZODB.utils import u64

import psycopg
import pytest


@pytest.fixture
def other(zope: None, database: str) -> Iterator[Any]:
    """A ZODB.DB of another process, with an object ``number`` 0."""
    with sites.opened(database) as db:
        save(db, 0)
        yield db


@pytest.fixture
def jar(other: Any, database: str) -> Iterator[Any]:
    """A ZODB connection that has begun some transactions, and has read the number."""
    with sites.opened(database) as db:
        jar = db.open(TransactionManager())
        for _ in range(3):
            jar.transaction_manager.begin()
            assert jar.root()["number"] == 0
        yield jar
        jar.transaction_manager.abort()
        jar.close()


def save(db: Any, number: int) -> None:
    with db.transaction() as writing:
        writing.root()["number"] = number


@pytest.fixture
def sent(jar: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The messages on the connection of *jar*, each as its commands."""
    sent: list[str] = []
    run, execute = PreparedStatements.run, psycopg.Cursor.execute
    connection = storage.connection(jar)

    def noted_run(prepared: Any, statements: Any, before: Any = (), *args: Any) -> Any:
        if prepared is PreparedStatements.of(connection):
            sent.append("; ".join([*before, *(sql for sql, _ in statements)]))
        return run(prepared, statements, before, *args)

    def noted_execute(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        if cursor.connection is connection:
            sent.append(str(query))
        return execute(cursor, query, *args, **options)

    monkeypatch.setattr(PreparedStatements, "run", noted_run)
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


def test_what_others_have_changed_is_read_anew(jar: Any, other: Any) -> None:
    for number in range(1, 4):
        save(other, number)
        assert jar.root()["number"] == number - 1
        jar.transaction_manager.begin()
        assert jar.root()["number"] == number


def test_a_snapshot_stays_whatever_others_commit(jar: Any, other: Any) -> None:
    jar.transaction_manager.begin()
    save(other, 1)
    jar.cacheMinimize()
    forget_loaded(jar)
    assert jar.root()["number"] == 0


def test_a_new_connection_sees_what_others_have_changed(jar: Any, other: Any) -> None:
    save(other, 1)
    second = jar.db().open(TransactionManager())
    assert second.root()["number"] == 1
    second.close()


def test_a_statement_that_has_failed_does_no_harm(jar: Any, other: Any) -> None:
    """PostgreSQL does nothing more in such a transaction, and psycopg forgets what is prepared."""
    for number in range(1, 4):
        with pytest.raises(psycopg.errors.DivisionByZero):
            storage.connection(jar).execute("SELECT 1 / 0")
        save(other, number)
        jar.transaction_manager.begin()
        assert jar.root()["number"] == number


@pytest.mark.direct("a pooler passes DEALLOCATE ALL on, and closes who uses what it has removed")
def test_statements_that_somebody_has_removed_are_prepared_anew(jar: Any, sent: list[str]) -> None:
    storage.connection(jar).execute("DEALLOCATE ALL")
    for _ in range(4):
        jar.transaction_manager.begin()
        assert jar.root()["number"] == 0
    assert sent[-1] == f"COMMIT; {BEGIN}"


def test_a_lost_connection_is_replaced(jar: Any, other: Any, database: str) -> None:
    save(other, 1)
    pid = session_of(storage.connection(jar))
    with psycopg.connect(database, autocommit=True) as killer:
        killer.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    jar.transaction_manager.begin()
    assert jar.root()["number"] == 1
    assert session_of(storage.connection(jar)) != pid


# -- new objects


def test_oids_of_new_objects_come_in_blocks(jar: Any, sent: list[str]) -> None:
    """... so that a commit with many of them asks for few."""
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
    """After a failover the sequence may give them again."""
    first = u64(jar.new_oid())
    jar.transaction_manager.begin()
    assert u64(jar.new_oid()) == first + storage.FIRST_OIDS


@pytest.mark.skipif(is_patched(), reason="a storage with its patches takes oids from the transaction that has failed")
def test_oids_are_there_after_an_error_of_a_search(jar: Any) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        storage.connection(jar).execute("SELECT 1 / 0")
    assert len({jar.new_oid() for _ in range(3)}) == 3
