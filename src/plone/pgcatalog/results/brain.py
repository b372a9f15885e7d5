"""Catalog brains: equal to ZCatalog's, but reading their metadata only when touched."""

from Acquisition import aq_get
from Acquisition import Implicit
from functools import cache
from functools import lru_cache
from Products.ZCatalog.CatalogBrains import AbstractCatalogBrain
from Products.ZCatalog.interfaces import ICatalogBrain
from typing import Any
from zope.globalrequest import getRequest
from zope.interface import implementer


_zcatalog_brain = AbstractCatalogBrain.__dict__

#: Record fields besides the metadata columns, in ZCatalog's order.
RECORD_FIELDS = ("data_record_id_", "data_record_score_", "data_record_normalized_score_")


@implementer(ICatalogBrain)
class PGCatalogBrain(Implicit):
    """One row of a result.

    Metadata columns are attributes and items (by name or position); they are decoded on first access, from the row
    that *loader* (``results.rows.RowLoader``) reads together with its neighbours, or from *row* (``results.rows.Row``).
    """

    __allow_access_to_unprotected_subobjects__ = True

    def __init__(
        self, loader: Any, schema: dict[str, int], rid: int, score: Any = 1, normalized: Any = 1, row: Any = None
    ):
        attributes = self.__dict__
        if row is not None:
            # What other brains of the row have decoded already.
            attributes.update(row.values)
            attributes["_row"] = row
        attributes["_loader"] = loader
        attributes["__record_schema__"] = schema
        attributes["data_record_id_"] = rid
        attributes["data_record_score_"] = score
        attributes["data_record_normalized_score_"] = normalized

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__
        schema = attributes.get("__record_schema__")
        if schema is None or name not in schema:
            raise AttributeError(name)
        row = attributes.get("_row")
        if row is None:
            row = attributes["_row"] = attributes["_loader"].row(attributes["data_record_id_"])
            # What other brains of the row have decoded already.
            attributes.update({**row.values, **attributes})
        value = attributes[name] = row.value(name)
        return value

    def getPath(self) -> str:
        """Get the physical path for this record"""
        path: str = self._loader.path(self.data_record_id_)
        return path

    def getURL(self, relative: Any = 0) -> str:
        """Generate a URL for this record"""
        loader = self._loader
        request = loader.request
        if request is None:
            request = aq_get(self, "REQUEST", None)
            request = loader.request = getRequest() if request is None else request
        row = self.__dict__.get("_row")
        path = loader.path(self.data_record_id_) if row is None or row.path is None else row.path
        url: str = loader.urls.url(request, path, relative)
        return url

    def getObject(self, REQUEST: Any = None) -> Any:
        """Return the object for this record; None, or an error, as ZCatalog's brains"""
        self._loader.prefetch(self.data_record_id_)
        return _zcatalog_brain["getObject"](self, REQUEST)

    def _unrestrictedGetObject(self) -> Any:
        """Return the object for this record, without security checks"""
        self._loader.prefetch(self.data_record_id_)
        return _zcatalog_brain["_unrestrictedGetObject"](self)

    def getRID(self) -> int:
        """Return the record ID for this object."""
        rid: int = self.data_record_id_
        return rid

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


@lru_cache
def record_schema(names: tuple[str, ...]) -> dict[str, int]:
    """Return ``__record_schema__`` for the metadata columns *names*."""
    return {name: i for i, name in enumerate((*names, *RECORD_FIELDS))}
