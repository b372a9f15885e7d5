"""Streams: every brain of a search once, in order, in constant memory, and only visible ones."""

from collections.abc import Iterator
from DateTime import DateTime
from plone.pgcatalog.query.expression import QueryError
from plone.pgcatalog.query.objects import Eq
from plone.pgcatalog.results.cache import result_cache
from tests.integration.content import create
from tests.integration.people import acting_as
from tests.integration.people import make_all
from tests.integration.people import PEOPLE
from tests.integration.plans import page_statement
from tests.integration.relation import catalog_with_rows
from tests.integration.site import clone
from tests.integration.traffic import traced
from typing import Any

import gc
import pytest
import tracemalloc
import transaction


SHARED = make_all


@pytest.fixture(scope="module", params=[20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def big(site_template: str, postgres: Any, request: Any) -> Iterator[Any]:
    with catalog_with_rows(clone(postgres, site_template), request.param) as catalog:
        yield catalog


def paths(brains: Any) -> list[str]:
    return [brain.getPath() for brain in brains]


SORTS: list[dict[str, Any]] = [
    *({}, {"sort_on": "portal_type"}, {"sort_on": "portal_type", "sort_order": "descending"}),
    *({"sort_on": "modified", "sort_order": "descending"}, {"sort_on": "sortable_title"}, {"sort_on": "path"}),
    *({"sort_on": "is_folderish", "sort_order": "reverse"}, {"sort_on": "start"}),
    *({"sort_on": "start", "sort_order": "descending"}, {"sort_on": "effectiveRange"}),
    {"sort_on": ["portal_type", "review_state"]},
    {"sort_on": ["review_state", "getId"], "sort_order": ["descending", "ascending"]},
    {"sort_on": ["is_folderish", "portal_type", "sortable_title"], "sort_order": ["ascending", "descending"]},
]


@pytest.mark.parametrize("sort", SORTS, ids=str)
def test_stream_has_the_hits_of_a_search_in_its_order(shared_portal: Any, sort: dict[str, Any]) -> None:
    """Including ties, of which there are many."""
    search = shared_portal.portal_catalog.unrestrictedSearchResults
    for batch in (1, 7, 1000):
        stream = search(path="/plone", **sort).iterate(batch)
        assert paths(stream) == paths(search(path="/plone", **sort)), batch
        assert list(stream) == []


@pytest.mark.parametrize("user", PEOPLE)
def test_stream_has_only_hits_visible_to_the_user(shared_portal: Any, user: Any) -> None:
    portal, catalog = shared_portal, shared_portal.portal_catalog
    with acting_as(portal, user):
        for sort in SORTS:
            assert paths(catalog.iterate({"path": "/plone", **sort}, batch=3)) == paths(catalog(path="/plone", **sort))
        trick = {"path": "/plone", "allowedRolesAndUsers": "Manager", "effectiveRange": DateTime("1990/01/01")}
        assert set(paths(catalog.iterate(trick))) == set(paths(catalog(**trick)))
        assert user == "boss" or set(paths(catalog(**trick))) == set(paths(catalog(path="/plone")))
        with pytest.raises(QueryError):
            catalog.iterate(Eq("allowedRolesAndUsers", "Manager"))


def values(brain: Any) -> tuple[Any, ...]:
    return brain.Title, brain.Subject, brain.modified, brain.getRID(), brain.getObject().getPhysicalPath()


def test_stream_yields_brains_and_nothing_without_hits(shared_portal: Any) -> None:
    catalog = shared_portal.portal_catalog
    query = {"portal_type": "Document", "sort_on": "path"}
    assert list(map(values, catalog.iterate(query, batch=2))) == list(map(values, catalog(query)))
    assert list(catalog.iterate({"portal_type": []})) == []
    assert list(catalog.iterate({"portal_type": "No Such Type"})) == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"path": "/plone", "b_size": 5}, "does not support b_size"),
        ({"path": "/plone", "sort_on": "getId", "sort_limit": 5}, "does not support b_size"),
        ({"path": "/plone", "sort_on": "getObjPositionInParent"}, "cannot be sorted by getObjPositionInParent"),
    ],
)
def test_search_that_cannot_be_streamed_is_an_error(shared_portal: Any, query: Any, message: str) -> None:
    catalog = shared_portal.portal_catalog
    with pytest.raises(QueryError, match=message):
        catalog.iterate(query)
    with pytest.raises(QueryError, match="at least one row"):
        catalog.iterate({"path": "/plone"}, batch=0)


def test_batch_of_a_stream_takes_two_statements(shared_portal: Any) -> None:
    """One for the rows with their metadata, one for the sort keys of the last row before."""
    portal, catalog = shared_portal, shared_portal.portal_catalog
    transaction.begin()
    result_cache().clear()
    total = len(catalog.unrestrictedSearchResults(path="/plone"))
    stream = catalog.unrestrictedSearchResults(path="/plone", sort_on="getId").iterate(10)
    with traced(portal) as traffic:
        titles = [brain.Title for brain in stream]
    assert len(titles) == total
    assert traffic[0].round_trips == 2 * (total // 10 + 1) - 1, traffic[0].statements


def fill(folder: Any) -> None:
    for number in range(9):
        create(folder, "Document", f"page{number}", title=f"Page {9 - number}")


CONTENT = fill


def test_change_in_the_loop_does_not_change_the_stream(portal: Any, catalog: Any) -> None:
    for query in ({"portal_type": "Document"}, {"portal_type": "Document", "sort_on": "sortable_title"}):
        for taken in (0, 1, 3, 4):
            before = paths(catalog(**query))
            stream = catalog.iterate(query, batch=3)
            found = [next(stream).getPath() for _ in range(taken)]
            for number in (0, 8):
                portal[f"page{number}"].title = "Page 5"
                portal[f"page{number}"].reindexObject()
            create(portal, "Document", "aaa", title="A")
            assert found + paths(stream) == before, (query, taken)
            transaction.abort()


def retitle(page: Any, title: str) -> None:
    page.title = title
    page.reindexObject()
    transaction.commit()


def test_commit_in_the_loop_does_not_end_the_stream(portal: Any, catalog: Any) -> None:
    query = {"portal_type": "Document", "sort_on": "sortable_title"}
    for taken in (0, 1, 3, 4):
        before = paths(catalog(**query))
        stream = catalog.iterate(query, batch=3)
        found = [next(stream).getPath() for _ in range(taken)]
        retitle(portal.page0, "A new title")
        rest = list(stream)
        assert found + paths(rest) == before, taken
        assert taken == 4 or "A new title" in [brain.Title for brain in rest], taken
        retitle(portal.page0, "Page 9")


def test_row_deleted_meanwhile_is_left_out(portal: Any, catalog: Any) -> None:
    stream = catalog.iterate({"portal_type": "Document", "sort_on": "getId"}, batch=3)
    found = [next(stream).getPath()]
    portal.manage_delObjects(["page5", "page7"])
    transaction.commit()
    assert found + paths(stream) == [f"/plone/page{n}" for n in (0, 1, 2, 3, 4, 6, 8)]


def test_pending_rows_are_streamed_and_an_abandoned_stream_costs_nothing(portal: Any, catalog: Any) -> None:
    fill(create(portal, "Folder", "new"))
    query = {"portal_type": "Document", "sort_on": "sortable_title"}
    assert paths(catalog.iterate(query, batch=2)) == paths(catalog(**query))
    assert next(catalog.iterate(query, batch=2)).Title == "Page 1"
    transaction.abort()
    transaction.begin()
    stream = catalog.iterate({"portal_type": "Document"}, batch=2)
    next(stream)
    del stream
    with traced(portal) as traffic:
        transaction.commit()
    assert not traffic[0].matching("int8send")


def peak(stream: Any) -> tuple[int, int]:
    """Return the number of brains of *stream*, and the peak of Python's memory in bytes."""
    gc.collect()
    tracemalloc.start()
    count = sum(1 for brain in stream if brain.getPath())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return count, most


@pytest.mark.slow
@pytest.mark.parametrize("big", [100_000], indirect=True)
def test_memory_of_a_stream_is_that_of_a_batch(big: Any) -> None:
    few = {"Creator": ["user1", "user2"], "sort_on": "modified"}
    many = {"is_folderish": False, "sort_on": "modified"}
    search = big.unrestrictedSearchResults
    next(search(**few).iterate(2))
    count, least = peak(search(**few).iterate())
    assert count == 4000
    count, most = peak(search(**many).iterate())
    assert count == 100_000
    assert most < 2 * least


def test_ties_neither_repeat_nor_lose_rows(big: Any) -> None:
    """Three rows have each title, and hundreds each creator."""
    for sort in ({"sort_on": "sortable_title", "sort_order": "descending"}, {"sort_on": ["Creator", "portal_type"]}):
        stream = big.unrestrictedSearchResults(Subject="tag42", **sort).iterate(64)
        rids = [brain.getRID() for brain in stream]
        assert rids == [b.getRID() for b in big.unrestrictedSearchResults(Subject="tag42", **sort)]
        assert len(set(rids)) == len(rids) == len(big) // 100


def test_late_batch_begins_at_an_index(big: Any) -> None:
    view = big._core.view()
    results = big.unrestrictedSearchResults(is_folderish=False, sort_on="modified", sort_order="descending")
    stream = results.iterate(1000)
    for _ in range(10_000):
        next(stream)
    text, params = page_statement(view, stream._remaining(), 0, 1000)
    plan = "\n".join(line for (line,) in view.session.execute(f"EXPLAIN {text}", params))
    assert "Seq Scan" not in plan, plan
    assert "Index Cond" in plan, plan
