"""What the catalog keeps of an object, and which attributes it need not be asked for."""

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

    *path* names the object in the log; *obj* gives its attributes.
    """

    def __init__(self, path: str, obj: Any) -> None:
        self.path = path
        self.object = obj
        self.columns: dict[str, Any] = {}
        self.idx: dict[str, Any] = {}
        self.vanished: set[str] = set()
        self._reported: set[tuple[str, str]] = set()

    def add_indexes(self, translators: Iterable[IndexTranslator], metadata: Iterable[str]) -> None:
        """Take the index values; those that are not metadata too go into idx under the index's name."""
        metadata = set(metadata)
        for translator in translators:
            values = translator.extract(self.object, self._reporter(translator.id))
            columns = translator.columns()
            for i, column in enumerate(columns):
                self.columns[column.name] = None if values is None else values[i]
            if translator.in_idx and columns and translator.id not in metadata:
                self._keep(translator.id, _missing if values is None else translator.entry(values))

    def add_metadata(self, names: Iterable[str]) -> None:
        """Take the metadata columns *names*; one the object does not have stays Missing.Value."""
        for name in names:
            value = getattr(self.object, name, Missing.MV)
            if value is not Missing.MV and safe_callable(value):
                value = value()
            self._keep(name, _missing if value is Missing.MV else value)

    def _keep(self, name: str, value: Any) -> None:
        if value is _missing:
            self.vanished.add(name)
            return
        try:
            self.idx[name] = encode(value)
        except CodecError as error:
            self._reporter(name)(f"left out: {error}")
            self.vanished.add(name)

    def _reporter(self, name: str) -> Callable[[str], None]:
        """Return what logs a message about *name*, and the same one only once."""

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


class Lacking:
    """Remembers per container, for one transaction, that an attribute cannot be acquired.

    An indexable object asks its object for each attribute, with all that contains it up to the root of Zope, and takes what
    is acquired only if it is a Script (Python).  Many indexes have no value for most objects.
    """

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
        _, gives = self._containers.setdefault(id(base), (base, {}))
        is_script = gives.get(name)
        if is_script is None:
            is_script = gives[name] = getattr(getattr(container, name, None), "meta_type", None) == SCRIPT
        return is_script
