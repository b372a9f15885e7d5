"""A result reads only requested rows, none twice, and caches them for the next search."""

from array import array
from collections.abc import Callable
from collections.abc import Iterator
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.results.answer import Answer
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.reader import Reader
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.predicate import equals
from types import SimpleNamespace
from typing import Any

import pytest


ROWS = list(range(100, 123))


class View:
    """Stub of a CatalogView of a catalog in which every query finds *ROWS*; records its calls."""

    zoid = 1
    rows = -1

    def __init__(self, generation: int = 1, is_committed: bool = True, is_batching: bool = False) -> None:
        self.generation = generation
        self.is_committed = is_committed
        self.asked: list[tuple[Any, ...]] = []
        #: the count that a page reports
        self.told: int | None = None
        self.session = SimpleNamespace(
            generations=Generations(),
            history=SimpleNamespace(number=None),
            collected=SimpleNamespace(is_open=is_batching),
            announced={},
        )

    def stamp(self) -> Stamp | None:
        return Stamp(1, self.zoid, "relation", self.generation, 1) if self.is_committed else None

    def is_current(self, stamp: Stamp | None) -> bool:
        return stamp == self.stamp()

    def page(
        self, query: CompiledQuery, start: int, size: int | None, *more: Any
    ) -> Fetch[tuple[list[tuple[int, str, float | None]], int | None]]:
        _, _, with_total = more or (None, None, False)
        self.asked.append(("page and total" if with_total else "page", start, size))
        end = None if size is None else start + size
        rows = [(rid, f"/plone/{rid}", 1.5 if query.score else None) for rid in ROWS[start:end]]
        return Fetch.of((rows, len(ROWS) if with_total and rows else self.told))

    def rids(self, query: CompiledQuery, size: int | None) -> Fetch[array[int]]:
        self.asked.append(("rids",))
        return Fetch.of(array("q", ROWS))

    def count(self, query: CompiledQuery) -> Fetch[int]:
        self.asked.append(("count",))
        return Fetch.of(len(ROWS))


@pytest.fixture(autouse=True)
def nothing_is_known() -> Iterator[None]:
    result_cache().clear()
    yield
    result_cache().clear()


def query(value: str = "Document", score: Fragment | None = None, window: Window | None = None) -> CompiledQuery:
    where = equals(Column("portal_type", "text"), value)
    return CompiledQuery(where, (Order('"get_id"'), OLDEST_FIRST), score, window or Window())


def reader(view: View, asked: CompiledQuery | None = None) -> Reader:
    return Reader(view, asked or query(), RowLoader(view, array("q")))  # type: ignore[arg-type]


# -- only requested rows are read


def test_nothing_is_read_before_it_is_needed() -> None:
    view = View()
    assert not reader(view).answer.whole
    assert view.asked == []


def test_first_rows_are_read_alone_and_the_next_after_them() -> None:
    view = View()
    found = reader(view)
    found.read(10)
    assert list(found.rids) == ROWS[:10]
    found.read(7)
    found.read(20)
    assert list(found.rids) == ROWS[:20]
    assert view.asked == [("page", 0, 10), ("page", 10, 10)]
    assert (found.answer.whole, found.answer.total) == (False, None)


def test_page_that_is_not_full_is_the_last_and_has_the_count() -> None:
    view = View()
    found = reader(view)
    found.read(20)
    found.read(30)
    assert (list(found.rids), found.answer.whole, found.total()) == (ROWS, True, len(ROWS))
    found.read(50)
    found.read()
    assert view.asked == [("page", 0, 20), ("page", 20, 10)]


def test_all_rows_are_read_as_record_ids_only() -> None:
    view = View()
    found = reader(view)
    found.read()
    found.read()
    assert (list(found.rids), found.answer.whole, found.total()) == (ROWS, True, len(ROWS))
    assert view.asked == [("rids",)]


def test_paths_and_scores_are_read_with_all_rows_on_request() -> None:
    for with_paths, score in ((True, None), (False, Fragment("1.5"))):
        view = View()
        found = reader(view, query(score=score))
        found.read(with_paths=with_paths)
        assert list(found.rids) == ROWS
        assert found.answer.scores == ((1.5,) * len(ROWS) if score else ())
        assert view.asked == [("page", 0, None)]
        result_cache().clear()


def test_count_is_read_once_and_without_rows() -> None:
    view = View()
    found = reader(view)
    assert [found.total(), found.total()] == [len(ROWS)] * 2
    assert (list(found.rids), found.answer.whole) == ([], False)
    assert view.asked == [("count",)]
    found.read(5)
    assert found.total() == len(ROWS)
    assert len(view.asked) == 2


def test_count_reported_by_a_page_is_not_read() -> None:
    view = View()
    view.told = len(ROWS)
    found = reader(view)
    found.read(5)
    assert (found.total(), found.answer.whole) == (len(ROWS), False)
    assert view.asked == [("page", 0, 5)]


@pytest.mark.parametrize(
    ("window", "expected", "total"),
    [
        (Window(0, 5), ROWS[:5], None),
        (Window(20, 5), ROWS[20:], len(ROWS)),
        # After the last row the count is unknown.
        (Window(50, 5), [], None),
        (Window(3, 0), [], None),
    ],
)
def test_window_is_read_at_once_and_nothing_beyond(window: Window, expected: list[int], total: int | None) -> None:
    view = View()
    found = reader(view, query(window=window))
    found.read(1)
    assert (list(found.rids), found.answer.whole, found.answer.total) == (expected, True, total)
    assert view.asked == ([("page", window.start, window.size)] if window.size else [])
    assert found.total() == len(ROWS)


def test_impossible_query_is_never_sent() -> None:
    view = View()
    found = reader(view, CompiledQuery(NOTHING, (OLDEST_FIRST,), None, Window()))
    found.read(10)
    found.read()
    assert (list(found.rids), found.answer.whole, found.total()) == ([], True, 0)
    assert view.asked == []


# -- rules: data that is read together


@pytest.mark.parametrize("count", [Reader.total, Reader.length])
def test_count_of_a_page_fetches_its_rows(count: Callable[[Reader], Any]) -> None:
    view = View()
    found = reader(view, query(window=Window(5, 10, True)))
    count(found)
    found.read(1)
    assert (list(found.rids), found.total()) == (ROWS[5:15], len(ROWS))
    assert view.asked == [("page and total", 5, 10)]


def test_read_of_a_page_counts_nothing() -> None:
    view = View()
    reader(view, query(window=Window(5, 10, True))).read(1)
    assert view.asked == [("page", 5, 10)]


@pytest.mark.parametrize("window", [Window(0, 10), Window()])
def test_count_of_another_result_fetches_no_rows(window: Window) -> None:
    view = View()
    assert reader(view, query(window=window)).total() == len(ROWS)
    assert view.asked == [("count",)]


def test_page_without_room_is_counted_only() -> None:
    view = View()
    assert reader(view, query(window=Window(0, 0, True))).total() == len(ROWS)
    assert view.asked == [("count",)]


def test_count_in_an_open_batch_fetches_the_first_rows() -> None:
    view = View(is_batching=True)
    found = reader(view)
    assert found.total() == len(ROWS)
    found.read(20)
    assert view.asked == [("page and total", 0, 50)]


def test_count_after_the_last_row_is_read_alone() -> None:
    view = View()
    assert reader(view, query(window=Window(50, 5, True))).total() == len(ROWS)
    assert view.asked == [("page and total", 50, 5), ("count",)]


def test_page_is_counted_only_on_request() -> None:
    view = View()
    found = reader(view, query(window=Window(0, 5)))
    found.counts_with_page = True
    found.read(1)
    assert found.total() == len(ROWS)
    assert view.asked == [("page and total", 0, 5)]


def test_many_requests_for_both_change_nothing_for_the_next() -> None:
    """Earlier reads of other results decide nothing."""
    for value in range(20):
        found = reader(View(), query(str(value)))
        found.total()
        found.read(10)
    view = View()
    reader(view).total()
    reader(view, query("Event")).read(10)
    assert view.asked == [("count",), ("page", 0, 10)]


# -- data read by other results


def test_repeated_search_reads_nothing() -> None:
    reader(View()).read(10)
    view = View()
    found = reader(view)
    found.read(10)
    assert list(found.rids) == ROWS[:10]
    assert view.asked == []
    found.read(12)
    assert view.asked == [("page", 10, 2)]


def test_cached_count_stays_cached() -> None:
    reader(View()).total()
    reader(View()).read(10)
    view = View()
    found = reader(view)
    found.read(10)
    assert found.total() == len(ROWS)
    assert view.asked == []


@pytest.mark.parametrize(
    ("view", "asked"), [(View(generation=2), query()), (View(), query("Event")), (View(), query(window=Window(0, 10)))]
)
def test_another_state_and_another_query_are_read(view: View, asked: CompiledQuery) -> None:
    reader(View()).read(10)
    reader(view, asked).read(10)
    assert view.asked == [("page", 0, 10)]


def test_transaction_with_changes_reads_for_itself_and_caches_nothing() -> None:
    reader(View()).read(10)
    own = View(is_committed=False)
    reader(own).read(12)
    assert own.asked == [("page", 0, 12)]
    view = View()
    reader(view).read(12)
    assert view.asked == [("page", 10, 2)]


def test_rows_read_before_a_change_are_not_cached_as_later_ones() -> None:
    view = View()
    found = reader(view)
    found.read(5)
    view.generation = 2
    found.read(10)
    later = View(generation=2)
    reader(later).read(5)
    assert later.asked == [("page", 0, 5)]


# -- sizes and copies


def test_more_rows_and_scores_take_more_bytes() -> None:
    sizes = [Answer(), Answer((1,)), Answer((1,), (0.5,)), Answer((1, 2, 3), (0.5, 0.5, 0.5))]
    assert sorted(sizes, key=lambda answer: answer.bytes) == sizes
    assert len({answer.bytes for answer in sizes}) == len(sizes)
