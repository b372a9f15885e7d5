"""The comparison of answers before and after a migration."""

from plone.pgcatalog.cli.set_up import verdict as verdict_on
from plone.pgcatalog.migration.compare import compare
from plone.pgcatalog.migration.compare import QueryResults
from plone.pgcatalog.migration.compare import SiteQuery
from plone.pgcatalog.migration.pages import PageTimes
from plone.pgcatalog.migration.pages import times_in_turns

import pytest


def verdict_of(before: str, after: str, keys: dict[str, int], sort_on: str | None = "modified") -> str:
    """Return the verdict on two answers, each written as the letters of its paths."""
    query = SiteQuery("listing", "/site", {"sort_on": sort_on} if sort_on else {})
    one, other = (QueryResults(list(paths), [], keys, 1.0, 1.0) for paths in (before, after))
    return compare(query, one, other).verdict


KEYS = {"a": 1, "b": 1, "c": 2}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("abc", "abc", "same"),
        ("abc", "bac", "ties"),
        ("abc", "acb", "order"),
        ("abc", "ab", "different"),
        ("ab", "abc", "different"),
        ("xab", "axb", "order"),  # x has no sort value
        ("", "", "same"),
    ],
)
def test_sorted_answers_differ_by_more_than_ties(before: str, after: str, expected: str) -> None:
    assert verdict_of(before, after, KEYS) == expected
    # Without a sort the order is undefined.
    assert verdict_of(before, before[::-1], {}, sort_on=None) == "same"


def results(*paths: str, visible: tuple[str, ...] = (), ms: float = 1.0) -> QueryResults:
    return QueryResults(list(paths), list(visible), {}, ms, ms)


LISTING = SiteQuery("listing", "/site", {})


def test_differences_visible_to_visitors_count() -> None:
    found = compare(LISTING, results("a", "b", visible=("a",)), results("a", "b", visible=("a", "b")))
    assert (found.verdict, found.missing, found.additional) == ("different", [], ["b"])
    assert not found.is_fine


def test_rehearsal_judges_pages_and_not_the_sum_of_their_queries() -> None:
    slower, other = (compare(LISTING, results("a"), after) for after in (results("a", ms=3.5), results("b", ms=4.0)))
    pages = [PageTimes("/site", 50.0, 40.0), PageTimes("/site/a", 50.0, 39.0)]
    assert verdict_on([slower], pages) == (
        "All 1 results are the same.\nA page takes 39.5 ms, with Plone's own catalog 50.0 ms: 0.79 of the time"
        " (pages: 2, with their caches, both catalogs in turns)."
    )
    assert verdict_on([slower, other], []) == (
        "1 of 2 results differ.\nNo page of the site can be visited, so no times are compared."
    )


def test_catalogs_take_turns_at_being_first() -> None:
    order: list[str] = []
    times_in_turns([lambda: order.append("a"), lambda: order.append("b")], 3)
    assert "".join(order) == "ab" + "ba" + "ab" + "ba"
