"""Reading the rows of a result, and its count: a few statements, in any order, and with any rows in the cache."""

from collections.abc import Callable
from collections.abc import Iterable
from contextlib import nullcontext
from plone.pgcatalog.results import loader
from plone.pgcatalog.results import reader
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ROWS
from tests.integration.content import create
from tests.integration.pages import PAGE_QUERIES
from tests.integration.traffic import traced
from typing import Any

import pytest
import transaction


PAGES = 40


def fill(portal: Any) -> None:
    for number in range(PAGES):
        create(portal, "Document", f"page{number:02}", title=f"Page {number}")


CONTENT = SHARED = fill


def patch(monkeypatch: Any, window: int, **sizes: int) -> None:
    """Set the window of results to *window* rows, and *sizes* in the module ``loader``."""
    monkeypatch.setattr(reader, "WINDOW", window)
    monkeypatch.setattr("plone.pgcatalog.results.results.WINDOW", window)
    for name, size in sizes.items():
        monkeypatch.setattr(loader, name, size)


@pytest.fixture
def filled(shared_filled: Any) -> Any:
    """A site whose pages no test changes."""
    # Begins a request.
    assert len(search(shared_filled, portal_type="Folder", sort_on="getId")) == 0
    return shared_filled


def search(portal: Any, **query: Any) -> Any:
    return portal.portal_catalog.unrestrictedSearchResults(**{"portal_type": "Document", **query})


def titles(results: Any) -> list[str]:
    return [brain.Title for brain in results]


IN_ORDER = [f"Page {number}" for number in range(PAGES)]


def test_sort_by_position_reads_no_single_rows(filled: Any, monkeypatch: Any) -> None:
    """The ids of a long result are in the cache, its rows did not fit."""
    monkeypatch.setattr(loader, "PATH_BATCH", 3)
    assert titles(search(filled, sort_on="getObjPositionInParent")) == IN_ORDER
    result_cache().clear(ROWS)
    with traced(filled) as traffic:
        assert titles(search(filled, sort_on="getObjPositionInParent")) == IN_ORDER
    # Paths, and metadata.
    assert traffic[0].round_trips == 2


@pytest.mark.parametrize("held", ["nothing", "some rows", "all rows"])
def test_few_rows_in_the_order_of_their_positions_take_one_message(filled: Any, held: str) -> None:
    result_cache().clear()
    if held != "nothing":
        titles(search(filled, sort_on="getId")[: 3 if held == "some rows" else PAGES])
    result_cache().clear(HITS)
    with traced(filled) as traffic:
        assert titles(search(filled, sort_on="getObjPositionInParent")) == IN_ORDER
    assert len(traffic[0].matching('FROM "pgcatalog_')) == 1


def test_many_rows_in_the_order_of_their_positions_are_read_without_metadata(filled: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(reader, "FEW_ROWS", PAGES - 1)
    result_cache().clear()
    with traced(filled) as traffic:
        assert titles(search(filled, sort_on="getObjPositionInParent")) == IN_ORDER
    first, *others = traffic[0].matching('FROM "pgcatalog_')
    assert "page_rows <= 39" in first
    assert len(others) == 1


def test_batch_grows_during_sequential_reading(filled: Any, monkeypatch: Any) -> None:
    patch(monkeypatch, 4, IDX_BATCH=2, MOST_IDX=8)
    monkeypatch.setattr("plone.pgcatalog.results.results.IDX_BATCH", 2)
    for reading in (titles, lambda results: [results[n].Title for n in range(PAGES)]):
        result_cache().clear(ROWS)
        results = search(filled, sort_on="getId")
        len(results)
        with traced(filled) as traffic:
            assert reading(results) == IN_ORDER
        # Pages within the window, all ids, then 2, 4, 8, 8, 8, 8 rows, or the like.
        assert traffic[0].round_trips <= 10


@pytest.mark.parametrize("known", [range(0, PAGES, 3), ()], ids=["every third", "none"])
def test_cached_rows_in_between_do_not_end_a_loop(filled: Any, monkeypatch: Any, known: Iterable[int]) -> None:
    """A loop over partly cached rows sends no more messages than one over rows that are not cached."""
    patch(monkeypatch, 0, IDX_BATCH=2, MOST_IDX=8)
    monkeypatch.setattr("plone.pgcatalog.results.results.IDX_BATCH", 2)
    result_cache().clear()
    for number in known:
        assert titles(search(filled, getId=f"page{number:02}")) == [f"Page {number}"]
    with traced(filled) as traffic:
        assert titles(search(filled, sort_on="getId")) == IN_ORDER
    # 2, 4 and then 8 rows at once.
    assert len(traffic[0].matching("xmin")) <= 7


def test_random_access_reads_few_rows(filled: Any, monkeypatch: Any) -> None:
    patch(monkeypatch, 0, IDX_BATCH=2, MOST_IDX=8)
    result_cache().clear(ROWS)
    results = search(filled, sort_on="getId")
    brains = list(results)
    loaded: list[int] = []
    original = results.view.idx_texts

    def counted(rids: Any, excluded_keys: Any, known: Any) -> Any:
        loaded.append(len({*rids, *known}))
        return original(rids, excluded_keys, known)

    monkeypatch.setattr(results.view, "idx_texts", counted)
    for number in (30, 10, 36, 20, 4):
        assert brains[number].Title == IN_ORDER[number]
    assert set(loaded) == {2}


SLICES = [(30, 35), (3, 9), (9, 30), (0, 4), (38, 60), (39, 40), (50, 60), (4, 5), (0, 40), (33, 34)]


@pytest.mark.parametrize(
    "query", [{}, {"sort_on": "getId"}, {"sort_on": "getObjPositionInParent"}, {"SearchableText": "page"}], ids=str
)
@pytest.mark.parametrize("first", range(len(SLICES)))
def test_any_slice_of_a_result_equals_that_of_the_whole(filled: Any, monkeypatch: Any, query: Any, first: int) -> None:
    patch(monkeypatch, 4)
    monkeypatch.setattr(reader, "FEWEST_IDS", 8)
    whole = titles(search(filled, **query))
    for counts_first in (False, True):
        result_cache().clear()
        results = search(filled, **query)
        assert not counts_first or len(results) == PAGES
        for start, stop in SLICES[first:] + SLICES[:first]:
            assert titles(results[start:stop]) == whole[start:stop], (start, stop)
            assert titles(results[n] for n in range(start, min(stop, PAGES))) == whole[start:stop]
        assert (titles(results[-3:]), titles(results[::7]), results[-1].Title) == (whole[-3:], whole[::7], whole[-1])
        assert (len(results), results.actual_result_count) == (PAGES, PAGES)


def test_distant_slice_reads_only_the_ids_before_it(filled: Any, monkeypatch: Any) -> None:
    """And of twice as many the next time, so that reading on reads few of them twice."""
    patch(monkeypatch, 4)
    monkeypatch.setattr(reader, "FEWEST_IDS", 8)
    result_cache().clear()
    results = search(filled, sort_on="getId")
    with traced(filled) as traffic:
        assert titles(results[5:7]) == IN_ORDER[5:7]
        assert titles(results[7:9]) == IN_ORDER[7:9]
        assert titles(results[9:15]) == IN_ORDER[9:15]
        assert titles(results[20:36]) == IN_ORDER[20:36]
    limits = [text.partition("LIMIT ")[2].partition(")")[0] for text in traffic[0].matching("string_agg")]
    assert limits == ["8", "16", "64"]
    # These are all hits: no count is needed.
    with traced(filled) as traffic:
        assert len(results) == PAGES
    assert not traffic[0].round_trips


def test_rows_moved_in_the_transaction_are_listed_by_their_new_paths(portal: Any, monkeypatch: Any) -> None:
    """Rows are read, and cached, in their committed state."""
    patch(monkeypatch, 0)
    folder = create(portal, "Folder", "folder")
    for number in range(PAGES):
        create(folder, "Document", f"inside{number:02}", title=f"Inside {number}")
    transaction.commit()

    def check_list(name: str) -> None:
        for sort_on in ("getId", "getObjPositionInParent"):
            found = search(portal, path=f"/plone/{name}", sort_on=sort_on)
            assert [(brain.Title, brain.getPath()) for brain in found] == [
                (f"Inside {number}", f"/plone/{name}/inside{number:02}") for number in range(PAGES)
            ]

    check_list("folder")
    portal.manage_renameObject("folder", "moved")
    check_list("moved")
    result_cache().clear()
    check_list("moved")
    [last] = search(portal, getId="inside39")[:]
    assert (last.Title, last.getPath()) == ("Inside 39", "/plone/moved/inside39")


# -- a count and the first rows


def paths(brains: Iterable[Any]) -> list[str]:
    return [brain.getPath() for brain in brains]


Ask = Callable[[Any], tuple[Any, ...]]
#: Orders in which callers use a result.
ASKS: dict[str, Ask] = {
    "count, slice": lambda found: (len(found), found.actual_result_count, paths(found[:10])),
    "count, iteration": lambda found: (len(found), found.actual_result_count, paths(found)),
    "batch of plone.restapi": lambda found: (len(found), paths(found[n] for n in range(min(10, len(found))))),
    "batch of Plone": lambda found: (found.actual_result_count, paths(found[n] for n in range(min(10, len(found))))),
}


def answered(portal: Any, query: dict[str, Any], ask: Ask, batch: bool = False) -> tuple[tuple[Any, ...], list[str]]:
    """Return the answer, and its statements with rows."""
    result_cache().clear(HITS)
    session = portal.portal_catalog._core.session
    with traced(portal) as traffic, session.batch() if batch else nullcontext():
        found = ask(portal.portal_catalog.unrestrictedSearchResults(**query))
    return found, traffic[0].matching('FROM "pgcatalog_')


@pytest.mark.parametrize("name", PAGE_QUERIES)
@pytest.mark.parametrize("order", ASKS)
def test_a_batch_takes_one_statement_and_answers_the_same(filled: Any, name: str, order: str) -> None:
    alone, _ = answered(filled, PAGE_QUERIES[name], ASKS[order])
    together, statements = answered(filled, PAGE_QUERIES[name], ASKS[order], batch=True)
    assert together == alone
    assert len(statements) == 1


@pytest.mark.parametrize("name", PAGE_QUERIES)
def test_pending_rows_are_counted_and_read(portal: Any, name: str) -> None:
    ask = ASKS["batch of Plone"]
    before, _ = answered(portal, PAGE_QUERIES[name], ask)
    portal.manage_delObjects(["page07"])
    pending, _ = answered(portal, PAGE_QUERIES[name], ask)
    transaction.commit()
    transaction.begin()
    saved, _ = answered(portal, PAGE_QUERIES[name], ask, batch=True)
    assert pending == saved
    assert name == "nothing" or before[0] == saved[0] + 1
