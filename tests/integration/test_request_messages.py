"""Number of messages of a published request to PostgreSQL, including those for its objects."""

from collections.abc import Callable
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from tests.integration import site as sites
from tests.integration.publishing import fill_with_rare_words
from tests.integration.publishing import front_page
from tests.integration.publishing import save
from tests.integration.traffic import traced_connection
from tests.integration.traffic import Traffic
from tests.integration.web import application
from tests.integration.web import Site
from tests.integration.web import Web
from transaction import TransactionManager
from typing import Any

import pytest


_words = count()
SHARED = fill_with_rare_words


@pytest.fixture(scope="module")
def other(shared_site: Site) -> Iterator[Any]:
    """The ZODB.DB of another process on the same site."""
    with sites.opened(shared_site.dsn) as db:
        yield db


def search_for_new_word(web: Web) -> None:
    response = web.get("/plone/@search", accept="application/json", SearchableText=f"rareword{next(_words)}")
    assert response.status == 200, response.text
    assert response.json["items_total"] == 1


@dataclass
class Served:
    """A site whose requests, one after the other, all get the single pooled connection of ZODB."""

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


#: Request -> number of messages: from memory, and after another process's commit.
MESSAGES = {front_page: (2, 7), search_for_new_word: (4, 5)}


@pytest.mark.parametrize("request_", MESSAGES, ids=lambda request: request.__name__)
def test_request_sends_few_messages(served: Served, other: Any, request_: Callable[[Web], None]) -> None:
    for _ in range(3):
        request_(served.web)
    from_memory = served.traffic(request_)
    save(other)
    after_commit = served.traffic(request_)
    assert (from_memory.round_trips, after_commit.round_trips) == MESSAGES[request_]
