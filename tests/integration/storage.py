"""What the tests ask of zodb-pgjsonb's storage that has no public name there."""

from plone.pgcatalog.storage import forget_shared_objects
from typing import Any
from typing import NamedTuple


class Reads(NamedTuple):
    """How often a connection's storage has asked for objects, and for how many."""

    statements: int
    objects: int


def reads(jar: Any) -> Reads:
    """Return what the storage of the ZODB connection *jar* has read so far."""
    storage = jar._normal_storage
    return Reads(storage._pg_query_count, storage._pg_load_count)


def forget_loaded(jar: Any) -> None:
    """Let the storage of *jar* read every object that is not in the connection's own memory anew."""
    jar._normal_storage._load_cache.clear()
    forget_shared_objects(jar.db())
