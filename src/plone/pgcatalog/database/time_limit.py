"""A time limit for one statement on the snapshot connection: set, and taken back, in the statement's own message.

The storage loads objects and blobs by the same connection, which may take their time.
"""

from psycopg.errors import QueryCanceled


#: The server takes no more milliseconds than that.
MOST = 2**31 - 1

#: The limit in milliseconds that the server, the database or the role has; 0 for none.
OWN_LIMIT = "(1000 * extract(epoch FROM current_setting('statement_timeout')::interval))::bigint"
#: After an error the rollback to the savepoint does it.
TAKE_BACK = "SET LOCAL statement_timeout TO DEFAULT"


class SearchTimeout(QueryCanceled):
    """A search took longer than it was given; the transaction stays usable.  Over the web it is a 503."""


def set_limit(seconds: float, own: int) -> str:
    """Return the command that lets the statements behind it take *seconds* at the most; raises ValueError for 0 and less.

    A stricter limit of the server's *own*, in milliseconds, stays; 0 is none.
    """
    if not seconds > 0:
        raise ValueError(f"a time limit is more than 0 seconds, not {seconds!r}")
    milliseconds = max(1, round(min(seconds * 1000, MOST)))
    return f"SET LOCAL statement_timeout = {min(milliseconds, own or MOST):d}"
