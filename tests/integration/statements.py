"""Counts the statements of a server in its log."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.pgcatalog.testing.embedded import EmbeddedPostgres

import psycopg
import re
import time


_STATEMENT = re.compile(r"LOG:  (?:statement|execute [^:]+): (.*)")
#: Seconds until each process of a server has reloaded its settings.
PAUSE = 0.3


def log_of(server: EmbeddedPostgres) -> str:
    """Return the log of the running *server*."""
    assert server.data_dir is not None
    return (server.data_dir / "server.log").read_text(errors="replace")


@contextmanager
def statements(server: EmbeddedPostgres) -> Iterator[list[str]]:
    """Yield a list that, after the block, has the first lines of the statements that *server* got meanwhile."""
    _log(server, "all")
    before = len(log_of(server))
    found: list[str] = []
    try:
        yield found
    finally:
        found += _STATEMENT.findall(log_of(server)[before:])
        _log(server, "none")


def _log(server: EmbeddedPostgres, which: str) -> None:
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET log_statement = '{which}'")
        connection.execute("SELECT pg_reload_conf()")
    time.sleep(PAUSE)
