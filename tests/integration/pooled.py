"""Servers behind a pooler, and the leftovers on their sessions."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from contextlib import suppress
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from psycopg.conninfo import conninfo_to_dict
from tests.integration import site as sites
from tests.integration.bouncer import find_pgbouncer
from tests.integration.bouncer import PgBouncer
from typing import Any
from typing import Self

import os
import psycopg


#: Settings that a pooler itself sets in a session, to follow its clients.
FOLLOWED = (
    *("application_name", "client_encoding", "DateStyle", "IntervalStyle", "standard_conforming_strings", "TimeZone"),
)
#: One line for each thing in a session that a new session does not have.
LEFT = """
SELECT 'setting ' || name FROM pg_settings WHERE source = 'session' AND setting <> reset_val AND name <> ALL(%(known)s)
UNION ALL
SELECT 'lock ' || classid || ' ' || objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
UNION ALL
SELECT 'table ' || relname FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r'
UNION ALL
SELECT 'statement ' || name FROM pg_prepared_statements WHERE name NOT LIKE 'PGBOUNCER%%'
"""


#: Each test has a database of its own that is not used again: its server connections are free for the next tests.
TEST_POOLER = {"server_idle_timeout": "5"}


def past(server: EmbeddedPostgres) -> str:
    """Return the value of PGCATALOG_DIRECT_DSN that bypasses all poolers of *server*."""
    place = conninfo_to_dict(EmbeddedPostgres.dsn(server))
    return f"host={place['host']} port={place['port']}"


@contextmanager
def sessions(dsn: str, number: int) -> Iterator[list[psycopg.Connection[Any]]]:
    """Yield *number* connections to *dsn* (a pooler's), each with a server session of its own until the end."""
    with ExitStack() as stack:
        clients = [stack.enter_context(psycopg.connect(dsn, prepare_threshold=None)) for _ in range(number)]
        pids = {client.execute("SELECT pg_backend_pid()").fetchone() for client in clients}
        assert len(pids) == number
        yield clients


def clean(dsn: str, number: int) -> None:
    """Reset the *number* server sessions that the pooler has for *dsn*."""
    with sessions(dsn, number) as clients:
        for client in clients:
            client.execute("RESET ALL")
            client.execute("SELECT pg_advisory_unlock_all()")
            client.execute("DISCARD TEMP")


def left(dsn: str, number: int) -> list[str]:
    """Return descriptions of the leftovers on the *number* server sessions that the pooler has for *dsn*."""
    with sessions(dsn, number) as clients:
        values = {"known": list(FOLLOWED)}
        return sorted(line for client in clients for (line,) in client.execute(LEFT, values).fetchall())


class PooledPostgres(EmbeddedPostgres):
    """A test server whose databases are reached through a pooler, except by the uses of PGCATALOG_DIRECT_DSN.

    If the pooler does not track prepared statements, zodb-pgjsonb needs its patches (``docs/upstream``), and psycopg must
    not prepare statements, as for all clients of such a pooler.
    """

    def __init__(self, program: str | None, temp_dir: Path | None) -> None:
        super().__init__(settings=TEST_SETTINGS, temp_dir=temp_dir)
        self._program = program or find_pgbouncer()
        self._pooler: PgBouncer | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        assert self._program is not None, "PgBouncer is not installed"
        self._pooler = PgBouncer(self, self._program, TEST_POOLER).__enter__()
        os.environ["PGCATALOG_DIRECT_DSN"] = past(self)
        if not self._pooler.follows_statements:
            psycopg.Connection.connect.__func__.__kwdefaults__["prepare_threshold"] = None  # type: ignore[attr-defined]
            sites.STORAGE["prepare_threshold"] = -1
        return self

    def __exit__(self, *error: object) -> None:
        if self._pooler is not None:
            self._pooler.__exit__(*error)
        super().__exit__(*error)

    def dsn(self, dbname: str = "postgres") -> str:
        return super().dsn(dbname) if self._pooler is None else self._pooler.dsn(dbname)

    def createdb(self, name: str, template: str | None = None) -> str:
        with self._past_the_pooler(template):
            super().createdb(name, template)
        return self.dsn(name)

    def dropdb(self, name: str) -> None:
        with self._past_the_pooler(name):
            super().dropdb(name)

    @contextmanager
    def _past_the_pooler(self, dbname: str | None) -> Iterator[None]:
        """Have the pooler close its connections to *dbname*; no client uses it meanwhile."""
        pooler, self._pooler = self._pooler, None
        try:
            if pooler is not None and dbname is not None:
                with suppress(psycopg.Error):  # it has none
                    pooler.command(f"KILL {dbname}")
                    pooler.command(f"RESUME {dbname}")
            yield
        finally:
            self._pooler = pooler
