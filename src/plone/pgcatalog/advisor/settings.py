"""How much of the slow-query log a database keeps; from the environment, read when something is written."""

from plone.pgcatalog.settings import number

import os


def kept_rows() -> int:
    """Return how many slow queries a database keeps."""
    return int(number("PGCATALOG_SLOW_QUERY_ROWS", os.environ.get("PGCATALOG_SLOW_QUERY_ROWS"), 5000))


def kept_days() -> float:
    """Return for how many days slow queries are kept."""
    return number("PGCATALOG_SLOW_QUERY_DAYS", os.environ.get("PGCATALOG_SLOW_QUERY_DAYS"), 30)
