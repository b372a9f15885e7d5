"""Index objects that look like ZCatalog's and answer from PostgreSQL.

Plone adapts index objects, checks their class name, reads their settings and calls their query methods.  An
index proxy is an instance of a subclass, of the same name, of the real index's class: settings and
interfaces are the real ones, everything that would read BTrees asks the catalog.
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
from plone.pgcatalog.results.view import collected_keys
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
#: About what a key and its number take in memory.
KEY_BYTES = 250


class ProxyBase:
    """What every index proxy is: the real index's settings, bound to a catalog."""

    _pg_bound: "tuple[_CatalogCompat]"

    # Not by ClassSecurityInfo: Zope would log at each start that this class itself has no such methods.
    clear__roles__ = index_object__roles__ = unindex_object__roles__ = PermissionRole(ManageZCatalogIndexes)

    def __setattr__(self, name: str, value: Any) -> None:
        """Settings belong to the persistent index that the tool keeps."""
        super().__setattr__(name, value)
        real = self.__dict__.get("_pg_real")
        if real is not None and not name.startswith(("_v_", "_p_", "_pg_")):
            setattr(real, name, value)

    def __reduce__(self) -> Any:
        raise TypeError("an index proxy is not stored; the catalog tool keeps the index's settings")

    def _pg_catalog(self) -> "_CatalogCompat":
        # Kept in a tuple: as an attribute it would be bound to this index instead of the tool.
        return self._pg_bound[0]


class PGIndex(ProxyBase):
    """What an index proxy does differently from the real index class it is mixed into."""

    # The real class has them.
    id: str
    meta_type: str

    security = ClassSecurityInfo()

    # -- asking the catalog

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
        """Index the object of the row *documentId* anew, here only."""
        path = self._pg_catalog().paths.get(documentId)
        return 0 if path is None else self._pg_catalog().catalogObject(obj, path, idxs=[self.id], update_metadata=False)

    @security.protected(ManageZCatalogIndexes)
    def unindex_object(self, documentId: int) -> None:
        """Forget the row *documentId*, here only."""
        self._pg_catalog().unindex(self.id, documentId)

    @security.protected(ManageZCatalogIndexes)
    def clear(self) -> None:
        """Empty this index."""
        if self.id in self._pg_catalog().indexes:
            self._pg_catalog().clearIndex(self.id)

    def _apply_index(self, request: Any, resultset: Any = None) -> Any:
        """Return (rids as an IISet, names used) for *request*, None when it does not name this index."""
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
        """Return what is indexed for the row *documentId*."""
        if not self._pg_translator().columns():
            return super().getEntryForObject(documentId, default)  # type: ignore[misc]  # the real class's
        where = Condition("rid = %s", (documentId,)) if is_rid(documentId) else NOTHING
        for _, entry in self._pg_entries(where):
            return entry
        return None if default is _marker else default

    def uniqueValues(self, name: Any = None, withLengths: Any = 0) -> Iterator[Any]:
        """Return an iterator of the index's keys in order, with the number of rows of each when *withLengths*."""
        if name is not None and name != self.id:
            return iter(())
        found = self._pg_keys(bool(withLengths))
        # Without any: nothing, or what the real class says about having none.
        return super().uniqueValues(None, withLengths) if found is None else iter(found)  # type: ignore[misc]

    def _pg_keys(self, with_counts: bool) -> tuple[Any, ...] | None:
        """Return the keys, or (key, number of rows) pairs; None for an index without keys."""
        return self._pg_remembered(with_counts, lambda view: self._pg_read_keys(view, with_counts))

    def _pg_rid(self, key: str) -> tuple[Any, ...]:
        """Return the rids that have *key*, ascending, from the process's cache as a search for it."""
        core = self._pg_catalog().core
        query = CompiledQuery(self._pg_translator().match_key(key), (OLDEST_FIRST,), None, Window())
        view = core.search_view()
        reader = Reader(view, query, RowLoader(view, (), core.excluded_keys))
        reader.read()
        return tuple(sorted(reader.rids))

    def _pg_remembered(
        self, name: Any, read: Callable[[CatalogView], tuple[Any, ...] | None]
    ) -> tuple[Any, ...] | None:
        """Return what *read* does, kept by *name* in memory while the catalog does not change."""
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
        """Return what ``_pg_keys`` does, from the database."""
        translator = self._pg_translator()
        expression = translator.key_expression()
        if expression is None:
            return None
        constant = translator.constant_keys
        if not with_counts:
            found = None if constant else collected_keys(view, translator, expression)
            return (
                tuple(key for key, _ in self._pg_keys(True) or ())
                if found is None
                else tuple(map(translator.key, found.value()))
            )
        rows = key_counts(view, translator, expression, self._pg_has_value()).value()
        counted = tuple((translator.key(key), count) for key, count in rows)
        counts = dict(counted) if constant else {}
        return tuple((key, counts.get(key, 0)) for key in constant) or counted

    def histogram(self) -> dict[Any, int]:
        """Return a dict from a number of rows to how many keys have that number; of a BooleanIndex, how many rows have each key."""
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

# A docstring must not publish a method: the classes of some index types let anybody call what is published.
for _method in vars(PGIndex).values():
    if isinstance(_method, FunctionType):
        zpublish(False)(_method)
del _method
