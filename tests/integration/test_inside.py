"""Accesses of add-ons to the internals of the catalog and its indexes, compared with a real ZCatalog."""

from Acquisition import aq_base
from BTrees import family32
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from Products.CMFCore.indexing import processQueue
from Products.ZCatalog.Catalog import mergeResults
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.fixtures import no_content
from tests.integration.fixtures import SiteWith
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from typing import Any
from zodbpickle.pickle import PicklingError

import itertools
import pytest
import transaction


OLD, NEW = "/plone/old", "/plone/new"


@pytest.fixture(scope="module")
def empty_site(site_with: SiteWith) -> Iterator[Any]:
    with sites.opened(site_with(no_content)) as db, sites.inside(db) as portal:
        yield portal


@pytest.fixture
def moving(empty_site: Any) -> Iterator[Any]:
    """An empty site, for a manager; objects that a test creates or moves are removed at the end."""
    sites.return_to(empty_site)
    yield empty_site
    transaction.abort()
    for id in {"old", "other"}.intersection(empty_site.objectIds()):
        empty_site.manage_delObjects([id])
    for path in {OLD, NEW}.intersection(empty_site.portal_catalog._catalog.uids):
        empty_site.portal_catalog.uncatalog_object(path)
    transaction.commit()


def test_unwrapped_tool_has_its_inner_catalog_and_indexes(both: Any) -> None:
    catalog, inside = both[0], aq_base(both[0])._catalog
    assert len(inside) == len(catalog)
    assert set(inside.indexes) == set(catalog.indexes())
    assert inside.getIndex("UID").numObjects() == catalog._catalog.getIndex("UID").numObjects()
    ours, theirs = (each._catalog.indexes.copy() for each in both)
    assert type(ours) is type(theirs) is dict
    assert ours.keys() == theirs.keys()
    assert both[0].Indexes["path"]._depth == both[1].Indexes["path"]._depth == 4
    # A missing row is ignored.
    inside.getIndex("getId").unindex_object(2**31 - 1)
    assert inside.getIndex("getId").index_object(2**31 - 1, object()) == 0


@pytest.mark.parametrize(("reverse", "limit"), [(False, None), (True, None), (False, 2), (True, 2)])
def test_inner_catalog_sorts_a_set_of_rids(both: Any, reverse: bool, limit: int | None) -> None:
    found = []
    for catalog in both:
        inside = catalog._catalog
        rids = family32.II.Set(b.getRID() for b in catalog.unrestrictedSearchResults(portal_type="Document"))
        results = inside.sortResults(rids, inside.getIndex("getId"), reverse=reverse, limit=limit)
        found.append(([b.getPath() for b in results], results.actual_result_count))
    assert found[0] == found[1]


@pytest.mark.parametrize("order", [{"sort_on": "getId"}, {"sort_on": "getId", "sort_order": "descending"}, {}])
def test_results_of_several_catalogs_are_merged(both: Any, order: dict[str, str]) -> None:
    """Sorted results by their keys; unsorted ones by their scores, or in undefined order."""

    def merged(catalog: Any, *parts: dict[str, str], scored: bool = bool(order)) -> list[str]:
        results = [catalog._catalog.searchResults(part | order, _merge=False) for part in parts]
        found = mergeResults(results, has_sort_keys=scored, reverse="sort_order" in order)
        paths = [brain.getPath() for brain in found]
        return paths if order else sorted(paths)

    types = [{"portal_type": name} for name in ("Document", "Folder")]
    texts = [{"SearchableText": word} for word in ("fox", "news")]
    for parts, scored in ((types, bool(order)), (texts, True)):
        ours, theirs = (merged(catalog, *parts, scored=scored) for catalog in both)
        assert ours == theirs


@pytest.mark.parametrize("sort", [{}, {"sort_on": "getId"}, {"sort_on": ["portal_type", "getId"]}])
def test_negative_start_is_that_of_zcatalog(both: Any, sort: dict[str, Any]) -> None:
    for b_start, b_size in ((-2, 3), (-5, 8), (-1, 30), (-9, 3)):
        query = {"path": "/plone", "b_start": b_start, "b_size": b_size, **sort}
        found = [answer(catalog, query) for catalog in both]
        if found[1] is TypeError:  # ZCatalog cannot sort less than no rows
            found[1] = ([], found[0][1])
        if not sort:  # the catalog chooses which rows come first
            found = [(len(paths), count) for paths, count in found]
        assert found[0] == found[1], query


@pytest.mark.parametrize("name", ["getId", "Subject", "Title"])
@pytest.mark.parametrize("end", [processQueue, transaction.commit])
def test_row_is_removed_from_one_index_and_put_back(moving: Any, name: str, end: Any) -> None:
    catalog = moving.portal_catalog
    page = create(moving, "Document", "old", title="Fox", subject=("Red",))
    end()
    query = {"getId": "old", "Subject": "Red", "Title": "fox"}
    rid = catalog.getrid(OLD)
    catalog._catalog.getIndex(name).unindex_object(rid)
    for end in (lambda: None, transaction.commit):
        end()
        assert len(catalog(**{name: query[name]})) == 0
        assert all(len(catalog(**{other: query[other]})) == 1 for other in query if other != name)
        assert catalog(UID=page.UID())[0].Title == "Fox"
    assert catalog._catalog.getIndex(name).index_object(rid, page)
    assert len(catalog(**{name: query[name]})) == 1


def test_equal_dates_come_as_zcatalog_sorts_them(portal: Any, catalog: Any) -> None:
    """Plone's search page lists objects created together newest first."""
    for number in range(4):
        page = create(portal, "Document", f"page{number}", title="Fox")
        page.setEffectiveDate("2024/01/01 12:00 UTC")
        page.reindexObject()
    transaction.commit()
    oracle = make_oracle(portal)
    for order, window, first in (
        ("ascending", {"b_size": 10}, "/plone/page0"),
        ("descending", {"b_size": 10}, "/plone/page3"),
        ("ascending", {}, "/plone/page0"),
        ("descending", {}, "/plone/page0"),
    ):
        query = {"Title": "fox", "sort_on": "effective", "sort_order": order, **window}
        paths, _count = answer(oracle, query)
        assert answer(catalog, query)[0] == paths
        assert paths[0] == first, query


def fill(portal: Any) -> None:
    populate(portal)
    for id in ("Zebra", "a-b", "a_b", "a.b", "page-1"):
        create(portal, "Document", id)


SHARED = fill


def outcome(call: Callable[[Any], Any], tree: Any) -> Any:
    try:
        return plain(call(tree))
    except Exception as error:  # noqa: BLE001  whatever it is, both must raise it
        return type(error)


def plain(value: Any) -> Any:
    """Return *value* with plain lists instead of iterables of keys, values or pairs, and of sets of rids."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    is_sequence = isinstance(value, Iterable) or "Items" in type(value).__name__
    return [plain(each) for each in value] if is_sequence and not isinstance(value, str) else value


#: Trees of a catalog, and the class of ZCatalog's BTree in each place.
TREES: dict[str, tuple[Callable[[Any], Any], type]] = {
    "paths": (lambda c: c._catalog.paths, family32.IO.BTree),
    "uids": (lambda c: c._catalog.uids, family32.OI.BTree),
    "data": (lambda c: c._catalog.data, family32.IO.BTree),
    "getId": (lambda c: c.Indexes["getId"]._index, family32.OO.BTree),
    "portal_type": (lambda c: c.Indexes["portal_type"]._index, family32.OO.BTree),
    "Subject": (lambda c: c.Indexes["Subject"]._index, family32.OO.BTree),
    "UID": (lambda c: c.Indexes["UID"]._index, family32.OI.BTree),
    "created": (lambda c: c.Indexes["created"]._index, family32.IO.BTree),
    "_index_items": (lambda c: c.Indexes["path"]._index_items, family32.OI.BTree),
    "_index_parents": (lambda c: c.Indexes["path"]._index_parents, family32.OO.BTree),
}
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "minKey": lambda t, a, b: t.minKey(),
    "maxKey": lambda t, a, b: t.maxKey(),
    "minKey from": lambda t, a, b: t.minKey(a),
    "maxKey to": lambda t, a, b: t.maxKey(b),
    "minKey of none": lambda t, a, b: t.minKey(None),
    "minKey behind all": lambda t, a, b: t.minKey(t.maxKey() + (1 if isinstance(a, int) else "x")),
    "maxKey before all": lambda t, a, b: t.maxKey(t.minKey() - 1 if isinstance(a, int) else ""),
    "minKey of a wrong type": lambda t, a, b: t.minKey("x" if isinstance(a, int) else 1),
    "keys": lambda t, a, b: t.keys(),
    "keys from": lambda t, a, b: t.keys(a),
    "keys to": lambda t, a, b: t.keys(None, b),
    "keys to by name": lambda t, a, b: t.keys(max=b),
    "keys between": lambda t, a, b: t.keys(a, b),
    "keys the wrong way": lambda t, a, b: t.keys(b, a),
    "keys without the ends": lambda t, a, b: t.keys(a, b, True, True),
    "keys without ends by name": lambda t, a, b: t.keys(min=a, max=b, excludemin=1, excludemax=0),
    "keys without the first": lambda t, a, b: t.keys(excludemin=True),
    "keys without the last": lambda t, a, b: t.keys(excludemax=True),
    "keys of a wrong type": lambda t, a, b: t.keys("x" if isinstance(a, int) else 1),
    "values": lambda t, a, b: t.values(),
    "values between": lambda t, a, b: t.values(a, b),
    "values without the ends": lambda t, a, b: t.values(a, b, excludemin=True, excludemax=True),
    "items": lambda t, a, b: t.items(),
    "items between": lambda t, a, b: t.items(a, b),
    "items without the first": lambda t, a, b: t.items(a, None, True),
    "iterkeys": lambda t, a, b: t.iterkeys(a),
    "itervalues": lambda t, a, b: t.itervalues(max=b),
    "iteritems": lambda t, a, b: t.iteritems(a, b),
    "iteration": lambda t, a, b: t,
    "len": lambda t, a, b: len(t),
    "bool": lambda t, a, b: bool(t),
    "has_key": lambda t, a, b: (bool(t.has_key(a)), a in t),
    "get": lambda t, a, b: (t.get(a), t.get(b), t[a]),
    "a slice of keys": lambda t, a, b: (t.keys()[0], t.keys()[1:3], t.items()[1]),
}


def outcomes(tree: Any, *keys: Any) -> dict[str, Any]:
    """Return name -> outcome of each of the CALLS of *tree* with *keys*."""
    return {name: outcome(lambda t: CALLS[name](t, *keys), tree) for name in CALLS}  # noqa: B023


@pytest.mark.parametrize("name", TREES)
def test_a_tree_answers_like_a_btree_with_all_its_names(both: Any, name: str) -> None:
    """Methods that change a tree are there if the tree can be assigned to."""
    find, cls = TREES[name]
    ours, theirs = map(find, both)
    reference = cls(dict(ours.items()))
    keys = list(reference)
    middle, last = keys[len(keys) // 3], keys[-1]
    assert outcomes(ours, middle, last) == outcomes(reference, middle, last)
    changing = set() if name in ("paths", "uids") else {"clear", "insert", "pop", "popitem", "setdefault", "update"}
    names = {n for n in dir(cls) if not n.startswith("_")} - changing - {"max_internal_size", "max_leaf_size"}
    assert name == "data" or names - set(dir(ours)) == set()
    if name not in ("paths", "data"):
        assert paths_by_key(both[0], ours) == paths_by_key(both[1], theirs)
        assert (ours.minKey(), ours.maxKey()) == (theirs.minKey(), theirs.maxKey())


def paths_by_key(catalog: Any, tree: Any) -> list[tuple[Any, list[str]]]:
    pairs = [(key, [rids] if isinstance(rids, int) else rids) for key, rids in tree.items()]
    return [(key, sorted(map(catalog.getpath, rids))) for key, rids in pairs]


def test_an_empty_catalog_has_empty_trees(portal: Any, catalog: Any) -> None:
    catalog.manage_catalogClear()
    for name, (find, cls) in TREES.items():
        ours, theirs = outcomes(find(catalog), 1, 1), outcomes(cls(), 1, 1)
        for call in ("minKey", "maxKey", "keys", "items", "len", "bool"):
            assert (name, call, ours[call]) == (name, call, theirs[call])
    assert catalog.Indexes["path"]._depth == 0


# -- moving rows

#: Ways to move a row from OLD to NEW: each step is a call of (uids, paths, rid).
STEPS: dict[str, Callable[[Any, Any, int], Any]] = {
    "del uids": lambda uids, paths, rid: uids.__delitem__(OLD),
    "pop uids": lambda uids, paths, rid: uids.pop(OLD),
    "uids": lambda uids, paths, rid: uids.__setitem__(NEW, rid),
    "insert": lambda uids, paths, rid: uids.insert(NEW, rid),
    "paths": lambda uids, paths, rid: paths.__setitem__(rid, NEW),
    "update": lambda uids, paths, rid: paths.update({rid: NEW}),
    "del paths": lambda uids, paths, rid: paths.__delitem__(rid),
}
WAYS = [
    *itertools.permutations(("del uids", "uids", "paths")),
    *(("pop uids", "insert", "update"), ("del paths", "del uids", "uids", "paths")),
    *(("del paths", "paths", "pop uids", "uids"), ("paths", "paths", "uids", "uids", "del uids")),
]


def said(catalog: Any, rid: int) -> Any:
    """Return the contents of both trees for OLD, NEW and *rid*."""
    uids, paths = catalog._catalog.uids, catalog._catalog.paths
    return [
        *(uids.get(path) == rid for path in (OLD, NEW)),
        *(path in uids for path in (OLD, NEW)),
        [path for path, each in uids.items() if each == rid],
        [path for path in uids if path in (OLD, NEW)],
        paths.get(rid),
        rid in paths,
        dict(paths.items()).get(rid),
        len(uids) - len(paths),
        (catalog.getrid(OLD) == rid, catalog.getrid(NEW) == rid),
    ]


def found(catalog: Any) -> Any:
    """Return the search results about the row."""
    return [
        [(b.getPath(), b.Title) for b in catalog.unrestrictedSearchResults(**query)]
        for query in ({"getId": "old"}, {"Title": "wanderer"}, {"path": OLD}, {"path": NEW}, {"Subject": "Red"})
    ]


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
@pytest.mark.parametrize("committed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_row_is_moved_as_in_zcatalog(moving: Any, way: tuple[str, ...], committed: bool) -> None:
    catalog = moving.portal_catalog
    create(moving, "Document", "old", title="Wanderer", subject=("Red", "green"), description="quick")
    processQueue()
    oracle = make_oracle(moving)
    if committed:
        transaction.commit()
    both = [(c, c.getrid(OLD)) for c in (catalog, oracle)]
    before = catalog.unrestrictedSearchResults(getId="old")[0].UID
    for i, step in enumerate(way):
        for c, rid in both:
            STEPS[step](c._catalog.uids, c._catalog.paths, rid)
        assert (i, step, said(catalog, both[0][1])) == (i, step, said(oracle, both[1][1]))
    for _ in range(2):
        assert found(catalog) == found(oracle)
        assert said(catalog, both[0][1]) == said(oracle, both[1][1])
        assert catalog.getMetadataForUID(NEW)["UID"] == before
        assert catalog.getIndexDataForUID(NEW)["Subject"] == ["Red", "green"]
        transaction.commit()


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("end", [processQueue, transaction.commit])
def test_a_row_deleted_from_both_trees_is_gone(moving: Any, order: int, end: Any) -> None:
    catalog = moving.portal_catalog
    for id in ("old", "other"):
        create(moving, "Document", id, title="Wanderer")
    end()
    rid = catalog.getrid(OLD)
    uids, paths = catalog._catalog.uids, catalog._catalog.paths
    for tree, key in ((uids, OLD), (paths, rid))[::order]:
        del tree[key]
    assert (OLD in uids, rid in paths) == (False, False)
    with pytest.raises(KeyError):
        del uids[OLD]
    transaction.commit()
    assert [b.getPath() for b in catalog.unrestrictedSearchResults(Title="wanderer")] == ["/plone/other"]
    assert (OLD in catalog._catalog.uids, rid in catalog._catalog.paths) == (False, False)


def test_savepoint_rollback_undoes_assignments(moving: Any) -> None:
    catalog = moving.portal_catalog
    create(moving, "Document", "old", title="Wanderer")
    transaction.commit()
    rid = catalog.getrid(OLD)
    savepoint = transaction.savepoint()
    catalog._catalog.paths[rid] = NEW
    assert said(catalog, rid)[:4] == [True, False, True, False]
    savepoint.rollback()
    assert said(catalog, rid) == [True, False, True, False, [OLD], [OLD], OLD, True, OLD, 0, (True, False)]
    assert found(catalog)[0] == [(OLD, "Wanderer")]


def test_a_row_that_is_catalogued_again_is_at_its_path_and_an_invalid_one_is_not_assigned(moving: Any) -> None:
    catalog = moving.portal_catalog
    page = create(moving, "Document", "old", title="Wanderer")
    processQueue()
    rid = catalog.getrid(OLD)
    del catalog._catalog.uids[OLD]
    assert catalog.getrid(OLD) is None
    catalog.catalog_object(page, OLD)
    assert catalog.getrid(OLD) == catalog(getId="old")[0].getRID() == rid
    for tree, key, value in (("uids", 1, 1), ("uids", NEW, "x"), ("paths", "x", NEW), ("paths", 1, 1)):
        with pytest.raises(TypeError):
            getattr(catalog._catalog, tree)[key] = value
    with pytest.raises(KeyError):  # a row that does not exist
        catalog._catalog.uids[NEW] = 2**40
    assert NEW not in catalog._catalog.uids


# -- texts

TEXTS = ("SearchableText", "Title", "Description")
LEXICONS: dict[str, Callable[[Any], Any]] = {
    "words": lambda x: list(x.words()),
    "length": lambda x: x.length(),
    "items": lambda x: [word for word, _ in x.items()],
    "wids": lambda x: (len(list(x.wids())), len(set(x.wids()))),
    "round trip": lambda x: [x.get_word(x.get_wid(word)) for word in ("fox", "quick")],
    "round trip of all": lambda x: sorted(map(x.get_word, x.wids())) == list(x.words()),
    "pairs": lambda x: all(x.get_wid(word) == wid for word, wid in list(x.items())[:5]),
    "unknown word": lambda x: x.get_wid("nobody"),
    "unknown number": lambda x: x.get_word(1),
    "parseTerms": lambda x: x.parseTerms("Quick FOX fo*"),
    "termToWordIds": lambda x: [wid and x.get_word(wid) for wid in x.termToWordIds(["quick", "nobody", "fox"])],
    "sourceToWordIds": lambda x: [x.get_word(wid) for wid in x.sourceToWordIds("The quick brown fox")],
    "globToWordIds": lambda x: sorted(x.get_word(wid) for wid in x.globToWordIds("f*")),
    "no glob": lambda x: [x.get_word(wid) for wid in x.globToWordIds("fox")],
    "glob of none": lambda x: x.globToWordIds("nobod*"),
    "glob at the beginning": lambda x: x.globToWordIds("*x"),
    "isGlob": lambda x: (x.isGlob("f*"), x.isGlob("f")),
    "id": lambda x: (x.getId(), type(aq_base(x)).__name__, x.getPipelineNames()),
}


def test_a_lexicon_has_the_words_of_the_texts(both: Any) -> None:
    lexicons = [catalog.Indexes["SearchableText"].getLexicon() for catalog in both]
    ours, theirs = ({name: outcome(call, each) for name, call in LEXICONS.items()} for each in lexicons)
    assert ours == theirs


@pytest.mark.parametrize("name", TEXTS)
def test_inner_text_index_answers_as_zcatalogs(both: Any, name: str) -> None:
    def look(catalog: Any) -> Any:
        index, lexicon = catalog.Indexes[name].index, catalog.Indexes[name].getLexicon()
        rids = {path: catalog.getrid(path) for path in catalog._catalog.uids}
        return (
            index.length(),
            index.document_count(),
            {path: bool(index.has_doc(rid)) for path, rid in rids.items()},
            {path: [lexicon.get_word(wid) for wid in index.get_words(rid)] for path, rid in rids.items()},
            (bool(index.has_doc(-1)), outcome(lambda index: index.get_words(-1), index)),
        )

    ours, theirs = map(look, both)
    assert ours == theirs


def test_words_are_added_and_removed_with_the_texts(portal: Any, catalog: Any) -> None:
    index = catalog.Indexes["Title"]
    create(portal, "Document", "page", title="Xylophone")
    processQueue()
    for _ in range(2):
        assert "xylophone" in index.getLexicon().words()
        assert index.index.length() == len({word for b in catalog() for word in b.Title.lower().split()})
        transaction.commit()
    portal._delObject("page")
    processQueue()
    assert "xylophone" not in index.getLexicon().words()


def test_setting_of_a_lexicon_is_stored(portal: Any, catalog: Any) -> None:
    lexicon = catalog.Indexes["Title"].getLexicon()
    lexicon.title = "Ours"
    transaction.commit()
    assert catalog.plone_lexicon.title == catalog.Indexes["Title"].getLexicon().title == "Ours"
    portal.kept = aq_base(lexicon)
    with pytest.raises(PicklingError):
        transaction.commit()
    transaction.abort()
