"""Index objects that look like ZCatalog's and are answered by PostgreSQL.

Plone adapts index objects, checks the names of their classes, reads their settings and calls their query methods.  An index
proxy is an instance of a subclass of the real index's class, with the same name: settings and interfaces are the real ones,
and methods that would read BTrees query the catalog.
"""

from AccessControl.class_init import InitializeClass
from AccessControl.PermissionRole import PermissionRole
from AccessControl.Permissions import manage_zcatalog_indexes as ManageZCatalogIndexes
from AccessControl.SecurityInfo import ClassSecurityInfo
from BTrees.IIBTree import IISet
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from plone.pgcatalog.compat.trees import Keys
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.indexing.objects import is_rid
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.query.criteria import with_lists
from plone.pgcatalog.results.answer import ENTRY_BYTES
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import VALUES
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.reader import Reader
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.results.view import entries
from plone.pgcatalog.results.view import key_counts
from plone.pgcatalog.sql.predicate import has_value
from types import FunctionType
from typing import Any
from typing import TYPE_CHECKING
from ZPublisher import zpublish


if TYPE_CHECKING:
    from plone.pgcatalog.compat.catalog import _CatalogCompat


_marker = object()
#: Estimated memory, in bytes, of a key and its number of rows.
KEY_BYTES = 250


class ProxyBase:
    """Base of all index proxies: the settings of the real index, bound to a catalog."""

    _pg_bound: "tuple[_CatalogCompat]"

    # Not by ClassSecurityInfo: at each start Zope would log that this class itself does not have these methods.
    clear__roles__ = index_object__roles__ = unindex_object__roles__ = PermissionRole(ManageZCatalogIndexes)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set the attribute here and on the persistent index of the tool, which stores the settings."""
        super().__setattr__(name, value)
        real = self.__dict__.get("_pg_real")
        if real is not None and not name.startswith(("_v_", "_p_", "_pg_")):
            setattr(real, name, value)

    def __reduce__(self) -> Any:
        raise TypeError("an index proxy cannot be stored; the catalog tool stores the settings of the index")

    def _pg_catalog(self) -> "_CatalogCompat":
        # In a tuple: a plain attribute would be acquisition-wrapped in this index instead of the tool.
        return self._pg_bound[0]


class PGIndex(ProxyBase):
    """Mixin for a real index class: replaces the methods that read BTrees."""

    # Set by the real class.
    id: str
    meta_type: str

    security = ClassSecurityInfo()

    # -- queries of the catalog

    def _pg_translator(self) -> IndexTranslator:
        return self._pg_catalog().core.translator(self.id)

    def _pg_select(self, expressions: str, where: Condition = EVERYTHING, tail: str = "") -> list[Any]:
        return self._pg_catalog().core.search_view().select(expressions, where, tail).value()

    def _pg_entries(self, where: Condition = EVERYTHING) -> Iterator[tuple[int, Any]]:
        return entries(self._pg_catalog().core.view(), self._pg_translator(), where).value()

    def _pg_has_value(self) -> Condition:
        columns = self._pg_translator().columns()
        return has_value(columns[0]) if columns else NOTHING

    # -- the plug-in index API

    @security.protected(ManageZCatalogIndexes)
    def index_object(self, documentId: int, obj: Any, threshold: Any = None) -> int:
        """Reindex the object of the row *documentId* in this index only."""
        path = self._pg_catalog().paths.get(documentId)
        return 0 if path is None else self._pg_catalog().catalogObject(obj, path, idxs=[self.id], update_metadata=False)

    @security.protected(ManageZCatalogIndexes)
    def unindex_object(self, documentId: int) -> None:
        """Remove the values of the row *documentId* from this index only."""
        self._pg_catalog().unindex(self.id, documentId)

    @security.protected(ManageZCatalogIndexes)
    def clear(self) -> None:
        """Empty this index."""
        if self.id in self._pg_catalog().indexes:
            self._pg_catalog().clearIndex(self.id)

    def _apply_index(self, request: Any, resultset: Any = None) -> Any:
        """Return (rids as an IISet, names of the indexes used) for *request*; None if it does not contain this index."""
        query = with_lists(request, (self.id,)) if isinstance(request, Mapping) else request
        condition = self._pg_translator().where(query, self._pg_catalog().core.context)
        if condition is None:
            return None
        return self._pg_rids(condition), (self.id,)

    def query_index(self, record: Any, resultset: Any = None) -> Any:
        """Return the rids, as an IISet, for an IndexQuery *record*."""
        options = {name: getattr(record, name) for name in record.options if hasattr(record, name)}
        request = {self.id: {**options, "query": record.keys, "operator": record.operator}}
        if "operator" not in record.options:
            del request[self.id]["operator"]
        condition = self._pg_translator().where(request, self._pg_catalog().core.context)
        return IISet() if condition is None else self._pg_rids(condition)

    def _pg_rids(self, condition: Condition) -> IISet:
        return IISet() if condition is NOTHING else IISet(r for (r,) in self._pg_select("rid", condition))

    def getEntryForObject(self, documentId: int, default: Any = _marker) -> Any:
        """Return the indexed value of the row *documentId*."""
        if not self._pg_translator().columns():
            return super().getEntryForObject(documentId, default)  # type: ignore[misc]  # the real class's
        where = Condition("rid = %s", (documentId,)) if is_rid(documentId) else NOTHING
        for _, entry in self._pg_entries(where):
            return entry
        return None if default is _marker else default

    def uniqueValues(self, name: Any = None, withLengths: Any = 0) -> Iterator[Any]:
        """Return an iterator of the keys in order, or with *withLengths* of (key, number of rows) pairs."""
        if name is not None and name != self.id:
            return iter(())
        found = self._pg_keys(bool(withLengths))
        # An index without keys: the real class returns none, or raises.
        return super().uniqueValues(None, withLengths) if found is None else iter(found)  # type: ignore[misc]

    def _pg_keys(self, with_counts: bool) -> tuple[Any, ...] | None:
        """Return the keys, or (key, number of rows) pairs; None for an index without keys."""
        return self._pg_remembered(with_counts, lambda view: self._pg_read_keys(view, with_counts))

    def _pg_rid(self, key: str) -> tuple[Any, ...]:
        """Return the rids of the rows with *key*, ascending; cached in the process like a search for it."""
        core = self._pg_catalog().core
        compiled = CompiledQuery(self._pg_translator().match_key(key), (OLDEST_FIRST,), None, Window())
        view = core.search_view()
        reader = Reader(view, compiled, RowLoader(view, (), core.excluded_keys))
        reader.read()
        return tuple(sorted(reader.rids))

    def _pg_remembered(
        self, name: Any, read: Callable[[CatalogView], tuple[Any, ...] | None]
    ) -> tuple[Any, ...] | None:
        """Return the result of *read*, cached under *name* until the catalog changes."""
        view = self._pg_catalog().core.search_view()
        stamp = view.stamp()
        cache_key = (VALUES, stamp, self.id, name)
        found: tuple[Any, ...] | None = None if stamp is None else result_cache().get(cache_key)
        if found is None:
            found = read(view)
            if stamp is not None and found is not None:
                result_cache().put(cache_key, found, KEY_BYTES * len(found) + ENTRY_BYTES)
        return found

    def _pg_read_keys(self, view: CatalogView, with_counts: bool) -> tuple[Any, ...] | None:
        """Return the result of ``_pg_keys``, read from the database."""
        translator = self._pg_translator()
        expression = translator.key_expression()
        if expression is None:
            return None
        if not with_counts:
            return tuple(key for key, _ in self._pg_keys(True) or ())
        constant = translator.constant_keys
        rows = key_counts(view, translator, expression, self._pg_has_value()).value()
        counted = tuple((translator.key(key), count) for key, count in rows)
        counts = dict(counted) if constant else {}
        return tuple((key, counts.get(key, 0)) for key in constant) or counted

    def histogram(self) -> dict[Any, int]:
        """Return number of rows -> number of keys with so many rows; for a BooleanIndex key -> number of its rows."""
        if self.meta_type == "BooleanIndex":
            return {False: 0, True: 0} | dict(self.uniqueValues(withLengths=True))
        return dict(Counter(count for _, count in self.uniqueValues(withLengths=True)))

    def documentToKeyMap(self) -> Mapping[int, Any]:
        return dict(self._pg_entries())

    def keyForDocument(self, id: int) -> Any:
        return self.documentToKeyMap()[id]

    def referencedObjects(self) -> list[int]:
        return [rid for rid, _ in self._pg_entries()]

    def items(self) -> list[Any]:
        """Return (key, rids) pairs."""
        return list(Keys(self).items())

    def numObjects(self) -> int:
        rows = self._pg_select("count(*)", self._pg_has_value())
        return rows[0][0] if rows else 0

    def indexSize(self) -> int:
        return len(self)

    def __len__(self) -> int:
        if self._pg_translator().key_expression() is None:
            return self.numObjects()
        return sum(1 for _ in self.uniqueValues())

    def __bool__(self) -> bool:
        return True

    def getCounter(self) -> int:
        return self._pg_catalog().core.counter

    @property
    def _index(self) -> Any:
        return Keys(self)

    @property
    def _unindex(self) -> Mapping[int, Any]:
        return self.documentToKeyMap()

    @property
    def _length(self) -> Any:
        return lambda: len(self)


InitializeClass(PGIndex)

# Some index types are published without a permission: a method with a docstring would be callable by anyone.
for _method in vars(PGIndex).values():
    if isinstance(_method, FunctionType):
        zpublish(False)(_method)
del _method
