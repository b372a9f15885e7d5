"""Generated rows, and a search of them that an index would speed up."""

from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.observe import recorder
from plone.pgcatalog.observe.log import log_of
from tests.integration.relation import NUMBER_OF
from typing import Any

import transaction


#: By its statistics PostgreSQL sees that one creator has few rows, but not that they are the oldest.
FILL = """
    INSERT INTO "{}" (rid, path, portal_type, review_state, creator, get_id, modified, effective_range_since,
        effective_range_until, allowed_roles, subject)
    SELECT i + 1000000, '/plone/x' || i, (ARRAY['Document', 'News Item', 'Event', 'File'])[1 + i % 4],
        (ARRAY['published', 'private'])[1 + i % 2], 'creator' || i % 200, 'x' || i,
        timestamptz '2020-01-01' + (i * 7919 % 4000) * interval '1 hour', -1440, 2147483647,
        pg_temp.number_of('allowed_roles', ARRAY['Anonymous']),
        ARRAY['tag' || i % 50]
    FROM generate_series(1, {}) i
"""
ROWS = 4000


def generate_rows(dsn: str, count: int = ROWS) -> None:
    """Insert *count* rows without objects into the catalog of the only site in the database *dsn*."""
    with connect_directly(dsn, "test", 0) as connection:
        [(relation,)] = connection.execute("SELECT relation FROM pgcatalog_state").fetchall()
        connection.execute(NUMBER_OF)
        connection.execute(FILL.format(relation, count))
        connection.execute(f'ANALYZE "{relation}"')


def search(portal: Any, **query: Any) -> None:
    """Run a search, and begin a transaction that sees its log entry."""
    for _brain in portal.portal_catalog.unrestrictedSearchResults(**query)[:10]:
        break
    assert recorder.flush(10)
    transaction.begin()


def slow_listing(portal: Any) -> None:
    """Search for a value that few of the generated rows have, in an order in which they come last."""
    search(portal, Creator="creator7", portal_type="File", sort_on="modified", sort_order="reverse", sort_limit=10)


def key_of(portal: Any, shape: str) -> str:
    """Return the key of the slow queries whose shape begins with *shape*."""
    return str(next(g.key for g in log_of(portal.portal_catalog._core).groups() if g.shape.startswith(shape)))
