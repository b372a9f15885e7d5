"""A connection that PostgreSQL closes in the middle of a request: Zope repeats the request, or answers 503."""

from collections.abc import Callable
from collections.abc import Iterator
from plone.pgcatalog.database.errors import ServiceUnavailable
from plone.pgcatalog.unavailable import make_filter
from plone.pgcatalog.unavailable import TEXT
from tests.integration.content import create
from tests.integration.faults import backend
from tests.integration.faults import terminate
from tests.integration.web import Web
from transaction.interfaces import TransientError
from typing import Any
from zope.component import getGlobalSiteManager
from ZPublisher.interfaces import IPubAfterTraversal

import psycopg
import psycopg_pool
import pytest
import transaction


@pytest.fixture
def cut(dsn: str) -> Iterator[Callable[[Any, int], list[int]]]:
    """Call it with an event and a number: so many requests lose their connection at that event."""
    handlers: list[tuple[Any, Any]] = []

    def cut(interface: Any, times: int) -> list[int]:
        pids: list[int] = []

        def handler(event: Any) -> None:
            if len(pids) < times:
                root = event.request["PARENTS"][-1]
                pids.append(backend(root))
                terminate(dsn, pids[-1])

        handlers.append((handler, interface))
        getGlobalSiteManager().registerHandler(handler, [interface])
        return pids

    yield cut
    for handler, interface in handlers:
        getGlobalSiteManager().unregisterHandler(handler, [interface])


@pytest.fixture
def web(portal: Any, monkeypatch: pytest.MonkeyPatch) -> Web:
    """A browser on the site with a page; Zope repeats at once."""
    monkeypatch.setattr("ZPublisher.HTTPRequest.HTTPRequest.delay_retry", lambda self: None)
    monkeypatch.setattr("ZPublisher.HTTPRequest.HTTPRequest.retry_max_count", 3)
    create(portal, "Document", "page")
    transaction.commit()
    return Web(portal._p_jar.db())


def test_a_search_without_connection_is_a_retryable_error(portal: Any, dsn: str) -> None:
    # What a search loads is in the ZODB cache now: the next one only needs the catalog.
    list(portal.portal_catalog.unrestrictedSearchResults(getId="first"))
    terminate(dsn, backend(portal))
    with pytest.raises(ServiceUnavailable) as caught:
        list(portal.portal_catalog.unrestrictedSearchResults(getId="second"))
    assert isinstance(caught.value, psycopg.OperationalError)
    assert isinstance(caught.value, TransientError)


def test_another_error_of_the_database_is_not(portal: Any) -> None:
    view = portal.portal_catalog._catalog.view()
    with pytest.raises(psycopg.errors.QueryCanceled) as caught:
        view.session.run("SET LOCAL statement_timeout = '20ms'; SELECT pg_sleep(5)")
    assert not isinstance(caught.value, TransientError)


def test_a_search_that_lost_its_connection_is_repeated(web: Web, cut: Any) -> None:
    pids = cut(IPubAfterTraversal, 1)
    response = web.get("/plone/@search", "admin:secret", accept="application/json", getId="page")
    assert (response.status, len(pids)) == (200, 1)
    assert [item["@id"].rpartition("/")[2] for item in response.json["items"]] == ["page"]


def test_a_site_without_database_answers_503(web: Web, cut: Any) -> None:
    pids = cut(IPubAfterTraversal, 100)
    response = web.get("/plone/@search", "admin:secret", accept="application/json", getId="page")
    assert (response.status, len(pids)) == (503, 4)


def test_an_object_that_cannot_be_loaded_answers_503(web: Web, cut: Any) -> None:
    cut(IPubAfterTraversal, 100)
    for accept in ("text/html", "application/json"):
        web.db.cacheMinimize()
        response = web.get("/plone/page", "admin:secret", accept=accept)
        assert (response.status, response.text) == (503, f"{TEXT}\n")
        assert response.headers["Retry-After"] == "10"


def test_a_request_that_cannot_begin_answers_503() -> None:
    def application(environ: Any, start_response: Any) -> Any:
        raise psycopg_pool.PoolTimeout("no connection")

    answers: list[Any] = []
    body = make_filter({})(application)({"REQUEST_METHOD": "GET"}, lambda *answer: answers.append(answer))
    assert b"".join(body).decode() == f"{TEXT}\n"
    ((status, headers),) = answers
    assert status == "503 Service Unavailable"
    assert dict(headers)["Retry-After"] == "10"
