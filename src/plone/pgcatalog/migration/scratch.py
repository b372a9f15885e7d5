"""A copy of a site's database for trying out: the objects on zodb-pgjsonb, in a database of its own."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.indexing import processor
from plone.pgcatalog.migration import copying
from typing import Any
from ZODB.DB import DB
from zodb_pgjsonb.storage import PGJsonbStorage
from Zope2.App.ClassFactory import ClassFactory

import psycopg


class ScratchError(RuntimeError):
    """The scratch database cannot be used; nothing has been changed."""


def check_empty(dsn: str) -> None:
    """Raise ScratchError unless the database *dsn* can be reached and holds no tables."""
    tables = "SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = current_schema()::regnamespace)"
    try:
        with connect(dsn, "scratch database") as connection:
            if connection.execute(tables).fetchone() != (False,):
                raise ScratchError("the scratch database is not empty; a copy needs one of its own")
    except psycopg.Error as error:
        raise ScratchError(f"the scratch database: {str(error).strip()}") from error


def copy(storage: Any, dsn: str, progress: Callable[[int], None] = lambda transactions: None) -> None:
    """Copy all transactions of *storage*, with their blobs, into the empty database *dsn*.  Raises ScratchError.

    *progress* is called with the number of transactions after each.
    """
    check_empty(dsn)
    target = PGJsonbStorage(dsn=dsn, cache_warm_pct=0)
    try:
        copying.copy(copying.Source(storage, progress), target)
    finally:
        target.close()


def analyze(dsn: str) -> None:
    """Have PostgreSQL take its statistics of the database *dsn*, as autovacuum does in time."""
    with connect_directly(dsn, "analyze", 0) as connection:
        connection.execute("ANALYZE")


@contextmanager
def opened(dsn: str) -> Iterator[Any]:
    """Yield the database *dsn* as a ZODB.DB with the catalog's hooks."""
    database = DB(PGJsonbStorage(dsn=dsn, cache_warm_pct=0))
    database.classFactory = ClassFactory
    processor.register(database)
    try:
        yield database
    finally:
        database.close()
