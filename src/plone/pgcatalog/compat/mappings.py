"""The mappings of a ZCatalog's Catalog (``indexes``, ``paths``, ``uids``, ``data``), read from PostgreSQL."""

from abc import abstractmethod
from AccessControl.class_init import InitializeClass
from Acquisition import aq_base
from Acquisition import aq_inner
from Acquisition import aq_parent
from collections.abc import Iterator
from collections.abc import MutableMapping
from plone.pgcatalog.compat.proxy_types import index_proxy
from plone.pgcatalog.compat.trees import between
from plone.pgcatalog.compat.trees import Tree
from plone.pgcatalog.core import cataloguer
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.indexing.objects import is_rid
from plone.pgcatalog.results.loader import RowLoader
from Products.ZCatalog.ZCatalogIndexes import ZCatalogIndexes
from typing import Any
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from plone.pgcatalog.compat.catalog import _CatalogCompat


class IndexMapping(MutableMapping[str, Any]):
    """``_catalog.indexes``: index name to index object; setting adds, or replaces, an index."""

    def __init__(self, catalog: "_CatalogCompat") -> None:
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

    def copy(self) -> dict[str, Any]:
        return dict(self)

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


class RowTree(Tree):
    """A mapping over the catalog's rows; subclasses define the SQL expressions of key and value."""

    key = "rid"
    value = "path"

    def __init__(self, catalog: "_CatalogCompat") -> None:
        self._catalog = catalog
        self._view = catalog.core.view()

    @property
    def _marks(self) -> dict[Any, Any]:
        """Assignments that are no rows yet: key -> value, None for a deleted key."""
        return {}

    def _is_key(self, key: Any) -> bool:
        return is_rid(key)

    def _stored_key(self, key: Any) -> Any:
        return key

    def _rows(self, expressions: str, where: Condition = EVERYTHING, tail: str = "") -> list[Any]:
        return self._view.select(expressions, where, tail or f"ORDER BY {self.key}").value()

    def _of(self, key: Any) -> Any:
        """Return the value of the row with *key*; None if there is no such row."""
        rows = self._rows(self.value, Condition(f"{self.key} = %s", (key,)))
        return rows[0][0] if rows else None

    def __getitem__(self, key: Any) -> Any:
        found = self._found(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return self._found(key) is not None

    def _found(self, key: Any) -> Any:
        if not self._is_key(key):
            return None
        marks, key = self._marks, self._stored_key(key)
        return marks[key] if key in marks else self._of(key)

    def __len__(self) -> int:
        if self._marks:
            return len(self._sorted())
        rows = self._view.select("count(*)").value()
        return rows[0][0] if rows else 0

    def _within(self, low: Any, high: Any) -> Condition:
        where = EVERYTHING
        for end, operator in ((low, ">="), (high, "<=")):
            if end is not None and not self._is_key(end):
                raise TypeError(f"{end!r} is not a key")
            if end is not None:
                where &= Condition(f"{self.key} {operator} %s", (self._stored_key(end),))
        return where

    def _sorted(self, low: Any = None, high: Any = None) -> list[Any]:
        if self._marks:
            return [key for key, _ in self._pairs(low, high)]
        return [key for (key,) in self._rows(self.key, self._within(low, high))]

    def _pairs(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        pairs = self._rows(f"{self.key}, {self.value}", self._within(low, high))
        if self._marks:
            marked = between(self._marks.items(), low, high, lambda pair: pair[0])
            return sorted((key, value) for key, value in (dict(pairs) | dict(marked)).items() if value is not None)
        return pairs

    def _ends(self, low: Any = None, high: Any = None) -> tuple[Any, ...]:
        if self._marks:
            return super()._ends(low, high)
        where = self._within(low, high)
        return tuple(
            rows[0][0]
            for order in ("", " DESC")
            if (rows := self._rows(self.key, where, f"ORDER BY {self.key}{order} LIMIT 1"))
        )


class NamesTree(RowTree, MutableMapping[Any, Any]):
    """Base of ``paths`` and ``uids``, which map the same pairs in opposite directions.

    An assignment to either mapping moves the row.  Until the transaction ends, the other mapping and the former key return
    their former values, as in ZCatalog's two independent BTrees, so either may be assigned first.  A row that was deleted
    from both mappings is uncatalogued at commit.
    """

    @property
    def _marks(self) -> dict[Any, Any]:
        pending = self._view.pending
        return {} if pending is None else self._marks_of(pending)

    @abstractmethod
    def _names(self, key: Any, value: Any) -> tuple[int, str]:
        """Return rid and path of the pair *key*, *value*."""

    @abstractmethod
    def _marks_of(self, pending: Any) -> dict[Any, Any]:
        """Return the marks of this mapping in *pending*."""

    def insert(self, key: Any, value: Any) -> int:
        """Assign *value* unless *key* has a value; return 1 if it was assigned, else 0."""
        is_new = key not in self
        if is_new:
            self[key] = value
        return int(is_new)

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError(key)
        key = self._stored_key(key)
        value = self._of(key)
        pending = self._catalog.core.change()
        marks = self._marks_of(pending)
        if value is None:
            # The former path of a moved row.
            del marks[key]
            return
        marks[key] = None
        rid, path = self._names(key, value)
        if pending.uids.get(path, rid) is None and pending.paths.get(rid, path) is None:
            pending.nameless[path] = None

    def _move(self, rid: Any, path: Any) -> Any:
        """Move the row *rid* to *path*; return the pending changes.  Raises KeyError if there is no such row."""
        if not is_rid(rid) or not isinstance(path, str):
            raise TypeError(f"a record id must be a number and a path a string, not {rid!r} and {path!r}")
        path = clean_path(path)
        core = self._catalog.core
        uids = Uids(self._catalog)
        value, marks = uids.get(path), dict(core.change().uids)
        former = cataloguer.move(core, rid, path)
        pending = core.change()
        pending.nameless.pop(path, None)
        if former != path:
            # The move has removed the marks of both paths.
            pending.uids[former] = marks.get(former, rid)
            pending.uids[path] = value
            if rid not in pending.paths:
                pending.paths[rid] = former
        return pending


class Paths(NamesTree):
    """``_catalog.paths``: rid to path."""

    def _of(self, key: Any) -> Any:
        """Return the path of the row *key*, from the process's cache if it is there; None if there is no such row."""
        view = self._view
        announced = view.session.announced.get(view.zoid)
        loader = None if announced is None else announced.loader(view, key)
        if loader is not None:
            # Code that looks up the path of a link traverses to its object next.
            loader.prefetch(key)
        else:
            loader = RowLoader(view, (key,), self._catalog.core.excluded_keys)
            if (stamp := view.stamp()) is not None:
                loader.share(stamp)
        return loader.paths([key])[0] or None

    def _names(self, key: Any, value: Any) -> tuple[int, str]:
        return key, value

    def _marks_of(self, pending: Any) -> dict[Any, Any]:
        marks: dict[Any, Any] = pending.paths
        return marks

    def __setitem__(self, rid: Any, path: Any) -> None:
        self._move(rid, path).paths.pop(rid, None)


class Uids(NamesTree):
    """``_catalog.uids``: path to rid."""

    key = "path"
    value = "rid"

    def _names(self, key: Any, value: Any) -> tuple[int, str]:
        return value, key

    def _marks_of(self, pending: Any) -> dict[Any, Any]:
        marks: dict[Any, Any] = pending.uids
        return marks

    def _stored_key(self, key: Any) -> Any:
        return clean_path(key)

    def _is_key(self, key: Any) -> bool:
        return isinstance(key, str)

    def __setitem__(self, path: Any, rid: Any) -> None:
        self._move(rid, path).uids.pop(clean_path(path), None)


class Data(RowTree):
    """``_catalog.data``: rid to the tuple of metadata values."""

    value = "rid"

    def __init__(self, catalog: "_CatalogCompat") -> None:
        super().__init__(catalog)
        self._names = catalog.names
        self._loader = RowLoader(self._view, (), catalog.core.excluded_keys)

    def __getitem__(self, key: Any) -> tuple[Any, ...]:
        return self._values(super().__getitem__(key))

    def _pairs(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        self._loader.neighbours.rids = rids = self._sorted(low, high)
        return [(rid, self._values(rid)) for rid in rids]

    def _values(self, rid: int) -> tuple[Any, ...]:
        row = self._loader.row(rid)
        return tuple(row.value(name) for name in self._names)
