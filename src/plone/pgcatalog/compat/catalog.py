"""``portal_catalog._catalog`` and what hangs on it, for code that reaches inside a ZCatalog."""

from Acquisition import aq_base
from Acquisition import aq_inner
from Acquisition import aq_parent
from BTrees.IIBTree import IISet
from ExtensionClass import Base
from plone.pgcatalog.advice.connection import dsn_of
from plone.pgcatalog.compat.mappings import Data
from plone.pgcatalog.compat.mappings import IndexMapping
from plone.pgcatalog.compat.mappings import Paths
from plone.pgcatalog.compat.mappings import Uids
from plone.pgcatalog.compat.records import Records
from plone.pgcatalog.database.missing import expects_relation
from plone.pgcatalog.database.missing import report as report_missing
from plone.pgcatalog.database.schema import Layout
from plone.pgcatalog.database.session import connection_of
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.discovery.highlight import SOURCE_INDEX
from plone.pgcatalog.fulltext.counting import heed
from plone.pgcatalog.fulltext.infix import find_word_parts
from plone.pgcatalog.index_names import check_index_name
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.once import OnceOnly
from plone.pgcatalog.indexes.registry import settings_of
from plone.pgcatalog.indexes.registry import translator_class
from plone.pgcatalog.indexing.codec import encode
from plone.pgcatalog.indexing.extract import Extraction
from plone.pgcatalog.indexing.extract import metadata_of
from plone.pgcatalog.indexing.objects import clean_path
from plone.pgcatalog.indexing.objects import is_storable
from plone.pgcatalog.indexing.objects import oid_of
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.observe.report import report_slow
from plone.pgcatalog.observe.trace import Trace
from plone.pgcatalog.query.compiler import compile_query
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import sort_directions
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.query.expression import as_dict
from plone.pgcatalog.query.memory import CompiledQueries
from plone.pgcatalog.query.memory import question
from plone.pgcatalog.results.cache import set_limits
from plone.pgcatalog.results.prefetch import prefetch
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.settings import parts_of_words
from plone.pgcatalog.settings import result_cache_mb
from plone.pgcatalog.settings import search_timeout
from plone.pgcatalog.settings import site_tuning
from plone.pgcatalog.sql.names import columns_of
from plone.pgcatalog.storage import is_supported
from Products.CMFCore.interfaces import ISiteRoot
from Products.PluginIndexes.interfaces import ITransposeQuery
from Products.ZCatalog.Catalog import CatalogError
from typing import Any
from ZODB.utils import u64


#: Bits of the catalog's counter for the changes that a transaction has pending.
PENDING_BITS = 32


class _CatalogCompat(Records, Base):
    """Answers for ``Products.ZCatalog.Catalog.Catalog``; bound to the *tool*, which may be acquisition-wrapped.

    Not persistent: the tool keeps the index settings and column names, PostgreSQL the rest.
    """

    def __init__(self, tool: Any) -> None:
        # In a tuple: an attribute of its own would be wrapped in this object's acquisition context.
        self._bound = (tool,)
        self._jar: Any = None
        self._zoid: int | None = None
        self._translators: dict[str, IndexTranslator] = {}

    def __of__(self, tool: Any) -> "_CatalogCompat":
        """Return the one bound to the wrapped *tool*: what ``tool._catalog`` gives."""
        return _CatalogCompat(tool)

    @property
    def tool(self) -> Any:
        """The catalog tool."""
        return self._bound[0]

    @property
    def __parent__(self) -> Any:
        """The tool, for ``aq_parent``."""
        return self.tool

    # -- configuration

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
        """Add the metadata column *name*; rows have *default_value*, or Missing.Value, until they are reindexed.

        Raises CatalogError as ZCatalog does for a taken or refused name.
        """
        name = name.strip()
        if name in self.names:
            raise CatalogError(f"The column {name} already exists")
        if name[0] == "_":
            raise CatalogError('Cannot cache fields beginning with "_"')
        if not is_storable(name):
            raise CatalogError(f"{name!a} has characters that PostgreSQL cannot hold")
        self.names = (*self.names, name)
        if default_value not in (None, ""):
            idx = {name: encode(default_value)}
            for path, zoid in self.view().select("path, zoid"):
                self._change().put(Entry(path, zoid=zoid, idx=idx))

    def delColumn(self, name: str, threshold: Any = None) -> None:
        """Remove the metadata column *name*; raises ValueError when there is none."""
        names = list(self.names)
        del names[names.index(name)]
        self.names = tuple(names)

    def getIndex(self, name: str) -> Any:
        """Return the index *name*, wrapped in the tool; raises KeyError."""
        return self.indexes[name].__of__(self.tool)

    def translator(self, name: str) -> IndexTranslator:
        if name not in self._translators:
            tool = aq_base(self.tool)
            index = self.getIndex(name)
            cls = translator_class(index.meta_type)
            if cls is None:
                raise CatalogError(f"no translator for indexes of type {index.meta_type!r} ({name})")
            self._translators[name] = cls(index, tool._index_columns[name])
            self._translators[name].relate(self.translator)
            if name == SOURCE_INDEX:
                self._translators[name].tuning = site_tuning(self.tool, lambda: site_path(self.tool))
        return self._translators[name]

    def layout(self) -> Layout:
        """Return the typed columns and SQL indexes that the configured indexes need."""
        tool = aq_base(self.tool)
        layout: Layout | None = getattr(tool, "_v_layout", None)
        if layout is None:
            self._load_indexes()
            translators = [self.translator(name) for name in self.indexes]
            columns = tuple(c for t in translators for c in t.columns())
            layout = Layout(columns, tuple(i for t in translators for i in t.sql_indexes()))
            tool._v_layout = layout
        return layout

    def _load_indexes(self) -> None:
        """Have the index objects loaded together: one by one each costs a new connection a round trip."""
        stored = [index for index in aq_base(self.tool)._indexes.values() if index._p_jar is not None]
        if stored:
            prefetch(stored[0]._p_jar, [u64(index._p_oid) for index in stored])

    def addIndex(self, name: str, index_type: Any) -> None:
        """Add the index object *index_type*; its column appears with the commit.

        Raises CatalogError for a bad or taken name, or an index type nobody can translate.
        """
        name = name.strip()
        check_index_name(name, self.indexes)
        if isinstance(index_type, str):
            raise TypeError("addIndex takes an index object; resolve its type first")
        cls = translator_class(index_type.meta_type)
        if cls is None:
            raise CatalogError(f"indexes of type {index_type.meta_type!r} cannot be kept in PostgreSQL ({name})")
        tool = aq_base(self.tool)
        if not tool._indexes:
            self._change().is_whole = True
        index = settings_of(aq_base(index_type))
        tool._index_columns[name] = self._free_columns(name, cls, index)
        tool._indexes[name] = index
        tool._p_changed = True
        self._change_layout()

    def _free_columns(self, name: str, cls: type[IndexTranslator], index: Any) -> str:
        """Return the base name for columns of *index* that no other index uses, nor ever used with another type."""
        tool = aq_base(self.tool)
        used = set(self.layout().names)
        taken = set(tool._index_columns.values())
        while True:
            base = columns_of(name, taken)
            columns = cls(index, base).columns()
            if not any(c.name in used or tool._old_columns.get(c.name, c.type) != c.type for c in columns):
                return base
            taken.add(base)

    def delIndex(self, name: str) -> None:
        if name not in self.indexes:
            raise CatalogError(f"The index {name} does not exist")
        tool = aq_base(self.tool)
        self._translators.clear()
        columns = self.translator(name).columns()
        self._change().clear_columns(frozenset(c.name for c in columns))
        tool._old_columns = tool._old_columns | {c.name: c.type for c in columns}
        del tool._indexes[name]
        del tool._index_columns[name]
        tool._p_changed = True
        self._change_layout()

    def clearIndex(self, name: str) -> None:
        """Empty the index *name* for all rows."""
        columns = frozenset(c.name for c in self.translator(name).columns())
        if columns:
            self._change().clear_columns(columns)

    def unindex(self, name: str, rid: int) -> None:
        """Empty the index *name* for the row *rid*; an unknown row is none of it."""
        translator = self.translator(name)
        columns = {c.name: None for c in translator.columns()}
        vanished = frozenset({name} - set(self.names) if translator.in_idx else ())
        for path, zoid in self.view().select("path, zoid", Condition("rid = %s", (rid,))):
            self._change().put(Entry(path, zoid=zoid, columns=columns, vanished=vanished))

    def _change_layout(self) -> None:
        self._translators.clear()
        tool = aq_base(self.tool)
        tool._v_layout = tool._v_transposing = None
        self._change().layout_changed = True

    # -- connection

    @property
    def jar(self) -> Any:
        """The ZODB connection; raises CatalogError when it does not read from zodb-pgjsonb."""
        if self._jar is None:
            jar = connection_of(self.tool)
            if not is_supported(jar):
                raise CatalogError("this catalog needs a site whose storage is zodb-pgjsonb")
            self._jar = jar
        return self._jar

    @property
    def session(self) -> Session:
        return Session.of(self.jar)

    @property
    def zoid(self) -> int:
        if self._zoid is None:
            tool = aq_base(self.tool)
            if tool._p_oid is None:
                self.jar.add(tool)
            self._zoid = u64(tool._p_oid)
        return self._zoid

    def view(self) -> CatalogView:
        return CatalogView(self.session, self.zoid, self.layout())

    def search_view(self) -> CatalogView:
        """Return a view each of whose statements may take as long as the site gives a search."""
        view = self.view()
        view.limit = search_timeout(self.tool)
        return view

    def _change(self) -> Any:
        return self.session.change(self.tool, self.zoid, site_path(self.tool))

    # -- cataloguing

    def catalogObject(
        self, object: Any, uid: str, threshold: Any = None, idxs: Any = None, update_metadata: Any = True
    ) -> int:
        """Index *object* (an indexable wrapper) under *uid*, its path.

        *idxs* limits the indexes (all for None or empty); metadata is taken unless *update_metadata* is false,
        and always for a path that is new.  Raises what indexers raise, AttributeError excepted.
        """
        entry = self.entry(object, uid, idxs, bool(update_metadata))
        self._change().put(entry)
        return len(entry.columns)

    def entry(self, object: Any, uid: str, idxs: Any = None, update_metadata: bool = True) -> Entry:
        """Return what ``catalogObject`` would make of *object*, without cataloguing it."""
        names = list(self.indexes) if not idxs else self._with_transposing(idxs)
        source = OnceOnly(object)
        extraction = Extraction(uid, source)
        extraction.add_indexes([self.translator(n) for n in names], self.names)
        if update_metadata:
            extraction.add_metadata(self.names)
        return Entry(
            clean_path(uid),
            zoid=oid_of(object, self.jar),
            full=not idxs and update_metadata,
            columns=extraction.columns,
            idx=extraction.idx,
            vanished=frozenset(extraction.vanished),
            late=None if update_metadata else lambda: metadata_of(uid, source, self.names),
        )

    def _with_transposing(self, idxs: Any) -> list[str]:
        """Return the names *idxs*, and those of the indexes that answer queries in their place."""
        names = dict.fromkeys(idxs)
        for name in self._transposing():
            if not names.keys().isdisjoint(self.getIndex(name).getIndexNames()):
                names[name] = None
        return list(names)

    def uncatalogObject(self, uid: str) -> None:
        """Remove *uid*; an unknown one is no error."""
        if isinstance(uid, str):
            self._change().delete(clean_path(uid))

    def clear(self) -> None:
        self._change().clear()

    def drop(self) -> None:
        """Forget everything, and drop the relation with the commit."""
        self.clear()
        self._change().dropped = True

    # -- searching

    def searchResults(self, query: Any = None, _merge: bool = True, **kw: Any) -> Any:
        """Search; *query* and *kw* together are a ZCatalog query.  Raises CatalogError for a bad sort_on."""
        query = self.merge_query_args(as_dict(query), **kw)
        if query is None:
            query = {}
        # All index objects at once, before the one to sort by is asked for.
        self._transposing()
        sort_indexes = self._getSortIndex(query)
        return self.search(
            query, sort_indexes, self._get_sort_attr("order", query), self._get_sort_attr("limit", query), _merge
        )

    __call__ = searchResults

    def search(
        self, query: Any, sort_index: Any = None, reverse: Any = False, limit: Any = None, merge: bool = True
    ) -> Any:
        """Search with resolved *sort_index* objects; *reverse* is a bool, or a sort_order value."""
        query = self.make_query(query)
        indexes = [] if sort_index is None else sort_index if isinstance(sort_index, list) else [sort_index]
        for index in indexes:
            index.documentToKeyMap  # noqa: B018  AttributeError for an index that cannot sort, as in ZCatalog
        if isinstance(reverse, bool | int):
            directions = [bool(reverse)] * len(indexes)
        else:
            directions = sort_directions(len(indexes), reverse)
        sort = [(index.getId(), r) for index, r in zip(indexes, directions, strict=True)]
        set_limits((id(self.jar.db()), self.zoid), result_cache_mb(self.tool))
        trace = Trace(self, query, sort, limit)
        if parts_of_words(self.tool) and SOURCE_INDEX in self.indexes:
            # Another translator for each search: what contains its words changes with the texts.
            translator = self.translator(SOURCE_INDEX).with_word_parts(find_word_parts(self, query))
            self._translators[SOURCE_INDEX] = translator
        compiled = self._compiled(query, sort, limit)
        trace.compiled()
        view = self.search_view()
        view.trace = trace
        results = CatalogSearchResults(self, view, compiled, lambda: self._searched(compiled, query, trace.seconds))
        results._criteria, results._sort = query, sort
        self._report_missing()
        return results if merge else self._unmerged(results, indexes, directions, compiled.score is not None)

    def _compiled(self, query: dict[str, Any], sort: list[tuple[str, bool]], limit: Any) -> CompiledQuery:
        tool = aq_base(self.tool)
        known: CompiledQueries | None = getattr(tool, "_v_compiled", None)
        if known is None:
            known = tool._v_compiled = CompiledQueries()
        key = question(query, tool, sort, limit)
        compiled = known.get(key)
        if compiled is None:
            compiled = compile_query(query, self.indexes, self.translator, sort, limit)
            known.put(key, compiled)
        return compiled

    def _searched(self, compiled: CompiledQuery, query: Any, seconds: float) -> None:
        """A search has begun to answer."""
        report_slow(self, query, seconds)
        if compiled.score is not None and self.session.knows_states and self.zoid in self.session.states:
            heed(dsn_of(self), self.zoid, self.session.states[self.zoid].generation)

    def _report_missing(self) -> None:
        """Log it when this catalog should have a table and has none."""
        session = self.session
        known = self.zoid in session.pending or not session.knows_states or self.zoid in session.states
        if not known and expects_relation(self.tool):
            report_missing(self.tool)

    def _unmerged(self, results: Any, indexes: list[Any], directions: list[bool], scored: bool) -> Any:
        """Return *results* as ``Products.ZCatalog.Catalog.mergeResults`` takes them from several catalogs."""
        if indexes and results:
            return self.sortResults(IISet(b.getRID() for b in results), indexes, directions, merge=False)
        if scored:
            return [(b.data_record_score_, (1, b.data_record_score_, b.getRID()), self.__getitem__) for b in results]
        return results

    def everything(self) -> CatalogSearchResults:
        """Return all brains, ordered by rid."""
        return CatalogSearchResults(self, self.view(), CompiledQuery(EVERYTHING, ("rid",), None, Window()))

    def make_query(self, query: Any) -> dict[str, Any]:
        """Return *query* as the indexes that rewrite queries want it, its plain lists sorted."""
        for name in self._transposing():
            query = self.getIndex(name).make_query(query)
        return canonical(query)

    def _transposing(self) -> tuple[str, ...]:
        """Return the names of the indexes that rewrite queries (ITransposeQuery)."""
        tool = aq_base(self.tool)
        names: tuple[str, ...] | None = getattr(tool, "_v_transposing", None)
        if names is None:
            self._load_indexes()
            indexes = tool._indexes.items()
            names = tool._v_transposing = tuple(n for n, i in indexes if ITransposeQuery.providedBy(i))
        return names

    def sort_in_python(self, rows: list[Any], sort: Any) -> list[Any]:
        """Sort (rid, path, score) *rows* by index objects that compute their keys (GopipIndex)."""
        from plone.pgcatalog.compat.pysort import sort_rows

        return sort_rows(self, rows, sort)

    # -- single rows

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

    def hasuid(self, uid: str) -> int | None:
        return self.uids.get(uid)

    def getMetadataForRID(self, rid: int) -> dict[str, Any]:
        """Return metadata column to value; raises KeyError for an unknown rid."""
        return dict(zip(self.names, self.data[rid], strict=True))

    def getIndexDataForRID(self, rid: int) -> dict[str, Any]:
        """Return index name to what that index holds for the row, '' for nothing."""
        return {name: self.getIndex(name).getEntryForObject(rid, "") for name in self.indexes}

    def uniqueValuesFor(self, name: str) -> tuple[Any, ...]:
        return tuple(self.getIndex(name).uniqueValues())

    @property
    def counter(self) -> int:
        """A number for what this transaction sees of the catalog: another one after each change.

        It never comes again, also when the database has lost transactions: the id of the transaction that has changed the
        catalog last, a time, and the number of changes that are pending.
        """
        session = self.session
        state = session.states.get(self.zoid)
        pending = session.pending.get(self.zoid)
        return ((state.tid if state else 0) << PENDING_BITS) + (pending.changes if pending else 0)


def site_path(tool: Any) -> str | None:
    """Return the path of the site whose portal_catalog *tool* is, None if it is another catalog."""
    parent = aq_parent(aq_inner(tool))
    if tool.getId() != "portal_catalog" or not ISiteRoot.providedBy(parent):
        return None
    return "/".join(parent.getPhysicalPath())


def canonical(query: Any) -> dict[str, Any]:
    """Return *query* with its plain lists sorted, as ``Catalog.make_query`` does."""
    return {k: sorted(v) if isinstance(v, list | tuple) else v for k, v in query.items()}
