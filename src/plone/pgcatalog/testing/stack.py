"""``plone.testing.zodb.stackDemoStorage`` on PostgreSQL: a stacked storage is a copied database.

DemoStorage does not work for the catalog: its rows are not objects, and are written in the transaction of the objects.
"""

from psycopg import sql
from psycopg.conninfo import make_conninfo
from typing import Any
from ZODB.DB import DB
from zodb_pgjsonb.storage import PGJsonbStorage
from zope.event import notify
from zope.processlifetime import DatabaseOpened
from zope.processlifetime import DatabaseOpenedWithRoot

import dataclasses
import itertools
import psycopg
import time


#: Turns a deadlock between connections of a test into an error instead of a hang.
SESSION_OPTIONS = "-c lock_timeout=15s"
COPY_ATTEMPTS = 40
END_SESSIONS = "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE datname = %s"
NUMBERED = """
SELECT datname FROM pg_database
WHERE starts_with(datname, %(prefix)s) AND substr(datname, length(%(prefix)s) + 1) ~ '^[0-9]+$'
"""


class Databases:
    """Databases named ``<prefix><number>`` on the server of *dsn*, a superuser's connection string.

    Databases that an earlier process has left under the same prefix are dropped first.
    """

    def __init__(self, dsn: str, prefix: str) -> None:
        self.dsn = dsn
        self.prefix = prefix
        self._numbers = itertools.count(1)
        self._admin = psycopg.connect(dsn, autocommit=True)
        self.drop_all()

    def create(self, template: str | None = None) -> str:
        """Create a database, empty or as a copy of *template*; return its name.

        All sessions of the template are ended.  Raises psycopg.Error if the template is still in use.
        """
        name = f"{self.prefix}{next(self._numbers)}"
        if template is None:
            self._admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        else:
            self._copy(name, template)
        return name

    def _copy(self, name: str, template: str) -> None:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
            sql.Identifier(name), sql.Identifier(template)
        )
        for attempt in range(COPY_ATTEMPTS):
            self._admin.execute(END_SESSIONS, [template])
            try:
                self._admin.execute(statement)
                return
            except psycopg.errors.ObjectInUse:  # a client has reconnected meanwhile
                if attempt == COPY_ATTEMPTS - 1:
                    raise
                time.sleep(0.05)

    def drop(self, name: str) -> None:
        """Drop a database, and end its sessions."""
        self._admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def drop_all(self) -> None:
        """Drop every database under the prefix, but none under a longer prefix that starts with it."""
        for (name,) in self._admin.execute(NUMBERED, {"prefix": self.prefix}).fetchall():
            self.drop(name)

    def dsn_of(self, name: str) -> str:
        """Return the libpq connection string of a database."""
        return make_conninfo(self.dsn, dbname=name, options=SESSION_OPTIONS)

    def close(self) -> None:
        """Drop every database under the prefix, and close the connection."""
        self.drop_all()
        self._admin.close()


@dataclasses.dataclass(frozen=True)
class Version:
    """The state of a database after one transaction."""

    database: str
    tid: bytes


class NoCache:
    """Interface of a cache of objects for storages that are opened later, on a database or a copy; this one is empty."""

    def collect(self, storage: PGJsonbStorage, version: Version) -> None:
        """Store the objects that *storage* has loaded and that belong to *version*."""

    def fill(self, storage: PGJsonbStorage, version: Version) -> None:
        """Put the stored objects of *version* into the cache of *storage*."""

    def forget(self, database: str) -> None:
        """Remove the objects of a database."""


class StorageStack:
    """Creates the databases of test layers, each as a copy of the one below."""

    def __init__(self, databases: Databases, cache: NoCache | None = None) -> None:
        self.databases = databases
        self.cache = cache or NoCache()
        self._announcing = False

    def stack(self, db: "StackedDB | None" = None, name: str | None = None) -> "StackedDB":
        """Return a new database, empty or a copy of *db*: the replacement of ``stackDemoStorage``."""
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
        """Stop announcing databases, because the subscribers are removed."""
        self._announcing = False

    def announce(self, db: DB) -> None:
        """Fire the events that Zope fires at start-up."""
        if self._announcing:
            notify(DatabaseOpened(db))
            notify(DatabaseOpenedWithRoot(db))


class StackedDB:
    """A ZODB.DB on its own PostgreSQL database, which is opened when it is used.

    PostgreSQL copies a database only while it has no sessions.  So the base of a copy is *parked*: its storage is closed,
    and a new one is opened when a layer or a test uses the base again.
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
        """Close the storage until the database is used again; return its state."""
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
