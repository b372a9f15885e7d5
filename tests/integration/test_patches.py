"""Patches of CatalogTool, ZCatalog and Catalog arrive as they do in a real ZCatalog, whenever and however they are made."""

from AccessControl.ZopeSecurityPolicy import getRoles
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from plone.pgcatalog.compat import zcatalog
from plone.pgcatalog.compat.zcatalog import log_patches
from plone.pgcatalog.compat.zcatalog import NOT_ASKED
from plone.protect import createToken
from Products.CMFCore.CatalogTool import CatalogTool as BaseTool
from Products.CMFCore.indexing import processQueue
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.ZCatalog.Catalog import Catalog
from Products.ZCatalog.ZCatalog import ZCatalog
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.vocabulary import counted
from tests.integration.web import Web
from types import FunctionType
from typing import Any
from zope.configuration import xmlconfig
from zope.configuration.config import ConfigurationMachine
from zope.configuration.xmlconfig import registerCommonDirectives

import collective.monkeypatcher
import pytest
import subprocess
import sys
import transaction


CLASSES = (CatalogTool, BaseTool, ZCatalog, Catalog)
UNASKED = {(base, name) for cls, names in NOT_ASKED.items() for base in cls.__mro__ for name in names}
QUERY = {"portal_type": "Document", "sort_on": "getId", "sort_order": "descending", "sort_limit": 2}
Names = set[tuple[type, str]]


def is_page(value: Any) -> bool:
    return bool(getattr(value, "raw", None) or getattr(value, "filename", None))


METHODS = [
    (cls, name)
    for cls in CLASSES
    for name, value in vars(cls).items()
    if isinstance(value, FunctionType) or is_page(value)
    if (cls, name) not in UNASKED
]


@contextmanager
def attribute(cls: type, name: str, value: Any) -> Iterator[None]:
    """Have the class *cls* an attribute for a while."""
    before = {name: vars(cls)[name]} if name in vars(cls) else {}
    setattr(cls, name, value)
    try:
        yield
    finally:
        delattr(cls, name)
        for value in before.values():
            setattr(cls, name, value)


@contextmanager
def recorded(cls: type, name: str, reached: Names, kept_as: str | None = None) -> Iterator[None]:
    """Patch a method by one that notes in *reached* that it is called, and calls the original.

    It has that in a variable, or, as collective.monkeypatcher's, as the attribute *kept_as* of the class.
    """
    original = vars(cls)[name]

    def patch(self: Any, *args: Any, **kw: Any) -> Any:
        reached.add((cls, name))
        if is_page(original):
            return "page"
        return getattr(self, kept_as)(*args, **kw) if kept_as else original(self, *args, **kw)

    with ExitStack() as stack:
        if kept_as:
            stack.enter_context(attribute(cls, kept_as, original))
        stack.enter_context(attribute(cls, name, patch))
        yield


def web(catalog: Any) -> dict[str, Any]:
    """The arguments of a form that is sent to the management interface."""
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
    """Have *change* add the index and the column ``patched``, and remove them."""
    change()
    catalog._catalog.delIndex("patched")


#: How a site calls it: what is done with the catalog.
CALLS: dict[str, Callable[[Any], Any]] = {
    "searchResults": lambda c: list(c.searchResults(**QUERY)),
    "__call__": lambda c: (list(c(**QUERY)), c._catalog(QUERY)),
    "unrestrictedSearchResults": lambda c: list(c.unrestrictedSearchResults(QUERY)),
    "_unrestrictedSearchResults": lambda c: list(c._unrestrictedSearchResults(QUERY)),
    "search": lambda c: list(c.search({"portal_type": "Document"}, "getId", 1)),
    "allow_inactive": lambda c: c.allow_inactive({}),
    "_listAllowedRolesAndUsers": lambda c: c.searchResults(portal_type="Document"),
    "_convertQuery": lambda c: c._convertQuery({}),
    "getCounter": lambda c: c.getCounter(),
    "_increment_counter": lambda c: c._increment_counter(),
    "indexObject": lambda c: c.indexObject(page_of(c)),
    "reindexObject": lambda c: c.reindexObject(page_of(c)),
    "unindexObject": lambda c: (c.unindexObject(page_of(c)), processQueue(), page_of(c).reindexObject()),
    "_indexObject": lambda c: c._indexObject(page_of(c)),
    "_reindexObject": lambda c: c._reindexObject(page_of(c), ["Title"], 0),
    "_unindexObject": lambda c: c._unindexObject(page_of(c)),
    "catalog_object": lambda c: c.catalog_object(page_of(c), path_of(c), ["Title"]),
    "uncatalog_object": lambda c: c.uncatalog_object(path_of(c)),
    "maintain_zodb_cache": lambda c: c.catalog_object(page_of(c)),
    "_removeIndex": lambda c: (c.addIndex("patched", "FieldIndex"), c._removeIndex("patched")),
    "addIndex": lambda c: indexes_again(c, lambda: c.addIndex("patched", "FieldIndex")),
    "delIndex": lambda c: (c.addIndex("patched", "FieldIndex"), c.delIndex("patched")),
    "addColumn": lambda c: (c.addColumn("patched"), c.delColumn("patched")),
    "delColumn": lambda c: (c.addColumn("patched"), c.delColumn("patched")),
    "manage_addIndex": lambda c: indexes_again(c, lambda: c.manage_addIndex("patched", "FieldIndex")),
    "manage_delIndex": lambda c: (c.addIndex("patched", "FieldIndex"), c.manage_delIndex(["patched"])),
    "manage_addColumn": lambda c: (c.manage_addColumn("patched"), c.delColumn("patched")),
    "manage_delColumn": lambda c: (c.addColumn("patched"), c.manage_delColumn(["patched"])),
    "clearIndex": lambda c: c.clearIndex("Title"),
    "manage_clearIndex": lambda c: c.manage_clearIndex(["Title"]),
    "reindexIndex": lambda c: c.reindexIndex("Title", c.REQUEST),
    "manage_reindexIndex": lambda c: c.manage_reindexIndex(["Title"]),
    "refreshCatalog": lambda c: c.refreshCatalog(),
    "clearFindAndRebuild": lambda c: (c.clearFindAndRebuild(), processQueue()),
    "manage_catalogRebuild": lambda c: c.manage_catalogRebuild(),
    "manage_catalogReindex": lambda c: c.manage_catalogReindex(**web(c)),
    "manage_catalogClear": lambda c: c.manage_catalogClear(),
    "manage_catalogFoundItems": lambda c: c.manage_catalogFoundItems(
        **web(c), URL2="http://nohost", obj_ids=["a-page"]
    ),
    "manage_catalogObject": lambda c: c.manage_catalogObject(**web(c), urls=path_of(c)),
    "manage_uncatalogObject": lambda c: c.manage_uncatalogObject(**web(c), urls=path_of(c)),
    "manage_edit": lambda c: c.manage_edit(**without_request(web(c)), threshold=10000, REQUEST=c.REQUEST),
    "manage_subbingToggle": lambda c: (c.manage_subbingToggle(**web(c)), c.manage_subbingToggle(**web(c))),
    "manage_normalize_paths": lambda c: c.manage_normalize_paths(web(c)["REQUEST"]),
    "manage_setProgress": lambda c: c.manage_setProgress(0),
    "manage_resetCatalogReport": lambda c: c.manage_resetCatalogReport(),
    "manage_editCatalogReport": lambda c: c.manage_editCatalogReport(0.1),
    "_getProgressThreshold": lambda c: c.manage_reindexIndex(["Title"]),
    "uniqueValuesFor": lambda c: c.uniqueValuesFor("portal_type"),
    "getpath": lambda c: c.getpath(rid_of(c)),
    "getrid": lambda c: c.getrid(path_of(c)),
    "getobject": lambda c: c.getobject(rid_of(c)),
    "getMetadataForUID": lambda c: c.getMetadataForUID(path_of(c)),
    "getIndexDataForUID": lambda c: c.getIndexDataForUID(path_of(c)),
    "getMetadataForRID": lambda c: c.getMetadataForRID(rid_of(c)),
    "getIndexDataForRID": lambda c: c.getIndexDataForRID(rid_of(c)),
    "getAllBrains": lambda c: list(c.getAllBrains()),
    "searchAll": lambda c: list(c.searchAll()),
    "schema": lambda c: c.schema(),
    "indexes": lambda c: c.searchResults(**QUERY),
    "index_objects": lambda c: list(c.index_objects()),
    "getIndexObjects": lambda c: c.getIndexObjects(),
    "_searchable_arguments": lambda c: c._searchable_arguments(),
    "_searchable_result_columns": lambda c: c._searchable_result_columns(),
    "valid_roles": lambda c: c.valid_roles(),
    "ZopeFindAndApply": lambda c: c.ZopeFindAndApply(c.aq_parent, obj_ids=["a-page"]),
    "resolve_url": lambda c: c.resolve_url(path_of(c), c.REQUEST),
    "resolve_path": lambda c: c.resolve_path(path_of(c)),
    "availableIndexes": lambda c: c.availableIndexes(),
    "getCatalogPlan": lambda c: c.getCatalogPlan(),
    "getCatalogReport": lambda c: c.getCatalogReport(),
    "__len__": lambda c: len(c),
    "_CatalogTool__url": lambda c: c._indexObject(page_of(c)),
    # of the inside, by its own names
    "clear": lambda c: c._catalog.clear(),
    "catalogObject": lambda c: c._catalog.catalogObject(page_of(c), path_of(c)),
    "uncatalogObject": lambda c: c._catalog.uncatalogObject(path_of(c)),
    "hasuid": lambda c: c._catalog.hasuid(path_of(c)),
    "merge_query_args": lambda c: c.searchResults(**QUERY),
    "make_query": lambda c: c.searchResults(**QUERY),
    "_get_sort_attr": lambda c: c.searchResults(**QUERY),
    "_getSortIndex": lambda c: c.searchResults(**QUERY),
}


def call(name: str, catalog: Any) -> None:
    """Call the method *name* as a site does; the page is catalogued before."""
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
    (BaseTool, "__call__"),
    (BaseTool, "_listAllowedRolesAndUsers"),
    (BaseTool, "catalog_object"),
    (BaseTool, "indexObject"),
    (BaseTool, "searchResults"),
    (ZCatalog, "__call__"),
    (ZCatalog, "manage_catalogAdvanced"),
    (ZCatalog, "manage_catalogFind"),
}


def fill(portal: Any) -> None:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    populate(portal)
    add_users(portal)
    for number in range(3):
        publish(create(portal, "Document", f"open-{number}", title="A needle in the haystack", subject=("red",)))
    create(portal, "Document", "a-page")


@pytest.fixture(scope="module")
def site(site_with: SiteWith) -> Iterator[Any]:
    """(our catalog, the oracle, Web)."""
    with sites.opened(site_with(fill)) as db, sites.inside(db) as portal:
        counted(db.storage._dsn, portal.portal_catalog)
        yield portal.portal_catalog, make_oracle(portal), Web(db)


@pytest.fixture
def both(site: Any) -> Iterator[Any]:
    """(our catalog, the oracle); what a test changes of ours does not stay."""
    sites.return_to(site[0].aq_parent)
    yield site[:2]
    transaction.abort()


@pytest.mark.parametrize("kept_as", [None, "_old_{}"], ids=["in a variable", "on the class"])
def test_a_patch_of_any_method_is_reached_where_zcatalog_reaches_it(both: Any, kept_as: str | None) -> None:
    ours, _ = both
    oracle = make_oracle(ours.aq_parent)
    reached: Names = set()
    found = {}
    for cls, name in METHODS:
        for catalog in (oracle, ours):
            reached.clear()
            with recorded(cls, name, reached, kept_as and kept_as.format(name)):
                call(name, catalog)
            found[catalog is ours, cls, name] = bool(reached)
    assert [m for m in METHODS if found[True, *m] != found[False, *m]] == []
    assert {m for m in METHODS if not found[True, *m]} == SHADOWED


def test_all_patches_at_once_leave_the_answers_as_they_are(both: Any) -> None:
    ours, oracle = both
    wanted = answer(ours, QUERY), ours.uniqueValuesFor("portal_type"), len(ours)
    reached: Names = set()
    with ExitStack() as stack:
        for cls, name in METHODS:
            stack.enter_context(recorded(cls, name, reached))
        assert (answer(ours, QUERY), ours.uniqueValuesFor("portal_type"), len(ours)) == wanted
        assert answer(oracle, QUERY) == wanted[0]


def test_a_page_that_is_saved_reaches_the_patches(both: Any) -> None:
    ours, _ = both
    reached: Names = set()
    steps = [(CatalogTool, "catalog_object"), (BaseTool, "_reindexObject"), (Catalog, "catalogObject")]
    with ExitStack() as stack:
        for cls, name in steps:
            stack.enter_context(recorded(cls, name, reached))
        page_of(ours).reindexObject()
        processQueue()
    assert reached == set(steps)


def test_what_is_added_to_the_classes_is_there(both: Any) -> None:
    for cls, name in [(CatalogTool, "patched"), (ZCatalog, "patched"), (Catalog, "patched")]:
        with attribute(cls, name, lambda self, *args: (type(self).__name__, args)), attribute(cls, "patched_too", 7):
            for catalog in both:
                found = catalog._catalog if cls is Catalog else catalog
                assert found.patched(1)[1] == (1,)
                assert found.patched_too == 7
        assert not hasattr(found.aq_base if cls is not Catalog else found, "patched")


def test_a_patch_may_call_super(both: Any) -> None:
    def patch(self: Any, query: Any = None, **kw: Any) -> Any:
        return ["first", *super(CatalogTool, self).unrestrictedSearchResults(query, **kw)]

    def inside(self: Any, *args: Any) -> Any:
        return len(args), isinstance(self, Catalog), super(Catalog, self).__class__

    with attribute(CatalogTool, "unrestrictedSearchResults", patch), attribute(Catalog, "hasuid", inside):
        assert len({len(c.unrestrictedSearchResults(portal_type="Document")) for c in both}) == 1
        assert both[0].unrestrictedSearchResults(portal_type="Document")[0] == "first"
        assert both[0]._catalog.hasuid("x")[:2] == (1, True)


def test_the_inside_sorts_by_a_list_of_directions(both: Any) -> None:
    found = []
    for catalog in both:
        inside = catalog._catalog
        indexes = [inside.getIndex("portal_type"), inside.getIndex("getId")]
        results = inside.search({"path": "/plone"}, indexes, [True, False])
        found.append([brain.getPath() for brain in results])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "name", ["searchResults", "uniqueValuesFor", "searchAll", "manage_addColumn", "manage_catalogView"]
)
def test_roles_that_are_patched_count(both: Any, name: str) -> None:
    for roles in (("Owner",), ()):
        with attribute(CatalogTool, f"{name}__roles__", roles):
            found = [tuple(getRoles(c, name, getattr(c, name), None) or ()) for c in both]
        assert found == [roles, roles]


def test_a_form_reaches_a_patched_action_by_post_only(both: Any) -> None:
    catalog = both[0]
    seen = []
    with attribute(ZCatalog, "manage_subbingToggle", lambda self, *args, REQUEST=None, **kw: seen.append(REQUEST)):
        catalog.manage_subbingToggle(**web(catalog))
        assert len(seen) == 1


def narrow(self: Any, user: Any) -> list[str]:
    """A patch that lets members see nothing."""
    allowed: list[str] = self._old__listAllowedRolesAndUsers(user)
    return allowed if "Manager" in allowed else ["user:nobody"]


@contextmanager
def by_monkeypatcher(cls: type, name: str, replacement: Callable[..., Any]) -> Iterator[None]:
    """Have collective.monkeypatcher replace a method, as a package's ZCML does."""
    with attribute(cls, name, vars(cls)[name]):
        context = ConfigurationMachine()
        registerCommonDirectives(context)
        xmlconfig.include(context, "meta.zcml", collective.monkeypatcher)
        xmlconfig.string(
            f"""<configure xmlns:monkey="http://namespaces.plone.org/monkey">
            <monkey:patch class="{cls.__module__}.{cls.__name__}" original="{name}"
                replacement="{__name__}.{replacement.__name__}" preserveOriginal="true" /></configure>""",
            context,
        )
        try:
            yield
        finally:
            delattr(cls, f"_old_{name}")


def doors(catalog: Any, web: Web) -> dict[str, int]:
    """How many documents, or words of them, a member finds by each way to search."""
    page = catalog.unrestrictedSearchResults(getId="open-0")[0]
    query = {"SearchableText": "needle"}
    with acting_as(catalog.aq_parent, "mara"):
        found = {
            "searchResults": len(catalog.searchResults(**query)),
            "count": catalog.searchResults(**query, b_size=1).actual_result_count,
            "__call__": len(catalog(**query)),
            "search": len(catalog.search(dict(query))),
            "iterate": len(list(catalog.iterate(query))),
            "facets": sum(catalog.facets(query, ["portal_type"])["portal_type"].values()),
            "suggest": len(catalog.suggest("need")),
            "did_you_mean": len(catalog.did_you_mean("neddle") or ""),
            "more_like_this": len(catalog.more_like_this(page)),
        }
    login = "mara:secret"
    for name, parameters in {"@pgsearch": {"q": "needle"}, "@search": query, "@pgsuggest": {"q": "need"}}.items():
        answer = web.get(f"/plone/{name}", login, accept="application/json", **parameters)
        assert answer.status == 200, (name, answer.text)
        found[name] = answer.text.count("open-") + answer.text.count("needle in") + answer.text.count('"needle"')
    found["live search"] = len(web.get("/plone/@@ajax-search", login, **query, perPage=7).json["items"])
    found["search page"] = web.get("/plone/@@search", login, accept="text/html", **query).text.count("/open-")
    return found


def test_a_patch_that_narrows_what_members_see_narrows_it_through_every_door(site: Any) -> None:
    catalog, _, requests = site
    sites.return_to(catalog.aq_parent)
    before = doors(catalog, requests)
    assert [name for name, count in before.items() if not count] == []
    with by_monkeypatcher(CatalogTool, "_listAllowedRolesAndUsers", narrow):
        assert {name: count for name, count in doors(catalog, requests).items() if count} == {}
    # Neither answer is taken for the other afterwards.
    assert doors(catalog, requests) == before


def only_events(self: Any, query: Any = None, **kw: Any) -> Any:
    """A patch as add-ons have them: it changes the query, and calls the original."""
    return self._old_searchResults(query, **kw | {"portal_type": "Event"})


@pytest.mark.parametrize("cls", [CatalogTool, ZCatalog, Catalog])
def test_monkeypatcher_keeps_the_original(both: Any, cls: type) -> None:
    with by_monkeypatcher(cls, "searchResults", only_events):
        found = [answer(c, {"portal_type": "Document"}, "searchResults") for c in both]
    assert found[0] == found[1] == answer(both[0], {"portal_type": "Event"}, "searchResults")


def test_what_is_not_asked_is_logged_once_with_the_one_who_patched(caplog: pytest.LogCaptureFixture) -> None:
    log_patches()
    caplog.clear()
    for cls, names in NOT_ASKED.items():
        with ExitStack() as stack:
            for name in names:
                if name != "__init__":
                    stack.enter_context(attribute(cls, name, lambda self, *args, **kw: None))
            log_patches()
            log_patches()
        logged = [r.getMessage() for r in caplog.records if r.name == log_patches.__module__]
        for name in names.keys() - {"__init__"}:
            mine = [line for line in logged if line.startswith(f"{cls.__module__}.{cls.__name__}.{name} is patched")]
            assert len(mine) == 1
            assert f"by {__name__};" in mine[0]


@pytest.mark.parametrize(("cls", "name"), [(c, n) for c, names in NOT_ASKED.items() for n in names])
def test_all_that_is_not_asked_is_there(cls: type, name: str) -> None:
    assert hasattr(cls, name)


@pytest.mark.parametrize(
    "name", [n for n, reason in NOT_ASKED[Catalog].items() if reason.endswith("calls of it are honoured")]
)
def test_calls_of_what_no_search_asks_are_honoured(both: Any, name: str) -> None:
    with attribute(Catalog, name, lambda self, *args: ("patched", *args)):
        assert [getattr(c._catalog, name)(1) for c in both] == [("patched", 1)] * 2


BEFORE = """
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.ZCatalog.Catalog import Catalog
kept, Catalog._old_hidden, Catalog._old_clear = Catalog.catalogObject, Catalog.uncatalogObject, Catalog.clear
def catalogObject(self, *args): return kept(self, *args)
def uncatalogObject(self, uid): return self._old_hidden(uid)
def clear(self): return "replaced"
def getCounter(self): return 7
Catalog.catalogObject, Catalog.uncatalogObject, Catalog.clear = catalogObject, uncatalogObject, clear
CatalogTool.getCounter = getCounter
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.compat.catalog import CatalogFacade
from plone.pgcatalog.compat.zcatalog import NOT_ASKED, patches_not_asked
assert PlonePGCatalogTool().getCounter() == 7
assert CatalogFacade.catalogObject is not catalogObject and "catalogObject" in NOT_ASKED[Catalog]
assert [(name.rpartition(".")[2], module) for name, module, _ in patches_not_asked()] == [("catalogObject", "__main__")]
assert CatalogFacade.uncatalogObject is uncatalogObject and CatalogFacade(None).clear() == "replaced"
assert CatalogFacade._old_hidden.__globals__["__name__"] == "plone.pgcatalog.compat.zcatalog"
"""


def test_a_patch_that_was_made_before_arrives_or_is_named() -> None:
    """Nothing is asked that would call a function that needs its BTrees."""
    done = subprocess.run([sys.executable, "-c", BEFORE], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_repeated_search_makes_few_calls_for_patches(both: Any) -> None:
    """ZCatalog's methods, as they are installed, are the way of each search: nothing is looked up by functions of ours."""
    catalog = both[0]
    list(catalog.searchResults(**QUERY))
    calls = []

    def note(frame: Any, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename == zcatalog.__file__:
            calls.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        list(catalog.searchResults(**QUERY))
    finally:
        sys.setprofile(before)
    assert calls == ["method"]
