"""How many messages a served request sends to PostgreSQL, the snapshot's and those of its objects included."""

from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from tests.acceptance.search_site import fill
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import publish
from tests.integration.traffic import traced_connection
from tests.integration.traffic import Traffic
from tests.integration.web import application
from tests.integration.web import Site
from tests.integration.web import Web
from transaction import TransactionManager
from typing import Any
from zope.component import getGlobalSiteManager
from ZPublisher import interfaces

import pytest
import transaction


RARE = 20

_words = count()


def fill_with_rare_words(portal: Any) -> None:
    fill(portal)
    portal.manage_permission("plone.restapi: Use REST API", ["Anonymous"], acquire=1)
    for number in range(RARE):
        publish(create(portal, "Document", f"rare{number}", title=f"Rarity rareword{number}"))


SHARED = fill_with_rare_words


@pytest.fixture(scope="module")
def other(shared_site: Site) -> Iterator[Any]:
    """The ZODB.DB of another process on the same site."""
    with sites.opened(shared_site.dsn) as db:
        yield db


def front_page(web: Web) -> None:
    response = web.get("/plone", accept="text/html")
    assert response.status == 200


def search_for_new_word(web: Web) -> None:
    response = web.get("/plone/@search", accept="application/json", SearchableText=f"rareword{next(_words)}")
    assert response.status == 200, response.text
    assert response.json["items_total"] == 1


def save(db: Any) -> None:
    """Change and catalogue a page that no request here shows."""
    with sites.inside(db) as portal:
        portal.rare19.title = f"Rarity {next(_words)}"
        portal.rare19.reindexObject()
        transaction.commit()


@dataclass
class Served:
    """A served site whose requests, one after the other, all get the one pooled connection of ZODB."""

    web: Web
    #: psycopg's connection of it
    connection: Any

    def traffic(self, request: Callable[[Web], None]) -> Traffic:
        """Return the Traffic of *request*."""
        with traced_connection(self.connection) as traffic:
            request(self.web)
        return traffic[0]


@pytest.fixture(scope="module")
def served(shared_site: Site) -> Served:
    jar = shared_site.db.open(TransactionManager())
    connection = jar._normal_storage.pg_connection
    jar.close()
    return Served(Web(shared_site.db, application(shared_site.db)), connection)


#: Request -> its messages: from memory, and after another process's commit.
MESSAGES = {front_page: (2, 10), search_for_new_word: (4, 5)}


@pytest.mark.parametrize("request_", MESSAGES, ids=lambda request: request.__name__)
def test_request_sends_few_messages(served: Served, other: Any, request_: Callable[[Web], None]) -> None:
    for _ in range(3):
        request_(served.web)
    from_memory = served.traffic(request_)
    save(other)
    after_commit = served.traffic(request_)
    assert (from_memory.round_trips, after_commit.round_trips) == MESSAGES[request_]


# -- searches behind the end of a request, on its snapshot


class Failed(Exception):
    """Ends a request."""


def titles(portal: Any) -> list[str]:
    return [brain.Title for brain in portal.portal_catalog.unrestrictedSearchResults(getId="rare19")]


def portal_of(event: Any) -> Any:
    return event.request["PARENTS"][-1].plone


@contextmanager
def handlers(**by_interface: Callable[[Any], None]) -> Iterator[None]:
    """Call a function at the event of the publisher that its name says."""
    manager = getGlobalSiteManager()
    found = [(handler, (getattr(interfaces, name),)) for name, handler in by_interface.items()]
    for handler, required in found:
        manager.registerHandler(handler, required)
    try:
        yield
    finally:
        for handler, required in found:
            manager.unregisterHandler(handler, required)


def test_search_behind_the_end_is_of_the_snapshot_of_the_request(served: Served, other: Any, shared_site: Site) -> None:
    """... although this process knows what others have committed meanwhile: that is no lost history."""
    seen = []

    def look(event: Any) -> None:
        seen.append(titles(portal_of(event)))

    def look_and_learn(event: Any) -> None:
        look(event)
        with ThreadPoolExecutor(1) as thread:
            # of another transaction than the request
            thread.submit(save, other).result()
        jar = shared_site.db.open(TransactionManager())
        seen.append(titles(jar.root()["Application"].plone))
        jar.close()

    with handlers(IPubBeforeCommit=look_and_learn, IPubSuccess=look):
        front_page(served.web)
    before, learnt, after = seen
    assert before == after != learnt
    with handlers(IPubSuccess=look):
        front_page(served.web)
    assert seen[-1] == learnt


def test_search_behind_a_failed_request_shows_nothing_of_it(served: Served) -> None:
    """A temporary table has what was pending, and is gone with the snapshot."""
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
        assert served.web.get("/plone", accept="text/html").status == 500
    before, pending, *after = seen
    assert before != pending
    assert after == [before, before]
