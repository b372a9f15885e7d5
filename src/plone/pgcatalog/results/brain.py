"""Catalog brains: equal to ZCatalog's, but reading their metadata only when touched."""

from Acquisition import Implicit
from functools import cache
from plone.pgcatalog.indexing.codec import decode
from Products.ZCatalog.CatalogBrains import AbstractCatalogBrain
from Products.ZCatalog.interfaces import ICatalogBrain
from typing import Any
from zope.interface import implementer

import Missing


_zcatalog_brain = AbstractCatalogBrain.__dict__

#: Record fields besides the metadata columns, in ZCatalog's order.
RECORD_FIELDS = ("data_record_id_", "data_record_score_", "data_record_normalized_score_")


@implementer(ICatalogBrain)
class PGCatalogBrain(Implicit):
    """One row of a result.

    Metadata columns are attributes and items (by name or position); they are decoded on first access, from
    the idx that the result loads for a batch of brains at once.
    """

    __allow_access_to_unprotected_subobjects__ = True

    getURL = _zcatalog_brain["getURL"]
    getObject = _zcatalog_brain["getObject"]
    _unrestrictedGetObject = _zcatalog_brain["_unrestrictedGetObject"]

    def __init__(self, batch: Any, schema: dict[str, int], rid: int, path: str, score: Any = 1, normalized: Any = 1):
        self._batch = batch
        self.__dict__["__record_schema__"] = schema
        self._path = path
        self.data_record_id_ = rid
        self.data_record_score_ = score
        self.data_record_normalized_score_ = normalized

    def __getattr__(self, name: str) -> Any:
        schema = self.__dict__.get("__record_schema__")
        if schema is None or name not in schema:
            raise AttributeError(name)
        idx = self._batch.idx_of(self.data_record_id_)
        value = decode(idx[name]) if name in idx else Missing.Value
        self.__dict__[name] = value
        return value

    def getPath(self) -> str:
        """Get the physical path for this record"""
        return self._path

    def getRID(self) -> int:
        """Return the record ID for this object."""
        return self.data_record_id_

    def has_key(self, key: str) -> bool:
        return key in self.__record_schema__

    def __contains__(self, name: str) -> bool:
        return name in self.__record_schema__

    def __len__(self) -> int:
        return len(self.__record_schema__)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            names = list(self.__record_schema__)
            return getattr(self, names[key])
        if key not in self.__record_schema__:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, int):
            key = list(self.__record_schema__)[key]
        setattr(self, key, value)

    def __iter__(self) -> Any:
        return (getattr(self, name) for name in list(self.__record_schema__))


@cache
def brain_class(mixin: type) -> type[PGCatalogBrain]:
    """Return the class of brains that also are *mixin*, whose methods count less than a brain's own."""
    if not [name for name in vars(mixin) if not name.startswith("__")] and mixin.__bases__ == (object,):
        return PGCatalogBrain
    metaclass: Any = type(PGCatalogBrain)
    cls: type[PGCatalogBrain] = metaclass(PGCatalogBrain.__name__, (PGCatalogBrain, mixin), {})
    return cls


def record_schema(names: tuple[str, ...]) -> dict[str, int]:
    """Return ``__record_schema__`` for the metadata columns *names*."""
    return {name: i for i, name in enumerate((*names, *RECORD_FIELDS))}
