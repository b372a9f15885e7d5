"""The mappings of a ZCatalog's Catalog (``indexes``, ``paths``, ``uids``, ``data``), read from PostgreSQL."""

from AccessControl.class_init import InitializeClass
from Acquisition import aq_base
from Acquisition import aq_inner
from Acquisition import aq_parent
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import MutableMapping
from plone.pgcatalog.compat.proxy_types import index_proxy
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.indexing.objects import is_rid
from plone.pgcatalog.results.rows import RowLoader
from Products.ZCatalog.ZCatalogIndexes import ZCatalogIndexes
from typing import Any
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from plone.pgcatalog.compat.catalog import CatalogFacade


class IndexMapping(MutableMapping[str, Any]):
    """``_catalog.indexes``: index name to index object; setting adds, or replaces, an index."""

    def __init__(self, catalog: "CatalogFacade") -> None:
        self._catalog = catalog

    def __getitem__(self, name: str) -> Any:
        return index_proxy(self._catalog, aq_base(self._catalog.tool)._indexes[name])

    def __setitem__(self, name: str, index: Any) -> None:
        if name in self:
            del self[name]
        self._catalog.addIndex(name, index)

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self._catalog.delIndex(name)

    def __contains__(self, name: object) -> bool:
        return name in aq_base(self._catalog.tool)._indexes

    def keys(self) -> Any:
        return aq_base(self._catalog.tool)._indexes.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(aq_base(self._catalog.tool)._indexes)

    def __len__(self) -> int:
        return len(aq_base(self._catalog.tool)._indexes)


class Indexes(ZCatalogIndexes):
    """``portal_catalog.Indexes``: the indexes as a folder."""

    def _setOb(self, id: str, object: Any) -> None:
        aq_parent(aq_inner(self))._catalog.indexes[id] = object

    def _delOb(self, id: str) -> None:
        del aq_parent(aq_inner(self))._catalog.indexes[id]


InitializeClass(Indexes)


class RowMapping(Mapping[Any, Any]):
    """A read-only mapping over the catalog's rows: subclasses say which expression is key and which value."""

    key = "rid"
    value = "path"

    def __init__(self, catalog: "CatalogFacade") -> None:
        self._view = catalog.view()

    def _found(self, key: Any, value: Any) -> Any:
        return value

    def _rows(self, expressions: str, where: Condition = EVERYTHING) -> list[Any]:
        return self._view.select(expressions, where, f"ORDER BY {self.key}")

    def __getitem__(self, key: Any) -> Any:
        rows = self._rows(self.value, self._is(key)) if self._is_key(key) else []
        if not rows:
            raise KeyError(key)
        return self._found(key, rows[0][0])

    def _is(self, key: Any) -> Condition:
        return Condition(f"{self.key} = %s", (key,))

    def _is_key(self, key: Any) -> bool:
        return is_rid(key)

    def __contains__(self, key: object) -> bool:
        return self._is_key(key) and bool(self._rows("1", self._is(key)))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __len__(self) -> int:
        rows = self._view.select("count(*)")
        return rows[0][0] if rows else 0

    def keys(self) -> Any:
        return [key for (key,) in self._rows(self.key)]

    def values(self) -> Any:
        return [value for _, value in self.items()]

    def items(self) -> Any:
        return [(key, self._found(key, value)) for key, value in self._rows(f"{self.key}, {self.value}")]

    def iterkeys(self) -> Iterator[Any]:
        return iter(self.keys())

    def itervalues(self) -> Iterator[Any]:
        return iter(self.values())

    def iteritems(self) -> Iterator[Any]:
        return iter(self.items())


class Paths(RowMapping):
    """``_catalog.paths``: rid to path."""


class Uids(RowMapping):
    """``_catalog.uids``: path to rid."""

    key = "path"
    value = "rid"

    def _is(self, key: Any) -> Condition:
        return super()._is(clean_path(key))

    def _is_key(self, key: Any) -> bool:
        return isinstance(key, str)


class Data(RowMapping):
    """``_catalog.data``: rid to the tuple of metadata values."""

    value = "rid"

    def __init__(self, catalog: "CatalogFacade") -> None:
        super().__init__(catalog)
        self._names = catalog.names
        self._loader = RowLoader(self._view, (), catalog.core.excluded_keys)

    def items(self) -> Any:
        self._loader.rids = rids = self.keys()
        return [(rid, self._found(rid, rid)) for rid in rids]

    def _found(self, key: Any, value: Any) -> tuple[Any, ...]:
        row = self._loader.row(key)
        return tuple(row.value(name) for name in self._names)
