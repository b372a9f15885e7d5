"""``portal_catalog._catalog``, for code that uses a ZCatalog's internals: the core catalog under ZCatalog's names."""

from Acquisition import aq_base
from BTrees.IIBTree import IISet
from itertools import islice
from plone.pgcatalog.compat.mappings import Data
from plone.pgcatalog.compat.mappings import IndexMapping
from plone.pgcatalog.compat.mappings import Paths
from plone.pgcatalog.compat.mappings import Uids
from plone.pgcatalog.compat.zcatalog import NOT_CALLED
from plone.pgcatalog.compat.zcatalog import PATCHED_BEFORE
from plone.pgcatalog.core import catalog
from plone.pgcatalog.core import cataloguer
from plone.pgcatalog.core import searcher
from plone.pgcatalog.core.catalog import Catalog
from plone.pgcatalog.indexing.objects import is_rid
from plone.pgcatalog.patches import dispatch
from plone.pgcatalog.patches import is_stock
from plone.pgcatalog.query.criteria import merged
from plone.pgcatalog.query.criteria import sort_directions
from plone.pgcatalog.query.criteria import with_lists
from plone.pgcatalog.results.brain import brain_class
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.results import CatalogSearchResults
from Products.ZCatalog.Catalog import Catalog as ZCatalogCatalog
from typing import Any


class _CatalogCompat(ZCatalogCatalog):
    """A ``Products.ZCatalog.Catalog.Catalog`` bound to *tool*, which may be acquisition-wrapped.

    It is never stored: the tool stores the settings of the indexes and the names of the columns, PostgreSQL the rest.
    ``dispatch`` below makes ZCatalog's own functions call these methods.
    """

    def __init__(self, tool: Any) -> None:
        # In tuples: plain attributes would be wrapped in the acquisition context of this object.
        self._bound = (tool,)
        self._core: tuple[Catalog, ...] = ()

    def __of__(self, tool: Any) -> "_CatalogCompat":
        """Return the catalog bound to the wrapped *tool*: the value of ``tool._catalog``."""
        return _CatalogCompat(tool)

    @property
    def tool(self) -> Any:
        """The catalog tool."""
        return self._bound[0]

    @property
    def __parent__(self) -> Any:
        """The tool, for ``aq_parent``."""
        return self.tool

    @property
    def core(self) -> Catalog:
        """The core catalog of the tool."""
        if not self._core:
            self._core = (self.tool._core,)
        return self._core[0]

    # -- indexes and columns

    @property
    def indexes(self) -> IndexMapping:
        return IndexMapping(self)

    @property
    def names(self) -> tuple[str, ...]:
        names: tuple[str, ...] = aq_base(self.tool)._columns
        return names

    @names.setter
    def names(self, names: tuple[str, ...]) -> None:
        aq_base(self.tool)._columns = tuple(names)

    @property
    def schema(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def addColumn(self, name: str, default_value: Any = None, threshold: Any = None) -> None:
        """See ``catalog.add_column``."""
        catalog.add_column(self.core, name, default_value)

    def delColumn(self, name: str, threshold: Any = None) -> None:
        """See ``catalog.delete_column``."""
        catalog.delete_column(self.core, name)

    def getIndex(self, name: str) -> Any:
        """Return the index *name*, wrapped in the tool; raises KeyError."""
        return self.indexes[name].__of__(self.tool)

    def addIndex(self, name: str, index_type: Any) -> None:
        """See ``catalog.add_index``."""
        catalog.add_index(self.core, name, index_type)

    def delIndex(self, name: str) -> None:
        """See ``catalog.delete_index``."""
        catalog.delete_index(self.core, name)

    def clearIndex(self, name: str) -> None:
        """See ``cataloguer.clear_index``."""
        cataloguer.clear_index(self.core, name)

    def unindex(self, name: str, rid: int) -> None:
        """See ``cataloguer.unindex``."""
        cataloguer.unindex(self.core, name, rid)

    # -- cataloguing

    def catalogObject(
        self, object: Any, uid: str, threshold: Any = None, idxs: Any = None, update_metadata: Any = True
    ) -> int:
        """See ``cataloguer.catalog_object``."""
        return cataloguer.catalog_object(self.core, object, uid, idxs, update_metadata)

    def updateMetadata(self, object: Any, uid: str, index: int | None) -> int:
        """Update the metadata of *object*; return *index*, or the rid of *uid* if *index* is None."""
        cataloguer.update_metadata(self.core, object, uid)
        return self.uids[uid] if index is None else index

    def uncatalogObject(self, uid: str) -> None:
        """See ``cataloguer.uncatalog_object``."""
        cataloguer.uncatalog_object(self.core, uid)

    def clear(self) -> None:
        """See ``cataloguer.clear``."""
        cataloguer.clear(self.core)

    # -- searching

    def searchResults(self, query: Any = None, _merge: bool = True, **kw: Any) -> Any:
        """Search by a ZCatalog query, *query* merged with *kw*.  Raises CatalogError for a bad sort_on."""
        if any_patched(STEPS):
            return self._search_by_steps(merged(query, kw, self.core.indexes), _merge)
        core = self.core.fixed()
        results = searcher.search(core, merged(query, kw, core.indexes))
        return results if _merge else self._unmerged(results)

    def _search_by_steps(self, query: Any, merge: bool) -> Any:
        """Search by ZCatalog's sequence of methods, because other code has patched some of them."""
        query = self.merge_query_args(query)
        sort_index = self._getSortIndex(query)
        order = self._get_sort_attr("order", query)
        count = len(sort_index) if isinstance(sort_index, list) else 1
        reverse = list(islice(sort_directions(order), count))
        limit = self._get_sort_attr("limit", query)
        return self.search(query, sort_index, reverse[0] if count == 1 else reverse, limit, merge)

    def search(
        self, query: Any, sort_index: Any = None, reverse: Any = False, limit: Any = None, merge: bool = True
    ) -> Any:
        """Search with resolved *sort_index* objects; *reverse* is a bool, a list of them, or a sort_order value."""
        if any_patched(("make_query",)):
            query = self.make_query(query)
        indexes = [] if sort_index is None else sort_index if isinstance(sort_index, list) else [sort_index]
        for index in indexes:
            check_sorts(index)
        if isinstance(reverse, bool | int):
            directions = [bool(reverse)] * len(indexes)
        else:
            if not isinstance(reverse, str | None):
                reverse = ["reverse" if r is True else r for r in reverse]
            directions = list(islice(sort_directions(reverse), len(indexes)))
        sort = [(index.getId(), r) for index, r in zip(indexes, directions, strict=True)]
        core = self.core.fixed()
        results = searcher.search(core, with_lists(query, core.indexes), sort, limit)
        return results if merge else self._unmerged(results)

    def _unmerged(self, results: CatalogSearchResults) -> Any:
        """Return *results* in the form of an argument for ``Products.ZCatalog.Catalog.mergeResults``."""
        if results.sort and results:
            indexes = [self.indexes[name] for name, _ in results.sort]
            directions = [reverse for _, reverse in results.sort]
            return self.sortResults(IISet(b.getRID() for b in results), indexes, directions, merge=False)
        if results.compiled.score is not None:
            return [(b.data_record_score_, (1, b.data_record_score_, b.getRID()), self.__getitem__) for b in results]
        return results

    def make_query(self, query: Any) -> dict[str, Any]:
        """Return *query* rewritten by the indexes that do so, with its plain lists sorted."""
        return self.core.make_query(query)

    # -- single rows

    @property
    def _v_brains(self) -> type:
        """The mixin class of all brains; volatile, as in ZCatalog."""
        brains: type = self.core.brains
        return brains

    @property
    def _v_result_class(self) -> type:
        return brain_class(self._v_brains, self.names)

    def useBrains(self, brains: type) -> None:
        """Mix the class *brains* into all brains of this tool."""
        aq_base(self.tool)._v_brains = brains

    def __getitem__(self, index: Any) -> Any:
        normalized, score, rid = index if isinstance(index, tuple) else (1, 1, index)
        view = self.core.view()
        path = view.paths([rid]).value().get(rid) if is_rid(rid) else None
        if path is None:
            raise KeyError(rid)
        loader = RowLoader(view, [rid], self.core.excluded_keys)
        loader.place([(rid, path)])
        return self.core.brain_maker()(loader, rid, score, normalized)

    def instantiate(self, record: Any, score_data: Any = None) -> Any:
        """Return a brain of *record*, (rid, metadata values in the order of ``names``)."""
        rid, values = record
        score, normalized = score_data or (1, 1)
        brain = self[normalized, score, rid]
        aq_base(brain).__dict__.update(zip(self.names, values, strict=True))
        return brain

    def __len__(self) -> int:
        return len(self.paths)

    def _length(self) -> int:
        return len(self)

    def __bool__(self) -> bool:
        return True

    @property
    def paths(self) -> Paths:
        return Paths(self)

    @property
    def uids(self) -> Uids:
        return Uids(self)

    @property
    def data(self) -> Data:
        return Data(self)


NOT_CALLED[ZCatalogCatalog] |= dict.fromkeys(dispatch(_CatalogCompat, ZCatalogCatalog), PATCHED_BEFORE)

#: The methods that ZCatalog's ``searchResults`` calls.
STEPS = ("search", "make_query", "merge_query_args", "_getSortIndex", "_get_sort_attr")
_stock = vars(ZCatalogCatalog)
_unpatched = {name: _stock[name] for name in STEPS if is_stock(ZCatalogCatalog, name, _stock[name])}


def any_patched(names: tuple[str, ...]) -> bool:
    """Return True if one of the methods *names*, all in STEPS, of ZCatalog's Catalog is patched."""
    for name in names:  # noqa: SIM110  no generator expression: this runs in each search
        if name not in _unpatched or _stock[name] is not _unpatched[name]:
            return True
    return False


def check_sorts(index: Any) -> Any:
    """Raise AttributeError if *index* cannot sort, as ZCatalog does; return its ``documentToKeyMap``."""
    return index.documentToKeyMap
