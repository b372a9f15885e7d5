"""Loads together what Plone's indexing queue is about to ask for, and remembers what its objects lack.

Plone looks at the workflow history of each object that it catalogues.  It is an object of its own, so a folder that is
shared would cost a message to the server for each object in it.
"""

from Acquisition import aq_base
from plone.pgcatalog.database.prefetch import batch_size
from plone.pgcatalog.database.prefetch import prefetch
from plone.pgcatalog.indexing.extract import Lacking
from plone.pgcatalog.interfaces import IPGCatalogTool
from Products.CMFCore.indexing import getQueue
from Products.CMFCore.interfaces import IIndexQueueProcessor
from Products.CMFCore.utils import getToolByName
from typing import Any
from ZODB.utils import u64
from zope.interface import implementer

import threading


class _Running(threading.local):
    """The first operation of those that a thread's queue is processing, and what is known of their objects."""

    first: Any = None
    lacking: Lacking | None = None


_running = _Running()


def known_to_lack() -> Lacking | None:
    """Return the knowledge of attributes that the objects in the queue lack, None if this thread processes no queue.

    Nothing else changes meanwhile.  The queue drops its operations when it is done.
    """
    operations = getQueue().queue
    return _running.lacking if operations and operations[0] is _running.first else None


@implementer(IIndexQueueProcessor)
class QueueLoader(threading.local):
    """A processor that hears of each operation in the queue of its thread, and indexes nothing."""

    #: what is in the queue, and how many operations were processed
    _objects: list[Any]
    _done: int

    def __init__(self) -> None:
        self._forget()

    def begin(self) -> None:
        """Look at the queue of this thread, which will be processed."""
        self._forget()
        objects = [operation[1] for operation in getQueue().getState()]
        if len(objects) > 1 and IPGCatalogTool.providedBy(getToolByName(objects[0], "portal_catalog", None)):
            self._objects = objects
            _running.first, _running.lacking = getQueue().queue[0], Lacking()

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
        _running.first = _running.lacking = None

    def _proceed(self) -> None:
        size = batch_size()
        if size and self._done < len(self._objects) and self._done % size == 0:
            load_histories(self._objects[self._done : self._done + size])
        self._done += 1


def load_histories(objects: list[Any]) -> None:
    """Have the storage load the workflow histories of *objects*, those that are stored and in one database, at once."""
    bases = [base for base in map(aq_base, objects) if getattr(base, "_p_jar", None) is not None]
    if not bases:
        return
    jar = bases[0]._p_jar
    bases = [base for base in bases if base._p_jar is jar]
    prefetch(jar, [u64(base._p_oid) for base in bases])
    histories: list[Any] = [getattr(base, "workflow_history", None) for base in bases]
    prefetch(jar, [u64(history._p_oid) for history in histories if getattr(history, "_p_jar", None) is jar])
