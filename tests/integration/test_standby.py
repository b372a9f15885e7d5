"""The embedded server with a standby: streaming, losses after a cut-off, promotion."""

from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.statistics import executing
from plone.pgcatalog.database.statistics import overview
from plone.pgcatalog.testing.embedded import dsn_of
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import EmbeddedPostgresError
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from plone.pgcatalog.testing.embedded import with_standby
from plone.pgcatalog.testing.host import PACKAGES
from tests.integration.servers import execute
from tests.integration.servers import fetch
from typing import Any

import os
import psycopg
import pytest
import shutil
import socket
import subprocess
import sys


pytestmark = pytest.mark.slow


# A commit on a promoted server survives a kill.
SETTINGS = with_standby(TEST_SETTINGS | {"synchronous_commit": "local"})


def write(dsn: str, number: int) -> None:
    execute(dsn, f"INSERT INTO t VALUES ({number})")


def numbers(dsn: str) -> list[int]:
    with psycopg.connect(dsn) as connection:
        return [number for (number,) in connection.execute("SELECT x FROM t ORDER BY x")]


@pytest.fixture
def primary() -> Iterator[EmbeddedPostgres]:
    """A server with a table, t."""
    with EmbeddedPostgres(settings=SETTINGS) as server:
        execute(server.dsn(), "CREATE TABLE t (x int)")
        yield server


@pytest.fixture
def standby(primary: EmbeddedPostgres) -> Iterator[EmbeddedPostgres]:
    with primary.standby() as server:
        yield server


def test_standby_shows_earlier_and_later_commits_also_after_a_restart(
    primary: EmbeddedPostgres, open_tmp: Path
) -> None:
    write(primary.dsn(), 0)
    for number in (1, 2):
        with primary.standby(open_tmp / "standby") as standby:
            assert 0 in numbers(standby.dsn())
            write(primary.dsn(), number)
            standby.catch_up()
            assert numbers(standby.dsn())[-1] == number
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                write(standby.dsn(), 3)


def replicas(dsn: str, role: str = "postgres") -> list[dict[str, Any]]:
    """Return the replicas of the server *dsn* shown on the tab Overview to the database user *role*."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"SET ROLE {role}")
        found: list[dict[str, Any]] = overview(executing(connection))["replicas"]
        return found


def test_replicas_and_their_lag_are_reported(primary: EmbeddedPostgres, standby: EmbeddedPostgres) -> None:
    """To a user with pg_monitor; another one only sees that they exist."""
    for statement in (
        "CREATE TABLE object_state (zoid BIGINT PRIMARY KEY)",
        "CREATE TABLE transaction_log (tid BIGINT PRIMARY KEY)",
        load_sql("base"),
        "CREATE ROLE somebody",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO somebody",
    ):
        execute(primary.dsn(), statement)
    standby.catch_up()
    [replica] = replicas(primary.dsn())
    assert replica["state"] == "streaming"
    assert replica["lag_bytes"] >= 0
    [hidden] = replicas(primary.dsn(), "somebody")
    assert (hidden["state"], hidden["lag_bytes"], hidden["lag_seconds"]) == (None, None, None)
    # The standby itself has no replicas, and no newest position of its own to compare with.
    assert replicas(standby.dsn()) == []


def test_promoted_standby_lacks_later_commits_whose_xids_it_uses_again(
    primary: EmbeddedPostgres, standby: EmbeddedPostgres
) -> None:
    write(primary.dsn(), 1)
    standby.catch_up()
    standby.cut_off()
    xid = "SELECT xmin::text FROM t WHERE x > 1"
    write(primary.dsn(), 2)
    lost = fetch(primary.dsn(), xid)
    primary.kill()
    standby.promote()
    write(standby.dsn(), 3)
    assert fetch(standby.dsn(), xid) == lost
    assert standby.primary is None
    standby.kill()
    standby.start()
    write(standby.dsn(), 4)
    assert numbers(standby.dsn()) == [1, 3, 4]


def test_the_former_primary_becomes_the_standby(open_tmp: Path) -> None:
    """Its own data are deleted, with its unreplicated commits; the addresses, and so the DSN, stay."""
    places = [open_tmp / "a", open_tmp / "b"]
    with EmbeddedPostgres(places[0], SETTINGS) as first:
        execute(first.dsn(), "CREATE TABLE t (x int)")
        with first.standby(places[1]) as second:
            dsn = dsn_of(first, second)
            second.catch_up()
            second.cut_off()
            write(dsn, 1)
            first.kill()
            second.promote()
            write(dsn, 2)
            first.stop()
            with pytest.raises(EmbeddedPostgresError, match="not a standby"):
                second.standby(places[0]).start()
            shutil.rmtree(places[0])
            with second.standby(places[0]) as third:
                write(dsn, 3)
                third.catch_up()
                assert numbers(third.dsn()) == [2, 3]
                second.kill()
                third.promote()
                write(dsn, 4)
                assert numbers(dsn) == [2, 3, 4]


@pytest.fixture
def free_ports() -> list[int]:
    probes = [socket.socket() for _ in range(2)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


@pytest.mark.parametrize("package", PACKAGES)
def test_one_dsn_leads_to_the_server_of_either_package_that_accepts_writes(package: str, free_ports: list[int]) -> None:
    pytest.importorskip(package)
    with (
        EmbeddedPostgres(settings=SETTINGS, package=package, port=free_ports[0]) as primary,
        primary.standby(port=free_ports[1]) as standby,
    ):
        assert standby.version == primary.version
        execute(primary.dsn(), "CREATE TABLE t (x int)")
        ports = ",".join(map(str, free_ports))
        dsn = f"host=127.0.0.1,127.0.0.1 port={ports} user=postgres target_session_attrs=read-write"
        write(dsn, 1)
        standby.catch_up()
        primary.kill()
        with pytest.raises(psycopg.OperationalError):
            write(dsn, 2)
        # The standby waits for its server, and fails when it must catch up.
        assert numbers(standby.dsn()) == [1]
        with pytest.raises(psycopg.OperationalError):
            standby.catch_up()
        standby.promote()
        write(dsn, 3)
        assert numbers(dsn) == [1, 3]


def test_server_without_the_settings_reports_the_missing_ones() -> None:
    with (
        EmbeddedPostgres(settings=TEST_SETTINGS) as server,
        pytest.raises(EmbeddedPostgresError, match="pg_basebackup"),
    ):
        server.standby().start()


ORDINARY = """
from plone.pgcatalog.testing.embedded import EmbeddedPostgres, TEST_SETTINGS, dsn_of, with_standby
import os, psycopg
# Everything is imported: the interpreter may be where only root can read.
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
with EmbeddedPostgres(settings=with_standby(TEST_SETTINGS)) as a, a.standby() as b:
    with psycopg.connect(dsn_of(a, b)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 7 AS x")
    b.catch_up()
    b.cut_off()
    a.kill()
    b.promote()
    with psycopg.connect(dsn_of(a, b)) as connection:
        print(os.getuid(), connection.execute("SELECT x FROM t").fetchone()[0])
"""


@pytest.mark.skipif(os.getuid() != 0, reason="the other tests show it")
def test_an_ordinary_user_has_standbys_too(open_tmp: Path) -> None:
    environment: dict[str, Any] = {**os.environ, "TMPDIR": "/tmp", "HOME": "/tmp"}
    done = subprocess.run(
        [sys.executable, "-c", ORDINARY], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout.split() == ["65534", "7"], done.stderr
