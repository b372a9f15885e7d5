"""Each attribute of an object that is being indexed is computed once."""

from Products.PluginIndexes.util import safe_callable
from typing import Any


class CachedAttributes:
    """Stands before an indexable object: each attribute is fetched, and called, once.

    An index and a metadata column of the same name, or two indexes over one attribute, ask for the same value.
    What cannot be called is handed on as it is: whether that is an error differs between the index types.
    """

    def __init__(self, obj: Any) -> None:
        self.__dict__["_once_object"] = obj

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__dict__["_once_object"], name)
        if safe_callable(value) and name not in ("getPhysicalPath", "aq_parent"):
            try:
                value = value()
            except (AttributeError, TypeError):
                return value
        self.__dict__[name] = value
        return value


def original(obj: Any) -> Any:
    """Return the object behind a CachedAttributes, methods being methods; any other object as it is."""
    return obj.__dict__["_once_object"] if isinstance(obj, CachedAttributes) else obj
