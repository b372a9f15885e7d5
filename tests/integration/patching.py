"""Patches of ZCatalog's classes, and how a site calls each of their methods."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from plone.pgcatalog.compat.zcatalog import NOT_CALLED
from plone.protect import createToken
from Products.CMFCore.CatalogTool import CatalogTool as BaseTool
from Products.CMFCore.indexing import processQueue
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.ZCatalog.Catalog import Catalog
from Products.ZCatalog.ZCatalog import ZCatalog
from types import FunctionType
from typing import Any


CLASSES = (CatalogTool, BaseTool, ZCatalog, Catalog)
UNCALLED = {(base, name) for cls, names in NOT_CALLED.items() for base in cls.__mro__ for name in names}
QUERY = {"portal_type": "Document", "sort_on": "getId", "sort_order": "descending", "sort_limit": 2}
Names = set[tuple[type, str]]


def is_page(value: Any) -> bool:
    return bool(getattr(value, "raw", None) or getattr(value, "filename", None))


METHODS = [
    (cls, name)
    for cls in CLASSES
    for name, value in vars(cls).items()
    if isinstance(value, FunctionType) or is_page(value)
    if (cls, name) not in UNCALLED
]


@contextmanager
def attribute(cls: type, name: str, value: Any) -> Iterator[None]:
    """Set the attribute *name* of the class *cls* to *value* within the block."""
    before = {name: vars(cls)[name]} if name in vars(cls) else {}
    setattr(cls, name, value)
    try:
        yield
    finally:
        delattr(cls, name)
        for value in before.values():
            setattr(cls, name, value)


@contextmanager
def recorded(cls: type, name: str, reached: Names, stored_as: str | None = None) -> Iterator[None]:
    """Patch a method by a function that records its calls in *reached* and calls the original.

    The original is in a variable, or, as with collective.monkeypatcher, in the attribute *stored_as* of the class.
    """
    original = vars(cls)[name]

    def patch(self: Any, *args: Any, **kw: Any) -> Any:
        reached.add((cls, name))
        if is_page(original):
            return "page"
        return getattr(self, stored_as)(*args, **kw) if stored_as else original(self, *args, **kw)

    with ExitStack() as stack:
        if stored_as:
            stack.enter_context(attribute(cls, stored_as, original))
        stack.enter_context(attribute(cls, name, patch))
        yield


def web(catalog: Any) -> dict[str, Any]:
    """Return the fields of a form as sent to the management interface."""
    request = catalog.REQUEST
    request["REQUEST_METHOD"] = "POST"
    request.form["_authenticator"] = createToken()
    request["PARENTS"] = [catalog, catalog.aq_parent]
    return {"REQUEST": request, "RESPONSE": request.response, "URL1": "http://nohost"}


def without_request(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "REQUEST"}


def page_of(catalog: Any) -> Any:
    return catalog.aq_parent["a-page"]


def path_of(catalog: Any) -> str:
    return "/".join(page_of(catalog).getPhysicalPath())


def rid_of(catalog: Any) -> int:
    rid: int = catalog._catalog.uids[path_of(catalog)]
    return rid


def indexes_again(catalog: Any, change: Callable[[], Any]) -> None:
    """Run *change*, which adds the index ``patched``, and delete that index."""
    change()
    catalog._catalog.delIndex("patched")


def called(names: str, *arguments: Callable[[Any], Any]) -> dict[str, Callable[[Any], Any]]:
    """Return name -> a call of this method with the results of *arguments* for the catalog."""

    def call_of(name: str) -> Callable[[Any], Any]:
        return lambda c: getattr(c, name)(*(argument(c) for argument in arguments))

    return {name: call_of(name) for name in names.split()}


#: Method -> how a site calls it on the catalog.
CALLS: dict[str, Callable[[Any], Any]] = {
    **called(
        "getCounter _increment_counter refreshCatalog manage_catalogRebuild manage_catalogClear schema valid_roles"
    ),
    **called("manage_resetCatalogReport getIndexObjects _searchable_arguments _searchable_result_columns"),
    **called("availableIndexes getCatalogPlan getCatalogReport __len__"),
    **called("uncatalog_object getrid getMetadataForUID getIndexDataForUID resolve_path", path_of),
    **called("getpath getobject getMetadataForRID getIndexDataForRID", rid_of),
    **called("indexObject reindexObject _indexObject _unindexObject", page_of),
    **dict.fromkeys(("searchResults", "indexes", "merge_query_args"), lambda c: list(c.searchResults(**QUERY))),
    **dict.fromkeys(("make_query", "_get_sort_attr", "_getSortIndex"), lambda c: c.searchResults(**QUERY)),
    **dict.fromkeys(("addColumn", "delColumn"), lambda c: (c.addColumn("patched"), c.delColumn("patched"))),
    "__call__": lambda c: (list(c(**QUERY)), c._catalog(QUERY)),
    "unrestrictedSearchResults": lambda c: list(c.unrestrictedSearchResults(QUERY)),
    "_unrestrictedSearchResults": lambda c: list(c._unrestrictedSearchResults(QUERY)),
    "search": lambda c: list(c.search({"portal_type": "Document"}, "getId", 1)),
    "allow_inactive": lambda c: c.allow_inactive({}),
    "_listAllowedRolesAndUsers": lambda c: c.searchResults(portal_type="Document"),
    "_convertQuery": lambda c: c._convertQuery({}),
    "unindexObject": lambda c: (c.unindexObject(page_of(c)), processQueue(), page_of(c).reindexObject()),
    "_reindexObject": lambda c: c._reindexObject(page_of(c), ["Title"], 0),
    "catalog_object": lambda c: c.catalog_object(page_of(c), path_of(c), ["Title"]),
    "maintain_zodb_cache": lambda c: c.catalog_object(page_of(c)),
    "_removeIndex": lambda c: (c.addIndex("patched", "FieldIndex"), c._removeIndex("patched")),
    "addIndex": lambda c: indexes_again(c, lambda: c.addIndex("patched", "FieldIndex")),
    "delIndex": lambda c: (c.addIndex("patched", "FieldIndex"), c.delIndex("patched")),
    "manage_addIndex": lambda c: indexes_again(c, lambda: c.manage_addIndex("patched", "FieldIndex")),
    "manage_delIndex": lambda c: (c.addIndex("patched", "FieldIndex"), c.manage_delIndex(["patched"])),
    "manage_addColumn": lambda c: (c.manage_addColumn("patched"), c.delColumn("patched")),
    "manage_delColumn": lambda c: (c.addColumn("patched"), c.manage_delColumn(["patched"])),
    "clearIndex": lambda c: c.clearIndex("Title"),
    "manage_clearIndex": lambda c: c.manage_clearIndex(["Title"]),
    "reindexIndex": lambda c: c.reindexIndex("Title", c.REQUEST),
    "manage_reindexIndex": lambda c: c.manage_reindexIndex(["Title"]),
    "clearFindAndRebuild": lambda c: (c.clearFindAndRebuild(), processQueue()),
    "manage_catalogReindex": lambda c: c.manage_catalogReindex(**web(c)),
    "manage_catalogFoundItems": lambda c: c.manage_catalogFoundItems(
        **web(c), URL2="http://nohost", obj_ids=["a-page"]
    ),
    "manage_catalogObject": lambda c: c.manage_catalogObject(**web(c), urls=path_of(c)),
    "manage_uncatalogObject": lambda c: c.manage_uncatalogObject(**web(c), urls=path_of(c)),
    "manage_edit": lambda c: c.manage_edit(**without_request(web(c)), threshold=10000, REQUEST=c.REQUEST),
    "manage_subbingToggle": lambda c: (c.manage_subbingToggle(**web(c)), c.manage_subbingToggle(**web(c))),
    "manage_normalize_paths": lambda c: c.manage_normalize_paths(web(c)["REQUEST"]),
    "manage_setProgress": lambda c: c.manage_setProgress(0),
    "manage_editCatalogReport": lambda c: c.manage_editCatalogReport(0.1),
    "_getProgressThreshold": lambda c: c.manage_reindexIndex(["Title"]),
    "uniqueValuesFor": lambda c: c.uniqueValuesFor("portal_type"),
    "getAllBrains": lambda c: list(c.getAllBrains()),
    "searchAll": lambda c: list(c.searchAll()),
    "index_objects": lambda c: list(c.index_objects()),
    "ZopeFindAndApply": lambda c: c.ZopeFindAndApply(c.aq_parent, obj_ids=["a-page"]),
    "resolve_url": lambda c: c.resolve_url(path_of(c), c.REQUEST),
    "_CatalogTool__url": lambda c: c._indexObject(page_of(c)),
    # of the inner catalog, by its own names
    "clear": lambda c: c._catalog.clear(),
    "catalogObject": lambda c: c._catalog.catalogObject(page_of(c), path_of(c)),
    "uncatalogObject": lambda c: c._catalog.uncatalogObject(path_of(c)),
    "hasuid": lambda c: c._catalog.hasuid(path_of(c)),
}


def call(name: str, catalog: Any) -> None:
    """Call the method *name* as a site does, with a catalogued page."""
    if catalog._catalog.hasuid(path_of(catalog)) is None:
        catalog._catalog.catalogObject(page_of(catalog), path_of(catalog))
    if name in CALLS:
        CALLS[name](catalog)
    else:
        page = getattr(catalog, name)
        if getattr(page, "__module__", "") == __name__:
            page()


#: Methods that a class below overrides without calling them.
SHADOWED = {
    *((BaseTool, "__call__"), (BaseTool, "_listAllowedRolesAndUsers"), (BaseTool, "catalog_object")),
    *((BaseTool, "indexObject"), (BaseTool, "searchResults"), (ZCatalog, "__call__")),
    *((ZCatalog, "manage_catalogAdvanced"), (ZCatalog, "manage_catalogFind")),
}
