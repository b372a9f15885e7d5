"""Reading the rows of a long result: a few statements, in any order, and with any rows in the cache."""

from collections.abc import Iterable
from plone.pgcatalog.results import loader
from plone.pgcatalog.results import reader
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import ROWS
from tests.integration.content import create
from tests.integration.traffic import traced
from typing import Any

import pytest
import transaction


PAGES = 40


def fill(portal: Any) -> None:
    for number in range(PAGES):
        create(portal, "Document", f"page{number:02}", title=f"Page {number}")


CONTENT = SHARED = fill


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
    monkeypatch.setattr(loader, "IDX_BATCH", 2)
    monkeypatch.setattr("plone.pgcatalog.results.results.IDX_BATCH", 2)
    for module in ("reader", "results"):
        monkeypatch.setattr(f"plone.pgcatalog.results.{module}.WINDOW", 4)
    monkeypatch.setattr(loader, "MOST_IDX", 8)
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
    monkeypatch.setattr(loader, "IDX_BATCH", 2)
    monkeypatch.setattr("plone.pgcatalog.results.results.IDX_BATCH", 2)
    for module in ("reader", "results"):
        monkeypatch.setattr(f"plone.pgcatalog.results.{module}.WINDOW", 0)
    monkeypatch.setattr(loader, "MOST_IDX", 8)
    result_cache().clear()
    for number in known:
        assert titles(search(filled, getId=f"page{number:02}")) == [f"Page {number}"]
    with traced(filled) as traffic:
        assert titles(search(filled, sort_on="getId")) == IN_ORDER
    # 2, 4 and then 8 rows at once.
    assert len(traffic[0].matching("xmin")) <= 7


def test_random_access_reads_few_rows(filled: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(loader, "IDX_BATCH", 2)
    monkeypatch.setattr(loader, "MOST_IDX", 8)
    for module in ("reader", "results"):
        monkeypatch.setattr(f"plone.pgcatalog.results.{module}.WINDOW", 0)
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


def test_metadata_does_not_restore_the_path_before_a_move(portal: Any, monkeypatch: Any) -> None:
    """Rows are read in their committed state; their paths are those of the transaction."""
    for module in ("reader", "results"):
        monkeypatch.setattr(f"plone.pgcatalog.results.{module}.WINDOW", 0)
    folder = create(portal, "Folder", "folder")
    for number in range(4):
        create(folder, "Document", f"inside{number}", title=f"Inside {number}")
    transaction.commit()
    portal.manage_renameObject("folder", "moved")
    query = {"path": "/plone/moved", "sort_on": "getId"}
    assert [(b.Title, b.getPath()) for b in search(portal, **query)] == [
        (f"Inside {number}", f"/plone/moved/inside{number}") for number in range(4)
    ]
    [last] = search(portal, getId="inside3")[:]
    assert (last.Title, last.getPath()) == ("Inside 3", "/plone/moved/inside3")


SLICES = [(30, 35), (3, 9), (9, 30), (0, 4), (38, 60), (39, 40), (50, 60), (4, 5), (0, 40), (33, 34)]


@pytest.mark.parametrize(
    "query", [{}, {"sort_on": "getId"}, {"sort_on": "getObjPositionInParent"}, {"SearchableText": "page"}], ids=str
)
@pytest.mark.parametrize("first", range(len(SLICES)))
def test_any_slice_of_a_result_equals_that_of_the_whole(filled: Any, monkeypatch: Any, query: Any, first: int) -> None:
    for module in ("reader", "results"):
        monkeypatch.setattr(f"plone.pgcatalog.results.{module}.WINDOW", 4)
    monkeypatch.setattr("plone.pgcatalog.results.reader.FEWEST_IDS", 8)
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
    for module in ("reader", "results"):
        monkeypatch.setattr(f"plone.pgcatalog.results.{module}.WINDOW", 4)
    monkeypatch.setattr("plone.pgcatalog.results.reader.FEWEST_IDS", 8)
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
