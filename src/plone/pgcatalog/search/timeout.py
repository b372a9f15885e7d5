"""What a search raises that takes too long."""

from psycopg.errors import QueryCanceled


class SearchTimeout(QueryCanceled):
    """A search took longer than it was given; the transaction stays usable.  Over the web it is a 503."""
