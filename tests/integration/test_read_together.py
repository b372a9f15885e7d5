"""A count and the first rows of a search are read in one statement if both are certainly needed."""

from collections.abc import Callable
from contextlib import nullcontext
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


def count_then_iterate(results: Any) -> tuple[Any, ...]:
    return len(results), results.actual_result_count, [brain.getPath() for brain in results]


def count_then_read_by_place(results: Any) -> tuple[Any, ...]:
    """Read *results* as batches of plone.restapi do."""
    total = len(results)
    return total, results.actual_result_count, [results[number].getPath() for number in range(min(10, total))]


CONTENT = SHARED = make_pages


def answered(portal: Any, query: dict[str, Any], ask: Ask, batch: bool = False) -> tuple[tuple[Any, ...], list[str]]:
    """Return the answer, and its statements with rows."""
    result_cache().clear(HITS)
    session = portal.portal_catalog._core.session
    with traced(portal) as traffic, session.batch() if batch else nullcontext():
        found = ask(portal.portal_catalog.unrestrictedSearchResults(**query))
    return found, traffic[0].matching('FROM "pgcatalog_')


def total_then_read(results: Any) -> tuple[Any, ...]:
    """Read *results* as batches of Plone do."""
    total = results.actual_result_count
    return total, [results[number].getPath() for number in range(min(10, len(results)))]


@pytest.mark.parametrize("name", PAGE_QUERIES)
@pytest.mark.parametrize("ask", [count_then_read, count_then_iterate, count_then_read_by_place, total_then_read])
def test_a_batch_takes_one_statement_and_answers_the_same(shared_filled: Any, name: str, ask: Ask) -> None:
    alone, _ = answered(shared_filled, PAGE_QUERIES[name], ask)
    together, statements = answered(shared_filled, PAGE_QUERIES[name], ask, batch=True)
    assert together == alone
    assert len(statements) == 1


@pytest.mark.parametrize("name", PAGE_QUERIES)
def test_pending_rows_are_counted_and_read(filled: Any, name: str) -> None:
    before, _ = answered(filled, PAGE_QUERIES[name], total_then_read)
    filled.manage_delObjects(["page07"])
    pending, _ = answered(filled, PAGE_QUERIES[name], total_then_read)
    transaction.savepoint()
    transaction.commit()
    transaction.begin()
    saved, _ = answered(filled, PAGE_QUERIES[name], total_then_read, batch=True)
    assert pending == saved
    assert name == "nothing" or before[0] == saved[0] + 1
