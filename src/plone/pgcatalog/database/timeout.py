"""A time limit for statements on the snapshot connection."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.database.session import Session
from psycopg.errors import QueryCanceled


SETTING = "statement_timeout"


class SearchTimeout(Exception):
    """A search took longer than it was given; the transaction stays usable."""


@contextmanager
def time_limit(session: Session, seconds: float | None) -> Iterator[None]:
    """Let each statement within take *seconds* at the most; None sets no limit.

    Raises SearchTimeout.  Costs two round trips, and nothing without a limit.
    """
    if seconds is None:
        yield
        return
    if not seconds > 0:
        raise ValueError(f"a time limit is more than 0 seconds, not {seconds!r}")
    milliseconds = max(1, round(seconds * 1000))
    [(before, _)] = session.execute(
        f"SELECT current_setting('{SETTING}'), set_config('{SETTING}', %s, true)", (str(milliseconds),)
    )
    try:
        yield
    except QueryCanceled as error:
        # The rollback to the savepoint has brought back the setting.
        raise SearchTimeout(f"the search took longer than {seconds:g} s") from error
    session.execute(f"SELECT set_config('{SETTING}', %s, true)", (before,))
