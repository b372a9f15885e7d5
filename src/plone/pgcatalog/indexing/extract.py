"""Extracts column and idx values from objects, and caches which attributes an object lacks."""

from Acquisition import aq_base
from Acquisition import aq_parent
from collections.abc import Callable
from collections.abc import Iterable
from plone.indexer.interfaces import IIndexer
from plone.indexer.wrapper import IndexableObjectWrapper
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexing.codec import CodecError
from plone.pgcatalog.indexing.codec import encode
from Products.PluginIndexes.util import safe_callable
from typing import Any
from zope.component import getSiteManager
from zope.interface import providedBy

import logging
import Missing


logger = logging.getLogger(__name__)

_missing = object()


class Extraction:
    """Columns and idx values of one object.

    *path* identifies the object in the log; the attributes are read from *obj*.
    """

    def __init__(self, path: str, obj: Any) -> None:
        self.path = path
        self.object = obj
        self.columns: dict[str, Any] = {}
        self.idx: dict[str, Any] = {}
        self.vanished: set[str] = set()
        self._reported: set[tuple[str, str]] = set()

    def add_indexes(self, translators: Iterable[IndexTranslator], metadata: Iterable[str]) -> None:
        """Extract the columns and idx values of indexes; idx gets no value of an index in *metadata*, names of columns."""
        metadata = set(metadata)
        for translator in translators:
            values = translator.extract(self.object, self._reporter(translator.id))
            columns = translator.columns()
            for i, column in enumerate(columns):
                self.columns[column.name] = None if values is None else values[i]
            if translator.in_idx and columns and translator.id not in metadata:
                self._store(translator.id, _missing if values is None else translator.entry(values))

    def add_metadata(self, names: Iterable[str]) -> None:
        """Extract the metadata columns *names*; an attribute that the object lacks remains Missing.Value."""
        for name in names:
            value = getattr(self.object, name, Missing.MV)
            if value is not Missing.MV and safe_callable(value):
                value = value()
            self._store(name, _missing if value is Missing.MV else value)

    def _store(self, name: str, value: Any) -> None:
        if value is _missing:
            self.vanished.add(name)
            return
        try:
            self.idx[name] = encode(value)
        except CodecError as error:
            self._reporter(name)(f"ignored: {error}")
            self.vanished.add(name)

    def _reporter(self, name: str) -> Callable[[str], None]:
        """Return a function that logs each different message about *name* once."""

        def report(message: str) -> None:
            if (name, message) not in self._reported:
                self._reported.add((name, message))
                logger.warning("%s: %s: %s", self.path, name, message)

        return report


def metadata_of(path: str, source: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the idx values of the metadata columns *names* of *source*."""
    extraction = Extraction(path, source)
    extraction.add_metadata(names)
    return extraction.idx


SCRIPT = "Script (Python)"


class MissingAttributeCache:
    """Cache, for one transaction, of attributes that cannot be acquired from containers.

    An indexable wrapper looks up each attribute on its object and on all containers up to the root of Zope, and uses an
    acquired value only if it is a Script (Python).  Many indexes have no value for most objects.
    """

    def __init__(self) -> None:
        #: names of attributes that an object has lacked
        self._names: set[str] = set()
        #: id() of a container -> (the container, {name: whether a script of that name is acquired}); the reference
        #: prevents reuse of the id
        self._containers: dict[int, tuple[Any, dict[str, bool]]] = {}

    def add(self, name: str) -> None:
        """Record that an object lacks the attribute *name*."""
        self._names.add(name)

    def is_missing(self, indexable: Any, name: str) -> bool:
        """Return True if *indexable* is certain to raise AttributeError for *name*; False means that it is unknown.

        Makes the checks of ``IndexableObjectWrapper.__getattr__``, with cached results for containers.
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
        return not hasattr(aq_base(obj), name) and not self._acquires_script(aq_parent(obj), name)

    def _acquires_script(self, container: Any, name: str) -> bool:
        """Return whether an object in *container* acquires a Script (Python) called *name*."""
        if container is None:
            return False
        base = aq_base(container)
        _, scripts = self._containers.setdefault(id(base), (base, {}))
        is_script = scripts.get(name)
        if is_script is None:
            is_script = scripts[name] = getattr(getattr(container, name, None), "meta_type", None) == SCRIPT
        return is_script
