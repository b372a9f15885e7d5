"""A result reads no more rows than somebody wants, none twice, and leaves what it has read for the next who asks."""

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
    """Stands for a CatalogView of a catalog in which every query finds *ROWS*; notes what it is asked."""

    zoid = 1
    rows = -1

    def __init__(self, generation: int = 1, is_committed: bool = True, is_batching: bool = False) -> None:
        self.generation = generation
        self.is_committed = is_committed
        self.asked: list[tuple[Any, ...]] = []
        #: the number of rows that a page tells
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


# -- as much as is wanted


def test_nothing_is_asked_before_somebody_wants_to_know() -> None:
    view = View()
    assert not reader(view).answer.whole
    assert view.asked == []


def test_the_first_rows_are_read_by_themselves_and_the_next_behind_them() -> None:
    view = View()
    found = reader(view)
    found.read(10)
    assert list(found.rids) == ROWS[:10]
    found.read(7)
    found.read(20)
    assert list(found.rids) == ROWS[:20]
    assert view.asked == [("page", 0, 10), ("page", 10, 10)]
    assert (found.answer.whole, found.answer.total) == (False, None)


def test_a_page_that_is_not_full_is_the_last_and_tells_how_many_there_are() -> None:
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


def test_paths_and_scores_come_with_all_rows_when_they_are_wanted() -> None:
    for with_paths, score in ((True, None), (False, Fragment("1.5"))):
        view = View()
        found = reader(view, query(score=score))
        found.read(with_paths=with_paths)
        assert list(found.rids) == ROWS
        assert found.answer.scores == ((1.5,) * len(ROWS) if score else ())
        assert view.asked == [("page", 0, None)]
        result_cache().clear()


def test_the_number_of_rows_is_counted_once_and_brings_none() -> None:
    view = View()
    found = reader(view)
    assert [found.total(), found.total()] == [len(ROWS)] * 2
    assert (list(found.rids), found.answer.whole) == ([], False)
    assert view.asked == [("count",)]
    found.read(5)
    assert found.total() == len(ROWS)
    assert len(view.asked) == 2


def test_the_number_of_rows_that_a_page_tells_is_not_asked_for() -> None:
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
        # Behind the last row nobody knows how many there are.
        (Window(50, 5), [], None),
        (Window(3, 0), [], None),
    ],
)
def test_a_window_is_read_at_once_and_nothing_beyond(window: Window, expected: list[int], total: int | None) -> None:
    view = View()
    found = reader(view, query(window=window))
    found.read(1)
    assert (list(found.rids), found.answer.whole, found.answer.total) == (expected, True, total)
    assert view.asked == ([("page", window.start, window.size)] if window.size else [])
    assert found.total() == len(ROWS)


def test_what_can_find_nothing_is_never_asked() -> None:
    view = View()
    found = reader(view, CompiledQuery(NOTHING, (OLDEST_FIRST,), None, Window()))
    found.read(10)
    found.read()
    assert (list(found.rids), found.answer.whole, found.total()) == ([], True, 0)
    assert view.asked == []


# -- rules: what is read together


@pytest.mark.parametrize("count", [Reader.total, Reader.length])
def test_whoever_counts_a_page_gets_its_rows_with_the_number_of_all(count: Callable[[Reader], Any]) -> None:
    view = View()
    found = reader(view, query(window=Window(5, 10, True)))
    count(found)
    found.read(1)
    assert (list(found.rids), found.total()) == (ROWS[5:15], len(ROWS))
    assert view.asked == [("page and total", 5, 10)]


def test_whoever_reads_a_page_has_nothing_counted() -> None:
    view = View()
    reader(view, query(window=Window(5, 10, True))).read(1)
    assert view.asked == [("page", 5, 10)]


@pytest.mark.parametrize("window", [Window(0, 10), Window()])
def test_whoever_counts_another_result_gets_no_rows(window: Window) -> None:
    view = View()
    assert reader(view, query(window=window)).total() == len(ROWS)
    assert view.asked == [("count",)]


def test_a_page_without_room_is_counted_only() -> None:
    view = View()
    assert reader(view, query(window=Window(0, 0, True))).total() == len(ROWS)
    assert view.asked == [("count",)]


def test_whoever_counts_in_an_open_batch_gets_the_first_rows() -> None:
    view = View(is_batching=True)
    found = reader(view)
    assert found.total() == len(ROWS)
    found.read(20)
    assert view.asked == [("page and total", 0, 50)]


def test_a_count_behind_the_last_row_is_read_by_itself() -> None:
    view = View()
    assert reader(view, query(window=Window(50, 5, True))).total() == len(ROWS)
    assert view.asked == [("page and total", 50, 5), ("count",)]


def test_a_page_is_counted_only_when_somebody_says_so() -> None:
    view = View()
    found = reader(view, query(window=Window(0, 5)))
    found.counts_along = True
    found.read(1)
    assert found.total() == len(ROWS)
    assert view.asked == [("page and total", 0, 5)]


def test_many_requests_for_both_change_nothing_for_the_next() -> None:
    """What others have read before decides nothing."""
    for value in range(20):
        found = reader(View(), query(str(value)))
        found.total()
        found.read(10)
    view = View()
    reader(view).total()
    reader(view, query("Event")).read(10)
    assert view.asked == [("count",), ("page", 0, 10)]


# -- what others have read


def test_the_next_who_asks_the_same_reads_nothing() -> None:
    reader(View()).read(10)
    view = View()
    found = reader(view)
    found.read(10)
    assert list(found.rids) == ROWS[:10]
    assert view.asked == []
    found.read(12)
    assert view.asked == [("page", 10, 2)]


def test_a_number_of_rows_that_is_known_stays_known() -> None:
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
def test_another_state_and_another_query_are_asked_for(view: View, asked: CompiledQuery) -> None:
    reader(View()).read(10)
    reader(view, asked).read(10)
    assert view.asked == [("page", 0, 10)]


def test_who_has_changed_the_catalog_reads_for_themselves_and_leaves_nothing() -> None:
    reader(View()).read(10)
    own = View(is_committed=False)
    reader(own).read(12)
    assert own.asked == [("page", 0, 12)]
    view = View()
    reader(view).read(12)
    assert view.asked == [("page", 10, 2)]


def test_what_was_read_before_a_change_is_not_kept_as_what_comes_behind_it() -> None:
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
