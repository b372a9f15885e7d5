"""Copies all objects of a storage into another one, also as a rehearsal, and checks that all of them have arrived.

zodb-pgjsonb 1.19 returns the states of empty BTrees as those of removed objects, so a plain copy from it would lose them.
``CompleteSource`` returns them correctly, and ``missing`` finds the objects that an earlier copy has lost.
"""

from BTrees.QQBTree import QQBTree
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import batched
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.indexing import processor
from plone.pgcatalog.migration.values import change
from plone.pgcatalog.migration.values import Sample
from plone.pgcatalog.migration.values import ValueChange
from typing import Any
from ZODB.blob import Blob
from ZODB.blob import is_blob_record
from ZODB.Connection import TransactionMetaData
from ZODB.DB import DB
from ZODB.POSException import POSKeyError
from ZODB.utils import newTid
from ZODB.utils import p64
from ZODB.utils import u64
from ZODB.utils import z64
from zodb_pgjsonb.storage import PGJsonbStorage
from Zope2.App.ClassFactory import ClassFactory

import os
import pickle
import psycopg
import shutil
import tempfile


#: Number of objects of each class that are compared by value.
SAMPLE = 20
#: Number of objects in one transaction of ``repair``.
BATCH = 500
#: First bytes of a blob's record: transcoded from JSON by the storage, and as written by ZODB itself.
#: ZODB's ``is_blob_record``, by which a copy finds files, recognises only the second form.
TRANSCODED = b"\x80\x02X\x09\x00\x00\x00ZODB.blobX\x04\x00\x00\x00Blob\x86N\x86."
BLOB = pickle.dumps(Blob, 3) + pickle.dumps(None, 3)


class CopyError(RuntimeError):
    """The storage cannot be copied into the other one; no data was changed."""


class SourceStorage:
    """A *storage* to copy from; it records the objects that are read from it.

    - ``tids``: oid -> tid of its newest record, without removed objects
    - ``blobs``: oids of objects with a file
    - ``lost_files``: (oid, tid) of files that the storage itself has lost
    - ``sample``: up to *sample* objects of each class, to be compared by value

    *progress* is called after each transaction, with the number of transactions so far.
    """

    def __init__(
        self, storage: Any, progress: Callable[[int], None] = lambda transactions: None, sample: int = SAMPLE
    ) -> None:
        self.storage = CompleteSource(storage) if hasattr(storage, "_dsn") else storage
        self.progress = progress
        self.tids = QQBTree()
        self.sample = Sample(sample)
        self.blobs: set[int] = set()
        self.lost_files: list[tuple[int, int]] = []
        self.transactions = 0

    def __getattr__(self, name: str) -> Any:
        # Hides the interfaces of the storage: with IRecordIter, a history-free RelStorage copies it without ``iterator``.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.storage, name)

    def iterator(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield the transactions; iterating over one of them yields its records."""
        self.tids.clear()
        self.blobs.clear()
        self.transactions = 0
        for found in self.storage.iterator(*args, **kwargs):
            yield Records(found, self)
            self.transactions += 1
            self.progress(self.transactions)

    def note(self, record: Any) -> None:
        """Store *record* as the newest one of its object so far."""
        oid = u64(record.oid)
        self.blobs.discard(oid)
        if record.data is None:
            self.tids.pop(oid, None)
            return
        self.tids[oid] = u64(record.tid)
        self.sample.add(oid, record.data)
        if record.data.startswith(TRANSCODED) or is_blob_record(record.data):
            self.blobs.add(oid)

    def loadBlob(self, oid: bytes, tid: bytes) -> str:
        """Return the file name of a blob; raises the errors of the storage."""
        try:
            name: str = self.storage.loadBlob(oid, tid)
        except (KeyError, OSError):
            self.lost_files.append((u64(oid), u64(tid)))
            raise
        return name


class Records:
    """The transaction *found*; it passes each record that is read from it to ``source.note``."""

    def __init__(self, found: Any, source: SourceStorage) -> None:
        self.found = found
        self.source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self.found, name)

    def __iter__(self) -> Iterator[Any]:
        for record in self.found:
            self.source.note(record)
            yield record


def copy(source: SourceStorage, target: Any) -> None:
    """Copy all transactions of *source*, with their blobs, into the storage *target*; CopyError unless it is empty."""
    if target.lastTransaction() != z64:
        raise CopyError("the target is not empty; use an empty storage")
    target.copyTransactionsFrom(source)


def seen(
    storage: Any, progress: Callable[[int], None] = lambda transactions: None, sample: int = SAMPLE
) -> SourceStorage:
    """Return *storage* as a source that has read all its records."""
    source = SourceStorage(storage, progress, sample)
    for found in source.iterator():
        for _ in found:
            pass
    return source


def missing(source: SourceStorage, target: SourceStorage) -> list[int]:
    """Return the oids of objects and files in *source* that *target* lacks; both sources have been read."""
    lost = {oid for oid in source.tids if oid not in target.tids} | (source.blobs - target.blobs)
    without_file = {oid for oid, tid in source.lost_files if source.tids.get(oid) == tid}
    lost |= {oid for oid in source.blobs - lost - without_file if not _has_file(target, oid)}
    return sorted(lost)


def changed(source: SourceStorage, target: SourceStorage) -> Iterator[ValueChange | None]:
    """Yield for each object in the sample of *source* a value that differs in *target*, or None; both have been read.

    Objects that were saved after the copy are left out.
    """
    for oid in source.sample.oids():
        if oid in source.tids and source.tids[oid] == target.tids.get(oid):
            one, other = (each.storage.loadSerial(p64(oid), p64(each.tids[oid])) for each in (source, target))
            yield change(oid, one, other)


def _has_file(storage: SourceStorage, oid: int) -> bool:
    try:
        return os.path.exists(storage.storage.loadBlob(p64(oid), p64(storage.tids[oid])))
    except (POSKeyError, OSError):
        return False


def repair(source: SourceStorage, target: Any, oids: list[int]) -> None:
    """Store the objects *oids* of *source*, with their blobs, in the storage *target*, which lacks them."""
    for batch in batched(oids, BATCH):
        meta = TransactionMetaData(description="objects missing after a copy")
        tid = newTid(target.lastTransaction())
        target.tpc_begin(meta, tid, " ")
        for oid in map(p64, batch):
            _restore(source, target, oid, tid, meta)
        target.tpc_vote(meta)
        target.tpc_finish(meta)


def _restore(source: SourceStorage, target: Any, oid: bytes, tid: bytes, meta: Any) -> None:
    """Store an object without a check for conflicts: a copy may have left a record that marks it as removed."""
    newest = p64(source.tids[u64(oid)])
    data = source.storage.loadSerial(oid, newest)
    if u64(oid) not in source.blobs:
        target.restore(oid, tid, data, "", None, meta)
        return
    # A copy of the file, because the storage moves it away.
    folder = tempfile.mkdtemp(dir=target.temporaryDirectory())
    name = shutil.copy(source.storage.loadBlob(oid, newest), folder)
    target.restoreBlob(oid, tid, data, name, None, meta)


class CompleteSource:
    """A zodb-pgjsonb *storage* to copy from, without lost records.

    The storage itself returns the states of empty BTrees and of blobs as those of removed objects.
    """

    def __init__(self, storage: Any) -> None:
        self.storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self.storage, name)

    def iterator(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield the transactions; iterating over one of them yields its records."""
        for transaction in self.storage.iterator(*args, **kwargs):
            for record in transaction:
                if record.data is None:
                    record.data = self.storage.loadSerial(record.oid, record.tid)
                if record.data.startswith(TRANSCODED):
                    record.data = BLOB
            yield transaction

    def loadSerial(self, oid: bytes, serial: bytes) -> bytes:
        """Return the state of an object; the state of a blob in ZODB's form."""
        data: bytes = self.storage.loadSerial(oid, serial)
        return BLOB if data.startswith(TRANSCODED) else data


class ScratchError(RuntimeError):
    """The scratch database cannot be used; no data was changed."""


def check_empty(dsn: str) -> None:
    """Raise ScratchError unless the database *dsn* can be reached and has no tables."""
    tables = "SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = current_schema()::regnamespace)"
    try:
        with connect(dsn, "scratch database") as connection:
            if connection.execute(tables).fetchone() != (False,):
                raise ScratchError("the scratch database is not empty; use an empty one")
    except psycopg.Error as error:
        raise ScratchError(f"the scratch database: {str(error).strip()}") from error


def copy_to_scratch(storage: Any, dsn: str, progress: Callable[[int], None] = lambda transactions: None) -> None:
    """Copy all transactions of *storage*, with their blobs, into the empty database *dsn*.  Raises ScratchError.

    *progress* is called after each transaction, with the number of transactions so far.
    """
    check_empty(dsn)
    target = PGJsonbStorage(dsn=dsn, cache_warm_pct=0)
    try:
        copy(SourceStorage(storage, progress), target)
    finally:
        target.close()


def analyze(dsn: str) -> None:
    """Run ANALYZE on the database *dsn*, which autovacuum would do later."""
    with connect_directly(dsn, "analyze", 0) as connection:
        connection.execute("ANALYZE")


@contextmanager
def opened(dsn: str, like: Any) -> Iterator[Any]:
    """Yield the database *dsn* as a ZODB.DB with the catalog's hooks, and name and cache size of the database *like*."""
    storage = PGJsonbStorage(dsn=dsn, cache_warm_pct=0)
    database = DB(storage, cache_size=like.getCacheSize(), database_name=like.database_name)
    database.classFactory = ClassFactory
    processor.register(database)
    try:
        yield database
    finally:
        database.close()
