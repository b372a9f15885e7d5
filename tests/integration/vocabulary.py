"""Counted words, for the tests of what goes by them."""

from plone.pgcatalog.database.direct import connect_directly
from plone.pgcatalog.fulltext.term_statistics import count_words
from typing import Any

import transaction


def counted(dsn: str, catalog: Any) -> None:
    """Count the words of *catalog*, all committed, in the database *dsn*, and let the connection see it."""
    with connect_directly(dsn, "test") as connection:
        assert count_words(connection, catalog._core.zoid)
        connection.execute("ANALYZE pgcatalog_words")
    transaction.begin()
