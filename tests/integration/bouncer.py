"""A PgBouncer in front of an embedded server, with the configuration of the documentation (docs/how-to/pgbouncer.ini)."""

from collections.abc import Mapping
from configparser import ConfigParser
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.host import public_tmp
from plone.pgcatalog.testing.host import ServerUser
from psycopg.conninfo import conninfo_to_dict
from psycopg.conninfo import make_conninfo
from typing import Any
from typing import Self

import psycopg
import re
import shutil
import signal
import subprocess
import tempfile
import time


INI = Path(__file__).parents[2] / "docs" / "how-to" / "pgbouncer.ini"
#: The first version that supports prepared statements as psycopg and we use them.
FOLLOWS = (1, 22)
#: Seconds until it answers.
START_SECONDS = 10.0
#: Any number works, because it listens on a socket in its own folder.
PORT = 6432


def find_pgbouncer() -> str | None:
    """Return the path of the installed program; None if there is none."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


def version_of(program: str) -> tuple[int, int]:
    """Return the version of *program*, such as (1, 18)."""
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    numbers = re.search(r"(\d+)\.(\d+)", told)
    assert numbers is not None, told
    return int(numbers[1]), int(numbers[2])


class PgBouncer:
    """A running PgBouncer for all databases of *server*; *settings* override the documented ones.

    Another server can replace the first one for the *database* of this name.  ``version`` is that of *program*, such as (1, 18).
    """

    def __init__(
        self,
        server: EmbeddedPostgres,
        program: str,
        settings: Mapping[str, str] | None = None,
        database: str = "",
    ) -> None:
        self.server = server
        self.database = database
        self.program = program
        self.settings = dict(settings or {})
        self.version = version_of(program)
        self._user = ServerUser.choose(None)
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = Path()

    @property
    def follows_statements(self) -> bool:
        """Whether it supports prepared statements, and is configured for them."""
        return self.version >= FOLLOWS and self._configuration()["pgbouncer"].get("max_prepared_statements", "0") != "0"

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="pgcatalog-pooler-", dir=public_tmp(self._user)))
        self._user.own(self.folder)
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start the program, and wait until it answers."""
        command = [self.program, str(self._write())]
        self._process = self._user.run(command, signal.SIGTERM, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._wait()

    def kill(self) -> None:
        """End the program with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def lead_to(self, server: EmbeddedPostgres) -> None:
        """Lead to the database of *server* from now on."""
        self.server = server
        self._write()
        self.command("RELOAD")

    def _write(self) -> Path:
        """Write the configuration; return its path."""
        ini = self.folder / "pgbouncer.ini"
        with ini.open("w") as file:
            self._configuration().write(file)
        self._user.own(ini)
        return ini

    def dsn(self, dbname: str = "postgres") -> str:
        """Return the connection string of a database of the server, through the pooler."""
        return make_conninfo(host=str(self.folder), port=PORT, user="postgres", dbname=dbname)

    def command(self, text: str) -> list[dict[str, Any]]:
        """Return the rows of a command of the pooler's console, such as ``SHOW POOLS``."""
        with psycopg.connect(self.dsn("pgbouncer"), autocommit=True, row_factory=psycopg.rows.dict_row) as console:
            cursor = console.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

    def log(self) -> str:
        """Return its log so far."""
        return (self.folder / "pgbouncer.log").read_text("utf-8", "replace")

    def _configuration(self) -> ConfigParser:
        configuration = ConfigParser(interpolation=None)
        configuration.read(INI)
        server = conninfo_to_dict(self.server.dsn())
        place = f"host={server['host']} port={server['port']} user=postgres"
        # Its connections to a database that it finds by * stay where they are.
        named = {self.database: f"{place} dbname={self.database}"} if self.database else {}
        configuration["databases"] = {**named, "*": place}
        settings = configuration["pgbouncer"]
        if self.version < FOLLOWS:
            del settings["max_prepared_statements"]
        del settings["listen_addr"], settings["auth_file"]
        own = {
            "listen_port": str(PORT),
            "unix_socket_dir": str(self.folder),
            "auth_type": "any",
            "logfile": str(self.folder / "pgbouncer.log"),
            "pidfile": "",
        }
        settings.update(own | self.settings)
        return configuration

    def _wait(self) -> None:
        ends = time.monotonic() + START_SECONDS
        while True:
            try:
                self.command("SHOW VERSION")
                return
            except psycopg.OperationalError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.05)
