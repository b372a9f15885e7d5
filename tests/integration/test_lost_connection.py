"""A connection that PostgreSQL closes during a request: Zope repeats the request, or answers 503."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from plone.dexterity.content import Item
from plone.pgcatalog.database import pool
from plone.pgcatalog.database.errors import ServiceUnavailable
from plone.pgcatalog.storage import connection
from plone.pgcatalog.unavailable import TEXT
from plone.pgcatalog.unavailable import unavailable_filter
from Products.Five.browser import BrowserView
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from tests.integration.content import create
from tests.integration.publishing import handlers
from tests.integration.storage import backend
from tests.integration.storage import clear_storage_cache
from tests.integration.storage import terminate
from tests.integration.web import application
from tests.integration.web import MANAGER
from tests.integration.web import Site
from tests.integration.web import Web
from transaction.interfaces import TransientError
from types import SimpleNamespace
from typing import Any
from zope.component import getGlobalSiteManager
from zope.event import notify
from zope.interface import Interface
from ZPublisher.pubevents import PubSuccess

import logging
import psycopg
import pytest
import subprocess
import sys
import threading
import transaction


def lose(connection: psycopg.Connection[Any]) -> None:
    terminate(connection.info.dsn, connection.info.backend_pid)


@contextmanager
def cut(web: Web, times: int) -> Iterator[list[int]]:
    """Let the next *times* requests lose their connections; yield a list of the server's processes that were ended."""
    pids: list[int] = []

    def handler(event: Any) -> None:
        if len(pids) < times:
            pids.append(backend(event.request["PARENTS"][-1]))
            terminate(web.db.storage._dsn, pids[-1])

    with handlers(IPubAfterTraversal=handler):
        yield pids


@pytest.fixture(autouse=True)
def immediate_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Zope repeat a request at once, three times."""
    monkeypatch.setattr("ZPublisher.HTTPRequest.HTTPRequest.delay_retry", lambda self: None)
    monkeypatch.setattr("ZPublisher.HTTPRequest.HTTPRequest.retry_max_count", 3)


@pytest.fixture
def web(portal: Any) -> Web:
    """A browser on the site with a page."""
    create(portal, "Document", "page")
    transaction.commit()
    return Web(portal._p_jar.db())


def test_a_search_that_lost_its_connection_is_repeated_three_times(web: Web) -> None:
    for times, id, expected in ((1, "page", (200, 1)), (100, "other", (503, 4))):
        with cut(web, times) as pids:
            response = web.get("/plone/@search", MANAGER, accept="application/json", getId=id)
        assert (response.status, len(pids)) == expected
        if times == 1:
            assert [item["@id"].rpartition("/")[2] for item in response.json["items"]] == ["page"]


def test_an_object_that_cannot_be_loaded_answers_503(web: Web) -> None:
    for accept in ("text/html", "application/json"):
        web.db.cacheMinimize()
        with cut(web, 100):
            response = web.get("/plone/page", MANAGER, accept=accept)
        assert (response.status, response.text) == (503, f"{TEXT}\n")
        assert response.headers["Retry-After"] == "10"


@pytest.mark.parametrize(("error", "status"), [(TransientError(), 200), (psycopg.OperationalError("gone"), 503)])
def test_the_end_of_a_request_needs_no_object_of_its_closed_connection(
    web: Web, caplog: pytest.LogCaptureFixture, error: Exception, status: int
) -> None:
    """After a lost connection no object is in memory, not even the registry of the site; Zope closes, then publishes the end."""
    errors = [error]

    def fail(event: Any) -> None:
        if errors:
            raise errors.pop()

    def forget(event: Any) -> None:
        web.db.cacheMinimize()

    with handlers(IPubAfterTraversal=fail, IPubFailure=forget):
        response = web.get("/plone/@search", MANAGER, accept="application/json", getId="page")
    assert (response.status, "connection is closed" in caplog.text) == (status, False), response.text


@pytest.fixture(autouse=True)
def closed_pools() -> Any:
    yield
    pool.release_request_connection()
    pool.close_pools()


def test_connection_of_a_site_is_its_snapshot(portal: Any) -> None:
    connection = pool.get_request_connection(portal._p_jar)
    assert connection is portal._p_jar._normal_storage.pg_connection
    assert pool.get_request_connection() is connection  # the current site's


def test_thread_without_a_site_has_one_connection_until_the_end_of_a_request(zope: None, database: str) -> None:
    first = pool.get_request_connection(dsn=database)
    assert pool.get_request_connection(dsn=database) is first
    others: list[Any] = []
    thread = threading.Thread(target=lambda: others.append(pool.get_request_connection(dsn=database)))
    thread.start()
    thread.join()
    assert others[0] is not first
    before = pool.pool_for(database).get_stats()["pool_available"]
    notify(PubSuccess(SimpleNamespace(environ={}, other={})))
    assert pool.pool_for(database).get_stats()["pool_available"] == before + 1


UNCLOSED = """
from plone.pgcatalog.database.pool import get_request_connection
from plone.pgcatalog.subscribers import register_processors
from zodb_pgjsonb.storage import PGJsonbStorage
from ZODB.DB import DB
from zope.processlifetime import DatabaseOpenedWithRoot

import sys

get_request_connection(dsn=sys.argv[1])
database = DB(PGJsonbStorage(sys.argv[1]))
register_processors(DatabaseOpenedWithRoot(database))
"""


@pytest.mark.slow
def test_a_process_that_closes_nothing_ends_without_a_traceback(database: str) -> None:
    """Python 3.14 lets no pool wait for its threads at the very end."""
    command = [sys.executable, "-c", UNCLOSED, database]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_the_environment_names_the_database_and_nothing_is_written(database: str, monkeypatch: Any) -> None:
    with pytest.raises(LookupError, match="PGCATALOG_DSN"):
        pool.get_request_connection()
    monkeypatch.setenv("PGCATALOG_DSN", database)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        pool.get_request_connection().execute("CREATE TABLE t ()")


@pytest.mark.direct("a pooler leaves a client connected if its session ends between two transactions")
def test_connection_ended_by_the_server_is_replaced(database: str) -> None:
    first = pool.get_request_connection(dsn=database)
    lose(first)
    with pytest.raises(psycopg.OperationalError):
        first.execute("SELECT 1")
    assert pool.get_request_connection(dsn=database).execute("SELECT 1 AS one").fetchone() == {"one": 1}


def test_when_all_are_taken_it_waits_then_says_so(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "POOL_TIMEOUT", 0.05)
    taken = [pool.pool_for(database).getconn() for _ in range(pool.POOL_SIZE)]
    with pytest.raises(ServiceUnavailable, match="no connection") as caught:
        pool.get_request_connection(dsn=database)
    assert isinstance(caught.value, TransientError)
    pool.pool_for(database).putconn(taken.pop())
    assert pool.get_request_connection(dsn=database).execute("SELECT 1 AS one").fetchone() == {"one": 1}
    for each in taken:
        pool.pool_for(database).putconn(each)


def test_a_server_that_cannot_be_reached(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "POOL_TIMEOUT", 0.05)
    with pytest.raises(ServiceUnavailable):
        pool.get_request_connection(dsn=postgres.dsn("no_such_database"))


GHOSTS = 300
#: A page of the site whose template has many objects in its variables, as a listing has its rows, when it loads one.
TEMPLATE = """\
<tal:page define="{ghosts}"><html metal:use-macro="context/main_template/macros/master"><body>
<metal:main fill-slot="content-core" tal:define="broken view/break_connection"><p tal:content="v0/title">Title</p>
</metal:main></body></html></tal:page>
"""
MOST_LOGGED = 100_000


class Log(logging.Handler):
    """Collects an event log in ``text``; ``nested`` has the records logged during formatting, a possible recursion."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.nested: list[str] = []
        self._is_at_it = False

    def emit(self, record: logging.LogRecord) -> None:
        if self._is_at_it:
            self.nested.append(record.getMessage())
            return
        self._is_at_it = True
        self.text += f"{self.format(record)}\n"
        self._is_at_it = False


@pytest.fixture
def log() -> Iterator[Log]:
    """The log of the process, in place of pytest's own handlers, which would continue to format."""
    log, root = Log(), logging.getLogger()
    root.handlers, former = [log], root.handlers
    yield log
    root.handlers = former


def spoil(connection: psycopg.Connection[Any]) -> None:
    """Run a failing statement without a rollback."""
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("SELECT 1 / 0")


class Listing(BrowserView):
    """A listing of a folder; it breaks its connection in each of the ways in ``breaks``, one per request."""

    __roles__ = None
    breaks: list[Callable[[psycopg.Connection[Any]], None]]
    index: Any

    def __call__(self) -> Any:
        self.ghosts = list(self.context.folder.objectValues())
        return self.index()

    def break_connection(self) -> None:
        clear_storage_cache(self.context._p_jar)
        for ghost in self.ghosts:
            ghost._p_deactivate()
        if self.breaks:
            self.breaks.pop()(connection(self.context._p_jar))


def fill(portal: Any) -> None:
    folder = create(portal, "Folder", "folder")
    for number in range(GHOSTS):
        folder._setOb(f"item{number:03}", Item(f"item{number:03}", title=f"Item {number}"))


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[Listing]]:
    """The page ``@@listing``."""
    file = tmp_path_factory.mktemp("listing") / "listing.pt"
    file.write_text(TEMPLATE.format(ghosts="; ".join(f"v{n} python:view.ghosts[{n}]" for n in range(GHOSTS))))
    page = type("Page", (Listing,), {"breaks": [], "index": ViewPageTemplateFile(str(file))})
    getGlobalSiteManager().registerAdapter(page, (Interface, Interface), Interface, name="listing")
    yield page
    getGlobalSiteManager().unregisterAdapter(page, (Interface, Interface), Interface, name="listing")


SHARED = fill


@pytest.fixture(scope="module")
def listing_web(shared_site: Site) -> Web:
    """A browser on the site."""
    return Web(shared_site.db, unavailable_filter(application(shared_site.db)))


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("way", [lose, pytest.param(spoil, marks=pytest.mark.slow)])
@pytest.mark.direct("a pooler gives a session another number than the server")
def test_a_page_whose_connection_breaks_in_its_template(
    listing_web: Web, listing: type[Listing], log: Log, way: Any, times: int
) -> None:
    assert listing_web.open("/plone/@@listing").status == 200
    log.text = ""
    listing.breaks[:] = [way] * times
    response = listing_web.open("/plone/@@listing")
    assert log.nested == []
    assert len(log.text) <= MOST_LOGGED, log.text[:MOST_LOGGED]
    assert (response.status, listing.breaks) == (200 if times < 4 else 503, [])
    assert times < 4 or response.text == f"{TEXT}\n"
    assert listing_web.open("/plone/@@listing").status == 200
