"""What counts as the same answer before and after a migration."""

from plone.pgcatalog.migration.compare import Answer
from plone.pgcatalog.migration.compare import compare
from plone.pgcatalog.migration.compare import SiteQuery

import pytest


def verdict(before: str, after: str, keys: dict[str, int], sort_on: str | None = "modified") -> str:
    """Return the verdict on two answers, each written as the letters of its paths."""
    query = SiteQuery("listing", "/site", {"sort_on": sort_on} if sort_on else {})
    one, other = (Answer(list(paths), [], keys, 1.0, 1.0) for paths in (before, after))
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
        ("xab", "axb", "order"),  # x has no value to be sorted by
        ("", "", "same"),
    ],
)
def test_sorted_answers(before: str, after: str, expected: str) -> None:
    assert verdict(before, after, KEYS) == expected


def test_without_a_sort_the_order_is_nobodys() -> None:
    assert verdict("abc", "cba", {}, sort_on=None) == "same"


def test_what_a_visitor_sees_counts() -> None:
    query = SiteQuery("listing", "/site", {})
    found = compare(query, Answer(["a", "b"], ["a"], {}, 1.0, 1.0), Answer(["a", "b"], ["a", "b"], {}, 2.0, 2.0))
    assert (found.verdict, found.missing, found.additional) == ("different", [], ["b"])
    assert not found.is_fine


def test_a_rehearsal_ends_with_one_sentence() -> None:
    from plone.pgcatalog.cli.set_up import verdict as sentence

    query = SiteQuery("listing", "/site", {})
    same = compare(query, Answer(["a"], [], {}, 3.0, 3.0), Answer(["a"], [], {}, 2.0, 0.1))
    other = compare(query, Answer(["a"], [], {}, 1.0, 1.0), Answer(["b"], [], {}, 4.0, 0.1))
    assert sentence([same]) == (
        "All 1 answers are the same, and without the cache PostgreSQL is 1.5 times as fast as Plone's own catalog,"
        " with the cache 30.0 times as fast as it."
    )
    assert sentence([same, other]) == (
        "1 of 2 answers differ, and without the cache PostgreSQL is 1.5 times slower than Plone's own catalog,"
        " with the cache 20.0 times as fast as it."
    )
    assert sentence([]) == "All 0 answers are the same."
