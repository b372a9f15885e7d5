"""A result reads no more rows than somebody wants, none twice, and leaves what it has read for the next who asks."""

from array import array
from collections.abc import Iterator
from collections.abc import Sequence
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.results.hits import Finder
from plone.pgcatalog.results.hits import Hits
from plone.pgcatalog.results.hits import unsorted
from plone.pgcatalog.results.rows import RowLoader
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

    def __init__(self, generation: int = 1, is_committed: bool = True) -> None:
        self.generation = generation
        self.is_committed = is_committed
        self.asked: list[tuple[Any, ...]] = []
        #: the number of rows that a page tells
        self.told: int | None = None
        self.session = SimpleNamespace(
            knows_states=lambda: True, generations=Generations(), history=SimpleNamespace(number=None)
        )

    def stamp(self) -> Stamp | None:
        return Stamp(1, self.zoid, "relation", self.generation, 1) if self.is_committed else None

    def is_current(self, stamp: Stamp | None) -> bool:
        return stamp == self.stamp()

    def page(self, query: CompiledQuery, start: int, size: int | None, *more: Any) -> list[Any]:
        self.asked.append(("page", start, size))
        end = None if size is None else start + size
        return [(rid, f"/plone/{rid}", 1.5 if query.score else None) for rid in ROWS[start:end]]

    def page_and_total(self, *asked: Any, with_total: bool) -> tuple[list[Any], int | None]:
        return self.page(*asked), len(ROWS) if with_total else self.told

    def rids(self, query: CompiledQuery) -> array[int]:
        self.asked.append(("rids",))
        return array("q", ROWS)

    def count(self, query: CompiledQuery) -> int:
        self.asked.append(("count",))
        return len(ROWS)


@pytest.fixture(autouse=True)
def nothing_is_known() -> Iterator[None]:
    result_cache().clear()
    yield
    result_cache().clear()


def query(value: str = "Document", score: Fragment | None = None, window: Window | None = None) -> CompiledQuery:
    where = equals(Column("portal_type", "text"), value)
    return CompiledQuery(where, (Order('"get_id"'), OLDEST_FIRST), score, window or Window())


def finder(view: View, asked: CompiledQuery | None = None) -> Finder:
    return Finder(view, asked or query(), RowLoader(view, array("q")))  # type: ignore[arg-type]


def rids(found: Finder) -> Sequence[int]:
    return list(found.hits.rids)


# -- as much as is wanted


def test_nothing_is_asked_before_somebody_wants_to_know() -> None:
    view = View()
    assert finder(view).is_open
    assert view.asked == []


def test_the_first_rows_are_read_by_themselves_and_the_next_behind_them() -> None:
    view = View()
    found = finder(view)
    found.first(10, True)
    assert rids(found) == ROWS[:10]
    found.first(7, True)
    found.first(20, True)
    assert rids(found) == ROWS[:20]
    assert view.asked == [("page", 0, 10), ("page", 10, 10)]
    assert (found.is_open, found.hits.total) == (True, None)


def test_a_page_that_is_not_full_is_the_last_and_tells_how_many_there_are() -> None:
    view = View()
    found = finder(view)
    found.first(20, True)
    found.first(30, True)
    assert (rids(found), found.is_open, found.total()) == (ROWS, False, len(ROWS))
    found.first(50, True)
    found.rest()
    assert view.asked == [("page", 0, 20), ("page", 20, 10)]


def test_all_rows_are_read_as_record_ids_only() -> None:
    view = View()
    found = finder(view)
    found.rest()
    found.rest()
    assert (rids(found), found.is_open, found.total()) == (ROWS, False, len(ROWS))
    assert view.asked == [("rids",)]


def test_paths_and_scores_come_with_all_rows_when_they_are_wanted() -> None:
    for with_paths, score in ((True, None), (False, Fragment("1.5"))):
        view = View()
        found = finder(view, query(score=score))
        found.rest(with_paths)
        assert rids(found) == ROWS
        assert found.hits.scores == ((1.5,) * len(ROWS) if score else ())
        assert view.asked == [("page", 0, None)]
        result_cache().clear()


def test_the_number_of_rows_is_counted_once_and_brings_none() -> None:
    view = View()
    found = finder(view)
    assert [found.total(), found.total()] == [len(ROWS)] * 2
    assert (rids(found), found.is_open) == ([], True)
    assert view.asked == [("count",)]
    found.first(5, True)
    assert found.total() == len(ROWS)
    assert len(view.asked) == 2


def test_the_number_of_rows_that_a_page_tells_is_not_asked_for() -> None:
    view = View()
    view.told = len(ROWS)
    found = finder(view)
    found.first(5, True)
    assert (found.total(), found.is_open) == (len(ROWS), True)
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
    found = finder(view, query(window=window))
    found.first(1, True)
    assert (rids(found), found.is_open, found.hits.total) == (expected, False, total)
    assert view.asked == ([("page", window.start, window.size)] if window.size else [])
    assert found.total() == len(ROWS)


def test_what_can_find_nothing_is_never_asked() -> None:
    view = View()
    found = finder(view, CompiledQuery(NOTHING, (OLDEST_FIRST,), None, Window()))
    found.first(10, True)
    found.rest()
    assert (rids(found), found.is_open, found.total()) == ([], False, 0)
    assert view.asked == []


# -- what others have read


def test_the_next_who_asks_the_same_reads_nothing() -> None:
    finder(View()).first(10, True)
    view = View()
    found = finder(view)
    found.first(10, True)
    assert rids(found) == ROWS[:10]
    assert view.asked == []
    found.first(12, True)
    assert view.asked == [("page", 10, 2)]


def test_a_number_of_rows_that_is_known_stays_known() -> None:
    finder(View()).total()
    finder(View()).first(10, True)
    view = View()
    found = finder(view)
    found.first(10, True)
    assert found.total() == len(ROWS)
    assert view.asked == []


@pytest.mark.parametrize(
    ("view", "asked"), [(View(generation=2), query()), (View(), query("Event")), (View(), query(window=Window(0, 10)))]
)
def test_another_state_and_another_query_are_asked_for(view: View, asked: CompiledQuery) -> None:
    finder(View()).first(10, True)
    finder(view, asked).first(10, True)
    assert view.asked == [("page", 0, 10)]


def test_who_has_changed_the_catalog_reads_for_themselves_and_leaves_nothing() -> None:
    finder(View()).first(10, True)
    own = View(is_committed=False)
    finder(own).first(12, True)
    assert own.asked == [("page", 0, 12)]
    view = View()
    finder(view).first(12, True)
    assert view.asked == [("page", 10, 2)]


def test_what_was_read_before_a_change_is_not_kept_as_what_comes_behind_it() -> None:
    view = View()
    found = finder(view)
    found.first(5, True)
    view.generation = 2
    found.first(10, True)
    later = View(generation=2)
    finder(later).first(5, True)
    assert later.asked == [("page", 0, 5)]


# -- sizes and copies


def test_more_rows_and_scores_take_more_bytes() -> None:
    sizes = [Hits(), Hits((1,)), Hits((1,), (0.5,)), Hits((1, 2, 3), (0.5, 0.5, 0.5))]
    assert sorted(sizes, key=lambda hits: hits.bytes) == sizes
    assert len({hits.bytes for hits in sizes}) == len(sizes)


def test_python_sorts_and_cuts_all_rows_of_the_same_condition() -> None:
    asked = CompiledQuery(query().where, (OLDEST_FIRST,), None, Window(-3, 2), (("position", True),), 1)
    plain = unsorted(asked)
    assert (plain.python_sort, plain.window, plain.where) == ((), Window(), asked.where)
