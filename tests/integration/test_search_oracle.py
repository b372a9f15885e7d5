"""Every index type of a stock Plone, asked of ours and of a real ZCatalog with the same content."""

from BTrees.OOBTree import OOBTree
from BTrees.OOBTree import OOSet
from BTrees.OOBTree import OOTreeSet
from collections import ChainMap
from collections import deque
from collections import OrderedDict
from collections import UserDict
from collections import UserList
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set
from DateTime import DateTime
from OFS.SimpleItem import SimpleItem
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping
from plone.pgcatalog.query.objects import In
from Testing.makerequest import makerequest
from tests.integration.content import populate
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from types import MappingProxyType
from typing import Any
from ZPublisher.HTTPRequest import record

import pytest
import transaction


FOLDER = "/plone/my_folder"

QUERIES: list[dict[str, Any]] = [
    *({}, {"no_such_index": 1}, {"portal_type": "Document"}, {"portal_type": ["Document", "Event"]}),
    *({"portal_type": []}, {"portal_type": {"not": "Document"}}),
    {"portal_type": {"query": ["Document", "Event"], "not": ["Event"]}},
    {"portal_type": {"query": "Folder", "range": "min"}},
    {"portal_type": {"query": ["A", "F"], "range": "min:max"}},
    {"review_state": {"not": ["published"]}},
    {"getId": "über%_x"},
    {"Subject": "Rot"},
    {"Subject": {"query": ["Rot", "x y"], "operator": "and"}},
    {"Subject": {"query": ["Rot", "rot"], "operator": "or"}},
    {"Subject": {"query": ["Rot", "nobody"], "operator": "and"}},
    *({"Subject": {"not": "Rot"}}, {"Subject": {"query": "S", "range": "min"}}, {"is_folderish": True}),
    *({"is_folderish": [False]}, {"is_folderish": "odd"}, {"exclude_from_nav": False}, {"UID": "nobody"}),
    {"created": {"query": DateTime("2020/01/01 UTC"), "range": "min"}},
    {"effective": {"query": [DateTime("2098/01/01 UTC"), DateTime("2100/01/01 UTC")], "range": "min:max"}},
    {"effective": {"query": [DateTime("2100/01/01 UTC"), DateTime("2098/01/01 UTC")], "range": "min:max"}},
    {"expires": {"query": DateTime("2001/01/01 UTC")}},
    {"effectiveRange": DateTime("2020/01/01 UTC")},
    {"effectiveRange": DateTime("2000/01/01 UTC")},
    {"start": {"query": DateTime("2026/04/01 UTC"), "range": "min"}},
    {"start": {"query": DateTime("2026/03/24 UTC"), "range": "max"}},
    {"start": DateTime("2026/03/30 07:30 UTC")},
    {"start": DateTime("2026/04/06 07:30 UTC")},
    {"start": {"query": [DateTime("2026/03/29 UTC"), DateTime("2026/04/04 UTC")], "range": "min:max"}},
    *({"SearchableText": "quick"}, {"SearchableText": "quick AND fox"}, {"SearchableText": "fox OR news"}),
    *({"SearchableText": "quick AND NOT fox"}, {"SearchableText": '"quick brown"'}),
    *({"SearchableText": '"brown quick"'}, {"SearchableText": "(fox OR news) AND quick"}, {"SearchableText": "pag*"}),
    *({"SearchableText": "uber"}, {"SearchableText": "strassen"}, {"SearchableText": "me@example.org"}),
    *({"SearchableText": "quick-thinking"}, {"SearchableText": "目录"}, {"SearchableText": ""}, {"Title": "page"}),
    *({"Description": "brown"}, {"path": FOLDER}, {"path": FOLDER + "/"}, {"path": {"query": FOLDER, "depth": 0}}),
    *({"path": {"query": FOLDER, "depth": 1}}, {"path": {"query": FOLDER, "depth": 2}}),
    {"path": {"query": ["/plone/my-folder", FOLDER], "depth": 0}},
    {"path": {"query": FOLDER + "/a/b", "navtree": 1}},
    {"path": {"query": FOLDER + "/a/b", "navtree": 1, "navtree_start": 2}},
    {"path": {"query": FOLDER + "/a/b", "navtree": 1, "depth": 0}},
    *({"path": {"query": "b", "level": 3}}, {"path": {"query": "b", "level": -1}}, {"path": "/plone/my_folder%"}),
    *({"path": "/plone/m"}, {"path": "/"}, {"path": {"depth": 1}}, {"getObjPositionInParent": 1}),
    {"path": FOLDER, "sort_on": "getId"},
    {"path": FOLDER, "sort_on": "getId", "sort_order": "reverse"},
    {"path": FOLDER, "sort_on": "getId", "sort_order": "DESCENDING", "sort_limit": 3},
    {"path": FOLDER, "sort_on": "getId", "b_start": 2, "b_size": 3},
    {"path": FOLDER, "sort_on": "getId", "b_start": 200, "b_size": 3},
    {"path": FOLDER, "sort_on": ["sortable_title", "getId"]},
    {"path": FOLDER, "sort_on": ["portal_type", "getId"], "sort_order": ["descending", "ascending"]},
    {"path": {"query": FOLDER, "depth": 1}, "sort_on": "getObjPositionInParent"},
    {"path": {"query": FOLDER, "depth": 1}, "sort_on": "getObjPositionInParent", "sort_limit": 2},
    {"path": FOLDER, "sort_on": "start", "sort_limit": 2},
    {"path": FOLDER, "sort_on": "SearchableText"},
    {"path": FOLDER, "sort_on": "nobody"},
    {"portal_type": {"query": "x", "level": 3}},
    {"Subject": {"query": "x", "operator": "xor"}},
    {"Subject": "Rot", "Subject_operator": "and"},
    {"path": FOLDER, "path_depth": 1},
    {"modified": DateTime("2020/01/01"), "modified_range": "min"},
    {"modified": DateTime("2020/01/01"), "modified_usage": "range:min"},
]


SHARED = populate


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_same_answer(compared: Any, query: dict[str, Any]) -> None:
    ours, oracle, _ = compared
    assert answer(ours, query) == answer(oracle, query)


@pytest.mark.parametrize("query", [q for q in QUERIES if "sort_on" not in q], ids=str)
def test_same_restricted_answer(compared: Any, query: dict[str, Any]) -> None:
    ours, oracle, _ = compared
    assert answer(ours, query, "searchResults") == answer(oracle, query, "searchResults")


def test_metadata_has_the_same_values_and_types(compared: Any) -> None:
    ours, oracle, _ = compared
    for path, rid in oracle._catalog.uids.items():
        mine = ours._catalog.getMetadataForRID(ours.getrid(path))
        theirs = oracle._catalog.getMetadataForRID(rid)
        assert {k: (type(v), v) for k, v in mine.items()} == {k: (type(v), v) for k, v in theirs.items()}


def test_index_data_is_the_same(compared: Any) -> None:
    ours, oracle, _ = compared
    unordered = ("Subject", "allowedRolesAndUsers", "object_provides", "getRawRelatedItems")
    for path, rid in oracle._catalog.uids.items():
        mine = ours.getIndexDataForRID(ours.getrid(path))
        theirs = oracle.getIndexDataForRID(rid)
        for name in unordered:
            mine[name], theirs[name] = sorted(mine[name]), sorted(theirs[name])
        assert mine == theirs


UNIQUE = [
    *("portal_type", "Subject", "review_state", "Creator", "getId", "is_folderish", "is_default_page"),
    "effectiveRange",
]


@pytest.mark.parametrize("name", UNIQUE)
def test_unique_values_are_the_same(compared: Any, name: str) -> None:
    ours, oracle, _ = compared
    assert sorted(ours.uniqueValuesFor(name)) == sorted(oracle.uniqueValuesFor(name))
    mine = dict(ours.Indexes[name].uniqueValues(withLengths=True))
    assert mine == dict(oracle.Indexes[name].uniqueValues(withLengths=True))


def test_icon_of_the_tool_is_plones(both: Any) -> None:
    ours, theirs = both
    assert ours.icon == theirs.icon == "misc_/CMFPlone/book_icon.png"


def test_place_of_a_result_is_a_whole_number(both: Any) -> None:
    for catalog in both:
        results = catalog(portal_type="Document", sort_on="getId")
        for place in (1.0, 1.5, "1", None):
            with pytest.raises(TypeError):
                results[place]
        assert results[True].getId == "expired"


def test_always_has_the_rows_without_ends(compared: Any) -> None:
    ours, _, portal = compared
    catalogs = (ours, make_oracle(portal))
    found = []
    for catalog in catalogs:
        before = list(catalog._catalog.indexes["effectiveRange"]._always)
        catalog.catalog_object(SimpleItem(), f"{FOLDER}/dateless")
        found.append((before, [catalog.getpath(rid) for rid in catalog._catalog.indexes["effectiveRange"]._always]))
    transaction.abort()
    assert found == [([], [f"{FOLDER}/dateless"])] * 2


def test_brains_act_like_zcatalogs(compared: Any) -> None:
    ours, oracle, _portal = compared
    mine = ours(getId="page")[0]
    theirs = oracle(getId="page")[0]
    assert mine.getURL() == theirs.getURL() == "http://nohost/plone/my_folder/page"
    assert mine.getObject().aq_base is theirs.getObject().aq_base
    assert mine["Title"] == theirs["Title"] == mine[list(mine.__record_schema__).index("Title")]
    assert mine.__record_schema__ == theirs.__record_schema__
    assert len(mine) == len(theirs)
    assert "Title" in mine
    assert mine.has_key("Title")
    assert "nobody" not in mine
    assert mine.getRID() == ours.getrid(mine.getPath())
    assert mine.portal_catalog.aq_base is ours.aq_base
    with pytest.raises(AttributeError):
        _ = mine.no_such_metadata
    with pytest.raises(KeyError):
        mine["no_such_metadata"]


def test_open_ranges_sort_together_with_positions(compared: Any) -> None:
    """Open ends are None, which has no order in Python; ZCatalog fails on them."""
    ours, _oracle, _portal = compared
    query = {"path": {"query": FOLDER, "depth": 1}, "sort_on": ["effectiveRange", "getObjPositionInParent"]}
    paths, count = answer(ours, query)
    assert count == len(paths) == len(ours.unrestrictedSearchResults(path=query["path"]))
    assert paths[-1] == f"{FOLDER}/future"


@pytest.mark.parametrize("ordering", ["", "partial", "unordered"])
def test_positions_are_those_of_whatever_orders_a_folder(compared: Any, ordering: str) -> None:
    ours, oracle, portal = compared
    query = {"portal_type": ["Document", "Event"], "sort_on": "getObjPositionInParent"}
    portal["my_folder"].setOrdering(ordering)
    paths, count = answer(ours, query)
    assert len({path.rpartition("/")[0] for path in paths}) > 1
    assert (paths, count) == answer(oracle, query)
    transaction.abort()


def test_rows_of_vanished_objects_drop_out_of_a_sort_by_position(compared: Any) -> None:
    """ZCatalog drops them where all rows are of one folder, and raises ValueError where they are not."""
    ours, _, portal = compared
    oracle = make_oracle(portal)
    query = {"portal_type": "Folder", "sort_on": "getObjPositionInParent"}
    before = answer(ours, query)
    for catalog in (ours, oracle):
        catalog.catalog_object(portal["my_folder"], f"{FOLDER}/vanished")
    assert answer(ours, query) == before
    with pytest.raises(ValueError, match="vanished"):
        oracle.searchResults(**query)
    transaction.abort()


def test_rows_of_a_vanished_folder_drop_out_of_a_sort_by_position(compared: Any) -> None:
    """ZCatalog raises AttributeError."""
    ours, _, portal = compared
    ours.uncatalog_object(FOLDER)
    ours.catalog_object(portal["my_folder"], "/plone/vanished/page")
    query = {"path": {"query": FOLDER, "depth": 0}}
    found = [answer(ours, query | sort) for sort in ({}, {"sort_on": "getObjPositionInParent"})]
    transaction.abort()
    assert found == [(["/plone/vanished/page"], 1), ([], 0)]


def test_search_refuses_an_index_that_cannot_sort(compared: Any) -> None:
    for catalog in compared[:2]:
        with pytest.raises(AttributeError):
            catalog.search({"portal_type": "Document"}, "Title")


#: An index of each type -> values.
VALUES: dict[str, list[Any]] = {
    "portal_type": ["Document", "Event"],
    "Subject": ["Rot", "x y"],
    "created": [DateTime("2020/01/01 UTC"), DateTime("2099/01/01 UTC")],
    "start": [DateTime("2026/03/23 08:30 UTC"), DateTime("2026/04/06 UTC")],
    "effectiveRange": [DateTime("2020/01/01 UTC")],
    "is_folderish": [True],
    "path": ["/plone/my_folder/a", "/plone/my_folder2"],
    "Title": ["page", "one"],
    "getRawRelatedItems": ["nobody"],
}


class OwnSequence(Sequence[Any]):
    """A sequence that is no list."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def __getitem__(self, index: Any) -> Any:
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)


class OwnSet(Set[Any]):
    """A set that is no set of Python's."""

    def __init__(self, values: Any) -> None:
        self._values = list(values)

    def __contains__(self, value: object) -> bool:
        return value in self._values

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class OwnMapping(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, items: dict[str, Any]) -> None:
        self._items = items

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Any:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


def record_of(items: dict[str, Any]) -> Any:
    """Return *items* as a request has those of a form."""
    made = record()
    vars(made).update(items)
    return made


CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "keys": lambda values: dict.fromkeys(values).keys(),
    "values": lambda values: dict(enumerate(values)).values(),
    "generator": lambda values: (value for value in values),
    "iterator": iter,
    "reversed": lambda values: reversed(values),
    "deque": deque,
    "UserList": UserList,
    "PersistentList": PersistentList,
    "own sequence": OwnSequence,
    "own set": OwnSet,
    "OOSet": OOSet,
    "OOTreeSet": OOTreeSet,
    "tree's keys": lambda values: OOBTree(dict.fromkeys(values)).keys(),
    "tree's values": lambda values: OOBTree(dict(enumerate(values))).values(),
}
MAPPINGS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "OrderedDict": OrderedDict,
    "UserDict": UserDict,
    "PersistentMapping": PersistentMapping,
    "ChainMap": ChainMap,
    "MappingProxyType": MappingProxyType,
    "own mapping": OwnMapping,
    "record": record_of,
}
FORMS: dict[str, Callable[[str, Any], dict[str, Any]]] = {
    "plain": lambda name, values: {name: values},
    "query": lambda name, values: {name: {"query": values}},
    "not": lambda name, values: {name: {"not": values}},
    "old not": lambda name, values: {name: [], f"{name}_not": values},
    "range": lambda name, values: {name: {"query": values, "range": "min"}},
    "old range": lambda name, values: {name: values, f"{name}_range": "max"},
    "and": lambda name, values: {name: {"query": values, "operator": "and"}},
}


@pytest.mark.parametrize("name", [*VALUES, "UID"])
@pytest.mark.parametrize("form", FORMS)
def test_each_container_is_taken_as_a_list(both: Any, name: str, form: str) -> None:
    ours, theirs = both
    folder = ours.aq_parent.my_folder
    values = VALUES.get(name) or [folder.UID(), folder.page.UID()]
    query = FORMS[form]
    expected = answer(ours, query(name, values))
    if form not in ("not", "old not"):  # deviation not-alone
        assert expected == answer(theirs, query(name, values))
    found = {
        container: answer(ours, query(name, make(values)), method)
        for container, make in CONTAINERS.items()
        for method in ("unrestrictedSearchResults", "searchResults")
        if method != "searchResults" or name not in ("effectiveRange",)
    }
    assert found == dict.fromkeys(CONTAINERS, expected)


@pytest.mark.parametrize("container", CONTAINERS)
def test_each_container_is_taken_by_an_index_a_sort_and_a_query_object(both: Any, container: str) -> None:
    ours, theirs = both
    make, types = CONTAINERS[container], VALUES["portal_type"]
    [found, _] = ours._catalog.getIndex("portal_type")._apply_index({"portal_type": make(types)})
    [wanted, _] = theirs._catalog.getIndex("portal_type")._apply_index({"portal_type": types})
    assert sorted(map(ours.getpath, found)) == sorted(map(theirs.getpath, wanted))
    by_id = {"portal_type": "Document", "sort_on": ["getId"]}
    assert answer(ours, by_id | {"sort_on": make(["getId"])}) == answer(theirs, by_id)
    assert len(ours(where=In("portal_type", make(types)))) == len(theirs(portal_type=types)) > 0


def test_a_generator_of_paths_is_read_once(both: Any) -> None:
    """Plone looks at the paths, too, whether expired content below them may be shown."""
    paths = ["/plone/my_folder", "/plone/my_folder2"]
    found = both[0].searchResults(path=(path for path in paths), show_inactive=True)
    assert [b.getPath() for b in found] == [b.getPath() for b in both[0].searchResults(path=paths, show_inactive=True)]
    assert len(found) > 5


@pytest.mark.parametrize("value", ["Document", b"Document", {"query": "Document"}, None, 1])
def test_what_holds_one_value_stays_as_it_is(both: Any, value: Any) -> None:
    ours, theirs = (answer(catalog, {"portal_type": value}) for catalog in both)
    assert ours == theirs


@pytest.mark.parametrize("kind", MAPPINGS)
def test_each_mapping_is_taken_as_options(both: Any, kind: str) -> None:
    ours, theirs = both
    make = MAPPINGS[kind]
    for name, values in VALUES.items():
        for container in (list, PersistentList):
            found = answer(ours, {name: make({"query": container(values)})})
            assert found == answer(theirs, {name: {"query": values}}), name
    types = VALUES["portal_type"]
    excluding = make({"query": "Folder", "not": PersistentList(types)})
    assert answer(ours, {"portal_type": excluding}) == answer(
        theirs, {"portal_type": {"query": "Folder", "not": types}}
    )


@pytest.mark.parametrize("kind", [list, PersistentList, dict, UserDict, bytearray])
def test_value_that_is_a_container_itself_is_an_error(both: Any, kind: Any) -> None:
    """... as in ZCatalog: an index has no such value."""
    one = kind(b"1") if kind is bytearray else kind()
    for name in ("portal_type", "Subject", "created", "start", "UID", "Title"):
        queries = [{name: [one]}, {name: {"query": [one]}}]
        if name in ("portal_type", "Subject", "UID", "start"):
            queries += [{name: {"not": [one]}}, {name: [], f"{name}_not": [one]}]
        for query in queries:
            assert [answer(catalog, query) for catalog in both] == [TypeError] * 2, query


# -- what a query is


#: Values that no index takes.
ODD: list[Any] = [{1, "a"}, deque([1, "a"]), PersistentList([1, "a"]), {"query": {1, "a"}}, object()]
METHODS = ("searchResults", "unrestrictedSearchResults", "search", "__call__")


def found_by(catalog: Any, method: str, *args: Any, **kw: Any) -> Any:
    """Return the paths that the *method* of *catalog* finds, or the type of its error."""
    try:
        return sorted(brain.getPath() for brain in getattr(catalog, method)(*args, **kw))
    except Exception as error:  # noqa: BLE001  both must raise the same
        return type(error)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_value_of_no_index_is_not_touched(both: Any, method: str, odd: Any) -> None:
    query = {"portal_type": "Document", "nope": odd}
    found = [found_by(catalog, method, dict(query)) for catalog in both]
    if method != "search":
        found += [found_by(catalog, method, **query) for catalog in both]
    assert found == [found[0]] * len(found)
    assert len(found[0]) == 6


@pytest.mark.parametrize("method", METHODS)
def test_generator_of_no_index_is_not_used_up(both: Any, method: str) -> None:
    generator = iter("ab")
    assert len(found_by(both[0], method, {"portal_type": "Document", "nope": generator})) == 6
    assert list(generator) == ["a", "b"]


def test_list_of_no_index_is_not_sorted(both: Any) -> None:
    """ZCatalog sorts it, the deviation ``unknown-names``."""
    query = {"portal_type": "Document", "nope": [1, "a"]}
    assert [len(found_by(both[0], method, query)) for method in METHODS] == [6] * len(METHODS)
    assert found_by(both[1], "search", query) is TypeError


def request_of(portal: Any, **form: Any) -> Any:
    request = makerequest(portal.getPhysicalRoot().aq_base).REQUEST
    request.form.update(form)
    return request


#: What may be given as a query; ZCatalog's ``search`` takes what has items, the others a dict.
GIVEN: dict[str, Callable[[Any], Any]] = {
    "request": lambda portal: request_of(portal, portal_type="Document"),
    "request with odd values": lambda portal: request_of(portal, portal_type="Document", nope={1, "a"}),
    "UserDict": lambda portal: UserDict(portal_type="Document"),
    "PersistentMapping": lambda portal: PersistentMapping(portal_type="Document"),
    "OrderedDict": lambda portal: OrderedDict(portal_type="Document"),
    "nothing": lambda portal: {},
    "None": lambda portal: None,
    "text": lambda portal: "Document",
    "number": lambda portal: 1,
    "pairs": lambda portal: [("portal_type", "Document")],
    "record": lambda portal: record_of({"portal_type": "Document"}),
    "name that is no text": lambda portal: {"portal_type": "Document", ("a",): 1},
}


@pytest.mark.parametrize("given", GIVEN)
def test_query_of_each_kind_is_taken_as_by_zcatalog(both: Any, given: str) -> None:
    ours, theirs = both
    make, portal = GIVEN[given], ours.aq_parent
    for method in METHODS:
        if (method, given) == ("search", "record"):
            continue  # the deviation ``query-untouched``
        assert found_by(ours, method, make(portal)) == found_by(theirs, method, make(portal)), method
    for method in ("searchResults", "search", "__call__"):
        found = [found_by(catalog._catalog, method, make(portal)) for catalog in both]
        assert found[0] == found[1], method


def test_search_leaves_its_query_as_it_is(both: Any) -> None:
    for query in ({"portal_type": "Document"}, record_of({"portal_type": "Document"})):
        before = dict(query.items())
        assert len(both[0].search(query)) == 6
        assert dict(query.items()) == before
