"""A time limit for one statement on the snapshot connection: set, and taken back, in the statement's own message.

The storage loads objects and blobs by the same connection, which may take their time.
"""

#: The server takes no more milliseconds than that.
MOST = 2**31 - 1

#: A stricter limit that the server, the database or the role has stays.
SET_LIMIT = (
    "SELECT set_config('statement_timeout', least({milliseconds}, nullif(1000 * "
    "extract(epoch FROM current_setting('statement_timeout')::interval), 0))::int::text, true)"
)
#: After an error the rollback to the savepoint does it.
TAKE_BACK = "SET LOCAL statement_timeout TO DEFAULT"


def set_limit(seconds: float) -> str:
    """Return the statement that lets those behind it take *seconds* at the most; raises ValueError for 0 and less."""
    if not seconds > 0:
        raise ValueError(f"a time limit is more than 0 seconds, not {seconds!r}")
    return SET_LIMIT.format(milliseconds=max(1, round(min(seconds * 1000, MOST))))
