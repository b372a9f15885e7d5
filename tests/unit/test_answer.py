"""Answers: pages combined, counts, and the merge of two answers."""

from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.compiler import Window
from plone.pgcatalog.results.answer import Answer
from plone.pgcatalog.results.answer import NOTHING_MATCHES
from plone.pgcatalog.results.answer import UNKNOWN
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Fragment

import pytest


def query(window: Window | None = None, limit: int | None = None, score: Fragment | None = None) -> CompiledQuery:
    return CompiledQuery(EVERYTHING, (OLDEST_FIRST,), score, window or Window(), count_limit=limit)


def rows(*ids: int) -> list[tuple[int, str, float | None]]:
    return [(number, f"/plone/{number}", None) for number in ids]


def test_a_page_that_reaches_the_number_of_all_rows_is_the_last() -> None:
    assert UNKNOWN.with_page(query(), rows(1, 2), 2, total=2).whole
    assert not UNKNOWN.with_page(query(), rows(1, 2), 2, total=3).whole


def test_window_without_rows_has_the_number_only_from_the_first_row_on() -> None:
    assert UNKNOWN.with_page(query(Window(4, 2)), [], 2).total is None
    assert UNKNOWN.with_page(query(Window(0, 2)), [], 2).total == 0


def test_scores_are_those_of_a_ranked_query() -> None:
    found = [(1, "/plone/1", 0.5), (2, "/plone/2", None)]
    assert UNKNOWN.with_page(query(score=Fragment("1")), found, 5).scores == (0.5, 0.0)
    assert UNKNOWN.with_page(query(), found, 5).scores == ()


@pytest.mark.parametrize(("counted", "total", "exceeds"), [(9, 9, False), (10, 10, False), (11, None, True)])
def test_counting_ends_after_a_limit(counted: int, total: int | None, exceeds: bool) -> None:
    for answer in (
        UNKNOWN.with_count(counted, 10),
        UNKNOWN.with_page(query(Window(0, 1), limit=10), rows(1), 1, counted),
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
