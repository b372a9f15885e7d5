"""Loads workflow histories for Plone's indexing queue in batches, and caches which attributes its objects lack.

Plone reads the workflow history of each object that it catalogues.  The history is a persistent object of its own, so
sharing a folder would cost a round trip for each object in it.
"""

from Acquisition import aq_base
from plone.pgcatalog.database.prefetch import batch_size
from plone.pgcatalog.database.prefetch import prefetch
from plone.pgcatalog.indexing.extract import MissingAttributeCache
from plone.pgcatalog.interfaces import IPGCatalogTool
from Products.CMFCore.indexing import getQueue
from Products.CMFCore.interfaces import IIndexQueueProcessor
from Products.CMFCore.utils import getToolByName
from typing import Any
from ZODB.utils import u64
from zope.interface import implementer

import threading


class _Running(threading.local):
    """The first operation in the queue that a thread is processing, and the cache for the objects in it."""

    first: Any = None
    missing: MissingAttributeCache | None = None


_running = _Running()


def missing_attributes() -> MissingAttributeCache | None:
    """Return the cache of attributes that objects in the queue lack, None if this thread is not processing its queue.

    The cache is valid because nothing else changes meanwhile.  The queue removes its operations at the end.
    """
    operations = getQueue().queue
    return _running.missing if operations and operations[0] is _running.first else None


@implementer(IIndexQueueProcessor)
class QueueLoader(threading.local):
    """A queue processor that follows the operations in its thread's queue, and indexes nothing."""

    #: objects in the queue, and number of processed operations
    _objects: list[Any]
    _done: int

    def __init__(self) -> None:
        self._forget()

    def begin(self) -> None:
        """Read the queue of this thread, which is about to be processed."""
        self._forget()
        objects = [operation[1] for operation in getQueue().getState()]
        if len(objects) > 1 and IPGCatalogTool.providedBy(getToolByName(objects[0], "portal_catalog", None)):
            self._objects = objects
            _running.first, _running.missing = getQueue().queue[0], MissingAttributeCache()

    def index(self, obj: Any, attributes: Any = None) -> None:
        self._proceed()

    def reindex(self, obj: Any, attributes: Any = None, update_metadata: int = 1) -> None:
        self._proceed()

    def unindex(self, obj: Any) -> None:
        self._proceed()

    def commit(self) -> None:
        self._forget()

    def abort(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._objects, self._done = [], 0
        _running.first = _running.missing = None

    def _proceed(self) -> None:
        size = batch_size()
        if size and self._done < len(self._objects) and self._done % size == 0:
            load_histories(self._objects[self._done : self._done + size])
        self._done += 1


def load_histories(objects: list[Any]) -> None:
    """Load the workflow histories of *objects* in one batch, except for objects not stored or in another connection."""
    bases = [base for base in map(aq_base, objects) if getattr(base, "_p_jar", None) is not None]
    if not bases:
        return
    jar = bases[0]._p_jar
    bases = [base for base in bases if base._p_jar is jar]
    prefetch(jar, [u64(base._p_oid) for base in bases])
    histories: list[Any] = [getattr(base, "workflow_history", None) for base in bases]
    prefetch(jar, [u64(history._p_oid) for history in histories if getattr(history, "_p_jar", None) is jar])
