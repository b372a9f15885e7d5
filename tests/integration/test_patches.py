"""Patches of catalogs, brains and indexes are called as in a real ZCatalog, whenever and however they are applied."""

from AccessControl.ZopeSecurityPolicy import getRoles
from Acquisition import aq_base
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from contextlib import suppress
from DateTime import DateTime
from plone.pgcatalog import patches
from plone.pgcatalog.compat.zcatalog import ineffective_patches
from plone.pgcatalog.compat.zcatalog import log_patches
from plone.pgcatalog.compat.zcatalog import NOT_CALLED
from Products.CMFCore.CatalogTool import CatalogTool as BaseTool
from Products.CMFCore.indexing import processQueue
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.PluginIndexes.DateIndex.DateIndex import DateIndex
from Products.ZCatalog.Catalog import Catalog
from Products.ZCatalog.CatalogBrains import AbstractCatalogBrain
from Products.ZCatalog.ZCatalog import ZCatalog
from Products.ZCTextIndex.BaseIndex import BaseIndex
from Products.ZCTextIndex.Lexicon import Lexicon
from Products.ZCTextIndex.OkapiIndex import OkapiIndex
from Record import Record
from tests.integration import patching
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from tests.integration.patching import attribute
from tests.integration.patching import METHODS
from tests.integration.patching import Names
from tests.integration.patching import QUERY
from tests.integration.patching import recorded
from tests.integration.patching import UNCALLED
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import publish
from tests.integration.web import Site
from tests.integration.web import Web
from types import FunctionType
from typing import Any
from zope.configuration import xmlconfig
from zope.configuration.config import ConfigurationMachine
from zope.configuration.xmlconfig import registerCommonDirectives

import collective.monkeypatcher
import copy
import pytest
import subprocess
import sys
import transaction


def fill(portal: Any) -> None:
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    populate(portal)
    add_users(portal)
    for number in range(3):
        publish(create(portal, "Document", f"open-{number}", title="A needle in the haystack", subject=("red",)))
    create(portal, "Document", "a-page")
    transaction.commit()
    counted(portal._p_jar.db().storage._dsn, portal.portal_catalog)


SHARED = fill


@pytest.fixture
def both(shared_both: Any) -> Iterator[Any]:
    """(our catalog, the oracle); changes of ours are rolled back."""
    sites.return_to(shared_both[0].aq_parent)
    yield shared_both
    transaction.abort()


@pytest.mark.parametrize(
    "stored_as",
    [pytest.param(None, id="in a variable"), pytest.param("_old_{}", id="on the class", marks=pytest.mark.slow)],
)
def test_patch_of_any_method_is_called_where_zcatalog_calls_it(both: Any, stored_as: str | None) -> None:
    ours, _ = both
    oracle = make_oracle(ours.aq_parent)
    reached: Names = set()
    found = {}
    for cls, name in METHODS:
        for catalog in (oracle, ours):
            reached.clear()
            with recorded(cls, name, reached, stored_as and stored_as.format(name)):
                patching.call(name, catalog)
            found[catalog is ours, cls, name] = bool(reached)
    assert [m for m in METHODS if found[True, *m] != found[False, *m]] == []
    assert {m for m in METHODS if not found[True, *m]} == patching.SHADOWED


def test_all_patches_at_once_leave_the_answers_as_they_are(both: Any) -> None:
    ours, oracle = both
    wanted = answer(ours, QUERY), ours.uniqueValuesFor("portal_type"), len(ours)
    reached: Names = set()
    with ExitStack() as stack:
        for cls, name in METHODS:
            stack.enter_context(recorded(cls, name, reached))
        assert (answer(ours, QUERY), ours.uniqueValuesFor("portal_type"), len(ours)) == wanted
        assert answer(oracle, QUERY) == wanted[0]
        # A save of a page calls them.
        reached.clear()
        patching.page_of(ours).reindexObject()
        processQueue()
    assert {(CatalogTool, "catalog_object"), (BaseTool, "_reindexObject"), (Catalog, "catalogObject")} <= reached


def test_attributes_added_to_the_classes_are_there(both: Any) -> None:
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


def test_patched_roles_apply(both: Any) -> None:
    for name in ("searchResults", "uniqueValuesFor", "searchAll", "manage_addColumn", "manage_catalogView"):
        for roles in (("Owner",), ()):
            with attribute(CatalogTool, f"{name}__roles__", roles):
                assert [tuple(getRoles(c, name, getattr(c, name), None) or ()) for c in both] == [roles, roles], name


def test_a_form_reaches_a_patched_action_by_post_only(both: Any) -> None:
    catalog = both[0]
    seen = []
    with attribute(ZCatalog, "manage_subbingToggle", lambda self, *args, REQUEST=None, **kw: seen.append(REQUEST)):
        catalog.manage_subbingToggle(**patching.web(catalog))
        assert len(seen) == 1


def narrow(self: Any, user: Any) -> list[str]:
    """Patch by which members see nothing."""
    allowed: list[str] = self._old__listAllowedRolesAndUsers(user)
    return allowed if "Manager" in allowed else ["user:nobody"]


@contextmanager
def by_monkeypatcher(cls: type, name: str, replacement: Callable[..., Any]) -> Iterator[None]:
    """Replace a method by collective.monkeypatcher, as a package's ZCML does."""
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
    """Return the number of documents, or words of them, that a member finds by each way to search."""
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


def test_patch_that_narrows_hits_of_members_narrows_every_way_to_search(both: Any, shared_site: Site) -> None:
    catalog, requests = both[0], shared_site.web
    before = doors(catalog, requests)
    assert [name for name, count in before.items() if not count] == []
    with by_monkeypatcher(CatalogTool, "_listAllowedRolesAndUsers", narrow):
        assert {name: count for name, count in doors(catalog, requests).items() if count} == {}
    # No answer is used for the other case afterwards.
    assert doors(catalog, requests) == before


def only_events(self: Any, query: Any = None, **kw: Any) -> Any:
    """A typical patch of an add-on: it changes the query, and calls the original."""
    return self._old_searchResults(query, **kw | {"portal_type": "Event"})


@pytest.mark.parametrize("cls", [CatalogTool, ZCatalog, Catalog])
def test_monkeypatcher_preserves_the_original(both: Any, cls: type) -> None:
    with by_monkeypatcher(cls, "searchResults", only_events):
        found = [answer(c, {"portal_type": "Document"}, "searchResults") for c in both]
    assert found[0] == found[1] == answer(both[0], {"portal_type": "Event"}, "searchResults")


def secure_url(self: Any, relative: Any = 0) -> str:
    """Patch of a brain's URL that calls the original."""
    return str(self._old_getURL(relative)).replace("http:", "https:")


def short_path(self: Any) -> str:
    """Patch of a brain's path that calls the original."""
    return str(self._old_getPath()).removesuffix("/open-0")


@pytest.mark.parametrize(
    ("name", "replacement", "url"),
    [("getURL", secure_url, "https://nohost/plone/open-0"), ("getPath", short_path, "http://nohost/plone")],
)
def test_monkeypatcher_preserves_the_original_of_brains(both: Any, name: str, replacement: Any, url: str) -> None:
    with by_monkeypatcher(AbstractCatalogBrain, name, replacement):
        brains = [catalog.unrestrictedSearchResults(getId="open-0")[0] for catalog in both]
        found = [(b.getURL(), b.getPath(), b.getObject().getPhysicalPath()) for b in brains]
    assert found[0] == found[1]
    assert found[0][0] == url


def test_patch_that_is_not_called_is_logged_once_with_its_author(caplog: pytest.LogCaptureFixture) -> None:
    log_patches()
    caplog.clear()
    for cls, names in NOT_CALLED.items():
        assert [name for name in names if not hasattr(cls, name)] == []
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
            assert f"by {__name__}, but" in mine[0]


def test_methods_that_no_search_calls_can_be_patched(both: Any) -> None:
    for name, reason in NOT_CALLED[Catalog].items():
        if reason.endswith("calls of it still work"):
            with attribute(Catalog, name, lambda self, *args: ("patched", *args)):
                assert [getattr(c._catalog, name)(1) for c in both] == [("patched", 1)] * 2, name


BEFORE = """
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.ZCatalog.Catalog import Catalog
kept, Catalog._old_hidden, Catalog._old_clear = Catalog.catalogObject, Catalog.uncatalogObject, Catalog.clear
def catalogObject(self, *args): return kept(self, *args)
def uncatalogObject(self, uid): return self._old_hidden(uid)
def clear(self): return "replaced"
def getCounter(self): return 7
Catalog.catalogObject, Catalog.uncatalogObject, Catalog.clear = catalogObject, uncatalogObject, clear
from Products.ZCatalog.CatalogBrains import AbstractCatalogBrain, NoBrainer
def getURL(self, relative=0, original=AbstractCatalogBrain.getURL): return original(self, relative)
AbstractCatalogBrain.getURL = getURL
CatalogTool.getCounter = getCounter
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.compat.catalog import _CatalogCompat
from plone.pgcatalog.compat.zcatalog import NOT_CALLED, ineffective_patches
assert PlonePGCatalogTool().getCounter() == 7
assert _CatalogCompat.catalogObject is not catalogObject and "catalogObject" in NOT_CALLED[Catalog]
assert [(name.rpartition(".")[2], module) for name, module, _ in ineffective_patches()] == [("catalogObject", "__main__")]
from plone.pgcatalog.results.brain import brain_class
assert brain_class(NoBrainer, ("Title",)).getURL is getURL
assert _CatalogCompat.uncatalogObject is uncatalogObject and _CatalogCompat(None).clear() == "replaced"
assert _CatalogCompat._old_hidden.__globals__["__name__"] == "plone.pgcatalog.patches"
"""


@pytest.mark.slow
def test_early_patch_is_called_or_named() -> None:
    """No method is called that would call a function that needs its BTrees."""
    done = subprocess.run([sys.executable, "-c", BEFORE], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_repeated_search_makes_few_calls_for_patches(both: Any) -> None:
    """Each search calls ZCatalog's methods as installed; our functions look up nothing per call."""
    catalog = both[0]
    list(catalog.searchResults(**QUERY))
    calls = []

    def note(frame: Any, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename == patches.__file__:
            calls.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        list(catalog.searchResults(**QUERY))
    finally:
        sys.setprofile(before)
    assert calls == ["method"]


# -- brains and indexes

#: Packages of index classes.
INDEXES = tuple(
    f"Products.{name}" for name in ("PluginIndexes", "ExtendedPathIndex", "DateRecurringIndex", "ZCTextIndex")
)
#: Parts of a text index.
INSIDE = (BaseIndex, OkapiIndex, Lexicon)
BRAINS = (AbstractCatalogBrain, Record)
PAGE, EVENT = "/plone/my_folder/page", "/plone/my_folder/weekly"


def methods(classes: tuple[type, ...]) -> list[tuple[type, str]]:
    return [(cls, name) for cls in classes for name, value in vars(cls).items() if isinstance(value, FunctionType)]


def reached_by(classes: tuple[type, ...], action: Callable[[Any], Any], catalog: Any) -> Names:
    """Return the methods of *classes* that *action* calls, directly or not."""
    reached: Names = set()
    with ExitStack() as stack:
        for cls, name in methods(classes):
            stack.enter_context(recorded(cls, name, reached))
        action(catalog)
    return reached


def save(catalog: Any) -> None:
    for path in (PAGE, EVENT):
        catalog.uncatalog_object(path)
        catalog.catalog_object(catalog.aq_parent.unrestrictedTraverse(path), path)
        catalog.catalog_object(catalog.aq_parent.unrestrictedTraverse(path), path)


QUERIES: list[dict[str, Any]] = [
    *({"portal_type": "Document", "sort_on": "getId"}, {"Subject": {"not": "Rot"}}, {"UID": "none"}),
    {"Subject": {"query": ["Rot", "x y"], "operator": "and"}, "sort_on": "modified"},
    *({"getId": {"query": ("a", "x"), "range": "min:max"}}, {"is_folderish": True}, {"effectiveRange": DateTime()}),
    {"created": {"query": DateTime(), "range": "max"}, "sort_on": "start"},
    {"start": {"query": DateTime(), "range": "max"}, "sort_on": "sortable_title"},
    *({"path": {"query": "/plone/my_folder", "depth": 1}}, {"path": {"query": "/plone/my_folder/page", "navtree": 1}}),
    *({"SearchableText": "quick OR brown", "sort_on": "getId"}, {"Title": '"page one"'}),
]


def search(catalog: Any) -> None:
    for query in QUERIES:
        list(catalog.unrestrictedSearchResults(**query))


#: Methods of index objects that code calls, with their arguments.
CALLS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        ("getId", "getIndexSourceNames", "getIndexQueryNames", "uniqueValues", "numObjects", "indexSize"), ()
    ),
    **dict.fromkeys(("histogram", "referencedObjects", "documentToKeyMap", "items", "getCounter", "__len__"), ()),
    **dict.fromkeys(("getSinceField", "getUntilField", "getFloorValue", "getCeilingValue", "getPrecisionValue"), ()),
    **dict.fromkeys(("getLexicon", "getIndexType", "getLexiconURL", "getRequestCache"), ()),
    **{"hasUniqueValuesFor": ("x",), "_convert": (DateTime(),), "_convertDateTime": (DateTime(),)},
    **{"query": ("quick",), "_search": ("/plone",), "search": ("/plone",), "_apply_index": ({},)},
}


def ask(catalog: Any) -> None:
    """Call the methods of index objects, as code that does not search does."""
    rid = catalog.getrid(EVENT)
    for name in [
        "portal_type",
        "Subject",
        "UID",
        "is_folderish",
        "created",
        "start",
        "effectiveRange",
        "path",
        "Title",
    ]:
        index = catalog._catalog.getIndex(name)
        index.getEntryForObject(rid)
        for method, arguments in CALLS.items():
            if hasattr(index, method):
                with suppress(TypeError, AttributeError, LookupError, NotImplementedError):
                    answer = getattr(index, method)(*arguments)
                    list(answer if isinstance(answer, Iterator) else ())


@pytest.mark.parametrize("action", [save, search, ask])
def test_patched_index_method_is_called_as_in_zcatalog_or_listed(both: Any, action: Callable[[Any], Any]) -> None:
    ours, oracle = both
    classes = {cls for index in oracle.getIndexObjects() for cls in type(aq_base(index)).__mro__}
    indexes = [cls for cls in classes if cls.__module__.startswith(INDEXES)]
    assert len(indexes) > 9
    by_zcatalog, by_ours = (reached_by((*indexes, *INSIDE), action, catalog) for catalog in (oracle, ours))
    transaction.abort()
    assert by_zcatalog - by_ours - UNCALLED == set()
    assert action is ask or by_ours & UNCALLED == set()


def test_plone_itself_has_no_patch_that_is_logged(both: Any) -> None:
    assert ineffective_patches() == []


def use(catalog: Any) -> None:
    """Use a brain in each way that ``Record`` and ZCatalog's brains offer."""
    brain, other = catalog.unrestrictedSearchResults(portal_type="Document", sort_on="getId")[:2]
    assert brain.Title == brain["Title"] == brain[list(brain.__record_schema__).index("Title")]
    assert (len(brain), bool(brain), "Title" in brain) == (len(brain.__record_schema__), True, True)
    assert brain.has_key("Title")
    assert brain.getRID()
    assert hash(brain)
    assert brain.getURL().endswith(brain.getURL(relative=1))
    assert brain.getURL().endswith(brain.getPath())
    assert brain.getObject().getPhysicalPath() == brain._unrestrictedGetObject().getPhysicalPath()
    assert (brain < other) in (brain <= other, brain > other, brain >= other)
    assert brain != other
    copied = copy.copy(brain.aq_base)
    assert tuple(copied) == tuple(brain)
    assert copied == brain
    brain.Title = "assigned"
    brain["Description"] = "assigned"
    del brain["Type"]
    del brain.Creator
    assert (brain.Title, brain.Description, brain.Type, brain.Creator) == ("assigned", "assigned", None, None)
    for use_as_sequence in (lambda: brain + other, lambda: brain * 2):
        with suppress(TypeError):
            use_as_sequence()


def test_patched_brain_method_is_called_as_in_zcatalog_or_listed(both: Any) -> None:
    ours, oracle = both
    by_zcatalog, by_ours = (reached_by(BRAINS, use, catalog) for catalog in (oracle, ours))
    assert by_zcatalog - by_ours - UNCALLED == set()
    assert by_ours & UNCALLED == set()
    assert len(by_ours) > 15


@pytest.mark.parametrize(("cls", "name"), [m for m in methods(BRAINS) if m not in UNCALLED])
def test_patched_brain_method_may_call_the_stock_function(both: Any, cls: type, name: str) -> None:
    """The stock function may have been saved before this package replaced it."""
    stock = vars(cls)[name]
    stock = getattr(stock, "__wrapped__", stock)

    def patch(self: Any, *args: Any, original: Any = stock, **kw: Any) -> Any:
        return original(self, *args, **kw)

    with attribute(cls, name, patch):
        use(both[0])


def test_patched_path_of_a_brain_affects_its_url_and_object(both: Any) -> None:
    with attribute(AbstractCatalogBrain, "getPath", lambda self: "/plone/my_folder"):
        for catalog in both:
            brain = catalog.unrestrictedSearchResults(getId="page")[0]
            assert brain.getURL() == "http://nohost/plone/my_folder"
            assert brain.getObject().getId() == "my_folder"


def test_patched_conversion_of_dates_affects_objects_and_queries(both: Any) -> None:
    original = DateIndex._convert

    def by_year(self: Any, value: Any, default: Any = None) -> Any:
        return original(self, None if value is None else DateTime(DateTime(value).year(), 1, 1), default)

    found = []
    for catalog in both:
        with attribute(DateIndex, "_convert", by_year):
            save(catalog)
            rows = catalog.unrestrictedSearchResults(path=EVENT, created=DateTime())
            found.append((len(rows), catalog._catalog.getIndex("created").getEntryForObject(catalog.getrid(EVENT))))
        transaction.abort()
    assert found[0] == found[1]
    assert found[0][0] == 1
