"""Bad queries: ZCatalog's answer or a clear error, and the transaction remains usable."""

from collections.abc import Callable
from collections.abc import Iterator
from itertools import product
from operator import attrgetter
from plone.pgcatalog.query.criteria import CONTAINERS
from plone.pgcatalog.query.criteria import UNCONVERTED
from plone.pgcatalog.query.expression import LimitExceeded
from Products.ZCatalog.Catalog import CatalogError
from tests.integration.bad_values import answer
from tests.integration.bad_values import CLEAR
from tests.integration.bad_values import Hostile
from tests.integration.bad_values import Odd
from tests.integration.bad_values import TEXTS
from tests.integration.bad_values import VALUES
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.wrong_requests import ALL_INDEXES
from typing import Any

import pytest
import transaction


FOLDER = "/plone/my_folder"
INDEXES = ALL_INDEXES[:10]  # those of Plone
ODD_IDS = (
    *("with space", "it's", 'a"quote', "back\\slash", "100%", "a_b", "a-b", "aXb", "%s", "{0}", "ümläut"),
    *("u\u0308mla\u0308ut", "数据", "\U0001f600", "a~b", "a+b;c=d", "(x)[y]", "dot.html", "x" * 200),
)


def fill(portal: Any) -> None:
    populate(portal)
    for number, id in enumerate(ODD_IDS):
        folder = create(portal.my_folder, "Folder", id, title=f"Title {id}")
        create(folder, "Document", f"child{number}")


SHARED = fill


class Both:
    """Our catalog and a real one over the same committed content."""

    def __init__(self, ours: Any, oracle: Any) -> None:
        self.ours, self.oracle = ours, oracle
        self.folders = answer(oracle, portal_type="Folder")

    def check(self) -> None:
        """Check that the transaction is usable: a search answers."""
        assert answer(self.ours, portal_type="Folder") == self.folders

    def change(self) -> None:
        """Make a pending change that affects no answer."""
        self.ours.aq_parent.my_folder.page.reindexObject(idxs=["portal_type", "Subject", "path"])


@pytest.fixture(scope="module")
def module_both(shared_both: Any) -> Both:
    return Both(*shared_both)


@pytest.fixture(params=["nothing pending", "pending"])
def both(module_both: Both, request: Any) -> Iterator[Both]:
    """The two catalogs, with and without pending changes; afterwards the transaction must commit."""
    if request.param == "pending":
        module_both.change()
    yield module_both
    module_both.check()
    module_both.change()
    transaction.commit()
    module_both.check()


def wrong(ours: Any, theirs: Any, same_order: bool = True) -> bool:
    """Return whether *ours* differs from *theirs*.

    Where *theirs* is an exception, any answer or clear error is right.
    """
    if isinstance(theirs, Exception):
        return isinstance(ours, Exception) and not isinstance(ours, CLEAR)
    if isinstance(ours, Exception):
        # The number of words in a search is limited: the deviation text-long-query.
        return not isinstance(ours, LimitExceeded)
    return bool(ours != theirs if same_order else sorted(ours) != sorted(theirs))


def compare(both: Both, queries: list[Any], method: str = "unrestrictedSearchResults", same_order: bool = True) -> None:
    answers = [(query, answer(both.ours, query, method), answer(both.oracle, query, method)) for query in queries]
    found = [each for each in answers if wrong(*each[1:], same_order)]
    assert not found, found


def is_known(index: str, value: Any) -> bool:
    """Return True for the deviations ``containers-as-lists``, ``not-alone``, ``date-not-with-query`` and ``date-far``."""
    if isinstance(value, CONTAINERS) and not isinstance(value, UNCONVERTED):
        return True
    if index == "created" and isinstance(value, dict) and value.get("query") == [2**70, -(2**70)]:
        return True
    excluded = value.get("not") if isinstance(value, dict) else None
    if not excluded:
        return False
    return "query" not in value if index in ("Subject", "start", "UID") else index == "created"


def takes_for_ever(value: Any) -> bool:
    """Return True for values up to which ZCatalog counts."""
    return isinstance(value, dict) and 2**70 in [value.get(k) for k in ("depth", "level", "navtree_start")]


#: Many cases while nothing is pending; with pending changes in the slow tests.
MOSTLY_WITHOUT = pytest.mark.parametrize(
    "both", ["nothing pending", pytest.param("pending", marks=pytest.mark.slow)], indirect=True
)
#: Indexes also queried with pending changes.
WITH_PENDING = ("Subject",)


@pytest.mark.parametrize(
    ("both", "index"),
    [
        pytest.param(state, index, marks=() if state != "pending" or index in WITH_PENDING else pytest.mark.slow)
        for state in ("nothing pending", "pending")
        for index in INDEXES
    ],
    indirect=["both"],
)
def test_odd_values_are_answered_as_by_zcatalog(both: Both, index: str) -> None:
    compare(both, [{index: v} for v in VALUES if not is_known(index, v) and not takes_for_ever(v)], same_order=False)
    for value in VALUES:
        ours = answer(both.ours, {index: value}, "searchResults")
        assert not isinstance(ours, Exception) or isinstance(ours, CLEAR), value


@pytest.mark.slow
@pytest.mark.parametrize("index", INDEXES)
def test_odd_values_beside_sensible_ones_are_answered_as_by_zcatalog(both: Both, index: str) -> None:
    others = {"path": FOLDER} if index != "path" else {"portal_type": "Document"}
    for value in VALUES:
        alone = answer(both.ours, {index: value})
        together = answer(both.ours, {index: value, **others, "sort_on": "getId"})
        if isinstance(alone, Exception):
            assert type(together) is type(alone)
        elif index != "getObjPositionInParent":  # finds nothing, so no difference shows
            assert set(together) == set(alone) & set(answer(both.ours, others))


@MOSTLY_WITHOUT
@pytest.mark.parametrize("index", ["SearchableText", "Title", "Description"])
def test_broken_texts_are_answered_as_by_zcatalog(both: Both, index: str) -> None:
    # Deviation text-whole-words: a page ``a_b`` is found, too.
    compared = [text for text in TEXTS if index != "SearchableText" or text not in ("*a", "?a")]
    compare(both, [{index: text} for text in compared], same_order=False)
    compare(both, [{index: {"query": text}} for text in compared], "searchResults", same_order=False)
    for text in TEXTS:
        assert not isinstance(answer(both.ours, {index: text}), Exception), text


@MOSTLY_WITHOUT
def test_odd_paths_are_answered_as_by_zcatalog(both: Both) -> None:
    paths = [f"{FOLDER}/{id}" for id in ODD_IDS]
    assert set(paths) <= set(answer(both.oracle, path=FOLDER))
    for tail in ("", "/", "/child1", "%", "_", "\\", "'", "//child", "/..", "\0", " "):
        compare(both, [{"path": path + tail} for path in paths], same_order=False)
        for depth in (0, 1, 2):
            compare(both, [{"path": {"query": p + tail, "depth": depth}} for p in paths], same_order=False)
    compare(both, [{"path": paths}, {"path": {"query": paths, "depth": 0}}, {"path": {"query": paths, "depth": 1}}])
    compare(both, [{"getId": id} for id in ODD_IDS] + [{"Title": id} for id in ODD_IDS], same_order=False)
    for path in paths:
        assert both.ours.getrid(path) == both.ours._catalog.uids[path]
        assert both.ours.getpath(both.ours.getrid(path)) == path
        assert answer(both.ours, path={"query": path, "depth": 0}) == [path]


def test_unknown_indexes_are_ignored(both: Both) -> None:
    for name in ("nobody", "", " ", "a\0b", "\ud800", 'x"; DROP TABLE object_state; --', "%s", "é"):
        for value in ("x", None, {"query": Odd()}, Hostile()):
            assert answer(both.ours, {name: value}) == [], name
            for method in ("unrestrictedSearchResults", "searchResults"):
                assert answer(both.ours, {name: value, "portal_type": "Folder"}, method) == both.folders, name
        compare(both, [{name: "x", "sort_on": "getId"}, {name: "x", "b_size": 2}])


ODD_QUERIES: list[Any] = [None, "", "portal_type", 5, [], [("portal_type", "Folder")], Odd(), b"x", {1: 2}]


@pytest.mark.parametrize("method", ["searchResults", "unrestrictedSearchResults", "__call__", "search"])
def test_odd_queries_are_answered_as_by_zcatalog(both: Both, method: str) -> None:
    compare(both, ODD_QUERIES, method)
    for query in ODD_QUERIES if method != "search" else []:
        ours, theirs = (answer(each, query, method, portal_type="Folder") for each in (both.ours, both.oracle))
        assert not wrong(ours, theirs), query


SORT_ON = (
    *("nobody", "", "a\0b", "getId,nobody", "getId,portal_type", 'getId" DESC, "x', ["nobody"], ["getId", "nobody"]),
    *(["getId", 5], ["getId", None], [["getId"]], ("portal_type", "getId"), {"getId"}, {"getId": 1}, 5, True),
    *(b"getId", Odd(), Hostile(), "SearchableText", None),
)
ORDERS = (
    5, Odd(), Hostile(), "sideways", "", None, [], {}, ["desc", 5], [None], True, b"reverse",
    "REVERSE", "Descending", "reverse ", ("reverse",), 'DESC"; --',
)  # fmt: skip


@pytest.mark.parametrize("method", ["searchResults", "unrestrictedSearchResults"])
def test_odd_sorting_is_answered_as_by_zcatalog(both: Both, method: str) -> None:
    base = {"path": f"{FOLDER}/a"}
    for key in ("sort_on", "sort-on"):
        compare(both, [{**base, key: value} for value in SORT_ON], method)
        compare(both, [{**base, key: value, "sort_limit": 2, "sort_order": "descending"} for value in SORT_ON], method)
    for key in ("sort_order", "sort-order"):
        compare(both, [{**base, "sort_on": "getId", key: value} for value in ORDERS], method)
        for sort_on in (["portal_type", "getId"], "getObjPositionInParent"):
            for value in ORDERS:
                assert isinstance(answer(both.ours, {**base, "sort_on": sort_on, key: value}, method), (list, *CLEAR))


@pytest.mark.parametrize("name", ["nobody", "SearchableText"])
def test_unknown_and_unsortable_indexes_are_catalog_errors(both: Both, name: str) -> None:
    for sort_on in (name, ["getId", name]):
        with pytest.raises(CatalogError, match=name):
            both.ours.unrestrictedSearchResults(path=FOLDER, sort_on=sort_on)


NUMBERS = (
    -1, -3, -200, 0, 1, 3, 200, 2**31, 2**63 - 1, 2**63, 2**70, -(2**63), -(2**70), 1.5, float("nan"), float("inf"),
    True, None, "3", " 2 ", "-2", "x", "", "1.5", "99999999999999999999", [], [1], Odd(), Hostile(), b"3",
)  # fmt: skip
SORTS: tuple[dict[str, Any], ...] = (
    {},
    {"sort_on": "getId"},
    {"sort_on": "getId", "sort_order": "reverse"},
    {"sort_on": ["portal_type", "getId"]},
    {"sort_on": "getObjPositionInParent"},
)


@pytest.mark.parametrize("sort", SORTS, ids=str)
@pytest.mark.parametrize("start", [None, -1, -200, 2, 2**70, "3", "x", float("nan"), Odd()], ids=repr)
def test_odd_numbers_are_answered_as_by_zcatalog(module_both: Both, sort: dict[str, Any], start: Any) -> None:
    both = module_both
    base = {"path": FOLDER, **sort}
    everything = answer(both.ours, base)
    for limits in [{"sort_limit": n} for n in NUMBERS] + [{"b_size": n} for n in NUMBERS] + [{}]:
        query = {**base, **limits, "b_start": start}
        found = answer(both.ours, query)
        if isinstance(found, Exception):
            assert isinstance(found, CLEAR), query
        else:
            assert "".join(found) in "".join(everything)
    both.check()


@pytest.mark.parametrize("sort", SORTS, ids=str)
@pytest.mark.parametrize("name", ["sort_limit", "sort-limit", "b_size"])
def test_limits_are_those_of_zcatalog(module_both: Both, sort: dict[str, Any], name: str) -> None:
    both = module_both
    for number in (1, 3, 200, 2**31, 2**63, 2**70, "3", " 2 ", True, None):
        for start in ({}, {"b_start": 2}, {"b_start": "2"}, {"b_start": 200}, {"b_start": 2**70}):
            query = {"path": FOLDER, **sort, name: number, **start}
            if name == "b_size" or not start:
                assert not wrong(answer(both.ours, query), answer(both.oracle, query)), query
    both.check()


#: A name, a path and a record id of nothing.
UNKNOWN = ("nobody", "/nobody", -1)
ARGUMENTS = (
    *(None, "", "a\0b", "\ud800", "ü", 0, 2**31, 2**63, 2**70, 1.5, True, b"x", [], (), {}, Odd()),
    Hostile(),
)
#: Methods and mappings, by their names in the tool.
METHODS = (
    *("uniqueValuesFor", "getpath", "getrid", "getobject", "getMetadataForRID", "getMetadataForUID", "resolve_path"),
    *("getIndexDataForUID", "getIndexDataForRID", "delColumn", "delIndex", "clearIndex", "uncatalog_object"),
    *("_catalog.getIndex", "_catalog.hasuid", "_catalog.uids.get", "_catalog.paths.get"),
)
MAPPINGS = ("_catalog", "_catalog.uids", "_catalog.paths", "_catalog.data", "_catalog.indexes", "Indexes")
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "getEntryForObject": lambda catalog, x: catalog.Indexes["Title"].getEntryForObject(x),
    "keyForDocument": lambda catalog, x: catalog.Indexes["portal_type"].keyForDocument(x),
    "_apply_index": lambda catalog, x: catalog.Indexes["portal_type"]._apply_index(x),
    "_index": lambda catalog, x: catalog.Indexes["portal_type"]._index[x],
    "_index.get": lambda catalog, x: catalog.Indexes["UID"]._index.get(x),
    "in uids": lambda catalog, x: x in catalog._catalog.uids,
    "addIndex": lambda catalog, x: catalog.addIndex("", x),
    "search by": lambda catalog, x: list(catalog.search({"portal_type": "Folder"}, x)),
    "search limit": lambda catalog, x: len(catalog.search({"portal_type": "Folder"}, "getId", limit=x)) >= 0,
}


def outcome(catalog: Any, name: str, argument: Any) -> Any:
    """Return the result of a call, or its exception."""
    try:
        if name in CALLS:
            return CALLS[name](catalog, argument)
        found = attrgetter(name)(catalog)
        return found[argument] if name in MAPPINGS else found(argument)
    except Exception as error:  # noqa: BLE001  which exception it is is the point
        return error


def test_odd_arguments_are_answered_as_by_zcatalog(both: Both) -> None:
    for name, argument in product((*METHODS, *MAPPINGS, *CALLS), (*UNKNOWN, *ARGUMENTS)):
        ours, theirs = (outcome(catalog, name, argument) for catalog in (both.ours, both.oracle))
        if isinstance(ours, Exception):
            assert isinstance(theirs, Exception), (name, argument, ours)
            assert isinstance(ours, CLEAR), (name, argument, ours)
        if any(argument is each for each in UNKNOWN) and not isinstance(theirs, TypeError):
            same = type(ours) is type(theirs) if isinstance(theirs, Exception) else ours == theirs
            assert same, (name, argument, ours, theirs)
