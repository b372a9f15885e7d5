"""The databases of one test process: made, copied and dropped through one administrative connection."""

from psycopg import sql
from psycopg.conninfo import make_conninfo

import itertools
import psycopg
import time


#: A dead lock between a test's connections becomes an error instead of a hang.
SESSION_OPTIONS = "-c lock_timeout=15s"
COPY_ATTEMPTS = 40
NUMBERED = """
SELECT datname FROM pg_database
WHERE starts_with(datname, %(prefix)s) AND substr(datname, length(%(prefix)s) + 1) ~ '^[0-9]+$'
"""


class Databases:
    """Databases named ``<prefix><number>`` on the server of *dsn* (a superuser's).

    What an earlier process left under the same prefix is dropped first.
    """

    def __init__(self, dsn: str, prefix: str) -> None:
        self.dsn = dsn
        self.prefix = prefix
        self._numbers = itertools.count(1)
        self._admin = psycopg.connect(dsn, autocommit=True)
        self.drop_all()

    def create(self, template: str | None = None) -> str:
        """Make a database, empty or as a copy of *template*; return its name.

        All sessions of the template are ended.  Raises psycopg.Error when that is not enough.
        """
        name = f"{self.prefix}{next(self._numbers)}"
        if template is None:
            self._admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        else:
            self._copy(name, template)
        return name

    def _copy(self, name: str, template: str) -> None:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
            sql.Identifier(name), sql.Identifier(template)
        )
        for attempt in range(COPY_ATTEMPTS):
            self._end_sessions(template)
            try:
                self._admin.execute(statement)
                return
            except psycopg.errors.ObjectInUse:  # someone reconnected in between
                if attempt == COPY_ATTEMPTS - 1:
                    raise
                time.sleep(0.05)

    def _end_sessions(self, name: str) -> None:
        self._admin.execute("SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE datname = %s", [name])

    def drop(self, name: str) -> None:
        """Drop a database together with its sessions."""
        self._admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def drop_all(self) -> None:
        """Drop every database under the prefix, but not those whose longer prefix begins with it."""
        for (name,) in self._admin.execute(NUMBERED, {"prefix": self.prefix}).fetchall():
            self.drop(name)

    def dsn_of(self, name: str) -> str:
        """Return the libpq connection string of a database."""
        return make_conninfo(self.dsn, dbname=name, options=SESSION_OPTIONS)

    def close(self) -> None:
        """Drop every database under the prefix, and the connection."""
        self.drop_all()
        self._admin.close()
