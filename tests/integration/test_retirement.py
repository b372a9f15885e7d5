"""Retired relations on a busy site: they are emptied until no reader prevents the drop."""

from contextlib import suppress
from functools import partial
from plone.pgcatalog.database import schema
from plone.pgcatalog.database.layout import emptied
from plone.pgcatalog.database.layout import idx_table
from plone.pgcatalog.database.layout import relation_name
from plone.pgcatalog.database.retirement import drop_retired
from plone.pgcatalog.database.retirement import empty_retired
from psycopg import Connection
from psycopg.errors import LockNotAvailable
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from tests.integration.rebuilding import rebuild
from tests.integration.rebuilding import sql
from tests.integration.rebuilding import tables
from tests.integration.waiting import until
from typing import Any

import psycopg
import pytest


@pytest.fixture
def dsn(site_with: SiteWith) -> str:
    return site_with(populate)


@pytest.fixture
def former(portal: Any, db: Any, dsn: str) -> str:
    """The name of a relation that a rebuild has retired, and that nothing reads."""
    [(relation,)] = sql(dsn, "SELECT relation FROM pgcatalog_state")
    with psycopg.connect(dsn) as reader:
        reader.execute(f"SELECT FROM {relation}")
        rebuild(db)
    portal._p_jar.close()
    return str(relation)


def can_empty(connection: Connection[Any], former: str) -> bool:
    """Empty *former*; return False if autovacuum has a lock on it."""
    with suppress(LockNotAvailable), connection.transaction():
        empty_retired(connection.cursor(), [former])
        return True
    return False


def test_reader_of_objects_does_not_keep_the_space_of_a_former_relation(former: str, dsn: str) -> None:
    """On a busy site there is always one, so the lock for a DROP is not free for hours."""
    size = "SELECT pg_relation_size('{0}'), pg_indexes_size('{0}'), (SELECT count(*) FROM pgcatalog_counts WHERE relation = '{0}')"
    with psycopg.connect(dsn) as reader, psycopg.connect(dsn, autocommit=True) as connection:
        [(rows, indexes, counts)] = sql(dsn, size.format(former))
        assert rows
        assert counts
        reader.execute("SELECT count(*) FROM object_state")

        def is_emptied() -> bool:
            assert drop_retired(connection.cursor()) == ([], True)
            return emptied(former) in tables(dsn)

        # Autovacuum may have a snapshot, or a lock, for a moment.
        until(is_emptied)
        assert is_emptied(), "another attempt changes nothing"
        [(left, of_indexes, left_counts)] = sql(dsn, size.format(emptied(former)))
        assert (left, left_counts) == (0, 0)
        assert of_indexes < indexes / 10
        reader.rollback()
        until(lambda: drop_retired(connection.cursor()) == ([emptied(former)], False))
    assert {former, emptied(former)}.isdisjoint(tables(dsn))


def test_name_of_an_emptied_relation_is_not_free(former: str, dsn: str) -> None:
    """Its SQL indexes still have that name."""
    zoid = int(former.split("_")[1], 16)
    version = int(([*former.split("_"), "1"])[2])
    assert relation_name(zoid, version) == former
    with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
        until(partial(can_empty, connection, former))
        found, relation = schema.free_relation(cursor, zoid, version)
        assert found > version
        assert relation not in {former, idx_table(former)}


def test_older_snapshot_finds_no_relation_in_place_of_an_emptied_one(former: str, dsn: str) -> None:
    """Such as a snapshot of a standby, which the primary cannot see; to find an empty relation would be a wrong answer."""
    with psycopg.connect(dsn) as reader, psycopg.connect(dsn) as connection:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM object_state")
        until(partial(can_empty, connection, former))
        connection.commit()
        with pytest.raises(psycopg.errors.UndefinedTable):
            reader.execute(f"SELECT count(*) FROM {former}")


def test_relation_that_is_read_is_not_emptied(former: str, dsn: str) -> None:
    with psycopg.connect(dsn) as reader, psycopg.connect(dsn, autocommit=True) as connection:
        [(rows,)] = reader.execute(f"SELECT count(*) FROM {former}").fetchall()
        reader.rollback()
        reader.execute(f"LOCK TABLE {former} IN ACCESS SHARE MODE")
        assert drop_retired(connection.cursor()) == ([], True)
        assert reader.execute(f"SELECT count(*) FROM {former}").fetchall() == [(rows,)]
