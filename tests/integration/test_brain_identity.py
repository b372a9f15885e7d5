"""A result returns the same brain object for the same row, as ZCatalog's LazyMap does; a stream stores no brains."""

from Acquisition import aq_base
from Acquisition import Implicit
from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from plone.app.contentlisting.interfaces import IContentListing
from plone.batching import Batch
from plone.pgcatalog.results.brain import brain_class
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ROWS
from plone.pgcatalog.results.rows import Row
from Products.ZCatalog.CatalogBrains import AbstractCatalogBrain
from Products.ZCatalog.CatalogBrains import NoBrainer
from Record import Record
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.fixtures import SiteWith
from tests.integration.oracle import outcome
from tests.integration.waiting import PATIENCE
from tests.integration.web import MANAGER
from tests.integration.web import Web
from transaction.interfaces import TransientError
from typing import Any

import copy
import gc
import Missing
import pickle
import psycopg
import pytest
import threading
import weakref


def fill(portal: Any) -> None:
    for number in range(120):
        create(portal, "Document", f"page{number:03}", title=f"Page {number}", subject=("Red",))


SHARED = fill


#: Ways to get a result of twelve or more brains.
QUERIES: dict[str, dict[str, Any]] = {
    "page": {"portal_type": "Document", "sort_on": "getId", "b_size": 12},
    "sorted": {"portal_type": "Document", "sort_on": "getId"},
    "unsorted": {"portal_type": "Document"},
    "words": {"SearchableText": "page"},
    "positions": {"portal_type": "Document", "sort_on": "getObjPositionInParent"},
}


def titles_after_a_loop(rs: Any) -> Any:
    for number, brain in enumerate(rs):
        brain.Title = f"X {number}"
    return [b.Title for b in rs], rs[3].Title, rs[2:5][1]["Title"], [b.Title for b in rs + rs]


def is_same(one: Any, other: Any) -> bool:
    return one is other and aq_base(one) is aq_base(other) and hash(one) == hash(other) and one == other


#: Observable properties of the brains of a result.
LAWS: dict[str, Callable[[Any], Any]] = {
    "in": lambda rs: (rs[0] in rs, rs[11] in rs),
    "index": lambda rs: (list(rs).index(rs[2]), list(rs).count(rs[2])),
    "twice": lambda rs: is_same(rs[0], rs[0]),
    "loops": lambda rs: all(map(is_same, rs, rs)),
    "union": lambda rs: len({*rs, *rs}) == len(rs),
    "dict": lambda rs: {brain: i for i, brain in enumerate(rs)}[rs[7]],
    "loop, then item": lambda rs: is_same(list(rs)[5], rs[5]),
    "slice": lambda rs: is_same(rs[2:5][0], rs[2]),
    "slice first": lambda rs: (rs[2:5], is_same(rs[2:5][0], rs[2]))[1],
    "slice with a step": lambda rs: is_same(rs[1:9:3][1], rs[4]),
    "slice backwards": lambda rs: is_same(rs[::-1][0], rs[len(rs) - 1]),
    "open slice": lambda rs: all(map(is_same, rs[:], rs)),
    "overlapping slices": lambda rs: set(rs[0:6]) & set(rs[4:9]) == {rs[4], rs[5]},
    "negative": lambda rs: is_same(rs[-1], rs[-1]),
    "reversed": lambda rs: is_same(next(reversed(rs)), rs[len(rs) - 1]),
    "far": lambda rs: is_same(rs[len(rs) - 1], list(rs)[len(rs) - 1]),
    "sum": lambda rs: (is_same((rs + rs)[0], rs[0]), is_same((rs + rs)[len(rs)], rs[0]), len(rs + rs) == 2 * len(rs)),
    "batch": lambda rs: is_same(list(Batch(rs, 5, 3))[1], rs[4]),
    "listing": lambda rs: is_same(IContentListing(rs)[2].getDataOrigin(), rs[2]),
    "assigned": titles_after_a_loop,
    "deleted": lambda rs: (delattr(rs[3], "Title"), rs[3].Title, rs[3]["Title"])[1:],
    "bool as index": lambda rs: is_same(rs[True], rs[1]),
    "equal": lambda rs: (rs[0] == rs[0], rs[0] == rs[1]),
}


#: All queries; most of them are slow tests.
RESULTS = [pytest.param(name, marks=() if name in ("page", "sorted") else pytest.mark.slow) for name in QUERIES]


@pytest.mark.parametrize("query", RESULTS)
@pytest.mark.parametrize("law", LAWS)
def test_brains_have_the_identity_of_zcatalogs(both: Any, law: str, query: str) -> None:
    ours, theirs = (LAWS[law](catalog.unrestrictedSearchResults(**QUERIES[query])) for catalog in both)
    assert ours == theirs


#: Observable properties of a single brain.
BRAINS: dict[str, Callable[[Any], Any]] = {
    "class": lambda b: (type(aq_base(b)).__name__, b.__class__.__name__),
    "bases": lambda b: [isinstance(x, cls) for x in (b, aq_base(b)) for cls in (AbstractCatalogBrain, Record)],
    "an unknown attribute is not set": lambda b: setattr(b, "nobody", 1),
    "an unknown item is not set": lambda b: b.__setitem__("nobody", 1),
    "nor a place behind the last": lambda b: b[999],
    "unknown": lambda b: b.nobody,
    "unknown item": lambda b: b["nobody"],
    "slice": lambda b: b[0:2],
    "sum": lambda b: b + b,
    "product": lambda b: b * 2,
    "deleted item": lambda b: b.__delitem__("Title") or b.Title,
    "deleted place": lambda b: b.__delitem__(0),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "copy of the base": lambda b: copy.copy(aq_base(b)).Title,
    "schema": lambda b: b.__record_schema__ == b.__schema__ == b.__class__.__record_schema__,
    "data": lambda b: (b.__data__[b.__schema__["Title"]], len(b.__data__) == len(b)),
    "record's own equality": lambda b: (aq_base(b) == aq_base(b), aq_base(b) != aq_base(b)),
    "equality with others": lambda b: (b == 1, b is None, aq_base(b) == "x"),
    "iteration": lambda b: list(b)[b.__schema__["Title"]],
}


@pytest.mark.parametrize("name", BRAINS)
def test_a_brain_is_a_record(both: Any, name: str) -> None:
    ours, theirs = (outcome(BRAINS[name], catalog(portal_type="Document", sort_on="getId")[3]) for catalog in both)
    assert ours == theirs


@pytest.mark.parametrize("query", QUERIES)
def test_threads_get_the_same_brains(both: Any, query: str) -> None:
    results = both[0].unrestrictedSearchResults(**QUERIES[query])
    len(results[0:12])
    seen: list[Any] = []
    start = threading.Barrier(4)

    def read() -> None:
        start.wait(PATIENCE)
        seen.append([results[number] for number in range(12)])

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(read)
    assert len(seen) == 4
    assert all(map(is_same, brains, seen[0]) for brains in seen)
    assert len({brain for brains in seen for brain in brains}) == 12


# -- memory


def alive() -> int:
    """Return the number of existing brains."""
    named = (found for found in gc.get_objects() if type(found).__name__ == "mybrains")
    return sum(isinstance(found, AbstractCatalogBrain) for found in named)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Disable the garbage collector, so that objects held by a cycle are still counted."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("query", QUERIES)
def test_dropped_result_leaves_no_brain(both: Any, query: str) -> None:
    before = alive()
    results = both[0].unrestrictedSearchResults(**QUERIES[query])
    shown = [(b.Title, b.getURL(), b.getPath(), b.getObject().id) for b in results[0:12]]
    assert len(shown) == alive() - before == 12
    reference, loader = weakref.ref(results), weakref.ref(results._loader)
    del results
    assert (reference(), loader(), alive() - before) == (None, None, 0)


@pytest.mark.usefixtures("uncollected")
def test_result_has_only_the_requested_brains(both: Any) -> None:
    before = alive()
    results = both[0].unrestrictedSearchResults(portal_type="Document", sort_on="getId")
    assert (len(results), results.actual_result_count, bool(results)) == (120, 120, True)
    assert alive() == before
    for _ in range(3):
        assert [b.Title for b in results[0:25]][24] == "Page 24"
    assert alive() - before == 25
    assert list(results)[119].Title == "Page 119"
    assert alive() - before == 120


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("read", ["iterate", "getAllBrains"])
def test_stream_stores_no_brains(both: Any, read: str) -> None:
    before, most = alive(), 0
    catalog = both[0]
    found = catalog.getAllBrains() if read == "getAllBrains" else catalog.searchAll().iterate(50)
    for number, brain in enumerate(found):
        assert brain.Title
        if number % 40 == 0:
            most = max(most, alive() - before)
    assert number >= 119
    assert most <= 2


def change_row(db: Any, path: str, change: str) -> int:
    """Apply *change*, a statement without its condition, to the object at *path*, whose row is not cached; return its oid."""
    with sites.inside(db) as portal:
        oid = int.from_bytes(portal.unrestrictedTraverse(path)._p_oid)
    with psycopg.connect(db.storage._dsn) as connection:
        connection.execute(f"{change} WHERE zoid = %s", [oid])
    result_cache().clear(ROWS)
    return oid


LOSS = "DELETE FROM object_state"
#: Reads of a brain that need its row.
TOUCHES: dict[str, Callable[[Any], Any]] = {
    "an attribute": lambda brain: brain.Title,
    "an attribute that a site has not": lambda brain: brain.UID,
    "an item": lambda brain: brain["Title"],
    "all values": list,
    "the path": lambda brain: brain.getPath(),
    "the address": lambda brain: brain.getURL(),
    "the object": lambda brain: brain.getObject(),
    "the object, unrestricted": lambda brain: brain._unrestrictedGetObject(),
}


#: Folders of two pages; each loses its second page.
FOLDERS = [*product(TOUCHES, ("path", "")), ("over HTTP", "")]


def fill_folders(portal: Any) -> None:
    for number in range(len(FOLDERS)):
        folder = create(portal, "Folder", f"folder{number}")
        for page in range(2):
            create(folder, "Document", f"page{page}", title=f"Page {page}")


@pytest.fixture(scope="module")
def losing(site_with: SiteWith) -> Iterator[Any]:
    """The ZODB.DB of a site with these folders."""
    with sites.opened(site_with(fill_folders)) as db:
        yield db


@pytest.mark.parametrize(("touch", "sort"), FOLDERS[:-1])
def test_missing_row_acquires_no_value_from_the_site(losing: Any, touch: str, sort: str) -> None:
    """An answer in the cache lists the row.

    Reading it raises a KeyError like ZCatalog's; the repeated request does not find it.
    """
    folder = f"/plone/folder{FOLDERS.index((touch, sort))}"
    query = {"portal_type": "Document", "path": folder} | ({"sort_on": sort} if sort else {})
    with sites.inside(losing) as portal:
        assert len([b.Title for b in portal.portal_catalog.unrestrictedSearchResults(query)]) == 2
    oid = change_row(losing, f"{folder}/page1", LOSS)
    with sites.inside(losing) as portal:
        results = portal.portal_catalog.unrestrictedSearchResults(query)
        brains = list(results)
        # Reading one row reads its neighbours; their values are cached then.
        assert [brain.Title for brain in brains if brain.getRID() != oid] == ["Page 0"]
        gone = [brain for brain in (*brains, *results[:2], results[0], results[1], *results) if brain.getRID() == oid]
        for brain in gone:
            for _ in range(2):
                with pytest.raises(KeyError) as raised:
                    TOUCHES[touch](brain)
                assert isinstance(raised.value, TransientError)
    with sites.inside(losing) as portal:
        found = portal.portal_catalog.unrestrictedSearchResults(query)
        assert [brain.Title for brain in found] == ["Page 0"]
        assert len(found) == found.actual_result_count == 1


def test_a_request_for_a_row_that_is_gone_is_repeated(losing: Any) -> None:
    folder = f"/plone/folder{len(FOLDERS) - 1}"

    def titles() -> list[str]:
        query = {"portal_type": "Document", "sort_on": "getId"}
        answer = Web(losing).get(f"{folder}/@search", MANAGER, "application/json", **query)
        assert answer.status == 200, answer.text
        return [item["title"] for item in answer.json["items"]]

    for _ in range(2):
        assert titles() == ["Page 0", "Page 1"]
    change_row(losing, f"{folder}/page1", LOSS)
    assert titles() == ["Page 0"]


class Site(Implicit):
    def Title(self) -> str:
        return "of the site"


def test_an_error_in_a_value_is_none_of_a_missing_attribute() -> None:
    """Acquisition would answer with the site's attribute of the same name."""
    # A row without idx has no values.
    brain = brain_class(NoBrainer, ("Title",))(None, 1, row=Row("/plone/page", idx=object())).__of__(Site())
    for ask in (lambda: brain.Title, lambda: getattr(brain, "Title", None)):
        with pytest.raises(RuntimeError, match="Title"):
            ask()


def test_a_row_without_metadata_is_not_gone(losing: Any) -> None:
    path = f"/plone/folder{len(FOLDERS) - 1}/page0"
    change_row(losing, path, "UPDATE object_state SET idx = NULL")
    with sites.inside(losing) as portal:
        [brain] = portal.portal_catalog.unrestrictedSearchResults(path=path)
        assert (brain.Title, brain.getPath()) == (Missing.Value, path)
