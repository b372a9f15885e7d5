"""Each attribute of an object that is being indexed is computed once."""

from Products.PluginIndexes.util import safe_callable
from typing import Any
from typing import Protocol


class KnownToLack(Protocol):
    """What is known of objects that were indexed before."""

    def add(self, name: str) -> None:
        """Note that an object has lacked the attribute *name*."""

    def is_lacked(self, indexable: Any, name: str) -> bool:
        """Return True if *indexable* is sure to raise AttributeError for *name*; False says nothing."""


class CachedAttributes:
    """Stands before an indexable object: each attribute is fetched, called, and found to be missing once.

    An index and a metadata column of the same name, or two indexes over one attribute, ask for the same value.
    What cannot be called is handed on as it is: whether that is an error differs between the index types.
    *lacking* may know what need not be looked for at all.
    """

    def __init__(self, obj: Any, lacking: KnownToLack | None = None) -> None:
        self.__dict__.update(_once_object=obj, _once_lacked=set(), _once_lacking=lacking)

    def __getattr__(self, name: str) -> Any:
        parts = self.__dict__
        if name in parts["_once_lacked"]:
            raise AttributeError(name)
        obj, lacking = parts["_once_object"], parts["_once_lacking"]
        try:
            if lacking is not None and lacking.is_lacked(obj, name):
                raise AttributeError(name)
            value = getattr(obj, name)
        except AttributeError:
            parts["_once_lacked"].add(name)
            if lacking is not None:
                lacking.add(name)
            raise
        if safe_callable(value) and name not in ("getPhysicalPath", "aq_parent"):
            try:
                value = value()
            except (AttributeError, TypeError):
                return value
        parts[name] = value
        return value


def original(obj: Any) -> Any:
    """Return the object behind a CachedAttributes, methods being methods; any other object as it is."""
    return obj.__dict__["_once_object"] if isinstance(obj, CachedAttributes) else obj
