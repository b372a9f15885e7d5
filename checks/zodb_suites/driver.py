"""Runs ZODB's own tests of storages in a process, and prints as JSON which pass; ``__main__`` starts it twice.

    python -m checks.zodb_suites.driver with|without DSN

Without this package nothing of it is imported.
"""

from collections.abc import Iterator
from contextlib import closing
from transaction import TransactionManager
from types import FrameType
from typing import Any
from unittest import defaultTestLoader
from unittest import TestCase
from unittest import TestResult
from unittest import TestSuite
from ZODB.tests import BasicStorage
from ZODB.tests import ConflictResolution
from ZODB.tests import HistoryStorage
from ZODB.tests import IteratorStorage
from ZODB.tests import MTStorage
from ZODB.tests import PackableStorage
from ZODB.tests import RevisionStorage
from ZODB.tests import StorageTestBase
from ZODB.tests import Synchronization
from ZODB.tests import test_storage
from ZODB.tests import testConnection
from ZODB.tests import testmvcc
from ZODB.tests import TransactionalUndoStorage
from ZODB.tests.testMVCCMappingStorage import MVCCTests
from zodb_pgjsonb.storage import PGJsonbStorage

import itertools
import json
import logging
import os
import psycopg
import signal
import sys
import ZODB


#: Time limit of a test, in seconds.
MOST_SECONDS = 60

_numbers = itertools.count(1)
_mode = _dsn = ""
#: The databases of the running test.
_created: list[str] = []


class TooLong(Exception):
    """Raised when a test exceeds MOST_SECONDS."""


def new_storage(keeps_history: bool = False, **options: Any) -> Any:
    """Return a storage on an empty database."""
    name = f"zodb_{_mode}_{next(_numbers)}"
    with closing(psycopg.connect(_dsn, autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    _created.append(name)
    dsn = psycopg.conninfo.make_conninfo(_dsn, dbname=name)
    return PGJsonbStorage(dsn=dsn, cache_warm_pct=0, history_preserving=keeps_history, **options)


class StorageTests(
    StorageTestBase.StorageTestBase,
    BasicStorage.BasicStorage,
    TransactionalUndoStorage.TransactionalUndoStorage,
    RevisionStorage.RevisionStorage,
    PackableStorage.PackableStorageWithOptionalGC,
    PackableStorage.PackableUndoStorage,
    Synchronization.SynchronizedStorage,
    ConflictResolution.ConflictResolvingStorage,
    ConflictResolution.ConflictResolvingTransUndoStorage,
    HistoryStorage.HistoryStorage,
    IteratorStorage.IteratorStorage,
    IteratorStorage.ExtendedIteratorStorage,
    MTStorage.MTStorage,
    MVCCTests,
):
    """The storage of a process."""

    keeps_history = False

    def setUp(self) -> None:
        super().setUp()
        self._storage = new_storage(self.keeps_history)


class HistoryTests(StorageTests):
    """The same with history."""

    keeps_history = True


class ConnectionTests(StorageTests):
    """The storage of a ZODB connection."""

    def setUp(self) -> None:
        super().setUp()
        self._database = ZODB.DB(self._storage)
        self._storage = self._database._mvcc_storage.new_instance()

    def tearDown(self) -> None:
        super().tearDown()
        self._database.close()


class ConnectionHistoryTests(ConnectionTests):
    """The same with history."""

    keeps_history = True


def use_storage() -> None:
    """Use our storage for the in-memory ones in the tests of connections."""
    testConnection.databaseFromString = lambda text: ZODB.DB(new_storage())
    test_storage.MinimalMemoryStorage = lambda: new_storage(keeps_history=True)


def adapt_databases() -> None:
    """Register this package with each database that is opened, as Zope does."""
    from plone.pgcatalog.subscribers import register_processors
    from zope.processlifetime import DatabaseOpenedWithRoot

    open_database = ZODB.DB.__init__

    def open_and_register(database: Any, *args: Any, **options: Any) -> None:
        open_database(database, *args, **options)
        register_processors(DatabaseOpenedWithRoot(database))
        # Zope does so at its start, in one thread: the first poll creates the tables.
        database.open(TransactionManager()).close()

    ZODB.DB.__init__ = open_and_register


def tests_of(suite: Any) -> Iterator[Any]:
    """Yield the single tests of *suite*."""
    for each in suite:
        if isinstance(each, TestSuite):
            yield from tests_of(each)
        else:
            yield each


def name_of(test: Any) -> str:
    return ".".join(test.id().split(".")[-2:]) if isinstance(test, TestCase) else str(test)


def passes(test: Any) -> bool:
    """Run *test*; return whether it passes or is skipped."""
    result = TestResult()
    signal.alarm(MOST_SECONDS)
    try:
        test.run(result)
    except TooLong:
        return False
    finally:
        signal.alarm(0)
        # Other tests leave connections that poll once more during the next test.
        if isinstance(test, StorageTests):
            drop_databases()
    return result.wasSuccessful()


def drop_databases() -> None:
    """Drop the databases of a test; all tests together would need several gigabytes."""
    with closing(psycopg.connect(_dsn, autocommit=True)) as connection:
        while _created:
            connection.execute(f"DROP DATABASE {_created.pop()} WITH (FORCE)")


def stop(number: int, frame: FrameType | None) -> None:
    raise TooLong


def main(mode: str, dsn: str) -> dict[str, bool]:
    """Return whether each test passes, on databases of the server of *dsn*; *mode* is "with" or "without" this package."""
    global _mode, _dsn
    _mode, _dsn = mode, dsn
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, stop)
    if mode == "with":
        adapt_databases()
    use_storage()
    suite = TestSuite(
        [
            *map(
                defaultTestLoader.loadTestsFromTestCase,
                (StorageTests, HistoryTests, ConnectionTests, ConnectionHistoryTests),
            ),
            testConnection.test_suite(),
            testmvcc.test_suite(),
        ]
    )
    return {name_of(test): passes(test) for test in tests_of(suite)}


if __name__ == "__main__":
    found = main(*sys.argv[1:])
    print(json.dumps(found), flush=True)
    # Some tests leave threads.
    os._exit(0)
