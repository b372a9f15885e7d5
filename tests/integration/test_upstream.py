"""The patches in docs/upstream apply to the installed zodb-pgjsonb, and repair its faults."""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from plone.pgcatalog.testing.embedded import with_standby
from tests.integration.bouncer import PgBouncer
from tests.integration.patched import patch_storage
from tests.integration.patched import PATCHES
from tests.integration.pooled import left
from tests.integration.pooled import past
from typing import Any

import json
import os
import psycopg
import pytest
import re
import subprocess
import sys


pytestmark = pytest.mark.slow


ROOT = Path(__file__).parents[2]
CHECK = Path(__file__).with_name("upstream_check.py")
#: Number of server sessions of the pooler.
SESSIONS = 4
CROWD = Path(__file__).with_name("pooled_crowd.py")


@pytest.fixture(scope="module")
def patched(tmp_path_factory: Any) -> Path:
    """A folder with a copy of the installed package that has all patches."""
    folder: Path = tmp_path_factory.mktemp("upstream")
    patch_storage(folder)
    return folder


def seen(what: str, dsn: str, *folders: Path, more: tuple[str, ...] = ()) -> list[str]:
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (*folders, ROOT)))}
    done = subprocess.run(
        [sys.executable, str(CHECK), what, dsn, *more],
        env=environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_patches_are_for_the_installed_version() -> None:
    assert version("zodb-pgjsonb").startswith("1.19.")
    assert len(PATCHES) == 11


#: Check -> its output without the patches, and with them.
SEEN = {
    # Commits of a Zope whose clock is late are missed.
    "clocks": (r"missed (1[1-9]|20)", "missed 0"),
    # Objects of a lost history are shown, and conflict.
    "history": (r"shown lost\nshown lost\nconflict\nstored kept", r"shown kept\nshown kept\nstored saved"),
    # Settings stay on sessions, instead of ending with their transaction.
    "session": (
        r"in a transaction 1min\nbetween idle_in_transaction_session_timeout lock_timeout",
        r"in a transaction 1min\nbetween",
    ),
    # Its threshold for preparing cannot be configured.
    "prepared": ("no such key", r"prepared some\nprepared nothing"),
    # Each new object is a statement; with the patch there are few, and no number is used twice.
    "oids": (r"asked 100\n.*", r"asked [1-7]\nobjects 120"),
    # Copies lack objects without a state.
    "copied": (r"lacks tree tree set blob\nlacks tree tree set", r"lacks\nlacks"),
    # A pack removes objects saved meanwhile, and more of those needed by an undo.
    "packed": (r"lost 1\nlost ([2-9]|\d\d+)", r"lost 0\nlost 0"),
    # A poll is two messages; with the patch it is one, after the end of the former transaction.
    "polled": (r"messages 3\nshown new", r"messages 2\nshown new"),
    # A new connection shows old data.
    "fresh": ("shown kept", "shown new"),
}


@pytest.mark.parametrize("is_patched", [False, True], ids=["without", "patched"])
@pytest.mark.parametrize("what", SEEN)
def test_patch_repairs_its_fault(what: str, is_patched: bool, database: str, patched: Path) -> None:
    text = "\n".join(seen(what, database, *([patched] if is_patched else [])))
    assert re.fullmatch(SEEN[what][is_patched], text), text


@pytest.fixture
def pooler(postgres: EmbeddedPostgres, pgbouncer: str) -> Iterator[PgBouncer]:
    """A pooler that resets no session."""
    settings = {"server_reset_query_always": "0", "default_pool_size": str(SESSIONS), "min_pool_size": str(SESSIONS)}
    with PgBouncer(postgres, pgbouncer, settings) as pooler:
        yield pooler


def through(pooler: PgBouncer, dsn: str) -> str:
    """Return *dsn* by way of *pooler*."""
    return pooler.dsn(str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]))


def test_unpatched_storage_leaves_its_settings_to_other_clients(database: str, pooler: PgBouncer) -> None:
    if not pooler.follows_statements:
        pytest.skip("this PgBouncer follows no prepared statements: the storage cannot even be used")
    assert seen("pooler", through(pooler, database)) == ["met ConflictError"]
    assert "setting statement_timeout" in left(through(pooler, database), SESSIONS)


@pytest.mark.parametrize("has_direct_dsn", [True, False])
def test_patched_storage_leaves_nothing_and_a_crowd_has_conflicts_only(
    database: str, pooler: PgBouncer, patched: Path, has_direct_dsn: bool
) -> None:
    """Without a direct DSN nothing may be prepared: its statements are not tracked."""
    dsn = through(pooler, database)
    assert seen("pooler", dsn, patched, more=(database,) if has_direct_dsn else ("", "-1")) == ["met ConflictError"]
    assert left(dsn, SESSIONS) == []


@pytest.mark.parametrize("is_patched", [False, True])
def test_crowd_in_a_site_has_conflicts_only(
    is_patched: bool, dsn: str, postgres: EmbeddedPostgres, pgbouncer: str, patched: Path
) -> None:
    """With the documented ini; a pooler that tracks prepared statements needs no patch."""
    with PgBouncer(postgres, pgbouncer) as pooler:
        if not is_patched and not pooler.follows_statements:
            pytest.skip("this PgBouncer follows no prepared statements: the storage needs its patch")
        folders = [str(patched)] if is_patched else []
        environ = os.environ | {
            "PYTHONPATH": os.pathsep.join([*folders, str(ROOT)]),
            "PGCATALOG_DIRECT_DSN": past(postgres),
        }
        command = [sys.executable, str(CROWD), through(pooler, dsn), *([dsn] if is_patched else [])]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        assert set(found["errors"]) == {"ConflictError"}
        assert found["commits"] > 0
        assert found["differences"] == []
        assert not [line for line in pooler.log().splitlines() if "not found" in line]


@pytest.fixture(scope="module")
def standby() -> Iterator[str]:
    """The DSN of a standby with objects of the storage."""
    settings = with_standby(TEST_SETTINGS)
    with EmbeddedPostgres(settings=settings) as primary:
        assert seen("make", primary.dsn()) == ["made"]
        with primary.standby(settings=settings | {"max_standby_streaming_delay": "0"}) as standby:
            yield standby.dsn()


def test_unpatched_storage_cannot_open_a_standby(standby: str) -> None:
    assert seen("standby", standby) == ["no such key", "cannot be opened"]


def test_patched_storage_reads_a_standby_and_saves_nothing(standby: str, patched: Path) -> None:
    assert seen("standby", standby, patched) == ["shown kept", "refused", "refused", "shown kept", "repeated"]
