"""Catalog brains: equal to ZCatalog's, but reading their metadata only when touched."""

from Acquisition import aq_get
from ExtensionClass import Base
from functools import lru_cache
from Products.ZCatalog.CatalogBrains import AbstractCatalogBrain
from typing import Any
from zope.globalrequest import getRequest


#: Record fields besides the metadata columns, in ZCatalog's order.
RECORD_FIELDS = ("data_record_id_", "data_record_score_", "data_record_normalized_score_")


class PGCatalogBrain(AbstractCatalogBrain):
    """One row of a result.

    Metadata columns are attributes and items (by name or position); they are decoded on first access, from the row
    that *loader* (``results.rows.RowLoader``) reads together with its neighbours, or from *row* (``results.rows.Row``).
    """

    __allow_access_to_unprotected_subobjects__ = True

    # Not Record's, which takes the values of all columns.
    __new__ = Base.__new__

    def __init__(self, loader: Any, rid: int, score: Any = 1, normalized: Any = 1, row: Any = None):
        attributes = self.__dict__
        if row is not None:
            # What other brains of the row have decoded already.
            attributes.update(row.values)
            attributes["_row"] = row
        attributes["_loader"] = loader
        attributes["data_record_id_"] = rid
        attributes["data_record_score_"] = score
        attributes["data_record_normalized_score_"] = normalized

    def __getattr__(self, name: str) -> Any:
        if name not in self.__record_schema__:
            raise AttributeError(name)
        attributes = self.__dict__
        try:
            row = attributes.get("_row")
            if row is None:
                row = attributes["_row"] = attributes["_loader"].row(attributes["data_record_id_"])
                # What other brains of the row have decoded already.
                attributes.update({**row.values, **attributes})
            value = attributes[name] = row.value(name)
        except AttributeError as error:
            # Acquisition would take the site's attribute of this name.
            raise RuntimeError(f"metadata {name!r} cannot be read") from error
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__record_schema__:
            raise AttributeError(name)
        self.__dict__[name] = value

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
        return super().getObject(REQUEST)

    def _unrestrictedGetObject(self) -> Any:
        """Return the object for this record, without security checks"""
        self._loader.prefetch(self.data_record_id_)
        return super()._unrestrictedGetObject()

    @property
    def __schema__(self) -> dict[str, int]:
        """Column name -> position, for the methods of ``Record``."""
        schema: dict[str, int] = self.__record_schema__
        return schema

    @property
    def __data__(self) -> tuple[Any, ...]:
        """The values of all columns, for the methods of ``Record``."""
        return tuple(self)

    def __setstate__(self, data: tuple[Any, ...]) -> None:
        """Take the values of all columns: what a copy gets."""
        self.__dict__.update(zip(self.__record_schema__, data, strict=True))

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            key = list(self.__record_schema__)[key]
        elif key not in self.__record_schema__:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, int):
            key = list(self.__record_schema__)[key]
        elif key not in self.__record_schema__:
            raise KeyError(key)
        self.__dict__[key] = value

    def __iter__(self) -> Any:
        return (getattr(self, name) for name in self.__record_schema__)


@lru_cache
def brain_class(mixin: type, names: tuple[str, ...]) -> type[PGCatalogBrain]:
    """Return the class of brains with the columns *names* that also are *mixin*, whose methods count less than a brain's own."""
    schema = {name: i for i, name in enumerate((*names, *RECORD_FIELDS))}
    metaclass: Any = type(PGCatalogBrain)
    # Under the name of ZCatalog's, by which others tell a brain.
    cls: type[PGCatalogBrain] = metaclass("mybrains", (PGCatalogBrain, mixin), {"__record_schema__": schema})
    return cls
