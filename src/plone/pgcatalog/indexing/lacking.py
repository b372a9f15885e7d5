"""Attributes that many objects of a container lack: that none is acquired instead is found out once for all of them.

An indexable object asks its object for each attribute, with all that contains it up to the root of Zope, and takes what
is acquired only if it is a Script (Python).  Many indexes have no value for most objects.
"""

from Acquisition import aq_base
from Acquisition import aq_parent
from plone.indexer.interfaces import IIndexer
from plone.indexer.wrapper import IndexableObjectWrapper
from typing import Any
from zope.component import getSiteManager
from zope.interface import providedBy


SCRIPT = "Script (Python)"


class Lacking:
    """Remembers what objects have lacked, and their containers; for one transaction."""

    def __init__(self) -> None:
        #: names that an object has lacked
        self._names: set[str] = set()
        #: containers by their id in memory, and kept so that it stays theirs: name -> whether they give a script
        self._containers: dict[int, tuple[Any, dict[str, bool]]] = {}

    def add(self, name: str) -> None:
        """Note that an object has lacked the attribute *name*."""
        self._names.add(name)

    def is_lacked(self, indexable: Any, name: str) -> bool:
        """Return True if *indexable* is sure to raise AttributeError for *name*; False says nothing.

        Asks what ``IndexableObjectWrapper.__getattr__`` does, but for the containers.
        """
        if name not in self._names or type(indexable) is not IndexableObjectWrapper:
            return False
        parts = vars(indexable)
        obj = indexable._getWrappedObject()
        required = providedBy(obj), providedBy(parts["_IndexableObjectWrapper__catalog"])
        if name in parts["_IndexableObjectWrapper__vars"]:
            return False
        if getSiteManager().adapters.lookup(required, IIndexer, name) is not None:
            return False
        return not hasattr(aq_base(obj), name) and not self._gives_script(aq_parent(obj), name)

    def _gives_script(self, container: Any, name: str) -> bool:
        """Return whether what is in *container* acquires a script *name* from it."""
        if container is None:
            return False
        base = aq_base(container)
        _, known = self._containers.setdefault(id(base), (base, {}))
        found = known.get(name)
        if found is None:
            found = known[name] = getattr(getattr(container, name, None), "meta_type", None) == SCRIPT
        return found
