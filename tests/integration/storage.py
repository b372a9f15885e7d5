"""Access to internals of zodb-pgjsonb's storage that have no public name, and checks after faults."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database import counts
from plone.pgcatalog.database.direct import session_of
from plone.pgcatalog.indexing.verify import Verifier
from psycopg.rows import tuple_row
from tests.integration import site as sites
from tests.integration.waiting import PATIENCE
from transaction import TransactionManager
from typing import Any
from typing import NamedTuple

import psycopg
import pytest


class Reads(NamedTuple):
    """Number of a connection's storage queries for objects, and of the objects loaded."""

    statements: int
    objects: int


def reads(jar: Any) -> Reads:
    """Return the reads so far of the storage of the ZODB connection *jar*."""
    storage = jar._normal_storage
    return Reads(storage._pg_query_count, storage._pg_load_count)


def clear_storage_cache(jar: Any) -> None:
    """Clear the storage cache of *jar*: every object that is not in the connection's own memory is read again."""
    jar._normal_storage._load_cache.clear()
    jar.db().storage.clear_caches()


def save(db: Any, number: int) -> None:
    """Store *number* in the root of *db*, a ZODB.DB."""
    with db.transaction() as writing:
        writing.root()["number"] = number


@contextmanager
def with_number(dsn: str) -> Iterator[Any]:
    """Yield a ZODB.DB, as of another process, with an object ``number`` 0."""
    with sites.opened(dsn) as db:
        save(db, 0)
        yield db


@contextmanager
def reader(dsn: str) -> Iterator[Any]:
    """Yield a ZODB connection, as of another process, after some transactions that have read the number."""
    with sites.opened(dsn) as db:
        jar = db.open(TransactionManager())
        for _ in range(3):
            jar.transaction_manager.begin()
            assert jar.root()["number"] == 0
        yield jar
        jar.transaction_manager.abort()
        jar.close()


@pytest.fixture
def other(zope: None, database: str) -> Iterator[Any]:
    """The ZODB.DB of another process, with an object ``number``."""
    with with_number(database) as db:
        yield db


@pytest.fixture
def jar(other: Any, database: str) -> Iterator[Any]:
    """The ZODB connection of ``reader`` to the database of ``other``."""
    with reader(database) as jar:
        yield jar


def ids(portal: Any, **query: Any) -> list[str]:
    return sorted(b.getPath().rpartition("/")[2] for b in portal.portal_catalog.unrestrictedSearchResults(**query))


def backend(portal: Any) -> int:
    """Return the server's process id of the snapshot of *portal*."""
    return session_of(portal._p_jar._normal_storage.pg_connection)


def terminate(dsn: str, pid: int) -> None:
    """End the session *pid* of the server, and wait until it has released its locks."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, %s)", [pid, int(PATIENCE * 1000)])


def assert_sound(portal: Any) -> None:
    """Check that the rows of *portal*'s catalog equal its objects' values, and the stored counts equal those of the rows."""
    catalog = portal.portal_catalog
    assert [str(d) for d in Verifier(catalog).differences()] == []
    cursor = portal._p_jar._normal_storage.pg_connection.cursor(row_factory=tuple_row)
    for (relation,) in cursor.execute("SELECT relation FROM pgcatalog_state WHERE catalog = %s", [catalog._core.zoid]):
        assert counts.differences(cursor, relation) == 0
