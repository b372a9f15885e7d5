"""A wrapper that computes each attribute of an object once while the object is indexed."""

from Products.PluginIndexes.util import safe_callable
from typing import Any
from typing import Protocol


class MissingAttributes(Protocol):
    """A cache of the attributes that objects lack."""

    def add(self, name: str) -> None:
        """Record that an object lacks the attribute *name*."""

    def is_missing(self, indexable: Any, name: str) -> bool:
        """Return True if *indexable* is certain to raise AttributeError for *name*; False means that it is unknown."""


class CachedAttributes:
    """Wraps an indexable object: each attribute is fetched and called, or found to be missing, once.

    An index and a metadata column of the same name, or two indexes of one attribute, read the same value.  A value that
    cannot be called is returned as it is: index types differ in whether that is an error.  *missing* saves looking up
    attributes that are certain to be missing.
    """

    def __init__(self, obj: Any, missing: MissingAttributes | None = None) -> None:
        self.__dict__.update(_once_object=obj, _once_absent=set(), _once_missing=missing)

    def __getattr__(self, name: str) -> Any:
        parts = self.__dict__
        if name in parts["_once_absent"]:
            raise AttributeError(name)
        obj, missing = parts["_once_object"], parts["_once_missing"]
        try:
            if missing is not None and missing.is_missing(obj, name):
                raise AttributeError(name)
            value = getattr(obj, name)
        except AttributeError:
            parts["_once_absent"].add(name)
            if missing is not None:
                missing.add(name)
            raise
        if safe_callable(value) and name not in ("getPhysicalPath", "aq_parent"):
            try:
                value = value()
            except (AttributeError, TypeError):
                return value
        parts[name] = value
        return value


def original(obj: Any) -> Any:
    """Return the object behind a CachedAttributes, with methods as methods; any other object as it is."""
    return obj.__dict__["_once_object"] if isinstance(obj, CachedAttributes) else obj
