"""The catalog tool: ``portal_catalog`` answered by PostgreSQL."""

from AccessControl.class_init import InitializeClass
from AccessControl.Permissions import search_zcatalog as SearchZCatalog
from AccessControl.SecurityInfo import ClassSecurityInfo
from AccessControl.SecurityInfo import ModuleSecurityInfo
from App.special_dtml import DTMLFile
from collections.abc import Container
from OFS.Folder import Folder
from plone.pgcatalog.compat.catalog import _CatalogCompat
from plone.pgcatalog.compat.mappings import Indexes
from plone.pgcatalog.controlpanel.registry_records import set_slow_query_ms
from plone.pgcatalog.core import searcher
from plone.pgcatalog.core.catalog import Catalog
from plone.pgcatalog.discovery.similar import more_like_this
from plone.pgcatalog.discovery.suggest import did_you_mean
from plone.pgcatalog.discovery.suggest import suggest
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import translated
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.patches import Around
from plone.pgcatalog.patches import unless_patched
from plone.pgcatalog.query.criteria import as_dict
from plone.pgcatalog.query.criteria import expression_in
from plone.pgcatalog.query.criteria import with_lists
from plone.pgcatalog.query.expression import QueryError
from plone.pgcatalog.results.stream import BATCH
from plone.pgcatalog.settings import RESTRICTIONS
from plone.pgcatalog.settings import slow_query_ms
from plone.pgcatalog.zmi.page import page_of
from plone.pgcatalog.zmi.page import post_only
from plone.pgcatalog.zmi.page import PostForms
from Products.CMFPlone.CatalogTool import CatalogTool
from typing import Any
from zope.interface import implementer
from ZPublisher import zpublish


#: ZCatalog's web actions that change data; over the web they require POST and a token.
WEB_ACTIONS = (
    "manage_addColumn",
    "manage_addIndex",
    "manage_catalogClear",
    "manage_catalogFoundItems",
    "manage_catalogObject",
    "manage_catalogRebuild",
    "manage_catalogReindex",
    "manage_clearIndex",
    "manage_delColumn",
    "manage_delIndex",
    "manage_edit",
    "manage_editCatalogReport",
    "manage_normalize_paths",
    "manage_reindexIndex",
    "manage_resetCatalogReport",
    "manage_setProgress",
    "manage_subbingToggle",
    "manage_uncatalogObject",
)

#: Management pages whose forms call these actions.
WEB_FORMS = ("manage_catalogFind",)

#: Management pages of ZCatalog that are replaced by our views of the same names.
OWN_PAGES = (
    "manage_catalogAdvanced",
    "manage_catalogIndexes",
    "manage_catalogSchema",
    "manage_catalogView",
    "manage_objectInformation",
)
#: Management pages of ZCatalog that are replaced by a view of another name: page -> view.
FORMER_PAGES = {"manage_catalogPlan": "manage_slow_queries", "manage_catalogReport": "manage_slow_queries"}


# Untrusted code, such as a Script (Python), may import query objects, to narrow its searches.
ModuleSecurityInfo("plone.pgcatalog.query.objects").declarePublic(
    "And", "Eq", "In", "Not", "Or", "Path", "Range", "Text"
)


def without_options(query: Any, indexes: Container[str]) -> dict[str, Any]:
    """Return *query*, for a catalog with *indexes*, without old-style options of the restricting indexes.

    Such an option is ``allowedRolesAndUsers_range``.  Raises QueryError for a query object that names a restricting index,
    since the restriction would not replace it, and TypeError for a *query* without items.
    """
    if not hasattr(query, "items"):
        raise TypeError(f"a query must be a query dict or a query object, not {query!r:.50}")
    # Iterators are converted to lists here, because Plone reads the paths before the search does.
    query = with_lists(query, indexes)
    expression = expression_in(query)
    if expression is not None and (names := expression.names().intersection(RESTRICTIONS)):
        raise QueryError(f"the values of {', '.join(sorted(names))} are set by restricted searches")
    prefixes = tuple(f"{name}_" for name in RESTRICTIONS)
    return {k: v for k, v in query.items() if not str(k).startswith(prefixes)}


def normalize_paths(self, REQUEST):  # type: ignore[no-untyped-def]
    """Catalogue objects with a relative or outdated path under their physical path, and remove rows of missing objects"""
    for path in list(self._catalog.uids):
        obj = self.resolve_path(path) or self.resolve_url(path.lstrip("/"), REQUEST)
        obj_path = None if obj is None else "/".join(obj.getPhysicalPath())
        if path != obj_path:
            self.uncatalog_object(path)
            if obj_path is not None:
                self.catalog_object(obj, obj_path)


class Counter:
    """Read-only stand-in for ZCatalog's ``_counter`` (a ``BTrees.Length``)."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __call__(self) -> int:
        """Return a number that changes with each change of the catalog, and never repeats."""
        return self._catalog.counter

    def change(self, delta: int) -> None:
        """Do nothing: the catalog's generation advances by itself."""


@implementer(IPGCatalogTool)
class PlonePGCatalogTool(CatalogTool):
    """Plone's catalog tool, answered by PostgreSQL"""

    meta_type = "PG Catalog Tool"

    #: SQL columns of removed indexes, which stay in the relation: name -> type
    _old_columns: dict[str, str] = {}

    security = ClassSecurityInfo()

    manage_options = (
        {"label": _("Overview"), "action": "manage_catalogOverview"},
        {"label": "Contents", "action": "manage_main"},
        {"label": _("Catalog"), "action": "manage_catalogView"},
        {"label": _("Indexes & Metadata"), "action": "manage_catalogIndexes"},
        {"label": _("Advanced"), "action": "manage_catalogAdvanced"},
        {"label": _("Slow Queries"), "action": "manage_slow_queries"},
        {"label": _("Index Advice"), "action": "manage_index_advice"},
        {"label": "Properties", "action": "manage_propertiesForm"},
        {"label": "Security", "action": "manage_access"},
    )

    Indexes = Indexes()
    for _action in WEB_ACTIONS:
        locals()[_action] = Around(lambda action, stock: post_only(action))
    for _page in WEB_FORMS:
        locals()[_page] = Around(lambda page, stock: PostForms(page) if isinstance(page, DTMLFile) else page)
    for _page in (*OWN_PAGES, *FORMER_PAGES):
        locals()[_page] = unless_patched(page_of(FORMER_PAGES.get(_page, _page)))
    del _action, _page

    # Without a docstring, like the inherited method, so that it is not published.
    @security.public
    def filtered_manage_options(self, REQUEST: Any = None) -> list[dict[str, Any]]:
        tabs = super().filtered_manage_options(REQUEST)
        return [tab | {"label": translated(tab["label"], self.REQUEST)} for tab in tabs]

    @property
    def long_query_time(self) -> float:
        """The threshold of slow queries in seconds, under ZCatalog's name."""
        return slow_query_ms(self) / 1000

    @long_query_time.setter
    def long_query_time(self, seconds: Any) -> None:
        set_slow_query_ms(self, float(seconds) * 1000)

    @property
    def _core(self) -> Catalog:
        """The catalog, for our own code."""
        return Catalog(self)

    @property
    def _catalog(self) -> _CatalogCompat:
        """Stand-in for ZCatalog's inner ``Catalog``, for code of others."""
        return _CatalogCompat(self)

    def __init__(self, id: str = "portal_catalog") -> None:
        Folder.__init__(self, id)
        #: index name -> the real index object, settings only
        self._indexes: dict[str, Any] = {}
        #: index name -> base name of its SQL columns
        self._index_columns: dict[str, str] = {}
        #: metadata columns
        self._columns: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return True

    # -- searching

    # Overridden methods have the permissions that their base class, or a patch of it, declares.
    @zpublish(False)
    def searchResults(self, query: Any = None, **kw: Any) -> Any:
        """Search the rows that the current user may see, as ``Products.CMFPlone.CatalogTool`` does.

        *query* is a query dict or a query object, which may also be given as ``where``.
        """
        query = as_dict(query)
        if isinstance(query, dict):
            query = without_options(query, self._indexes)
        return super().searchResults(query, **without_options(kw, self._indexes))

    @zpublish(False)
    def search(self, query: Any, sort_index: Any = None, reverse: Any = 0, limit: Any = None, merge: Any = 1) -> Any:
        """Search with the same restrictions as searchResults, sort and limit being arguments."""
        return super().search(without_options(as_dict(query), self._indexes), sort_index, reverse, limit, merge)

    @security.protected(SearchZCatalog)
    @zpublish(False)
    def facets(self, query: Any, names: Any = (), **options: Any) -> Any:
        """Count the values of the indexes *names* in the rows that ``searchResults(query)`` finds.

        Returns {name: Facet}; *options* and errors as in ``CatalogSearchResults.facets``.
        """
        return self.searchResults(query, b_size=0).facets(names, **options)

    @security.protected(SearchZCatalog)
    @zpublish(False)
    def iterate(self, query: Any = None, batch: int = BATCH, **kw: Any) -> Any:
        """Return an iterator over the brains of all rows of ``searchResults(query)``, which reads *batch* rows at a time.

        Raises QueryError for a query with a limit, or sorted by an index that SQL cannot sort by.
        """
        return self.searchResults(query, **kw).iterate(batch)

    @security.protected(SearchZCatalog)
    @zpublish(False)
    def more_like_this(self, item: Any, limit: int = 10, **query: Any) -> Any:
        """Return up to *limit* results of *query* that are similar to *item*, a brain, an object or a UID.

        See ``plone.pgcatalog.discovery.similar``.
        """
        return more_like_this(self, item, limit, query).value()

    @security.protected(SearchZCatalog)
    @zpublish(False)
    def suggest(self, text: str, limit: int = 10, **query: Any) -> list[str]:
        """Return up to *limit* words that begin with the last word of *text*, from the rows that *query* finds.

        See ``plone.pgcatalog.discovery.suggest``.
        """
        return suggest(self, text, limit, query)

    @security.protected(SearchZCatalog)
    @zpublish(False)
    def did_you_mean(self, text: str, **query: Any) -> str | None:
        """Return *text* with unknown words replaced by words of the rows that *query* finds; None if there are none."""
        return did_you_mean(self, text, query)

    # -- cataloguing

    @property
    def _counter(self) -> Counter:
        return Counter(self._core)

    @zpublish(False)
    def refreshCatalog(self, clear: Any = 0, pghandler: Any = None) -> None:
        """Catalogue all catalogued objects again; over the web only by ``manage_catalogReindex``."""
        super().refreshCatalog(clear, pghandler)

    manage_normalize_paths = Around(lambda action, stock: post_only(normalize_paths if stock else action))

    @unless_patched
    @zpublish(False)
    def getAllBrains(self) -> Any:
        """Yield the brains of all rows."""
        yield from self.searchAll().iterate()

    @unless_patched
    @zpublish(False)
    def searchAll(self) -> Any:
        """Return the brains of all rows."""
        return searcher.everything(self._core)

    @unless_patched
    @zpublish(False)
    def index_objects(self) -> Any:
        """Return the index objects, not acquisition-wrapped."""
        return list(self._catalog.indexes.values())


InitializeClass(PlonePGCatalogTool)
