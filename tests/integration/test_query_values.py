"""Types of queries and of their values, in our catalog and a real ZCatalog with the same content."""

from BTrees.OOBTree import OOBTree
from BTrees.OOBTree import OOSet
from BTrees.OOBTree import OOTreeSet
from collections import ChainMap
from collections import deque
from collections import OrderedDict
from collections import UserDict
from collections import UserList
from collections.abc import Callable
from DateTime import DateTime
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping
from plone.pgcatalog.query.objects import In
from Testing.makerequest import makerequest
from tests.integration.content import populate
from tests.integration.oracle import answer
from types import MappingProxyType
from typing import Any
from ZPublisher.HTTPRequest import record

import pytest


SHARED = populate

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


def record_of(items: dict[str, Any]) -> Any:
    """Return *items* as a record of a request's form."""
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
def test_each_container_is_read_as_a_list(both: Any, name: str, form: str) -> None:
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
def test_each_container_is_accepted_by_an_index_a_sort_and_a_query_object(both: Any, container: str) -> None:
    ours, theirs = both
    make, types = CONTAINERS[container], VALUES["portal_type"]
    [found, _] = ours._catalog.getIndex("portal_type")._apply_index({"portal_type": make(types)})
    [wanted, _] = theirs._catalog.getIndex("portal_type")._apply_index({"portal_type": types})
    assert sorted(map(ours.getpath, found)) == sorted(map(theirs.getpath, wanted))
    by_id = {"portal_type": "Document", "sort_on": ["getId"]}
    assert answer(ours, by_id | {"sort_on": make(["getId"])}) == answer(theirs, by_id)
    assert len(ours(where=In("portal_type", make(types)))) == len(theirs(portal_type=types)) > 0


def test_a_generator_of_paths_is_read_once(both: Any) -> None:
    """Plone also checks the paths for permission to see expired content below them."""
    paths = ["/plone/my_folder", "/plone/my_folder2"]
    found, expected = (
        found_by(both[0], "searchResults", path=each, show_inactive=True) for each in (iter(paths), paths)
    )
    assert found == expected
    assert len(found) > 5


def test_single_value_is_not_converted(both: Any) -> None:
    for value in ("Document", b"Document", {"query": "Document"}, None, 1):
        ours, theirs = (answer(catalog, {"portal_type": value}) for catalog in both)
        assert ours == theirs, value


@pytest.mark.parametrize("kind", MAPPINGS)
def test_each_mapping_is_read_as_options(both: Any, kind: str) -> None:
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


# -- types of queries


METHODS = ("searchResults", "unrestrictedSearchResults", "search", "__call__")


def found_by(catalog: Any, method: str, *args: Any, **kw: Any) -> Any:
    """Return the paths found by the *method* of *catalog*, or the type of its error."""
    try:
        return sorted(brain.getPath() for brain in getattr(catalog, method)(*args, **kw))
    except Exception as error:  # noqa: BLE001  both must raise the same
        return type(error)


@pytest.mark.parametrize("method", METHODS)
def test_value_of_no_index_is_not_touched(both: Any, method: str) -> None:
    for odd in ({1, "a"}, deque([1, "a"]), PersistentList([1, "a"]), {"query": {1, "a"}}, object()):
        query = {"portal_type": "Document", "nope": odd}
        found = [found_by(catalog, method, dict(query)) for catalog in both]
        if method != "search":
            found += [found_by(catalog, method, **query) for catalog in both]
        assert found == [found[0]] * len(found), odd
        assert len(found[0]) == 6
    generator = iter("ab")
    assert len(found_by(both[0], method, {"portal_type": "Document", "nope": generator})) == 6
    assert list(generator) == ["a", "b"]
    # ZCatalog sorts it, the deviation ``unknown-names``.
    assert len(found_by(both[0], method, {"portal_type": "Document", "nope": [1, "a"]})) == 6


def request_of(portal: Any, **form: Any) -> Any:
    request = makerequest(portal.getPhysicalRoot().aq_base).REQUEST
    request.form.update(form)
    return request


#: Types of queries; ZCatalog's ``search`` accepts any object with items, the other methods a dict.
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
def test_query_of_each_type_is_accepted_as_by_zcatalog(both: Any, given: str) -> None:
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
