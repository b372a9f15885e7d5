"""Proxies of single index types, and the creation of a proxy."""

from Acquisition import aq_base
from BTrees.IIBTree import IISet
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from functools import cache
from functools import wraps
from inspect import signature
from plone.folder.nogopip import StubIndex
from plone.pgcatalog.compat.proxies import PGIndex
from plone.pgcatalog.compat.proxies import ProxyBase
from plone.pgcatalog.compat.trees import ColumnKeys
from plone.pgcatalog.compat.trees import InnerIndex
from plone.pgcatalog.compat.trees import lexicon_of
from plone.pgcatalog.compat.trees import Tree
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.daterange import ALWAYS_SINCE
from plone.pgcatalog.indexes.daterange import ALWAYS_UNTIL
from Products.PluginIndexes.BooleanIndex.BooleanIndex import BooleanIndex
from Products.PluginIndexes.CompositeIndex.CompositeIndex import CompositeIndex
from Products.PluginIndexes.DateRangeIndex.DateRangeIndex import DateRangeIndex
from Products.PluginIndexes.PathIndex.PathIndex import PathIndex
from Products.PluginIndexes.TopicIndex.TopicIndex import TopicIndex
from Products.PluginIndexes.UUIDIndex.UUIDIndex import UUIDIndex
from Products.ZCTextIndex.ZCTextIndex import ZCTextIndex
from types import FunctionType
from typing import Any
from typing import TYPE_CHECKING
from ZPublisher import zpublish


if TYPE_CHECKING:
    from plone.pgcatalog.compat.catalog import _CatalogCompat


class StubProxy(ProxyBase):
    """Proxy of GopipIndex, which stores nothing; the real class only needs ``catalog.paths``."""


class PathsOnly:
    """Stand-in for a Catalog that has only ``paths``."""

    def __init__(self, catalog: "_CatalogCompat") -> None:
        self._catalog = catalog

    @property
    def paths(self) -> Any:
        return self._catalog.paths


class BooleanProxy(PGIndex):
    """Proxy of BooleanIndex, which always has both values, the rarer one first."""

    def uniqueValues(self, name: Any = None, withLengths: Any = 0) -> Iterator[Any]:
        counted = super().uniqueValues(name, True)
        for key, count in sorted(counted, key=lambda pair: pair[1]):
            yield (key, count) if withLengths else key

    def items(self) -> list[Any]:
        found = dict(super().items())
        return [(key, found.get(key, IISet())) for key in self.uniqueValues()]

    def indexSize(self) -> int:
        return 2

    def __len__(self) -> int:
        return self.numObjects()


class UUIDProxy(PGIndex):
    """Proxy of UUIDIndex, whose ``items`` are sets of rids although ``_index`` maps to single rids."""

    def items(self) -> list[Any]:
        return [(key, IISet((rid,))) for key, rid in super().items()]


class DateRangeProxy(PGIndex):
    """Proxy of DateRangeIndex, whose values are listed under the names of its two fields."""

    _since_field: str
    _until_field: str

    def uniqueValues(self, name: Any = None, withLengths: Any = 0) -> Iterator[Any]:
        """Yield the minutes of the field *name*: those of ranges with two ends first, then those with one end."""
        if name not in (self._since_field, self._until_field):
            return
        since, until = (each.quoted for each in self._pg_translator().columns())
        ends = [(since, ALWAYS_SINCE), (until, ALWAYS_UNTIL)]
        (column, never), (other, open_end) = ends if name == self._since_field else ends[::-1]
        for operator in ("<>", "="):
            where = Condition(f"{column} <> %s AND {other} {operator} %s", (never, open_end))
            for key, count in self._pg_select(f"{column}, count(*)", where, "GROUP BY 1 ORDER BY 1"):
                yield (key, count) if withLengths else key

    def _apply_index(self, request: Any, resultset: Any = None) -> Any:
        found = super()._apply_index(request, resultset)
        return found and (found[0], (self._since_field, self._until_field))

    @property
    def _always(self) -> IISet:
        """The rids of the rows whose range has no ends."""
        since, until = (column.quoted for column in self._pg_translator().columns())
        where = Condition(f"{since} = %s AND {until} = %s", (ALWAYS_SINCE, ALWAYS_UNTIL))
        return self._pg_rids(where)

    def __len__(self) -> int:
        """Return 0, as the real index, which does not count its values."""
        return 0


class PathProxy(PGIndex):
    """Proxy of PathIndex and ExtendedPathIndex, with the arguments of their own search methods."""

    def uniqueValues(self, name: Any = None, withLengths: Any = 0) -> Iterator[Any]:
        return super().uniqueValues(None if name == "getPhysicalPath" else name, withLengths)

    @property
    def _index_items(self) -> Tree:
        """Path -> rid; if several rows have the path, the newest one."""
        return ColumnKeys(self, self._pg_translator().columns()[0], single=True)

    @property
    def _index_parents(self) -> Tree:
        """Path -> rids of its children."""
        return ColumnKeys(self, self._pg_translator().columns()[1])

    @property
    def _depth(self) -> int:
        """The level of the deepest component of all paths."""
        [(depth,)] = self._pg_select(f"max({self._pg_translator().columns()[2].quoted})") or [(None,)]
        return max((depth or 0) - 1, 0)

    def keyForDocument(self, documentId: int) -> Any:
        return self.getEntryForObject(documentId)

    def insertEntry(self, comp: str, id: int, level: int) -> None:
        """Do nothing: the catalog indexes paths as a whole."""

    def _search(self, path: Any, default_level: int = 0) -> Any:
        return self._pg_search(path, level=default_level)

    def search(
        self,
        path: Any,
        default_level: int = 0,
        depth: int = -1,
        navtree: Any = 0,
        navtree_start: int = 0,
        resultset: Any = None,
    ) -> Any:
        """Return the rids below *path*; see ExtendedPathIndex."""
        return self._pg_search(path, level=default_level, depth=depth, navtree=navtree, navtree_start=navtree_start)

    def _pg_search(self, path: Any, **options: Any) -> Any:
        return self._apply_index({self.id: {"query": [path], **options}})[0]


class TopicProxy(PGIndex):
    """Proxy of TopicIndex, whose values are its filtered sets, including empty ones."""

    filteredSets: Mapping[str, Any]

    def uniqueValues(self, name: Any = None, withLength: Any = 0) -> Iterator[Any]:
        if name is not None and name != self.id:
            return
        for key in self.filteredSets:
            yield (key, len(self.search(key))) if withLength else key

    def search(self, filter_id: str) -> Any:
        """Return the rids in the set *filter_id*; None if there is no such set."""
        return self._apply_index({self.id: [filter_id]})[0] if filter_id in self.filteredSets else None

    def getEntryForObject(self, docid: int, default: Any = None) -> Any:
        return super().getEntryForObject(docid, None) or default

    def __len__(self) -> int:
        return len(self.filteredSets)


class CompositeProxy(PGIndex):
    """Proxy of CompositeIndex, which stores nothing: queries are rewritten to its component indexes."""

    def uniqueValues(self, name: Any = None, withLengths: Any = 0) -> Iterator[Any]:
        return iter(())

    def getEntryForObject(self, documentId: int, default: Any = None) -> Any:
        return default

    def fastBuild(self, threshold: Any = None) -> None:
        """Do nothing: a composite index has no values of its own."""


class TextProxy(PGIndex):
    """Proxy of ZCTextIndex, with ranking; ``uniqueValues`` raises NotImplementedError, as there."""

    def uniqueValues(self, name: Any = None, withLengths: Any = 0) -> Any:
        raise NotImplementedError

    @property
    def index(self) -> InnerIndex:
        """The inner index."""
        return InnerIndex(self)

    def getLexicon(self) -> Any:
        """Return the lexicon, with the words of the texts as they are now."""
        return lexicon_of(self, aq_base(super().getLexicon()))  # type: ignore[misc]  # the real class's

    def query(self, query: str, nbest: int = 10) -> Any:
        """Return ([(rid, score), ...], total number of hits), the best *nbest* first."""
        found = self._pg_catalog().search({self.id: query})
        return [(b.getRID(), b.data_record_score_) for b in found[:nbest]], len(found)

    def query_index(self, record: Any, resultset: Any = None) -> Any:
        return super().query_index(record, resultset) if " ".join(record.keys) else None


SPECIAL: dict[type, type] = {
    StubIndex: StubProxy,
    BooleanIndex: BooleanProxy,
    UUIDIndex: UUIDProxy,
    DateRangeIndex: DateRangeProxy,
    PathIndex: PathProxy,
    TopicIndex: TopicProxy,
    CompositeIndex: CompositeProxy,
    ZCTextIndex: TextProxy,
}

for _proxy in SPECIAL.values():
    for _method in vars(_proxy).values():
        if isinstance(_method, FunctionType):
            zpublish(False)(_method)
del _proxy, _method


@cache
def proxy_class(cls: type) -> type:
    """Return the subclass of the index class *cls* that queries PostgreSQL; it has the same name."""
    mixin = next((SPECIAL[base] for base in cls.__mro__ if base in SPECIAL), PGIndex)
    namespace: dict[str, Any] = {"__module__": cls.__module__, "__doc__": cls.__doc__}
    if not hasattr(cls, "documentToKeyMap"):
        # ZCatalog recognises a sortable index by this attribute.
        namespace["documentToKeyMap"] = property(_no_attribute)
    for name in ("getEntryForObject", "index_object", "unindex_object"):
        if mixin is not StubProxy:
            namespace[name] = called_like(getattr(mixin, name), getattr(cls, name))
    return type(cls)(cls.__name__, (mixin, cls), namespace)


def called_like(method: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return *method*, which then also accepts the argument names of *real*."""
    names = list(signature(method).parameters)
    renamed = dict(zip(signature(real).parameters, names, strict=False))

    @wraps(method)
    def called(*args: Any, **kw: Any) -> Any:
        return method(*args, **{renamed.get(name, name): value for name, value in kw.items()})

    called.__signature__ = signature(real)  # type: ignore[attr-defined]  # what inspect.signature reads
    zpublish(False)(called)
    return called


def _no_attribute(index: Any) -> Any:
    raise AttributeError("documentToKeyMap")


def index_proxy(catalog: "_CatalogCompat", real: Any) -> Any:
    """Return the proxy of *real*, an index without acquisition wrapper that the tool of *catalog* stores."""
    real = aq_base(real)
    real._p_activate()
    cls: Any = proxy_class(real.__class__)
    proxy = cls.__new__(cls)
    proxy.__dict__.update(real.__dict__)
    proxy.__dict__["_pg_bound"] = (catalog,)
    proxy.__dict__["_pg_real"] = real
    if isinstance(proxy, StubProxy):
        proxy.__dict__["catalog"] = PathsOnly(catalog)
    lexicon = getattr(aq_base(catalog.tool), real.__dict__.get("lexicon_id", ""), None)
    if lexicon is not None:
        # ZCatalog finds it by acquisition; a proxy may be unwrapped.
        proxy.__dict__["_v_lexicon"] = lexicon
    return proxy
