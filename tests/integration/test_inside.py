"""What add-ons do with the inside of the catalog and its indexes, next to a real ZCatalog."""

from Acquisition import aq_base
from BTrees.IIBTree import IISet
from collections.abc import Iterator
from Products.CMFCore.indexing import processQueue
from Products.ZCatalog.Catalog import mergeResults
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from typing import Any

import Missing
import pytest
import transaction


@pytest.fixture(scope="module")
def shared(site_with: SiteWith) -> Iterator[Any]:
    """(our catalog, the oracle), filled with the same content; the tests change nothing."""
    with sites.opened(site_with(populate)) as db, sites.inside(db) as portal:
        yield portal.portal_catalog, make_oracle(portal)


@pytest.fixture
def both(shared: Any) -> Any:
    sites.return_to(shared[0].aq_parent)
    return shared


def test_an_unwrapped_tool_has_its_inside(catalog: Any) -> None:
    inside = aq_base(catalog)._catalog
    assert len(inside) == len(catalog)
    assert set(inside.indexes) == set(catalog.indexes())
    assert inside.getIndex("UID").numObjects() == catalog._catalog.getIndex("UID").numObjects()


@pytest.mark.parametrize(("reverse", "limit"), [(False, None), (True, None), (False, 2), (True, 2)])
def test_sorts_a_set_of_rids(both: Any, reverse: bool, limit: int | None) -> None:
    found = []
    for catalog in both:
        inside = catalog._catalog
        rids = IISet(b.getRID() for b in catalog.unrestrictedSearchResults(portal_type="Document"))
        results = inside.sortResults(rids, inside.getIndex("getId"), reverse=reverse, limit=limit)
        found.append(([b.getPath() for b in results], results.actual_result_count))
    assert found[0] == found[1]


@pytest.mark.parametrize("reverse", [False, True])
def test_sorted_results_of_several_catalogs_are_merged_by_their_keys(both: Any, reverse: bool) -> None:
    def merged(catalog: Any) -> list[str]:
        order = "descending" if reverse else "ascending"
        parts = [
            catalog._catalog.searchResults({"portal_type": t, "sort_on": "getId", "sort_order": order}, _merge=False)
            for t in ("Document", "Folder")
        ]
        return [b.getPath() for b in mergeResults(parts, has_sort_keys=True, reverse=reverse)]

    ours, theirs = map(merged, both)
    assert ours == theirs


def test_unsorted_results_of_several_catalogs_are_merged(both: Any) -> None:
    ours, theirs = (
        [c._catalog.searchResults({"portal_type": t}, _merge=False) for t in ("Document", "Folder")] for c in both
    )
    assert sorted(b.getPath() for b in mergeResults(ours, False, False)) == sorted(
        b.getPath() for b in mergeResults(theirs, False, False)
    )


def test_scored_results_of_several_catalogs_are_merged(both: Any) -> None:
    def paths(catalog: Any) -> list[str]:
        parts = [catalog._catalog.searchResults({"SearchableText": word}, _merge=False) for word in ("fox", "news")]
        return sorted(b.getPath() for b in mergeResults(parts, has_sort_keys=True, reverse=True))

    ours, theirs = map(paths, both)
    assert ours == theirs


@pytest.mark.parametrize(("b_start", "b_size"), [(-2, 3), (-5, 8), (-1, 30), (-9, 3)])
@pytest.mark.parametrize("query", [{}, {"sort_on": "getId"}, {"sort_on": ["portal_type", "getId"]}])
def test_a_negative_start(both: Any, query: dict[str, Any], b_start: int, b_size: int) -> None:
    query = {"path": "/plone", "b_start": b_start, "b_size": b_size, **query}
    found = [answer(catalog, query) for catalog in both]
    if found[1] is TypeError:  # ZCatalog cannot sort less than no rows
        found[1] = ([], found[0][1])
    if "sort_on" not in query:  # which rows come first is up to the catalog
        found = [(len(paths), count) for paths, count in found]
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["getId", "Subject", "Title"])
@pytest.mark.parametrize("pending", [True, False])
def test_a_row_is_taken_out_of_one_index_and_put_back(portal: Any, catalog: Any, name: str, pending: bool) -> None:
    page = create(portal, "Document", "page", title="Fox", subject=("Red",))
    if pending:
        processQueue()
    else:
        transaction.commit()
    query = {"getId": "page", "Subject": "Red", "Title": "fox"}
    rid = catalog.getrid("/plone/page")
    catalog._catalog.getIndex(name).unindex_object(rid)
    for end in (lambda: None, transaction.commit):
        end()
        assert len(catalog(**{name: query[name]})) == 0
        assert all(len(catalog(**{other: query[other]})) == 1 for other in query if other != name)
        assert catalog(UID=page.UID())[0].Title == "Fox"
    assert catalog._catalog.getIndex(name).index_object(rid, page)
    assert len(catalog(**{name: query[name]})) == 1


def test_a_row_nobody_has_is_ignored(catalog: Any) -> None:
    catalog._catalog.getIndex("getId").unindex_object(2**31 - 1)
    assert catalog._catalog.getIndex("getId").index_object(2**31 - 1, object()) == 0


def test_a_new_column_has_its_default_until_the_object_is_reindexed(portal: Any, catalog: Any) -> None:
    create(portal, "Document", "page", title="Fox")
    transaction.commit()
    catalog.addColumn("extra", "new")
    catalog.addColumn("plain")
    for end in (lambda: None, transaction.commit):
        end()
        (brain,) = catalog(getId="page")
        assert (brain.extra, brain.plain, brain.Title) == ("new", Missing.Value, "Fox")
    portal.page.reindexObject()
    assert catalog(getId="page")[0].extra is Missing.Value


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_equal_dates_come_as_zcatalog_sorts_them(portal: Any, catalog: Any, order: str) -> None:
    """Plone's search page lists what was created together newest first."""
    for number in range(4):
        page = create(portal, "Document", f"page{number}", title="Fox")
        page.setEffectiveDate("2024/01/01 12:00 UTC")
        page.reindexObject()
    transaction.commit()
    query = {"Title": "fox", "sort_on": "effective", "sort_order": order, "b_size": 10}
    paths, _count = answer(make_oracle(portal), query)
    assert answer(catalog, query)[0] == paths
    assert paths[0] == ("/plone/page0" if order == "ascending" else "/plone/page3")
    del query["b_size"]
    paths, _count = answer(make_oracle(portal), query)
    assert answer(catalog, query)[0] == paths
    assert paths[0] == "/plone/page0"
