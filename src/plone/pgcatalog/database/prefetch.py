"""The objects behind a result's rows, loaded together by the storage before one of them is touched."""

from collections.abc import Iterable
from plone.pgcatalog.settings import number
from typing import Any
from ZODB.utils import p64

import os


#: Objects loaded together, unless the environment's PGCATALOG_PREFETCH_BATCH says otherwise; 0 loads each by itself.
DEFAULT_BATCH = 100


def batch_size() -> int:
    """Return how many objects are loaded together."""
    found = number("PGCATALOG_PREFETCH_BATCH", os.environ.get("PGCATALOG_PREFETCH_BATCH"), True)
    return DEFAULT_BATCH if found is None else int(found)


def prefetch(jar: Any, zoids: Iterable[int]) -> None:
    """Have the storage of *jar* load those of the objects *zoids* that are not in memory, in one statement.

    What is no object, as the rid of a further path, is left out.
    """
    cache = jar._cache
    wanted = [oid for oid in map(p64, zoids) if getattr(cache.get(oid), "_p_changed", None) is None]
    if len(wanted) > 1:
        jar.prefetch(wanted)
