"""A result reads only requested rows, none twice, and caches them for the next search; answers are merged."""

from array import array
from collections.abc import Iterator
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.indexes.base import NOTHING
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.results.answer import Answer
from plone.pgcatalog.results.answer import NOTHING_MATCHES
from plone.pgcatalog.results.answer import UNKNOWN
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.cache import Stamp
from plone.pgcatalog.results.loader import RowLoader
from plone.pgcatalog.results.reader import Reader
from plone.pgcatalog.results.view import Fetch
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.predicate import equals
from types import SimpleNamespace
from typing import Any

import pytest


ROWS = list(range(100, 123))
#: Calls of a reader: for all rows, and for their number.
ALL, COUNT = Reader.read, Reader.total


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


# -- only requested rows are read, and data that is read together

NUMBER = len(ROWS)
COUNTED = Window(5, 10, True)
BOTH = "page and total"
#: Case -> window; calls, each a number of rows to read or a method of the reader; messages; rows, whether all, their number.
READS: dict[str, tuple[Window, list[Any], list[Any], list[int], bool, int | None]] = {
    "nothing is read before it is needed": (Window(), [], [], [], False, None),
    "next rows": (Window(), [10, 7, 20], [("page", 0, 10), ("page", 10, 10)], ROWS[:20], False, None),
    "last page": (Window(), [20, 30, 50, ALL], [("page", 0, 20), ("page", 20, 10)], ROWS, True, NUMBER),
    "all rows are record ids only": (Window(), [ALL, ALL], [("rids",)], ROWS, True, NUMBER),
    "count is read once, without rows": (Window(), [COUNT, COUNT], [("count",)], [], False, NUMBER),
    "count, then rows": (Window(), [COUNT, 5, COUNT], [("count",), ("page", 0, 5)], ROWS[:5], False, NUMBER),
    "window is read at once": (Window(0, 5), [1], [("page", 0, 5)], ROWS[:5], True, None),
    "last window has the count": (Window(20, 5), [1], [("page", 20, 5)], ROWS[20:], True, NUMBER),
    "after the last row": (Window(50, 5), [1], [("page", 50, 5)], [], True, None),
    "window without room is not read": (Window(3, 0), [1], [], [], True, None),
    "read of a page counts nothing": (COUNTED, [1], [("page", 5, 10)], ROWS[5:15], True, None),
    "count fetches the page": (COUNTED, [COUNT, 1], [(BOTH, 5, 10)], ROWS[5:15], True, NUMBER),
    "length fetches it": (COUNTED, [Reader.length], [(BOTH, 5, 10)], ROWS[5:15], True, NUMBER),
    "count of a slice fetches no rows": (Window(0, 10), [COUNT], [("count",)], [], False, NUMBER),
    "page without room is counted": (Window(0, 0, True), [COUNT], [("count",)], [], True, NUMBER),
    "count after the last row": (Window(50, 5, True), [COUNT], [(BOTH, 50, 5), ("count",)], [], True, NUMBER),
}


@pytest.mark.parametrize(("window", "calls", "asked", "rows", "whole", "total"), READS.values(), ids=READS)
def test_result_reads_requested_data_once(
    window: Window, calls: list[Any], asked: list[Any], rows: list[int], whole: bool, total: int | None
) -> None:
    view = View()
    found = reader(view, query(window=window))
    for call in calls:
        found.read(call) if isinstance(call, int) else call(found)
    assert view.asked == asked
    assert (list(found.rids), found.answer.whole, found.answer.total) == (rows, whole, total)
    assert found.total() == len(ROWS)


def test_paths_and_scores_are_read_with_all_rows_on_request() -> None:
    for with_paths, score in ((True, None), (False, Fragment("1.5"))):
        view = View()
        found = reader(view, query(score=score))
        found.read(with_paths=with_paths)
        assert list(found.rids) == ROWS
        assert found.answer.scores == ((1.5,) * len(ROWS) if score else ())
        assert view.asked == [("page", 0, None)]
        result_cache().clear()


def test_count_reported_by_a_page_is_not_read() -> None:
    view = View()
    view.told = len(ROWS)
    found = reader(view)
    found.read(5)
    assert (found.total(), found.answer.whole) == (len(ROWS), False)
    assert view.asked == [("page", 0, 5)]


def test_impossible_query_is_never_sent() -> None:
    view = View()
    found = reader(view, CompiledQuery(NOTHING, (OLDEST_FIRST,), None, Window()))
    found.read(10)
    found.read()
    assert (list(found.rids), found.answer.whole, found.total()) == ([], True, 0)
    assert view.asked == []


def test_count_in_an_open_batch_fetches_the_first_rows() -> None:
    view = View(is_batching=True)
    found = reader(view)
    assert found.total() == len(ROWS)
    found.read(20)
    assert view.asked == [("page and total", 0, 50)]


def test_page_is_counted_only_on_request() -> None:
    view = View()
    found = reader(view, query(window=Window(0, 5)))
    found.counts_with_page = True
    found.read(1)
    assert found.total() == NUMBER
    assert view.asked == [(BOTH, 0, 5)]


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


def test_answer_is_cached_for_other_results_of_the_same_state() -> None:
    reader(View()).read(10)
    view = View()
    found = reader(view)
    found.read(12)
    assert (list(found.rids), view.asked) == (ROWS[:12], [("page", 10, 2)])
    for view, asked in ((View(generation=2), query()), (View(), query("Event")), (View(is_committed=False), query())):
        reader(view, asked).read(10)
        assert view.asked == [("page", 0, 10)]


# -- sizes and copies


def test_more_rows_and_scores_take_more_bytes() -> None:
    sizes = [Answer(), Answer((1,)), Answer((1,), (0.5,)), Answer((1, 2, 3), (0.5, 0.5, 0.5))]
    assert sorted(sizes, key=lambda answer: answer.bytes) == sizes
    assert len({answer.bytes for answer in sizes}) == len(sizes)


# -- answers: pages combined, counts, and the merge of two answers


def ranked(window: Window | None = None, limit: int | None = None, score: Fragment | None = None) -> CompiledQuery:
    return CompiledQuery(EVERYTHING, (OLDEST_FIRST,), score, window or Window(), count_limit=limit)


def rows(*ids: int) -> list[tuple[int, str, float | None]]:
    return [(number, f"/plone/{number}", None) for number in ids]


def test_page_knows_the_end_and_the_number_of_rows() -> None:
    assert [UNKNOWN.with_page(ranked(), rows(1, 2), 2, total=total).whole for total in (2, 3)] == [True, False]
    # Without rows only a page from the first row on.
    assert [UNKNOWN.with_page(ranked(Window(start, 2)), [], 2).total for start in (4, 0)] == [None, 0]


def test_scores_are_those_of_a_ranked_query() -> None:
    found = [(1, "/plone/1", 0.5), (2, "/plone/2", None)]
    assert UNKNOWN.with_page(ranked(score=Fragment("1")), found, 5).scores == (0.5, 0.0)
    assert UNKNOWN.with_page(ranked(), found, 5).scores == ()


@pytest.mark.parametrize(("counted", "total", "exceeds"), [(9, 9, False), (10, 10, False), (11, None, True)])
def test_counting_ends_after_a_limit(counted: int, total: int | None, exceeds: bool) -> None:
    for answer in (
        UNKNOWN.with_count(counted, 10),
        UNKNOWN.with_page(ranked(Window(0, 1), limit=10), rows(1), 1, counted),
    ):
        assert (answer.total, answer.exceeds(10)) == (total, exceeds)
        assert not answer.exceeds(None)
        assert not answer.exceeds(11)


def test_merged_answer_has_the_data_of_both() -> None:
    few, many = Answer((1,), total=3), Answer((1, 2))
    for merged in (few.merged(many), many.merged(few)):
        assert (merged.ids, merged.total) == ((1, 2), 3)
    newer = Answer((1,), total=4)
    assert few.merged(newer) == newer


def test_query_without_hits_has_a_complete_answer() -> None:
    assert (NOTHING_MATCHES.whole, NOTHING_MATCHES.total, list(NOTHING_MATCHES.ids)) == (True, 0, [])
