"""Objects loaded by storages, for storages opened on a copy of their database."""

from plone.pgcatalog.testing.stack import NoCache
from plone.pgcatalog.testing.stack import Version
from zodb_pgjsonb.storage import PGJsonbStorage


class ObjectCache(NoCache):
    """Objects that storages have loaded from a database, for storages opened later on it or on a copy.

    Without it every functional test would load about a thousand objects again.
    """

    def __init__(self) -> None:
        self._objects: dict[Version, dict[int, tuple[bytes, bytes]]] = {}

    def collect(self, storage: PGJsonbStorage, version: Version) -> None:
        """Store the objects cached by *storage* that are as old as *version*."""
        known = self._objects.setdefault(version, {})
        for zoid, (data, tid) in list(storage._shared_cache._cache.items()):
            if tid <= version.tid:
                known[zoid] = (data, tid)

    def fill(self, storage: PGJsonbStorage, version: Version) -> None:
        """Put the stored objects of *version* into the cache of *storage*."""
        newest = int.from_bytes(version.tid, "big")
        storage._shared_cache.poll_advance(newest, ())
        for zoid, (data, tid) in self._objects.get(version, {}).items():
            storage._shared_cache.set(zoid, data, tid, newest)

    def forget(self, database: str) -> None:
        """Drop the objects of a database."""
        self._objects = {v: o for v, o in self._objects.items() if v.database != database}
