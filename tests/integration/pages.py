"""Sites with pages, and observations of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database.direct import connect_directly
from tests.integration.content import create
from typing import Any

import transaction


QUERY = {"portal_type": "Document", "sort_on": "getId"}
#: Kinds of searches that find pages, by name.
PAGE_QUERIES: dict[str, dict[str, Any]] = {
    "sorted": QUERY,
    "by rid": {"portal_type": "Document"},
    "words": {"SearchableText": "page*"},
    "nothing": {"portal_type": "Document", "getId": "nobody"},
    "a window": {**QUERY, "b_start": 5, "b_size": 10},
    "a window of words": {"SearchableText": "page*", "b_start": 0, "b_size": 10},
}


def make_pages(portal: Any) -> None:
    for number in range(30):
        create(portal, "Document", f"page{number:02}", title=f"Page {number}", subject=("a", "b"))


#: More than the first window of a result.
MANY = 130


def make_many_pages(portal: Any) -> None:
    for number in range(MANY):
        portal.invokeFactory("Document", f"page{number:03}", title=f"Page {number:03}")


def analyzed(portal: Any, dsn: str) -> Any:
    """Return *portal*, whose number of rows is in PostgreSQL's statistics."""
    with connect_directly(dsn, "test", 30) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state")
        connection.execute(f'ANALYZE "{relation}"')
    return portal


@contextmanager
def second_connection(db: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (transaction manager, site) of another connection."""
    manager = transaction.TransactionManager()
    connection = db.open(manager)
    try:
        yield manager, connection.root()["Application"].plone
    finally:
        manager.abort()
        connection.close()


def shown(portal: Any, **query: Any) -> list[tuple[str, Any, Any]]:
    """Return the values that a listing shows of the first forty rows found by *query*."""
    found = portal.portal_catalog.unrestrictedSearchResults(**(query or QUERY))
    return [(brain.getPath(), brain.Title, brain.Subject) for brain in found[:40]]
