"""Copies all objects of one storage into another one, also to try out, and looks whether all of them have arrived.

zodb-pgjsonb 1.19 hands out the states of empty BTrees as those of removed objects, so a copy out of it by the storages
alone misses them: `CompleteSource` gives them to it, and `missing` finds what an earlier copy has lost.
"""

from BTrees.QQBTree import QQBTree
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import batched
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.indexing import processor
from plone.pgcatalog.migration.values import Change
from plone.pgcatalog.migration.values import change
from plone.pgcatalog.migration.values import Sample
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


#: So many objects of each class are compared by value.
SAMPLE = 20
#: The objects of one transaction of `repair`.
BATCH = 500


class CopyError(RuntimeError):
    """The storage cannot be copied into this one; nothing has been changed."""


class Source:
    """A *storage* to copy from: hands out everything, and notes what it hands out.

    ``tids`` are the ids of the objects that are there in the end, each with that of its newest transaction; ``blobs`` those
    of them that have a file; ``lost_files`` (oid, tid) of the files that the storage itself does not have any more.
    ``sample`` are objects of each class, up to *sample*, to compare by value.  *progress* is called with the number of
    transactions after each.
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
        # Without the interfaces of the storage: RelStorage reads one that has records apart from transactions in another way.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.storage, name)

    def iterator(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield the transactions; each can be iterated over for its records."""
        self.tids.clear()
        self.blobs.clear()
        self.transactions = 0
        for found in self.storage.iterator(*args, **kwargs):
            yield Records(found, self)
            self.transactions += 1
            self.progress(self.transactions)

    def note(self, record: Any) -> None:
        """Note that *record* is the newest one of its object so far."""
        oid = u64(record.oid)
        self.blobs.discard(oid)
        if record.data is None:
            self.tids.pop(oid, None)
            return
        self.tids[oid] = u64(record.tid)
        self.sample.add(oid, record.data)
        if is_blob(record.data):
            self.blobs.add(oid)

    def loadBlob(self, oid: bytes, tid: bytes) -> str:
        """Return the name of the file of a blob; raises what the storage raises."""
        try:
            name: str = self.storage.loadBlob(oid, tid)
        except (KeyError, OSError):
            self.lost_files.append((u64(oid), u64(tid)))
            raise
        return name


class Records:
    """The transaction *found*, which tells *source* each record it is asked for."""

    def __init__(self, found: Any, source: Source) -> None:
        self.found = found
        self.source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self.found, name)

    def __iter__(self) -> Iterator[Any]:
        for record in self.found:
            self.source.note(record)
            yield record


def copy(source: Source, target: Any) -> None:
    """Copy all transactions of *source*, with their blobs, into the storage *target*; raises CopyError unless it is empty."""
    if target.lastTransaction() != z64:
        raise CopyError("the target is not empty; a copy needs a storage of its own")
    target.copyTransactionsFrom(source)


def seen(storage: Any, progress: Callable[[int], None] = lambda transactions: None, sample: int = SAMPLE) -> Source:
    """Return *storage* as a source that has noted what is in it."""
    source = Source(storage, progress, sample)
    for found in source.iterator():
        for _ in found:
            pass
    return source


def missing(source: Source, target: Source) -> list[int]:
    """Return the ids of the objects and files that *source* has and *target* has not; both have been read."""
    lost = {oid for oid in source.tids if oid not in target.tids} | (source.blobs - target.blobs)
    without_file = {oid for oid, tid in source.lost_files if source.tids.get(oid) == tid}
    lost |= {oid for oid in source.blobs - lost - without_file if not _has_file(target, oid)}
    return sorted(lost)


def changed(source: Source, target: Source) -> Iterator[Change | None]:
    """Yield for each object in the sample of *source* a value that is another one in *target*, or None; both have been read.

    An object that has been saved since it was copied is left out.
    """
    for oid in source.sample.oids():
        if oid in source.tids and source.tids[oid] == target.tids.get(oid):
            one, other = (each.storage.loadSerial(p64(oid), p64(each.tids[oid])) for each in (source, target))
            yield change(oid, one, other)


def _has_file(storage: Source, oid: int) -> bool:
    try:
        return os.path.exists(storage.storage.loadBlob(p64(oid), p64(storage.tids[oid])))
    except (POSKeyError, OSError):
        return False


def repair(source: Source, target: Any, oids: list[int]) -> None:
    """Store the objects *oids* of *source*, with their blobs, in the storage *target*, which has lost them."""
    for batch in batched(oids, BATCH):
        meta = TransactionMetaData(description="objects that a copy had lost")
        tid = newTid(target.lastTransaction())
        target.tpc_begin(meta, tid, " ")
        for oid in map(p64, batch):
            _restore(source, target, oid, tid, meta)
        target.tpc_vote(meta)
        target.tpc_finish(meta)


def _restore(source: Source, target: Any, oid: bytes, tid: bytes, meta: Any) -> None:
    """Store an object without asking for a conflict: a copy may have left a record that says that it was removed."""
    newest = p64(source.tids[u64(oid)])
    data = source.storage.loadSerial(oid, newest)
    if u64(oid) not in source.blobs:
        target.restore(oid, tid, data, "", None, meta)
        return
    # The storage takes the file away.
    folder = tempfile.mkdtemp(dir=target.temporaryDirectory())
    name = shutil.copy(source.storage.loadBlob(oid, newest), folder)
    target.restoreBlob(oid, tid, data, name, None, meta)


#: How a record of a blob begins when the storage has made it of JSON, and as ZODB writes it itself.
#: ZODB's ``is_blob_record``, by which a copy finds the files, knows the second form only.
TRANSCODED = b"\x80\x02X\x09\x00\x00\x00ZODB.blobX\x04\x00\x00\x00Blob\x86N\x86."
BLOB = pickle.dumps(Blob, 3) + pickle.dumps(None, 3)


def is_blob(data: bytes) -> bool:
    """True when *data* is the record of a blob, in either form."""
    return bool(data.startswith(TRANSCODED) or is_blob_record(data))


class CompleteSource:
    """A zodb-pgjsonb *storage* to copy from that hands out everything.

    By itself it takes the states of empty BTrees and of blobs for those of removed objects.
    """

    def __init__(self, storage: Any) -> None:
        self.storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self.storage, name)

    def iterator(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield the transactions; each can be iterated over for its records."""
        for transaction in self.storage.iterator(*args, **kwargs):
            for record in transaction:
                if record.data is None:
                    record.data = self.storage.loadSerial(record.oid, record.tid)
                if record.data.startswith(TRANSCODED):
                    record.data = BLOB
            yield transaction

    def loadSerial(self, oid: bytes, serial: bytes) -> bytes:
        """Return the state of an object, that of a blob in the form of ZODB."""
        data: bytes = self.storage.loadSerial(oid, serial)
        return BLOB if data.startswith(TRANSCODED) else data


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


def copy_to_scratch(storage: Any, dsn: str, progress: Callable[[int], None] = lambda transactions: None) -> None:
    """Copy all transactions of *storage*, with their blobs, into the empty database *dsn*.  Raises ScratchError.

    *progress* is called with the number of transactions after each.
    """
    check_empty(dsn)
    target = PGJsonbStorage(dsn=dsn, cache_warm_pct=0)
    try:
        copy(Source(storage, progress), target)
    finally:
        target.close()


def analyze(dsn: str) -> None:
    """Have PostgreSQL take its statistics of the database *dsn*, as autovacuum does in time."""
    with connect_directly(dsn, "analyze", 0) as connection:
        connection.execute("ANALYZE")


@contextmanager
def opened(dsn: str, like: Any) -> Iterator[Any]:
    """Yield the database *dsn* as a ZODB.DB with the catalog's hooks, with the name and the size of cache of *like*, another one."""
    storage = PGJsonbStorage(dsn=dsn, cache_warm_pct=0)
    database = DB(storage, cache_size=like.getCacheSize(), database_name=like.database_name)
    database.classFactory = ClassFactory
    processor.register(database)
    try:
        yield database
    finally:
        database.close()
