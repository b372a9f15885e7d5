"""Reads after the end of a request, the state of its connection, and its number of messages."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from plone.subrequest import subrequest
from tests.integration import site as sites
from tests.integration.publishing import fill_with_rare_words
from tests.integration.publishing import front_page
from tests.integration.publishing import handlers
from tests.integration.publishing import portal_of
from tests.integration.publishing import save
from tests.integration.publishing import titles
from tests.integration.readers import reading
from tests.integration.storage import backend
from tests.integration.storage import terminate
from tests.integration.traffic import traced_connection
from tests.integration.uploads import upload
from tests.integration.waiting import background_ended
from tests.integration.web import application
from tests.integration.web import MANAGER
from tests.integration.web import Site
from tests.integration.web import Web
from transaction import TransactionManager
from typing import Any
from ZODB.POSException import ConflictError

import psycopg
import pytest
import threading
import transaction


_words = count()


class Failed(Exception):
    """Raised to end a request."""


def fill(portal: Any) -> None:
    fill_with_rare_words(portal)
    upload(portal, "download", b"%PDF-" + b"page" * 100_000)


SHARED = fill


@pytest.fixture(scope="module")
def other(shared_site: Site) -> Iterator[Any]:
    """The ZODB.DB of another process on the same site."""
    with sites.opened(shared_site.dsn) as db:
        yield db


@pytest.fixture(scope="module")
def web(shared_site: Site) -> Web:
    web = Web(shared_site.db, application(shared_site.db))
    # The first visit of a page may store.
    front_page(web)
    return web


@pytest.fixture
def save_elsewhere(other: Any) -> Callable[[], None]:
    """Return a function that saves ``rare19`` in the other process, in another transaction than its caller's."""

    def save_in_thread() -> None:
        thread = threading.Thread(target=save, args=[other])
        thread.start()
        thread.join()

    return save_in_thread


class Seen(list[Any]):
    """The titles seen by handlers."""

    def look(self, event: Any) -> None:
        self.append(titles(portal_of(event)))


def open_transactions(dsn: str) -> list[tuple[int, str, str]]:
    """Return (process id, state, last statement) of each client with an open transaction in the database *dsn*."""
    with closing(psycopg.connect(dsn, autocommit=True)) as connection:
        return connection.execute(
            "SELECT pid, state, query FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        ).fetchall()


# -- the connection that returns to the pool


def fail(event: Any) -> None:
    raise Failed


def change(event: Any) -> None:
    portal = portal_of(event)
    portal.rare18.title += "!"
    portal.rare18.reindexObject()


def search(event: Any) -> None:
    titles(portal_of(event))


def fail_in_sql(event: Any) -> None:
    with pytest.raises(psycopg.Error):
        portal_of(event)._p_jar._normal_storage.pg_connection.execute("SELECT 1 / 0")


PATHS = ("/plone", "/plone/nowhere", "/plone/manage_main", "/plone/@search", "/plone/download/@@download/file")
SUBSCRIBERS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "none": {},
    "change": {"IPubBeforeCommit": change},
    "fail": {"IPubBeforeCommit": fail},
    "abort": {"IPubBeforeCommit": lambda event: transaction.abort()},
    "commit": {"IPubBeforeCommit": lambda event: transaction.commit()},
    "doom": {"IPubBeforeCommit": lambda event: transaction.doom()},
    "fail in SQL": {"IPubBeforeCommit": fail_in_sql, "IPubBeforeAbort": fail_in_sql},
    "search after": {"IPubSuccess": search, "IPubFailure": search},
    "change after": {"IPubSuccess": change, "IPubFailure": change},
}
#: Subscribers of all paths; the others are those of the front page alone.
OF_ALL_PATHS = ("none", "fail", "change after")
ENDS = [(path, name) for path in PATHS for name in SUBSCRIBERS if path == "/plone" or name in OF_ALL_PATHS]


@pytest.mark.parametrize(("path", "subscribers"), [*ENDS, ("/plone/@@search?SearchableText=rareword1", "none")])
def test_closed_connection_has_no_transaction(web: Web, shared_site: Site, path: str, subscribers: str) -> None:
    with handlers(**SUBSCRIBERS[subscribers]):
        web.open(path, MANAGER if "@@search" in path else None)
    # Threads that the request has started may still read.
    assert background_ended()
    assert open_transactions(shared_site.dsn) == []


# -- reads after the end


def test_read_after_the_end_shows_the_snapshot_of_the_request(
    web: Web, shared_site: Site, save_elsewhere: Callable[[], None]
) -> None:
    """... although this process has read a later transaction meanwhile, which is no lost history."""
    seen = Seen()

    def look_and_learn(event: Any) -> None:
        seen.look(event)
        save_elsewhere()
        jar = shared_site.db.open(TransactionManager())
        seen.append(titles(jar.root()["Application"].plone))
        jar.close()

    with handlers(IPubBeforeCommit=look_and_learn, IPubSuccess=seen.look):
        front_page(web)
    before, learnt, after = seen
    assert before == after != learnt
    with handlers(IPubSuccess=seen.look):
        front_page(web)
    assert seen[-1] == learnt


def test_search_after_a_failed_request_shows_none_of_its_changes(web: Web) -> None:
    """Its pending rows are in a temporary table, which ends with the snapshot."""
    seen = []

    def change_and_fail(event: Any) -> None:
        portal = portal_of(event)
        before = titles(portal)
        portal.rare19.title = "Changed"
        portal.rare19.reindexObject()
        seen.extend([before, titles(portal)])
        raise Failed

    def look(event: Any) -> None:
        portal = portal_of(event)
        seen.append(titles(portal))
        portal.rare18.title = "Changed too"
        portal.rare18.reindexObject()
        seen.append(titles(portal))

    with handlers(IPubBeforeCommit=change_and_fail, IPubFailure=look):
        assert web.get("/plone", accept="text/html").status == 500
    before, pending, *after = seen
    assert before != pending
    assert after == [before, before]


@pytest.mark.parametrize("changes", [False, True])
def test_after_commit_hook_reads_own_changes_and_one_snapshot(
    web: Web, save_elsewhere: Callable[[], None], changes: bool
) -> None:
    seen = []

    def register(event: Any) -> None:
        portal = portal_of(event)

        def look(is_committed: bool) -> None:
            assert is_committed
            seen.extend([titles(portal), portal.rare18.title])
            save_elsewhere()
            seen.extend([titles(portal), portal.rare18.title])

        if changes:
            portal.rare18.title = "Changed by a request"
            portal.rare18.reindexObject()
        transaction.get().addAfterCommitHook(look)

    with handlers(IPubBeforeCommit=register):
        front_page(web)
    assert seen[:2] == seen[2:]
    assert (seen[1] == "Changed by a request") == changes


def test_transaction_begun_in_an_after_commit_hook_shows_later_commits(
    web: Web, shared_site: Site, save_elsewhere: Callable[[], None]
) -> None:
    seen = []

    def register(event: Any) -> None:
        def look(_: bool) -> None:
            with closing(shared_site.db.open(TransactionManager())) as jar:
                seen.append(titles(jar.root()["Application"].plone))

        def look_before_and_after(committed: bool) -> None:
            look(committed)
            save_elsewhere()
            look(committed)

        transaction.get().addAfterCommitHook(look_before_and_after)

    with handlers(IPubBeforeCommit=register):
        front_page(web)
    before, after = seen
    assert before != after


@pytest.mark.parametrize("place", ["IPubAfterTraversal", "IPubBeforeCommit", "IPubSuccess", "IPubFailure"])
@pytest.mark.parametrize("end", [transaction.abort, transaction.commit, transaction.begin])
def test_second_end_in_a_request_shows_later_commits(
    web: Web, save_elsewhere: Callable[[], None], end: Callable[[], Any], place: str
) -> None:
    """The first one after IPubBeforeCommit may be the publisher's."""
    seen = Seen()

    def look_after_each(event: Any) -> None:
        end()
        seen.look(event)
        save_elsewhere()
        end()
        seen.look(event)

    with handlers(**{place: look_after_each}):
        web.get("/plone/nowhere" if place == "IPubFailure" else "/plone", accept="text/html")
    before, after = seen
    assert before != after


def test_subrequest_reads_the_snapshot_of_its_request(web: Web, save_elsewhere: Callable[[], None]) -> None:
    seen = []

    def look(event: Any) -> None:
        portal = portal_of(event)
        for _ in range(2):
            page = subrequest("/plone/rare19", root=portal.aq_parent)
            [title] = titles(portal)
            seen.append((title, page.getStatus(), title in page.getBody().decode()))
            save_elsewhere()

    with handlers(IPubAfterTraversal=look):
        front_page(web)
    before, after = seen
    assert before == after == (before[0], 200, True)


# -- several requests


def test_repeated_request_sees_the_conflicting_commit(
    web: Web, save_elsewhere: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ZPublisher.HTTPRequest.HTTPRequest.delay_retry", lambda self: None)
    seen = Seen()

    def conflict(event: Any) -> None:
        seen.look(event)
        if len(seen) == 1:
            save_elsewhere()
            raise ConflictError

    with handlers(IPubBeforeCommit=conflict, IPubFailure=seen.look):
        front_page(web)
    before, behind, repeated = seen
    assert before == behind != repeated


def test_snapshot_of_a_request_is_its_own(web: Web, save_elsewhere: Callable[[], None]) -> None:
    """Another request, in another thread, begins and ends between the end of the first one and its close."""
    seen = Seen()

    def look_twice(event: Any) -> None:
        seen.look(event)
        if len(seen) == 1:
            save_elsewhere()
            front_page(web)
            seen.look(event)

    with handlers(IPubSuccess=look_twice):
        front_page(web)
        front_page(web)
    first, later, first_again, last = seen
    assert first == first_again != later == last


def test_request_to_a_read_only_zope_sees_earlier_commits(
    shared_site: Site, save_elsewhere: Callable[[], None]
) -> None:
    seen = Seen()
    with reading(shared_site.dsn) as db, handlers(IPubSuccess=seen.look):
        web = Web(db, application(db))
        for _ in range(2):
            front_page(web)
            assert open_transactions(shared_site.dsn) == []
            save_elsewhere()
    before, after = seen
    assert before != after


@pytest.mark.parametrize("place", ["IPubStart", "IPubBeforeCommit", "IPubSuccess"])
@pytest.mark.direct("ends a session of the server")
def test_request_with_a_lost_connection_leaves_no_connection_behind(
    web: Web, shared_site: Site, save_elsewhere: Callable[[], None], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr("ZPublisher.HTTPRequest.HTTPRequest.delay_retry", lambda self: None)
    lost, seen = [], Seen()

    def lose(event: Any) -> None:
        if not lost:
            # At the start there is no portal yet.
            [(pid, *_)] = open_transactions(shared_site.dsn) if place == "IPubStart" else [(backend(portal_of(event)),)]
            lost.append(pid)
            terminate(shared_site.dsn, pid)

    with handlers(**{place: lose}):
        assert web.get("/plone", accept="text/html").status == 200
    save_elsewhere()
    with handlers(IPubSuccess=seen.look):
        front_page(web)
    with shared_site.inside() as portal:
        assert seen == [titles(portal)]
    assert open_transactions(shared_site.dsn) == []


# -- messages


def search_for_new_word(web: Web) -> None:
    response = web.get("/plone/@search", accept="application/json", SearchableText=f"rareword{next(_words)}")
    assert response.status == 200, response.text
    assert response.json["items_total"] == 1


#: Request -> number of messages: from memory, and after another process's commit.
MESSAGES = {front_page: (2, 7), search_for_new_word: (4, 5)}


@pytest.mark.parametrize("send", MESSAGES, ids=lambda send: send.__name__)
def test_request_sends_few_messages(web: Web, shared_site: Site, other: Any, send: Callable[[Web], None]) -> None:
    # Requests, one after the other, all get the newest pooled connection of ZODB.
    jar = shared_site.db.open(TransactionManager())
    connection = jar._normal_storage.pg_connection
    jar.close()
    for _ in range(3):
        send(web)
    with traced_connection(connection) as from_memory:
        send(web)
    save(other)
    with traced_connection(connection) as after_commit:
        send(web)
    assert (from_memory[0].round_trips, after_commit[0].round_trips) == MESSAGES[send]
