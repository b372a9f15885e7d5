"""What holds several values is taken as a list in a query: sets, views of dicts and BTrees, generators.

The oracle is asked with lists: it takes the others for one value, which it finds nowhere or cannot compare.
"""

from BTrees.OOBTree import OOBTree
from BTrees.OOBTree import OOSet
from BTrees.OOBTree import OOTreeSet
from collections import deque
from collections.abc import Callable
from collections.abc import Iterator
from DateTime import DateTime
from plone.pgcatalog.query.objects import In
from tests.integration import site as sites
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from typing import Any

import pytest


#: An index of each type -> values.
VALUES: dict[str, list[Any]] = {
    "portal_type": ["Document", "Event"],
    "Subject": ["Rot", "x y"],
    "created": [DateTime("2020/01/01 UTC"), DateTime("2099/01/01 UTC")],
    "start": [DateTime("2026/03/23 08:30 UTC"), DateTime("2026/04/06 UTC")],
    "effectiveRange": [DateTime("2020/01/01 UTC")],
    "is_folderish": [True],
    "UID": ["nobody"],
    "path": ["/plone/my_folder/a", "/plone/my_folder2"],
    "Title": ["page", "one"],
    "getRawRelatedItems": ["nobody"],
}
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
    "OOSet": OOSet,
    "OOTreeSet": OOTreeSet,
    "tree's keys": lambda values: OOBTree(dict.fromkeys(values)).keys(),
    "tree's values": lambda values: OOBTree(dict(enumerate(values))).values(),
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


@pytest.fixture(scope="module")
def shared(site_with: SiteWith) -> Iterator[Any]:
    """(our catalog, the oracle), filled with the same content; the tests change nothing."""
    with sites.opened(site_with(populate)) as db, sites.inside(db) as portal:
        VALUES["UID"] = [portal.my_folder.UID(), portal.my_folder.page.UID()]
        yield portal.portal_catalog, make_oracle(portal)


@pytest.fixture
def both(shared: Any) -> Any:
    sites.return_to(shared[0].aq_parent)
    return shared


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("form", FORMS)
def test_each_container_is_taken_as_a_list(both: Any, name: str, form: str) -> None:
    ours, theirs = both
    query = FORMS[form]
    expected = answer(ours, query(name, VALUES[name]))
    if form not in ("not", "old not"):  # deviation not-alone
        assert expected == answer(theirs, query(name, VALUES[name]))
    found = {
        container: answer(ours, query(name, make(VALUES[name])), method)
        for container, make in CONTAINERS.items()
        for method in ("unrestrictedSearchResults", "searchResults")
        if method != "searchResults" or name not in ("effectiveRange",)
    }
    assert found == dict.fromkeys(CONTAINERS, expected)


@pytest.mark.parametrize("container", CONTAINERS)
def test_an_index_takes_each_container(both: Any, container: str) -> None:
    ours, theirs = both
    make = CONTAINERS[container]
    [found, _] = ours._catalog.getIndex("portal_type")._apply_index({"portal_type": make(VALUES["portal_type"])})
    [wanted, _] = theirs._catalog.getIndex("portal_type")._apply_index({"portal_type": VALUES["portal_type"]})
    assert sorted(map(ours.getpath, found)) == sorted(map(theirs.getpath, wanted))


@pytest.mark.parametrize("container", CONTAINERS)
def test_each_container_of_names_is_what_is_sorted_by(both: Any, container: str) -> None:
    make = CONTAINERS[container]
    assert answer(both[0], {"portal_type": "Document", "sort_on": make(["getId"])}) == answer(
        both[1], {"portal_type": "Document", "sort_on": ["getId"]}
    )


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_query_object_takes_each_container(both: Any, container: str) -> None:
    found = both[0](where=In("portal_type", CONTAINERS[container](VALUES["portal_type"])))
    assert len(found) == len(both[1](portal_type=VALUES["portal_type"])) > 0


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
