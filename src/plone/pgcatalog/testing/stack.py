"""``plone.testing.zodb.stackDemoStorage`` on PostgreSQL: a stacked storage is a copied database.

DemoStorage cannot carry the catalog: its rows are no objects, and belong to the transaction that stores the objects.
"""

from plone.pgcatalog.testing.databases import Databases
from typing import Any
from ZODB.DB import DB
from zodb_pgjsonb.storage import PGJsonbStorage
from zope.event import notify
from zope.processlifetime import DatabaseOpened
from zope.processlifetime import DatabaseOpenedWithRoot

import dataclasses


@dataclasses.dataclass(frozen=True)
class Version:
    """A database in the state of one transaction."""

    database: str
    tid: bytes


class NoCache:
    """What storages have loaded of a database, for those that are opened on it or on a copy later: nothing."""

    def collect(self, storage: PGJsonbStorage, version: Version) -> None:
        """Remember what *storage* has loaded and that is as old as *version*."""

    def fill(self, storage: PGJsonbStorage, version: Version) -> None:
        """Give *storage* what is remembered of *version*."""

    def forget(self, database: str) -> None:
        """Drop what is known of a database."""


class StorageStack:
    """Makes the databases of the test layers, one on a copy of the other."""

    def __init__(self, databases: Databases, cache: NoCache | None = None) -> None:
        self.databases = databases
        self.cache = cache or NoCache()
        self._announcing = False

    def stack(self, db: "StackedDB | None" = None, name: str | None = None) -> "StackedDB":
        """Return a new database, empty or on a copy of *db*: the replacement of stackDemoStorage."""
        if db is None:
            return StackedDB(self, self.databases.create())
        base = db.park()
        return StackedDB(self, self.databases.create(template=base.database), base)

    def announce_from_now_on(self, db: "StackedDB") -> None:
        """Announce *db*, if it is open already, and every database opened from now on."""
        self._announcing = True
        if db.opened is not None:
            self.announce(db.opened)

    def stop_announcing(self) -> None:
        """The subscribers go away."""
        self._announcing = False

    def announce(self, db: DB) -> None:
        """Fire the events that Zope fires at start-up."""
        if self._announcing:
            notify(DatabaseOpened(db))
            notify(DatabaseOpenedWithRoot(db))


class StackedDB:
    """A ZODB.DB on a PostgreSQL database of its own, which opens when it is used.

    PostgreSQL copies a database only while it has no session.  So the base of a copy is *parked*: its
    storage is closed, and a new one is opened when a layer or a test uses the base again.
    """

    def __init__(self, stack: StorageStack, database: str, base: Version | None = None) -> None:
        self._stack = stack
        self._base = base
        self._closed = False
        self.database = database
        self.opened: DB | None = None
        self._open()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self._closed:
            raise AttributeError(name)
        return getattr(self._open(), name)

    def _open(self) -> DB:
        if self.opened is not None:
            return self.opened
        storage = PGJsonbStorage(dsn=self._stack.databases.dsn_of(self.database), cache_warm_pct=0)
        version = self._version = Version(self.database, storage.lastTransaction())
        if self._base and self._base.tid == version.tid:
            self._stack.cache.fill(storage, self._base)
        self._stack.cache.fill(storage, version)
        self.opened = DB(storage)
        self._stack.announce(self.opened)
        return self.opened

    def park(self) -> Version:
        """Close the storage until the database is used again; return the state it is in."""
        if self.opened is not None:
            storage = self.opened.storage
            tid = storage.current_max_tid()
            if tid is not None:
                self._version = Version(self.database, tid.to_bytes(8, "big"))
            for version in filter(None, (self._base, self._version)):
                self._stack.cache.collect(storage, version)
            self.opened.close()
            self.opened = None
        return self._version

    def close(self) -> None:
        """Close and drop the database."""
        if not self._closed:
            self.park()
            self._closed = True
            self._stack.cache.forget(self.database)
            self._stack.databases.drop(self.database)
