"""A ZODB connection that is opened for the first time shows what other processes have committed."""

from tests.integration import site as sites
from tests.integration.pages import second_connection
from typing import Any

import transaction


def test_a_new_connection_shows_what_others_have_changed(dsn: str) -> None:
    """Whatever the process has in the cache that all its connections share."""
    with sites.opened(dsn) as ours, sites.opened(dsn) as others, second_connection(ours) as (_, site):
        assert site.title == "Test"
        with sites.inside(others) as other:
            other.title = "changed"
            transaction.commit()
        with second_connection(ours) as (_, opened_later):
            assert opened_later.title == "changed"
        assert titles(ours) == {"changed"}


def titles(db: Any) -> set[str]:
    """Return the titles that all connections in the pool of *db* show."""
    with second_connection(db) as (_, one), second_connection(db) as (_, two):
        return {one.title, two.title}
