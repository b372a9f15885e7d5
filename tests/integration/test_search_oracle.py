"""Every index type of a stock Plone, asked of ours and of a real ZCatalog with the same content."""

from DateTime import DateTime
from tests.integration.content import populate
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from typing import Any

import pytest
import transaction


FOLDER = "/plone/my_folder"

QUERIES: list[dict[str, Any]] = [
    {},
    {"no_such_index": 1},
    {"portal_type": "Document"},
    {"portal_type": ["Document", "Event"]},
    {"portal_type": []},
    {"portal_type": {"not": "Document"}},
    {"portal_type": {"query": ["Document", "Event"], "not": ["Event"]}},
    {"portal_type": {"query": "Folder", "range": "min"}},
    {"portal_type": {"query": ["A", "F"], "range": "min:max"}},
    {"review_state": {"not": ["published"]}},
    {"getId": "über%_x"},
    {"Subject": "Rot"},
    {"Subject": {"query": ["Rot", "x y"], "operator": "and"}},
    {"Subject": {"query": ["Rot", "rot"], "operator": "or"}},
    {"Subject": {"query": ["Rot", "nobody"], "operator": "and"}},
    {"Subject": {"not": "Rot"}},
    {"Subject": {"query": "S", "range": "min"}},
    {"is_folderish": True},
    {"is_folderish": [False]},
    {"is_folderish": "odd"},
    {"exclude_from_nav": False},
    {"UID": "nobody"},
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
    {"SearchableText": "quick"},
    {"SearchableText": "quick AND fox"},
    {"SearchableText": "fox OR news"},
    {"SearchableText": "quick AND NOT fox"},
    {"SearchableText": '"quick brown"'},
    {"SearchableText": '"brown quick"'},
    {"SearchableText": "(fox OR news) AND quick"},
    {"SearchableText": "pag*"},
    {"SearchableText": "uber"},
    {"SearchableText": "strassen"},
    {"SearchableText": "me@example.org"},
    {"SearchableText": "quick-thinking"},
    {"SearchableText": "目录"},
    {"SearchableText": ""},
    {"Title": "page"},
    {"Description": "brown"},
    {"path": FOLDER},
    {"path": FOLDER + "/"},
    {"path": {"query": FOLDER, "depth": 0}},
    {"path": {"query": FOLDER, "depth": 1}},
    {"path": {"query": FOLDER, "depth": 2}},
    {"path": {"query": ["/plone/my-folder", FOLDER], "depth": 0}},
    {"path": {"query": FOLDER + "/a/b", "navtree": 1}},
    {"path": {"query": FOLDER + "/a/b", "navtree": 1, "navtree_start": 2}},
    {"path": {"query": FOLDER + "/a/b", "navtree": 1, "depth": 0}},
    {"path": {"query": "b", "level": 3}},
    {"path": {"query": "b", "level": -1}},
    {"path": "/plone/my_folder%"},
    {"path": "/plone/m"},
    {"path": "/"},
    {"path": {"depth": 1}},
    {"getObjPositionInParent": 1},
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


@pytest.fixture(scope="module")
def both(site_template: str, postgres: Any) -> Any:
    """(our catalog, oracle, portal) over the same committed content."""
    from tests.integration import site as sites
    from zope.component.hooks import setSite

    with sites.opened(sites.clone(postgres, site_template)) as db, sites.application(db) as app:
        sites.login(app)
        setSite(app.plone)
        populate(app.plone)
        transaction.commit()
        yield app.plone.portal_catalog, make_oracle(app.plone), app.plone


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_same_answer(both: Any, query: dict[str, Any]) -> None:
    ours, oracle, _ = both
    assert answer(ours, query) == answer(oracle, query)


@pytest.mark.parametrize("query", [q for q in QUERIES if "sort_on" not in q], ids=str)
def test_same_restricted_answer(both: Any, query: dict[str, Any]) -> None:
    ours, oracle, _ = both
    assert answer(ours, query, "searchResults") == answer(oracle, query, "searchResults")


def test_metadata_has_the_same_values_and_types(both: Any) -> None:
    ours, oracle, _ = both
    for path, rid in oracle._catalog.uids.items():
        mine = ours._catalog.getMetadataForRID(ours.getrid(path))
        theirs = oracle._catalog.getMetadataForRID(rid)
        assert {k: (type(v), v) for k, v in mine.items()} == {k: (type(v), v) for k, v in theirs.items()}


def test_index_data_is_the_same(both: Any) -> None:
    ours, oracle, _ = both
    unordered = ("Subject", "allowedRolesAndUsers", "object_provides", "getRawRelatedItems")
    for path, rid in oracle._catalog.uids.items():
        mine = ours.getIndexDataForRID(ours.getrid(path))
        theirs = oracle.getIndexDataForRID(rid)
        for name in unordered:
            mine[name], theirs[name] = sorted(mine[name]), sorted(theirs[name])
        assert mine == theirs


UNIQUE = [
    "portal_type",
    "Subject",
    "review_state",
    "Creator",
    "getId",
    "is_folderish",
    "is_default_page",
    "effectiveRange",
]


@pytest.mark.parametrize("name", UNIQUE)
def test_unique_values_are_the_same(both: Any, name: str) -> None:
    ours, oracle, _ = both
    assert sorted(ours.uniqueValuesFor(name)) == sorted(oracle.uniqueValuesFor(name))
    mine = dict(ours.Indexes[name].uniqueValues(withLengths=True))
    assert mine == dict(oracle.Indexes[name].uniqueValues(withLengths=True))


def test_brains_act_like_zcatalogs(both: Any) -> None:
    ours, oracle, _portal = both
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


def test_open_ranges_sort_together_with_positions(both: Any) -> None:
    """Open ends are None, which has no order in Python; ZCatalog fails on them."""
    ours, _oracle, _portal = both
    query = {"path": {"query": FOLDER, "depth": 1}, "sort_on": ["effectiveRange", "getObjPositionInParent"]}
    paths, count = answer(ours, query)
    assert count == len(paths) == len(ours.unrestrictedSearchResults(path=query["path"]))
    assert paths[-1] == f"{FOLDER}/future"


@pytest.mark.parametrize("ordering", ["", "partial", "unordered"])
def test_positions_are_those_of_whatever_orders_a_folder(both: Any, ordering: str) -> None:
    ours, oracle, portal = both
    query = {"portal_type": ["Document", "Event"], "sort_on": "getObjPositionInParent"}
    portal["my_folder"].setOrdering(ordering)
    paths, count = answer(ours, query)
    assert len({path.rpartition("/")[0] for path in paths}) > 1
    assert (paths, count) == answer(oracle, query)
    transaction.abort()


def test_rows_of_vanished_objects_drop_out_of_a_sort_by_position(both: Any) -> None:
    """ZCatalog drops them where all rows are of one folder, and raises ValueError where they are not."""
    ours, oracle, portal = both
    query = {"portal_type": "Folder", "sort_on": "getObjPositionInParent"}
    before = answer(ours, query)
    for catalog in (ours, oracle):
        catalog.catalog_object(portal["my_folder"], f"{FOLDER}/vanished")
    assert answer(ours, query) == before
    with pytest.raises(ValueError, match="vanished"):
        oracle.searchResults(**query)
    transaction.abort()


def test_search_refuses_an_index_that_cannot_sort(both: Any) -> None:
    for catalog in both[:2]:
        with pytest.raises(AttributeError):
            catalog.search({"portal_type": "Document"}, "Title")
