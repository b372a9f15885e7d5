"""A read-only storage of zodb-pgjsonb on a streaming standby: ``<pgjsonb-reader>`` in zope.conf.

zodb-pgjsonb 1.19 has no such mode; docs/upstream has a patch for it.  This module adds the mode from outside.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from plone.pgcatalog.database.direct import pack_directly
from plone.pgcatalog.observe.health import MAX_REPLAY_LAG
from plone.pgcatalog.storage import UnknownStorage
from plone.pgcatalog.storage.supported import unknown_version
from typing import Any
from ZODB.POSException import ReadOnlyError
from zodb_pgjsonb import storage as upstream
from zodb_pgjsonb.config import PGJsonbStorageFactory
from zodb_pgjsonb.instance import PGJsonbStorageInstance
from zodb_pgjsonb.storage import PGJsonbStorage


#: Methods that write.
WRITES = ("new_oid", "tpc_begin", "undo", "pack")


class ReadOnlyInstance(PGJsonbStorageInstance):
    """The storage of one ZODB connection; a write raises ReadOnlyError."""

    def isReadOnly(self) -> bool:
        return True

    def tpc_abort(self, transaction: Any) -> None:
        """Do nothing: no commit has begun, and the snapshot stays."""


class ReadOnlyStorage(PGJsonbStorage):
    """A storage that changes nothing in its database: no schema, no sequence, no statistics of a warmer, no commit.

    - *writer_url*: server to which requests that would save are redirected; empty for no server
    - *max_replay_lag*: seconds by which the standby may lag
    - *options*: options of PGJsonbStorage

    Raises UnknownStorage.
    """

    def __init__(
        self, dsn: str, *, writer_url: str = "", max_replay_lag: float = MAX_REPLAY_LAG, **options: Any
    ) -> None:
        if sentence := unknown_version():
            raise UnknownStorage(sentence)
        self.writer_url = writer_url.rstrip("/")
        self.max_replay_lag = max_replay_lag
        with replaced("install_schema", lambda connection, **mode: None):
            super().__init__(dsn, **options | {"cache_warm_pct": 0})
        self._is_read_only = True

    def new_instance(self) -> ReadOnlyInstance:
        return ReadOnlyInstance(self)

    def _apply_pending_ddl(self) -> None:
        """Discard pending changes of tables and columns: writers apply them."""
        self._pending_ddl.clear()


class ReadOnlyStorageFactory(PGJsonbStorageFactory):
    """Opens the storage of a section ``<pgjsonb-reader>``."""

    def open(self, database_name: str = "unnamed", databases: Any = None) -> ReadOnlyStorage:
        """Return the storage; raise ValueError for an invalid connection string."""
        config = self.config
        make = partial(ReadOnlyStorage, writer_url=config.writer_url, max_replay_lag=config.max_replay_lag)
        with replaced("PGJsonbStorage", make):
            storage: ReadOnlyStorage = super().open(database_name, databases)
        return storage


@contextmanager
def replaced(name: str, value: Any) -> Iterator[None]:
    """Replace the global *name* of zodb-pgjsonb by *value* while a storage is opened, which one thread does."""
    former = getattr(upstream, name)
    setattr(upstream, name, value)
    try:
        yield
    finally:
        setattr(upstream, name, former)


def refuse(self: Any, *args: Any, **keywords: Any) -> None:
    """Raise ReadOnlyError."""
    raise ReadOnlyError


for _name in WRITES:
    setattr(ReadOnlyInstance, _name, refuse)
    setattr(ReadOnlyStorage, _name, refuse)

# Zope does this when it opens a database; a script that packs only imports this module, by %import plone.pgcatalog.
pack_directly()
