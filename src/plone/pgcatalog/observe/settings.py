"""How much of the slow-query log a database keeps; from the environment, read when something is written."""

from plone.pgcatalog.settings import number
from plone.pgcatalog.settings import whole_number

import os


#: PostgreSQL's timestamps reach back to 4713 BC.
MOST_DAYS = 2e6


def kept_rows() -> int:
    """Return how many slow queries a database keeps."""
    return whole_number("PGCATALOG_SLOW_QUERY_ROWS", os.environ.get("PGCATALOG_SLOW_QUERY_ROWS"), 5000)


def kept_days() -> float:
    """Return for how many days slow queries are kept."""
    return number("PGCATALOG_SLOW_QUERY_DAYS", os.environ.get("PGCATALOG_SLOW_QUERY_DAYS"), 30, MOST_DAYS)
