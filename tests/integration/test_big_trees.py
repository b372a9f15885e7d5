"""Big trees are renamed, moved, copied and deleted correctly in every row, at a cost proportional to the tree."""

from Acquisition import aq_base
from Acquisition import Implicit
from collections.abc import Iterator
from OFS.SimpleItem import SimpleItem
from OFS.Traversable import Traversable
from plone.app.layout.navigation.navtree import buildFolderTree
from plone.folder.interfaces import IOrdering
from plone.pgcatalog.database import counts
from plone.pgcatalog.database.session import Session
from Products.CMFCore.CMFCatalogAware import CMFCatalogAware
from Products.CMFCore.CMFCatalogAware import handleContentishEvent
from Products.CMFCore.indexing import processQueue
from tests.integration.content import create
from tests.integration.oracle import make_oracle
from tests.integration.rebuilding import sql
from tests.integration.traffic import traced
from tests.property.pair import feeding_the_oracle
from tests.property.pair import ORACLE
from typing import Any
from zope.component import getGlobalSiteManager
from zope.interface import implementer
from zope.interface import Interface
from zope.interface.interfaces import IObjectEvent

import gc
import os
import pytest
import tracemalloc
import transaction


pytestmark = pytest.mark.slow


#: Ids that LIKE, a regular expression, a prefix or a sort by bytes could confuse with ``a_b``.
SIBLINGS = ("a", "ab", "a%b", "a-b", "a.b", "a_b2", "a_", "a b", "axb", "A_b", "a~b", "a_b.c")
TREE = "a_b"
PER_FOLDER = 100
KEPT = {"path", "getObjPositionInParent", "getId", "id", "place", "Title", "portal_type"}


class ILeaf(Interface):
    """Content of this module."""


@implementer(ILeaf)
class Leaf(CMFCatalogAware, SimpleItem):
    """Catalog-aware, persistent and cheap content: without schema, workflow and comments, as 10,000 are created."""

    meta_type = "Leaf"

    def __init__(self, id: str) -> None:
        self.id = id
        self.title = f"Leaf {id}"

    def Title(self) -> str:
        return self.title

    def place(self) -> str:
        """A value that depends on the path, for a metadata column and an index."""
        return "/".join(self.getPhysicalPath())


@pytest.fixture(autouse=True)
def indexed_leaves(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leaves are indexed by the events that index content; time limits are raised for slow machines."""
    monkeypatch.setenv("ZODB_PGJSONB_IDLE_IN_XACT_TIMEOUT_MS", "600000")
    manager = getGlobalSiteManager()
    manager.registerHandler(handleContentishEvent, (ILeaf, IObjectEvent))
    yield
    manager.unregisterHandler(handleContentishEvent, (ILeaf, IObjectEvent))


def put(folder: Any, obj: Any) -> None:
    """Put *obj* into *folder* and catalogue it, without the events of adding."""
    folder._setOb(obj.id, obj)
    folder._count.change(1)
    IOrdering(folder).notifyAdded(obj.id)
    folder[obj.id].indexObject()


def grow(top: Any, leaves: int) -> None:
    """Put *leaves* leaves into folders of PER_FOLDER leaves, every other folder one level deeper."""
    for number in range(leaves):
        if number % PER_FOLDER == 0:
            folder = create(top, "Folder", f"folder{number // PER_FOLDER}")
            if number % (2 * PER_FOLDER):
                folder = create(folder, "Folder", "deeper")
        put(folder, Leaf(f"leaf{number}"))
    processQueue()


def plant(portal: Any, leaves: int) -> Any:
    """Return a committed tree, among siblings with confusing names and a leaf in each."""
    catalog = portal.portal_catalog
    if "place" not in catalog.indexes():
        catalog.addIndex("place", "FieldIndex")
        catalog.addColumn("place")
    for name in {*catalog.indexes(), *catalog.schema()} - {*dir(Leaf)}:
        # Not acquired from its containers.
        setattr(Leaf, name, None)
    for id in SIBLINGS:
        put(create(portal, "Folder", id), Leaf("leaf"))
    grow(create(portal, "Folder", TREE), leaves)
    transaction.commit()
    return portal[TREE]


def slim(portal: Any) -> None:
    """Reduce the catalog to indexes and columns that depend on the path, so that indexing 10,000 objects is fast enough."""
    catalog = portal.portal_catalog
    catalog.threshold = 10**9  # the ZCatalog that replaces it is filled before it is stored: no subtransactions
    for name in set(catalog.indexes()) - KEPT:
        catalog.delIndex(name)
    for name in set(catalog.schema()) - KEPT:
        catalog.delColumn(name)


def committed_rows(portal: Any, under: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return (path, place in the table, writing transaction) of the committed rows below *under*."""
    rows = sql(portal._p_jar.db().storage._dsn, "SELECT path, ctid::text, xmin::text FROM {} ORDER BY path")
    return [row for row in rows if {*row[0].split("/")[2:3]} & {*under}]


# -- data that must be equal in both catalogs


def path_data(catalog: Any) -> dict[str, Any]:
    """Return path -> metadata of everything catalogued."""
    names = catalog._catalog.names
    return {brain.getPath(): {name: getattr(brain, name) for name in names} for brain in catalog.searchAll()}


def paths(catalog: Any, **query: Any) -> list[str]:
    return [brain.getPath() for brain in catalog.unrestrictedSearchResults(**query)]


def path_queries(root: str, portal: Any) -> Iterator[dict[str, Any]]:
    folder = f"{root}/folder1/deeper"
    for path in (root, f"{root}/folder0", folder, "/plone", "/plone/a", "/plone/a%b", "/plone/a_", f"{root}/nowhere"):
        yield {"path": path}
        for depth in (0, 1, 2):
            yield {"path": {"query": path, "depth": depth}}
    yield {"path": {"query": [root, "/plone/ab"], "depth": 1}}
    yield {"path": {"query": folder, "navtree": True}}
    yield {"path": {"query": folder, "navtree": True, "navtree_start": 1}}
    yield {"path": {"query": f"{folder}/leaf100", "navtree": True, "depth": 0}}
    yield {"path": {"query": "leaf100", "level": -1}}
    yield {"place": f"{folder}/leaf100"}
    yield {"place": {"query": f"{root}/", "range": "min"}, "sort_on": "place"}
    yield {"path": {"query": folder, "depth": 1}, "sort_on": "getObjPositionInParent"}
    yield {"path": {"query": "/plone", "depth": 1}, "sort_on": "getObjPositionInParent"}
    yield {"path": root, "sort_on": "path"}


def check(portal: Any, root: str) -> None:
    """Check that both catalogs have the same data for every path."""
    ours, oracle = portal.portal_catalog, getattr(portal, ORACLE)
    for query in path_queries(root, portal):
        found, expected = paths(ours, **query), paths(oracle, **query)
        if "sort_on" not in query:
            found, expected = sorted(found), sorted(expected)
        assert found == expected, query
    assert path_data(ours) == path_data(oracle)
    check_brains(portal, root)


def check_before_and_after_commit(portal: Any, *roots: str) -> None:
    for end in (lambda: None, transaction.commit):
        end()
        for root in roots:
            check(portal, root)


def check_brains(portal: Any, root: str) -> None:
    catalog = portal.portal_catalog
    for brain in catalog.unrestrictedSearchResults(path=f"{root}/folder1", sort_on="path")[:5]:
        obj = brain._unrestrictedGetObject()
        assert "/".join(obj.getPhysicalPath()) == brain.getPath() == catalog.getpath(brain.getRID())
        assert brain.getURL() == obj.absolute_url()
        assert brain.getRID() == catalog.getrid(brain.getPath())
    tree = buildFolderTree(portal, query={"path": {"query": f"{root}/folder1", "depth": 1}})
    assert [node["item"].getPath() for node in tree["children"]] == [f"{root}/folder1/deeper"]


@pytest.fixture
def both(portal: Any) -> Iterator[Any]:
    """The portal, with a ZCatalog fed by the same indexing."""
    with feeding_the_oracle():
        yield portal


def plant_both(portal: Any, leaves: int) -> None:
    plant(portal, leaves)
    setattr(portal, ORACLE, aq_base(make_oracle(portal)))
    transaction.commit()


def test_a_big_tree_is_renamed_and_deleted(both: Any) -> None:
    """PGCATALOG_TEST_DESCENDANTS=10000 takes some minutes."""
    leaves = int(os.environ.get("PGCATALOG_TEST_DESCENDANTS", "1500"))
    both._p_jar.db().setCacheSize(50_000)
    slim(both)
    plant_both(both, leaves)
    before = committed_rows(both, SIBLINGS)
    assert len(before) == 2 * len(SIBLINGS)
    below = len(paths(both.portal_catalog, path=f"/plone/{TREE}"))
    assert below > leaves
    both.manage_renameObject(TREE, "renamed")
    check_before_and_after_commit(both, "/plone/renamed")
    assert len(paths(both.portal_catalog, path="/plone/renamed")) == below
    both.manage_delObjects(["renamed"])
    ours, oracle = both.portal_catalog, getattr(both, ORACLE)
    for end in (lambda: None, transaction.commit):
        end()
        assert paths(ours, path="/plone/renamed") == []
        assert sorted(ours._catalog.uids) == sorted(oracle._catalog.uids)
        assert len(ours) == len(oracle)
    assert committed_rows(both, SIBLINGS) == before


def test_a_tree_is_moved_and_copied_and_an_aborted_rename_leaves_no_trace(both: Any) -> None:
    plant_both(both, 250)
    others = ("a%b", "a-b", "A_b")
    everything, before = committed_rows(both, (TREE, *SIBLINGS)), committed_rows(both, others)
    both.manage_renameObject(TREE, "renamed")
    assert paths(both.portal_catalog, path=f"/plone/{TREE}") == []
    transaction.abort()
    check(both, f"/plone/{TREE}")
    assert committed_rows(both, (TREE, *SIBLINGS)) == everything
    both.ab.manage_pasteObjects(both.manage_cutObjects([TREE]))
    check_before_and_after_commit(both, f"/plone/ab/{TREE}")
    both.manage_pasteObjects(both.ab.manage_copyObjects([TREE]))
    check_before_and_after_commit(both, f"/plone/ab/{TREE}", f"/plone/{TREE}")
    assert committed_rows(both, others) == before


# -- costs


class Unstored(Traversable, Implicit):
    """A catalogued object that is not in the ZODB."""

    def __init__(self, id: str) -> None:
        self.id = id

    def getId(self) -> str:
        return self.id


def pend(catalog: Any, numbers: range) -> None:
    """Catalogue *numbers* unstored objects, each at many paths: pending rows in bulk."""
    container = Unstored("made").__of__(catalog.aq_parent)
    for number in numbers:
        catalog.catalog_object(Unstored(f"leaf{number}").__of__(container))


def test_move_and_search_cost_as_much_however_many_moves_came_before(portal: Any) -> None:
    """Plone searches for every object of a tree that it moves: the cost of a search must not grow with the tree."""
    catalog = portal.portal_catalog
    pend(catalog, range(200))
    transaction.commit()
    target = Unstored("target").__of__(portal)
    costs = {}
    for number in range(200):
        with traced(portal) as traffic:
            catalog.uncatalog_object(f"/plone/made/leaf{number}")
            catalog.catalog_object(Unstored(f"leaf{number}").__of__(target))
            assert len(paths(catalog, path="/plone/target", sort_on="path", sort_limit=5)) == min(number + 1, 5)
        messages = [text for kind, text in traffic[0].messages if kind in ("Parse", "Bind", "Execute")]
        inserts = sum("INSERT" in text for text in traffic[0].statements)
        costs[number] = traffic[0].round_trips, len(messages), inserts, sum(map(len, messages)) // 500
    assert costs[9] == costs[49] == costs[99] == costs[199]
    assert costs[9][0] == 2


@pytest.mark.parametrize(
    ("condition", "value"), [("path_value = %s", "/plone/made/leaf7"), ("parent_path = %s", "/plone/nowhere")]
)
def test_a_pending_row_is_found_by_an_index(portal: Any, condition: str, value: str) -> None:
    catalog = portal.portal_catalog
    pend(catalog, range(1000))
    relation, params = catalog._core.view().snapshot().stored.source
    session = Session.of(portal._p_jar)
    rows = session.execute(f"EXPLAIN SELECT rid, path FROM {relation} WHERE {condition}", (*params, value))
    plan = "\n".join(line for (line,) in rows)
    assert "pgcatalog_overlay" in plan
    assert "Seq Scan on pgcatalog_overlay" not in plan, plan


def rename(portal: Any, id: str) -> None:
    portal.manage_renameObject(id, f"{id}-renamed")


def share(portal: Any, id: str) -> None:
    portal[id].manage_setLocalRoles("nobody", ["Reader"])
    portal[id].reindexObjectSecurity()


@pytest.fixture
def trees(portal: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The ids of a saved empty folder, a saved tree, and a saved bigger tree."""
    monkeypatch.setattr(counts, "FOLD_COMMITS", 10**9)  # every hundredth commit has one statement more
    plant(portal, 20)
    grow(create(portal, "Folder", "bigger"), 200)
    create(portal, "Folder", "first")
    transaction.commit()
    return "first", TREE, "bigger"


@pytest.mark.parametrize("change", [rename, share])
def test_a_commit_takes_as_many_round_trips_however_big_the_tree(
    portal: Any, trees: tuple[str, ...], change: Any
) -> None:
    """Each statement sends the values of all rows in one pipeline; one statement changes the roles of all rows."""
    seen = []
    # The first one gets a number for a new principal.
    for id in trees:
        change(portal, id)
        processQueue()
        with traced(portal) as traffic:
            transaction.commit()
        ours = {text for text in traffic[0].statements if "pgcatalog_" in text}
        executed = sum(kind == "Execute" for kind, _ in traffic[0].messages)
        seen.append((len(ours), traffic[0].round_trips, executed if change is share else None))
    assert seen[1] == seen[2]


def test_saved_object_whose_row_changes_in_part_is_written_once(portal: Any) -> None:
    portal.portal_workflow.setDefaultChain("simple_publication_workflow")
    for number in range(3):
        create(portal, "Document", f"page{number}")
    transaction.commit()
    for number in range(3):
        portal.portal_workflow.doActionFor(portal[f"page{number}"], "publish")
    processQueue()
    assert not any(entry.new for entry in Session.of(portal._p_jar).pending[portal.portal_catalog._core.zoid].live())
    with traced(portal) as traffic:
        transaction.commit()
    assert not [text for text in traffic[0].statements if "UPDATE object_state" in text and "SET idx" in text]
    states = [b.review_state for b in portal.portal_catalog.unrestrictedSearchResults(portal_type="Document")]
    assert states == ["published"] * 3


def memory_of_ours() -> int:
    """Return the bytes allocated by code of this package and not freed."""
    gc.collect()
    snapshot = tracemalloc.take_snapshot()
    ours = snapshot.filter_traces([tracemalloc.Filter(True, "*/plone/pgcatalog/*")])
    return sum(statistic.size for statistic in ours.statistics("filename"))


def test_pending_changes_use_bounded_memory_and_release_it(portal: Any) -> None:
    catalog = portal.portal_catalog
    pend(catalog, range(50))
    transaction.commit()
    tracemalloc.start()
    try:
        before = memory_of_ours()
        pend(catalog, range(100, 600))
        len(paths(catalog, path="/plone/made"))
        pending = memory_of_ours()
        for number in range(100, 200):
            savepoint = transaction.savepoint(optimistic=True)
            pend(catalog, range(number, number + 1))
        saved = memory_of_ours()
        transaction.commit()
        del savepoint
        after = memory_of_ours()
    finally:
        tracemalloc.stop()
    assert 0 < (pending - before) / 500 < 10_000
    assert (saved - pending) / 100 < 10_000
    assert (after - before) / 500 < 500
