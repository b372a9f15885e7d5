"""Who counts the hits of a search and reads their first rows asks the database once, as soon as that is his habit."""

from collections.abc import Callable
from plone.pgcatalog.results.cache import HITS
from plone.pgcatalog.results.cache import result_cache
from tests.integration.pages import make_pages
from tests.integration.pages import PAGE_QUERIES
from tests.integration.traffic import traced
from typing import Any

import pytest
import transaction


Ask = Callable[[Any], tuple[Any, ...]]


def count_then_read(results: Any) -> tuple[Any, ...]:
    return len(results), results.actual_result_count, [brain.getPath() for brain in results[:10]]


def read_then_count(results: Any) -> tuple[Any, ...]:
    rows = [brain.getPath() for brain in results[:10]]
    return len(results), results.actual_result_count, rows


def count_then_iterate(results: Any) -> tuple[Any, ...]:
    return len(results), results.actual_result_count, [brain.getPath() for brain in results]


def count_then_read_by_place(results: Any) -> tuple[Any, ...]:
    """As batches of plone.restapi do."""
    total = len(results)
    return total, results.actual_result_count, [results[number].getPath() for number in range(min(10, total))]


def count_only(results: Any) -> tuple[Any, ...]:
    return (len(results),)


def read_only(results: Any) -> tuple[Any, ...]:
    return tuple(brain.getPath() for brain in results[:10])


CONTENT = make_pages


def asked(portal: Any, query: dict[str, Any], ask: Ask, times: int = 1) -> tuple[tuple[Any, ...], list[str]]:
    """Return the last of *times* answers, and the statements with rows that it took."""
    for _ in range(times):
        result_cache().clear(HITS)
        with traced(portal) as traffic:
            found = ask(portal.portal_catalog.unrestrictedSearchResults(**query))
    return found, traffic[0].matching('FROM "pgcatalog_')


@pytest.mark.parametrize("name", PAGE_QUERIES)
@pytest.mark.parametrize("ask", [count_then_read, read_then_count, count_then_iterate, count_then_read_by_place])
def test_both_take_one_statement_and_are_the_same(filled: Any, name: str, ask: Ask) -> None:
    first, _ = asked(filled, PAGE_QUERIES[name], ask)
    later, statements = asked(filled, PAGE_QUERIES[name], ask, times=4)
    assert later == first
    assert len(statements) == 1


@pytest.mark.parametrize("ask", [count_then_read, read_then_count, count_then_iterate, count_then_read_by_place])
def test_a_habit_stays(filled: Any, ask: Ask) -> None:
    asked(filled, PAGE_QUERIES["sorted"], ask, times=4)
    for _ in range(4):
        assert len(asked(filled, PAGE_QUERIES["sorted"], ask)[1]) == 1


def test_who_only_counts_gets_no_rows(filled: Any) -> None:
    asked(filled, PAGE_QUERIES["sorted"], count_then_read, times=4)
    assert "LIMIT" in asked(filled, PAGE_QUERIES["sorted"], count_only)[1][0]
    _, [statement] = asked(filled, PAGE_QUERIES["sorted"], count_only, times=6)
    assert "LIMIT" not in statement


def test_who_only_reads_does_not_have_it_counted(filled: Any) -> None:
    asked(filled, PAGE_QUERIES["sorted"], read_then_count, times=4)
    assert "count(" in asked(filled, PAGE_QUERIES["sorted"], read_only)[1][0]
    _, [statement] = asked(filled, PAGE_QUERIES["sorted"], read_only, times=6)
    assert "count(" not in statement


def test_the_habits_of_one_search_are_not_those_of_another(filled: Any) -> None:
    asked(filled, PAGE_QUERIES["sorted"], count_then_read, times=4)
    _, [statement] = asked(filled, PAGE_QUERIES["by rid"], count_only)
    assert "LIMIT" not in statement


@pytest.mark.parametrize("name", PAGE_QUERIES)
def test_what_is_pending_is_counted_and_read(filled: Any, name: str) -> None:
    asked(filled, PAGE_QUERIES[name], count_then_read, times=4)
    before, _ = asked(filled, PAGE_QUERIES[name], count_then_read)
    filled.manage_delObjects(["page07"])
    pending, _ = asked(filled, PAGE_QUERIES[name], count_then_read)
    transaction.savepoint()
    transaction.commit()
    transaction.begin()
    saved, _ = asked(filled, PAGE_QUERIES[name], count_then_read, times=4)
    assert pending == saved
    assert name == "nothing" or before[1] == saved[1] + 1


def test_a_habit_is_of_as_many_rows_as_are_wanted(filled: Any) -> None:
    """A search that has found few says nothing of how many the next one is to bring."""
    few = {"portal_type": "Document", "getId": ["page01", "page02"]}
    many = {"portal_type": "Document", "getId": [f"page{number:02}" for number in range(20)]}
    asked(filled, few, count_then_read_by_place, times=6)
    for query in (many, few, many):
        assert len(asked(filled, query, count_then_read_by_place)[1]) == 1
