"""Catalog brains: equal to ZCatalog's, but metadata is read on first access; and their URLs.

The URL of a folder is computed once for all brains in it, and for all requests to the same server.
"""

from Acquisition import aq_get
from collections.abc import Hashable
from ExtensionClass import Base
from functools import lru_cache
from plone.pgcatalog.patches import dispatch
from plone.pgcatalog.patches import is_patched
from Products.ZCatalog.CatalogBrains import AbstractCatalogBrain
from typing import Any
from urllib.parse import urlsplit
from zope.globalrequest import getRequest
from ZPublisher.BaseRequest import quote
from ZPublisher.HTTPRequest import HTTPRequest
from ZPublisher.HTTPRequest import WSGIRequest

import re


#: Record fields besides the metadata columns, in ZCatalog's order.
RECORD_FIELDS = ("data_record_id_", "data_record_score_", "data_record_normalized_score_")
#: Names that URL quoting leaves unchanged.
_PLAIN = re.compile("[A-Za-z0-9_.-]+")
#: Classes of requests whose URLs depend only on the values that ``URLs.url`` compares: of a server, and of scripts.
_REQUESTS = (WSGIRequest, HTTPRequest)
#: The virtual root of a request without virtual hosting.
_NO_ROOT = ("",)
#: Upper limits of the cache: folders of all contexts together, and contexts (each requested host name is a context).
MOST_FOLDERS = 10_000
CONTEXTS = 100

#: Context -> folder -> URL.  A context is (server, script, virtual root, whether URLs are relative to the server).
_contexts: dict[Hashable, dict[str, str]] = {}


def contexts() -> int:
    """Return the number of contexts in the cache of URLs."""
    return len(_contexts)


class PGCatalogBrain(AbstractCatalogBrain):
    """One row of a result.

    Metadata columns are attributes and items (by name or position), decoded on first access: from *row*
    (``results.rows.Row``), else from the row that *loader* (``results.loader.RowLoader``) loads with its neighbours.
    """

    # Not Record's, which expects the values of all columns.
    __new__ = Base.__new__

    def __init__(self, loader: Any, rid: int, score: Any = 1, normalized: Any = 1, row: Any = None):
        attributes = self.__dict__
        if row is not None:
            # Values that other brains of the row have decoded.
            attributes.update(row.values)
            attributes["_row"] = row
        attributes["_loader"] = loader
        attributes["data_record_id_"] = rid
        attributes["data_record_score_"] = score
        attributes["data_record_normalized_score_"] = normalized

    def __getattr__(self, name: str) -> Any:
        if name not in self.__record_schema__:
            raise AttributeError(name)
        return _read(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__record_schema__:
            self.__dict__[name] = value
        elif name in self.__slots__:
            object.__setattr__(self, name, value)
        else:
            raise AttributeError(name)

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
        if _METHODS["getPath"] is not _STOCK_PATH:
            path = self.getPath()
        else:
            path = loader.path(self.data_record_id_) if row is None or row.path is None else row.path
        url: str = loader.urls.url(request, path, relative)
        return url

    def getObject(self, REQUEST: Any = None) -> Any:
        """Return the object for this record; None or an error in the same cases as ZCatalog's brains"""
        self._loader.prefetch(self.data_record_id_)
        return super().getObject(REQUEST)

    def _unrestrictedGetObject(self) -> Any:
        """Return the object for this record, without security checks"""
        self._loader.prefetch(self.data_record_id_)
        return super()._unrestrictedGetObject()

    # Methods of ``Record`` must work on these brains, too: a patch may hold a reference to one.

    @property
    def __schema__(self) -> dict[str, int]:
        """Column name -> position, for the methods of ``Record``."""
        schema: dict[str, int] = self.__record_schema__
        return schema

    @property
    def __data__(self) -> tuple[Any, ...]:
        """The values of all columns, for the methods of ``Record``."""
        return tuple(_value(self, name) for name in self.__record_schema__)

    @__data__.setter
    def __data__(self, values: tuple[Any, ...]) -> None:
        self.__setstate__(values)

    def __setstate__(self, data: tuple[Any, ...]) -> None:
        """Set the values of all columns, as for a copy."""
        self.__dict__.update(zip(self.__record_schema__, data, strict=True))

    def __getitem__(self, key: Any) -> Any:
        return _value(self, _column(self, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.__dict__[_column(self, key)] = value


def _column(brain: PGCatalogBrain, key: Any) -> str:
    """Return the name of the column *key*, a name or a position; raises KeyError, IndexError."""
    name: str = list(brain.__record_schema__)[key] if isinstance(key, int) else key
    if name not in brain.__record_schema__:
        raise KeyError(key)
    return name


def _value(brain: PGCatalogBrain, name: str) -> Any:
    """Return the value of the column *name*."""
    attributes = brain.__dict__
    return attributes[name] if name in attributes else _read(brain, name)


def _read(brain: PGCatalogBrain, name: str) -> Any:
    """Read the value of the column *name* from the row of *brain*, store it as an attribute, and return it."""
    attributes = brain.__dict__
    try:
        row = attributes.get("_row")
        if row is None:
            row = attributes["_row"] = attributes["_loader"].row(attributes["data_record_id_"])
            # Values that other brains of the row have decoded.
            attributes.update({**row.values, **attributes})
        value = attributes[name] = row.value(name)
    except AttributeError as error:
        # On AttributeError, Acquisition would return the site's attribute of this name.
        raise RuntimeError(f"metadata {name!r} cannot be read") from error
    return value


dispatch(PGCatalogBrain, AbstractCatalogBrain, ("getPath", "getURL"))
#: Methods with a faster version here: name -> the inherited method, None if it was patched before this import.
_STOCK = {
    name: None if is_patched(AbstractCatalogBrain, name) else getattr(AbstractCatalogBrain, name)
    for name in ("getPath", "getURL", "__getattr__", "__getitem__", "__setattr__", "__setitem__")
}
_METHODS = vars(AbstractCatalogBrain)
_STOCK_PATH = _STOCK["getPath"]


def brain_class(mixin: type, names: tuple[str, ...]) -> type[PGCatalogBrain]:
    """Return the class of brains with the columns *names* and the second base class *mixin*."""
    patches = [(n, now) for n, stock in _STOCK.items() if (now := getattr(AbstractCatalogBrain, n)) is not stock]
    return _brain_class(mixin, names, tuple(patches))


@lru_cache
def _brain_class(mixin: type, names: tuple[str, ...], patches: tuple[tuple[str, Any], ...]) -> type[PGCatalogBrain]:
    """Build the class for ``brain_class``, with *patches*, (name, function), of inherited methods in place of ours."""
    schema = {name: i for i, name in enumerate((*names, *RECORD_FIELDS))}
    metaclass: Any = type(PGCatalogBrain)
    # The name of ZCatalog's class, by which add-ons recognize a brain.
    cls: type[PGCatalogBrain] = metaclass(
        "mybrains", (PGCatalogBrain, mixin), {**dict(patches), "__record_schema__": schema}
    )
    return cls


class URLs:
    """Computes the same URLs as ``request.physicalPathToURL``, and caches the URLs of folders."""

    def __init__(self) -> None:
        #: the last request, None if it is of another class than _REQUESTS, and the values that its URLs depend on
        self._request: Any = None
        self._server: Any = None
        self._script: list[str] = []
        self._root: Any = _NO_ROOT
        self._absolute: dict[str, str] = {}
        self._relative: dict[str, str] = {}

    def url(self, request: Any, path: str, relative: Any = 0) -> str:
        """Return ``request.physicalPathToURL(path, relative)``."""
        # This runs for each brain of a page, so it avoids calls.
        if (
            request is not self._request
            or request.other.get("SERVER_URL") != self._server
            or request._script != self._script
            or request.other.get("VirtualRootPhysicalPath", _NO_ROOT) != self._root
        ):
            self._begin(request)
        folder, slash, name = path.rpartition("/")
        base = (self._relative if relative else self._absolute).get(folder) if slash else None
        if base is None:
            return self._of_new_folder(request, path, relative)
        return f"{base}/{name}" if _PLAIN.fullmatch(name) else f"{base}/{quote(name)}"

    def _begin(self, request: Any) -> None:
        """Use the cached URLs of the contexts of *request*; an unknown class of requests has none."""
        self._request = None
        self._absolute, self._relative = {}, {}
        if type(request) not in _REQUESTS:
            return
        self._request = request
        self._server = request.other.get("SERVER_URL")
        self._script = list(request._script)
        self._root = request.other.get("VirtualRootPhysicalPath", _NO_ROOT)
        if len(_contexts) > CONTEXTS or sum(map(len, list(_contexts.values()))) > MOST_FOLDERS:
            _contexts.clear()
        context = (self._server, tuple(self._script), tuple(self._root))
        self._absolute, self._relative = (_contexts.setdefault((*context, relative), {}) for relative in (False, True))

    def _of_new_folder(self, request: Any, path: str, relative: Any) -> str:
        """Return the URL of *path*; cache the URL of its folder, if the folder lies in the virtual root."""
        folder, slash, name = path.rpartition("/")
        if self._request is None or not slash or folder.count("/") + 1 < len(self._root):
            url: str = request.physicalPathToURL(path, relative)
            return url
        base = self.url(request, folder, relative)
        (self._relative if relative else self._absolute)[folder] = base
        return f"{base}/{quote(name)}"


class PublicURLs(URLs):
    """Computes URLs below *url*, the public URL of the site at the path *root*."""

    def __init__(self, root: str, url: str) -> None:
        super().__init__()
        self._site, self._url = root, url.rstrip("/")

    def url(self, request: Any, path: str, relative: Any = 0) -> str:
        """Return the URL of *path*; *relative*: without the server."""
        if not f"{path}/".startswith(f"{self._site}/"):
            return super().url(request, path, relative)
        url = f"{self._url}{quote(path[len(self._site) :])}"
        return urlsplit(url).path if relative else url
