"""Patches of brains and index classes are called where ZCatalog calls these methods, or are logged by name."""

from Acquisition import aq_base
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import ExitStack
from contextlib import suppress
from DateTime import DateTime
from plone.pgcatalog.compat.zcatalog import ineffective_patches
from Products.PluginIndexes.DateIndex.DateIndex import DateIndex
from Products.ZCatalog.CatalogBrains import AbstractCatalogBrain
from Products.ZCTextIndex.BaseIndex import BaseIndex
from Products.ZCTextIndex.Lexicon import Lexicon
from Products.ZCTextIndex.OkapiIndex import OkapiIndex
from Record import Record
from tests.integration.content import populate
from tests.integration.patching import attribute
from tests.integration.patching import Names
from tests.integration.patching import recorded
from tests.integration.patching import UNASKED
from types import FunctionType
from typing import Any

import copy
import pytest
import transaction


SHARED = populate

#: Packages of index classes.
INDEXES = (
    "Products.PluginIndexes",
    "Products.ExtendedPathIndex",
    "Products.DateRecurringIndex",
    "Products.ZCTextIndex",
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
    assert by_zcatalog - by_ours - UNASKED == set()
    assert action is ask or by_ours & UNASKED == set()


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
    assert by_zcatalog - by_ours - UNASKED == set()
    assert by_ours & UNASKED == set()
    assert len(by_ours) > 15


@pytest.mark.parametrize(("cls", "name"), [m for m in methods(BRAINS) if m not in UNASKED])
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
