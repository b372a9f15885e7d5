"""Reads in a batch are sent in one message: they save round trips, and do no harm."""

from contextlib import suppress
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.view import RowsFetch
from plone.pgcatalog.sql.expression import Statement
from tests.integration.content import create
from tests.integration.traffic import traced
from typing import Any

import psycopg
import pytest
import transaction


def fill(portal: Any) -> None:
    create(portal, "Document", "page", title="A page")


SHARED = fill


@pytest.fixture
def pages(shared_filled: Any) -> Any:
    """The site, whose page is not cached in this transaction."""
    assert len(shared_filled.portal_catalog.unrestrictedSearchResults(getId="nothing")) == 0
    result_cache().clear()
    return shared_filled


def read(portal: Any, sql: str, seconds: float | None = None) -> RowsFetch:
    return portal.portal_catalog._core.search_view().fetch(lambda _: Statement(sql), seconds=seconds)


def page(portal: Any) -> list[str]:
    return [brain.getId for brain in portal.portal_catalog.unrestrictedSearchResults(getId="page")[:5]]


def batch(portal: Any) -> Any:
    return portal.portal_catalog._core.session.batch()


def test_a_batch_takes_one_message(pages: Any) -> None:
    with traced(pages) as traffic, batch(pages):
        first, second = read(pages, "SELECT 1"), read(pages, "SELECT 2", 5.0)
        assert page(pages) == ["page"]
        assert (first.value(), second.value()) == ([(1,)], [(2,)])
    assert traffic[0].round_trips == 1, traffic[0].statements


def test_end_of_a_batch_sends_unread_fetches(pages: Any) -> None:
    with traced(pages) as traffic:
        with batch(pages):
            first, second = read(pages, "SELECT 1"), read(pages, "SELECT 2")
        assert (first.answer, second.answer) == ([(1,)], [(2,)])
    assert traffic[0].round_trips == 1, traffic[0].statements


def test_a_batch_in_a_batch_is_part_of_it(pages: Any) -> None:
    with traced(pages) as traffic, batch(pages):
        with batch(pages):
            first = read(pages, "SELECT 1")
        assert first.answer is None
        assert (page(pages), first.answer) == (["page"], [(1,)])
    assert traffic[0].round_trips == 1, traffic[0].statements


def test_reads_without_a_batch_are_sent_alone(pages: Any) -> None:
    first = read(pages, "SELECT 1")
    with traced(pages) as traffic:
        assert page(pages) == ["page"]
        assert first.value() == [(1,)]
    assert traffic[0].round_trips == 2, traffic[0].statements
    assert len(traffic[0].matching("SELECT 1")) == 1


@pytest.mark.parametrize("is_sent_by_a_search", [True, False])
def test_failing_fetch_raises_when_its_result_is_read(pages: Any, is_sent_by_a_search: bool) -> None:
    with batch(pages):
        wrong, right = read(pages, "SELECT 1 / 0"), read(pages, "SELECT 2")
        assert not is_sent_by_a_search or page(pages) == ["page"]
    with pytest.raises(psycopg.errors.DivisionByZero):
        wrong.value()
    assert right.value() == [(2,)]
    assert len(pages.portal_catalog.unrestrictedSearchResults(getId="nowhere")) == 0


def test_timed_out_fetch_is_not_repeated(pages: Any) -> None:
    with traced(pages) as traffic:
        with batch(pages):
            slow = read(pages, "SELECT pg_sleep(10)", 0.05)
            assert page(pages) == ["page"]
        with pytest.raises(SearchTimeout):
            slow.value()
    assert len(traffic[0].matching("pg_sleep")) == 1


def test_an_error_inside_ends_the_batch(pages: Any) -> None:
    with suppress(psycopg.errors.DivisionByZero), batch(pages):
        first = read(pages, "SELECT 1")
        pages.portal_catalog._core.view().select("1 / 0").value()
        raise AssertionError("no error")
    assert not pages.portal_catalog._core.session.collected.is_open
    assert first.value() == [(1,)]


def test_reads_with_pending_changes_are_sent_alone(pages: Any) -> None:
    create(pages, "Document", "pending")
    with batch(pages):
        first = read(pages, "SELECT 1")
        assert page(pages) == ["page"]
        assert first.answer is None
    assert first.value() == [(1,)]


def test_unread_fetch_ends_with_its_transaction(pages: Any) -> None:
    with batch(pages):
        read(pages, "SELECT 'former'")
        transaction.commit()
        transaction.begin()
        with traced(pages) as traffic:
            assert page(pages) == ["page"]
    assert traffic[0].matching("former") == []
