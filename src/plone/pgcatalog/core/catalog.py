"""The catalog of one tool in one ZODB connection, the base of searching and cataloguing; its indexes and columns."""

from Acquisition import aq_base
from collections.abc import Callable
from collections.abc import Container
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from ExtensionClass import Base
from itertools import islice
from plone.pgcatalog.core import cataloguer
from plone.pgcatalog.core.configuration import Configuration
from plone.pgcatalog.database.layout import Layout
from plone.pgcatalog.database.session import connection_of
from plone.pgcatalog.database.session import Session
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.cached_attributes import MissingAttributes
from plone.pgcatalog.indexes.context import SearchContext
from plone.pgcatalog.indexes.registry import settings_of
from plone.pgcatalog.indexes.registry import translator_class
from plone.pgcatalog.indexing.codec import encode
from plone.pgcatalog.indexing.manager import change
from plone.pgcatalog.indexing.objects import site_path
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.query.criteria import canonical
from plone.pgcatalog.query.criteria import with_lists
from plone.pgcatalog.query.expression import WHERE
from plone.pgcatalog.results.announced import Announced
from plone.pgcatalog.results.announced import MOST
from plone.pgcatalog.results.brain import brain_class
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.settings import RESTRICTIONS
from plone.pgcatalog.settings import search_timeout
from plone.pgcatalog.sql.column import columns_of
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.sql.values import is_storable
from plone.pgcatalog.storage import is_supported
from Products.ZCatalog.Catalog import CatalogError
from Products.ZCatalog.CatalogBrains import NoBrainer
from typing import Any
from ZODB.utils import u64


#: Bits of the catalog's counter for the changes that a transaction has pending.
PENDING_BITS = 32


class Catalog(Base):
    """The catalog of *tool*, which may be acquisition-wrapped; ``tool._core`` returns it."""

    def __init__(self, tool: Any, configuration: Configuration | None = None) -> None:
        # In a tuple: a plain attribute would be wrapped in the acquisition context of this object.
        self._bound = (tool,)
        self._configuration = configuration
        self._jar: Any = None
        self._zoid: int | None = None

    def __of__(self, tool: Any) -> "Catalog":
        """Return a catalog bound to the wrapped *tool*: the value of ``tool._core``."""
        return Catalog(tool, self._configuration)

    def fixed(self) -> "Catalog":
        """Return the catalog with its present configuration, independent of later changes of the tool."""
        return Catalog(self.tool, self.configuration)

    @property
    def tool(self) -> Any:
        """The catalog tool."""
        return self._bound[0]

    # -- configuration

    @property
    def configuration(self) -> Configuration:
        """The present configuration of the tool.  Raises CatalogError for an index type without a translator."""
        return self._configuration or Configuration.of(self.tool)

    @property
    def indexes(self) -> Mapping[str, IndexTranslator]:
        """The indexes: name -> translator."""
        return self.configuration.translators

    def translator(self, name: str) -> IndexTranslator:
        """Return the translator of the index *name*; raises KeyError."""
        return self.indexes[name]

    @property
    def context(self) -> SearchContext:
        """A search context without looked-up words: the indexes, and the tuning of the site."""
        configuration = self.configuration
        return SearchContext(configuration.translators, tuning=configuration.tuning)

    @property
    def rewriters(self) -> list[Any]:
        """The indexes that rewrite queries."""
        return [index.__of__(self.tool) for index in self.configuration.rewriters.values()]

    @property
    def names(self) -> tuple[str, ...]:
        """The metadata columns."""
        return self.configuration.columns

    @property
    def excluded_keys(self) -> tuple[str, ...]:
        """The keys of idx that no brain reads."""
        return self.configuration.excluded_keys

    def layout(self) -> Layout:
        """Return the typed columns and SQL indexes that the configured indexes need."""
        return self.configuration.layout

    # -- connection

    @property
    def jar(self) -> Any:
        """The ZODB connection; raises CatalogError if its storage is not zodb-pgjsonb."""
        if self._jar is None:
            jar = connection_of(self.tool)
            if not is_supported(jar):
                raise CatalogError("this catalog needs the storage zodb-pgjsonb")
            self._jar = jar
        return self._jar

    @property
    def session(self) -> Session:
        """The session of the ZODB connection.  Raises HistoryChanged."""
        return Session.of(self.jar)

    @property
    def zoid(self) -> int:
        """The oid of the tool as a number; a new tool gets one."""
        if self._zoid is None:
            tool = aq_base(self.tool)
            if tool._p_oid is None:
                self.jar.add(tool)
            self._zoid = u64(tool._p_oid)
        return self._zoid

    def view(self) -> CatalogView:
        """Return a view of the rows that the transaction sees."""
        return CatalogView(self.session, self.zoid, self.layout())

    def search_view(self) -> CatalogView:
        """Return a view whose statements have the site's time limit for searches."""
        view = self.view()
        view.limit = search_timeout(self.tool) or None
        return view

    def change(self) -> CatalogPending:
        """Return the pending changes of the transaction, to add to them."""
        return change(self.session, self.tool, self.zoid, site_path(self.tool))

    @property
    def counter(self) -> int:
        """A number that changes with each change of the catalog that this transaction sees, and never repeats.

        It consists of the tid of the last committed change and the number of pending changes.  A tid is a time, so it does
        not repeat even if the database has lost transactions.
        """
        session = self.session
        state = session.read_states().get(self.zoid)
        pending = session.pending.get(self.zoid)
        return ((state.tid if state else 0) << PENDING_BITS) + (pending.changes if pending else 0)

    # -- searching

    def announce(self, name: str, keys: Iterable[Any], source: Hashable) -> None:
        """Announce searches for *keys* in the index *name*: the first search for one of them reads the rows of all.

        - *name*: an index with one row per key, such as a UUIDIndex; announcements for another index have no effect
        - *keys*: at most ``announced.MOST`` are used
        - *source*: the origin of *keys*, such as a text; each source is announced once per snapshot, None always

        See ``results.announced``.
        """
        translator = self.indexes.get(name)
        announced = Announced.of(self.session, self.zoid)
        if translator is None or not announced.is_new(source):
            return
        part = translator.where({name: list(islice(keys, MOST))})
        if isinstance(part, Predicate) and part.column.is_unique:
            announced.add(part)

    def make_query(self, query: Mapping[str, Any]) -> dict[str, Any]:
        """Return *query* as the indexes that rewrite queries return it, with its plain lists sorted."""
        indexes = self.indexes
        return canonical(with_lists(query, indexes), indexes, self.rewriters, every=True)

    @property
    def brains(self) -> type:
        """The second base class of brains; volatile, as in ZCatalog."""
        brains: type = getattr(aq_base(self.tool), "_v_brains", NoBrainer)
        return brains

    def brain_maker(self) -> Callable[..., Any]:
        """Return a function that creates brains, wrapped in the tool: (RowLoader, rid, two scores, Row or None)."""
        cls, tool = brain_class(self.brains, self.names), self.tool

        def brain(loader: Any, rid: int, score: Any = 1, normalized: Any = 1, row: Any = None) -> Any:
            return cls(loader, rid, score, normalized, row).__of__(tool)

        return brain

    # -- cataloguing

    def entry(self, obj: Any, uid: str, missing: MissingAttributes | None = None) -> Entry:
        """Return the entry that cataloguing *obj* under *uid* would store; *missing* as in ``CachedAttributes``.

        Raises the errors of indexers.
        """
        return cataloguer.entry(self, obj, uid, missing=missing)


def add_column(catalog: Catalog, name: str, default: Any = None) -> None:
    """Add the metadata column *name* to *catalog*.

    Rows have the *default*, or Missing.Value, until they are reindexed.  Raises CatalogError, as ZCatalog does, for an
    existing or invalid name.
    """
    name = name.strip()
    tool = aq_base(catalog.tool)
    if name in tool._columns:
        raise CatalogError(f"The column {name} already exists")
    if name[0] == "_":
        raise CatalogError('Cannot cache fields beginning with "_"')
    if not is_storable(name):
        raise CatalogError(f"{name!a} has characters that PostgreSQL does not support")
    tool._columns = (*tool._columns, name)
    if default not in (None, ""):
        idx = {name: encode(default)}
        for path, zoid in catalog.view().select("path, zoid").value():
            catalog.change().put(Entry(path, zoid=zoid, idx=idx))


def delete_column(catalog: Catalog, name: str) -> None:
    """Remove the metadata column *name*; raises ValueError if there is none."""
    tool = aq_base(catalog.tool)
    names = list(tool._columns)
    del names[names.index(name)]
    tool._columns = tuple(names)


def add_index(catalog: Catalog, name: str, index: Any) -> None:
    """Add the *index* object under *name*; the commit adds its columns.

    Raises CatalogError for an invalid or existing name, or an index type without a translator.
    """
    name = name.strip()
    tool = aq_base(catalog.tool)
    check_index_name(name, tool._indexes)
    if isinstance(index, str):
        raise TypeError("addIndex needs an index object, not the name of a type")
    cls = translator_class(index.meta_type)
    if cls is None:
        raise CatalogError(f"indexes of type {index.meta_type!r} are not supported ({name})")
    if not tool._indexes:
        catalog.change().is_whole = True
    settings = settings_of(aq_base(index))
    tool._index_columns[name] = free_columns(catalog, name, cls, settings)
    tool._indexes[name] = settings
    tool._p_changed = True
    catalog.change().layout_changed = True


def free_columns(catalog: Catalog, name: str, cls: type[IndexTranslator], index: Any) -> str:
    """Return a base name for the columns of *index* that no other index uses, and that never had another type."""
    tool = aq_base(catalog.tool)
    used = set(catalog.layout().names)
    taken = set(tool._index_columns.values())
    while True:
        base = columns_of(name, taken)
        columns = cls(index, base).columns()
        if not any(c.name in used or tool._old_columns.get(c.name, c.type) != c.type for c in columns):
            return base
        taken.add(base)


def delete_index(catalog: Catalog, name: str) -> None:
    """Remove the index *name*; raises CatalogError if there is none."""
    tool = aq_base(catalog.tool)
    if name not in tool._indexes:
        raise CatalogError(f"The index {name} does not exist")
    columns = catalog.translator(name).columns()
    pending = catalog.change()
    pending.clear_columns(frozenset(c.name for c in columns))
    tool._old_columns = tool._old_columns | {c.name: c.type for c in columns}
    del tool._indexes[name]
    del tool._index_columns[name]
    tool._p_changed = True
    pending.layout_changed = True


#: The keys of a query dict that are options, not names of indexes: ZCatalog's, Plone's and our own.
QUERY_WORDS = frozenset(
    {
        "b_size",
        "b_start",
        "show_inactive",
        "sort-limit",
        "sort-on",
        "sort-order",
        "sort_limit",
        "sort_on",
        "sort_order",
        WHERE,
    }
)
#: Prefixes of the options that a restricted search removes from the query of its caller.
RESTRICTION_PREFIXES = tuple(f"{name}_" for name in RESTRICTIONS)


def check_index_name(name: str, taken: Container[str] = ()) -> None:
    """Raise CatalogError for a *name* that no index can have, or that is *taken*.

    ZCatalog accepts QUERY_WORDS: each search with such an option then also searches the index of that name, and finds
    nothing.  It also accepts names that PostgreSQL cannot store, and prefixes of RESTRICTION_PREFIXES.
    """
    if name in taken:
        raise CatalogError(f"The index {name} already exists")
    if name.startswith("_"):
        raise CatalogError('Cannot index fields beginning with "_"')
    if not name:
        raise CatalogError("Name of index is empty")
    if not is_storable(name):
        raise CatalogError(f"{name!a} has characters that PostgreSQL does not support")
    if name in QUERY_WORDS:
        raise CatalogError(f"An index cannot have the name {name!r}: it is a reserved word in queries")
    if name.startswith(RESTRICTION_PREFIXES):
        raise CatalogError(f"An index cannot have the name {name!r}: restricted searches remove it from queries")
