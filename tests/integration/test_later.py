"""Statements that go along in another one's message: they save it, and do no harm."""

from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.results.cache import result_cache
from plone.pgcatalog.results.later import Later
from plone.pgcatalog.sql.expression import Statement
from tests.integration.content import create
from tests.integration.traffic import traced
from typing import Any

import psycopg
import pytest
import transaction


@pytest.fixture
def pages(portal: Any) -> Any:
    """The site with a page that the process knows nothing of in this transaction."""
    create(portal, "Document", "page", title="A page")
    transaction.commit()
    transaction.begin()
    assert len(portal.portal_catalog.unrestrictedSearchResults(getId="nothing")) == 0
    result_cache().clear()
    return portal


def later(portal: Any, sql: str, seconds: float | None = None) -> Later:
    return Later(portal.portal_catalog._core.search_view(), lambda state: Statement(sql), seconds)


def page(portal: Any) -> list[str]:
    return [brain.getId for brain in portal.portal_catalog.unrestrictedSearchResults(getId="page")[:5]]


def test_it_takes_no_message_of_its_own(pages: Any) -> None:
    first, second = later(pages, "SELECT 1"), later(pages, "SELECT 2", 5.0)
    with traced(pages) as traffic:
        assert page(pages) == ["page"]
        assert (first.rows(), second.rows()) == ([(1,)], [(2,)])
    assert traffic[0].round_trips == 1, traffic[0].statements


def test_who_cannot_wait_asks_alone(pages: Any) -> None:
    asked = later(pages, "SELECT 1")
    with traced(pages) as traffic:
        assert asked.rows() == [(1,)]
        assert page(pages) == ["page"]
    assert traffic[0].round_trips == 2, traffic[0].statements
    assert len(traffic[0].matching("SELECT 1")) == 1


def test_one_that_fails_does_no_harm(pages: Any) -> None:
    wrong, right = later(pages, "SELECT 1 / 0"), later(pages, "SELECT 2")
    assert page(pages) == ["page"]
    assert right.rows() == [(2,)]
    with pytest.raises(psycopg.errors.DivisionByZero):
        wrong.rows()
    assert len(pages.portal_catalog.unrestrictedSearchResults(getId="nowhere")) == 0


def test_one_that_takes_too_long_is_not_tried_again(pages: Any) -> None:
    slow = later(pages, "SELECT pg_sleep(10)", 0.05)
    with traced(pages) as traffic:
        assert page(pages) == ["page"]
        with pytest.raises(SearchTimeout):
            slow.rows()
    assert len(traffic[0].matching("pg_sleep")) == 1


def test_a_page_that_fails_takes_none_along(pages: Any) -> None:
    asked = later(pages, "SELECT 1")
    with pytest.raises(psycopg.errors.DivisionByZero):
        pages.portal_catalog._core.view().select("1 / 0")
    assert asked.rows() == [(1,)]


def test_pending_changes_are_asked_for_alone(pages: Any) -> None:
    create(pages, "Document", "pending")
    asked = later(pages, "SELECT 1")
    assert page(pages) == ["page"]
    assert asked.answer is None
    assert asked.rows() == [(1,)]


def test_the_next_transaction_does_not_ask_it(pages: Any) -> None:
    later(pages, "SELECT 'former'")
    transaction.commit()
    transaction.begin()
    with traced(pages) as traffic:
        assert page(pages) == ["page"]
    assert traffic[0].matching("former") == []
