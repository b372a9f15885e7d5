"""Queries of every index type of a stock Plone, compared with a real ZCatalog with the same content."""

from DateTime import DateTime
from OFS.SimpleItem import SimpleItem
from tests.integration.content import populate
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from typing import Any

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
def test_answer_equals_that_of_zcatalog(both: Any, query: dict[str, Any]) -> None:
    ours, oracle = both
    assert answer(ours, query) == answer(oracle, query)
    if "sort_on" not in query:
        assert answer(ours, query, "searchResults") == answer(oracle, query, "searchResults")


def test_metadata_and_index_data_have_the_same_values_and_types(both: Any) -> None:
    ours, oracle = both
    unordered = ("Subject", "allowedRolesAndUsers", "object_provides", "getRawRelatedItems")
    for path, rid in oracle._catalog.uids.items():
        mine, theirs = ours._catalog.getMetadataForRID(ours.getrid(path)), oracle._catalog.getMetadataForRID(rid)
        assert {k: (type(v), v) for k, v in mine.items()} == {k: (type(v), v) for k, v in theirs.items()}
        mine, theirs = ours.getIndexDataForRID(ours.getrid(path)), oracle.getIndexDataForRID(rid)
        for name in unordered:
            mine[name], theirs[name] = sorted(mine[name]), sorted(theirs[name])
        assert mine == theirs


def test_rows_without_ends_are_always_found(compared: Any) -> None:
    ours, _, portal = compared
    catalogs = (ours, make_oracle(portal))
    found = []
    for catalog in catalogs:
        before = list(catalog._catalog.indexes["effectiveRange"]._always)
        catalog.catalog_object(SimpleItem(), f"{FOLDER}/dateless")
        found.append((before, [catalog.getpath(rid) for rid in catalog._catalog.indexes["effectiveRange"]._always]))
    transaction.abort()
    assert found == [([], [f"{FOLDER}/dateless"])] * 2


def test_brains_act_like_zcatalogs(both: Any) -> None:
    ours, oracle = both
    assert ours.icon == oracle.icon == "misc_/CMFPlone/book_icon.png"
    mine, theirs = (catalog(getId="page")[0] for catalog in both)
    assert mine.getURL() == theirs.getURL() == "http://nohost/plone/my_folder/page"
    assert mine["Title"] == theirs["Title"] == mine[list(mine.__record_schema__).index("Title")]
    assert mine.__record_schema__ == theirs.__record_schema__
    assert ("Title" in mine, mine.has_key("Title"), "nobody" in mine) == (True, True, False)
    assert mine.portal_catalog.aq_base is ours.aq_base


@pytest.mark.parametrize("order", ["", "reverse"])
@pytest.mark.parametrize("limit", [{}, {"sort_limit": 100}], ids=["whole", "limited"])
@pytest.mark.parametrize("second", ["cmf_uid", "start", "created"])
def test_rows_without_a_further_key_are_sorted_as_by_zcatalog(both: Any, second: str, limit: Any, order: str) -> None:
    """They come first in a whole result; a limited one omits them."""
    query = {"path": "/plone", "sort_on": ["portal_type", second], "sort_order": order, **limit}
    ours, theirs = (answer(catalog, query) for catalog in both)
    assert sorted(ours[0]) == sorted(theirs[0])
    rows = {path: (brain.portal_type, second_key(both[0], brain, second)) for path, brain in brains(both[0], query)}
    assert [rows[path] for path in ours[0]] == [rows[path] for path in theirs[0]]
    assert len(ours[0]) == ours[1]
    results = both[0].unrestrictedSearchResults(**query)
    if not limit:
        assert [brain.getPath() for brain in results.iterate(2)] == ours[0]


def brains(catalog: Any, query: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(brain.getPath(), brain) for brain in catalog.unrestrictedSearchResults(**query)]


def second_key(catalog: Any, brain: Any, name: str) -> Any:
    """Return the key of the row of *brain* in the index *name*, None without one."""
    key = catalog.getIndexDataForRID(brain.getRID())[name]
    return None if key in ("", [], None) else str(key)


@pytest.mark.parametrize("order", ["", "reverse"])
@pytest.mark.parametrize("limit", [{}, {"sort_limit": 100}], ids=["whole", "limited"])
@pytest.mark.parametrize(
    "sort_on",
    [
        *(["portal_type", "getObjPositionInParent"], ["portal_type", "getObjPositionInParent", "cmf_uid"]),
        *(["getObjPositionInParent", "cmf_uid"], ["getObjPositionInParent", "start"]),
    ],
    ids="-".join,
)
def test_positions_with_other_keys_sort_as_by_zcatalog(both: Any, sort_on: list[str], limit: Any, order: str) -> None:
    """A row without a further key comes first in a whole result, unless positions are its first key."""
    query = {"path": "/plone", "sort_on": sort_on, "sort_order": order, **limit}
    ours, theirs = (answer(catalog, query) for catalog in both)
    assert ours == theirs


@pytest.mark.parametrize("limit", [{}, {"sort_limit": 100}], ids=["whole", "limited"])
def test_row_without_a_position_as_further_key_is_found_as_by_zcatalog(compared: Any, limit: Any) -> None:
    ours, _, portal = compared
    oracle = make_oracle(portal)
    for catalog in (ours, oracle):
        catalog.catalog_object(portal["my_folder"]["page"], f"{FOLDER}/vanished")
    query = {"path": {"query": FOLDER, "depth": 1}, "sort_on": ["portal_type", "getObjPositionInParent"], **limit}
    found = [answer(catalog, query) for catalog in (ours, oracle)]
    transaction.abort()
    assert found[0] == found[1]
    assert (f"{FOLDER}/vanished" in found[0][0]) == (not limit)


def test_open_ranges_sort_together_with_positions(both: Any) -> None:
    """Open ends are None, which has no order in Python; ZCatalog fails on them."""
    query = {"path": {"query": FOLDER, "depth": 1}, "sort_on": ["effectiveRange", "getObjPositionInParent"]}
    paths, count = answer(both[0], query)
    assert count == len(paths) == len(both[0].unrestrictedSearchResults(path=query["path"]))
    assert paths[-1] == f"{FOLDER}/future"


@pytest.mark.parametrize("ordering", ["", "partial", "unordered"])
def test_positions_are_those_of_any_ordering_adapter(compared: Any, ordering: str) -> None:
    ours, oracle, portal = compared
    query = {"portal_type": ["Document", "Event"], "sort_on": "getObjPositionInParent"}
    portal["my_folder"].setOrdering(ordering)
    paths, count = answer(ours, query)
    assert len({path.rpartition("/")[0] for path in paths}) > 1
    assert (paths, count) == answer(oracle, query)
    transaction.abort()


def test_rows_of_vanished_objects_drop_out_of_a_sort_by_position(compared: Any) -> None:
    """ZCatalog drops them if all rows are of one folder, and raises ValueError otherwise."""
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
