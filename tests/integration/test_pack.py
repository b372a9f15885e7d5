"""Packs during saves: no reachable object is removed, whatever other processes commit, and whenever."""

from collections.abc import Iterator
from pathlib import Path
from persistent.mapping import PersistentMapping
from plone.pgcatalog.database.direct import pack_directly
from plone.pgcatalog.storage import PACK_ATTEMPTS
from plone.pgcatalog.storage import PackConflict
from tests.integration import packing
from tests.integration.upstream_check import LOST
from tests.integration.upstream_check import Process
from ZODB.blob import Blob

import os
import psycopg
import pytest
import subprocess
import sys
import threading
import time


ROOT = Path(__file__).parents[2]
#: Time until which a storage with history is packed.
LATER = 60
#: Seconds after which an unfinished thread counts as hung.
HANGS = 60.0


@pytest.fixture(autouse=True)
def packs() -> None:
    """Patch packs as Zope does when it opens a database."""
    pack_directly()


@pytest.fixture(params=[False, True], ids=["without history", "with history"])
def processes(request: pytest.FixtureRequest, database: str) -> Iterator[tuple[Process, Process]]:
    """(a process that packs, a process that saves)."""
    found = [Process(database, history_preserving=request.param) for _ in range(2)]
    yield found[0], found[1]
    for process in found:
        process.close()


def pack(process: Process) -> None:
    process.db.pack(time.time() + LATER)


def leave_garbage(process: Process) -> None:
    """Create a page, and an object without a reference."""
    process.make("page", "garbage")
    with process.manager:
        del process.root["garbage"]


def lost(process: Process) -> int:
    """Return the number of dangling references of all objects."""
    with psycopg.connect(process.db.storage._dsn) as connection:
        [(number,)] = connection.execute(LOST).fetchall()
        return int(number)


def oids_of(process: Process) -> set[int]:
    with psycopg.connect(process.db.storage._dsn) as connection:
        return {zoid for (zoid,) in connection.execute("SELECT zoid FROM object_state")}


@pytest.mark.parametrize("moment", packing.MOMENTS)
def test_objects_saved_during_a_pack_stay(processes: tuple[Process, Process], moment: str) -> None:
    one, other = processes
    leave_garbage(one)

    def save() -> None:
        other.make("new")
        with other.manager:
            other.root["page"]["file"] = Blob(b"a file")
            other.root["page"]["value"] = "saved"

    before = oids_of(one)
    with packing.at(moment, save):
        pack(one)
    assert lost(one) == 0
    assert len(before - oids_of(one)) == 1
    for process in processes:
        with process.manager:
            assert process.root["new"]["value"] == "kept"
            assert process.root["page"]["value"] == "saved"
            assert process.root["page"]["file"].open().read() == b"a file"


@pytest.mark.parametrize("moment", packing.MOMENTS[:-1])
@pytest.mark.parametrize("does_change", [False, True], ids=["not changed", "changed"])
def test_objects_restored_by_a_slow_transaction_stay(
    processes: tuple[Process, Process], moment: str, does_change: bool
) -> None:
    """The transaction began before another one removed the object, as one that moves a page out of a deleted folder.

    The commit that changes an object which the pack is removing waits; the pack gives way to it.
    """
    one, other = processes
    one.make("folder", "other")
    with one.manager:
        one.root["folder"]["page"] = PersistentMapping(value="kept")
    other.manager.begin()
    page = other.root["folder"]["page"]
    assert page["value"] == "kept"
    with one.manager:
        del one.root["folder"]
    other.root["other"]["page"] = page
    if does_change:
        page["value"] = "changed"
    saver = threading.Thread(target=other.manager.commit)

    def put_back() -> None:
        if saver.ident is None:
            saver.start()
            while saver.is_alive() and not is_anybody_waiting(one):
                saver.join(0.01)

    with packing.steps_of_packs() as steps, packing.at(moment, put_back):
        pack(one)
    saver.join(HANGS)
    assert not saver.is_alive()
    assert lost(one) == 0
    # Whether the second attempt meets the waiting commit again depends on timing.
    assert 2 <= steps.count(packing.MOMENTS[0]) <= PACK_ATTEMPTS
    for process in processes:
        with process.manager:
            assert process.root["other"]["page"]["value"] == ("changed" if does_change else "kept")


def is_anybody_waiting(process: Process) -> bool:
    with psycopg.connect(process.db.storage._dsn) as connection:
        return bool(connection.execute("SELECT FROM pg_locks WHERE NOT granted").fetchall())


def test_pack_that_always_conflicts_stops_and_removes_nothing(processes: tuple[Process, Process]) -> None:
    one, _ = processes
    one.make("garbage")
    with one.manager:
        oid = int.from_bytes(one.root["garbage"]._p_oid)
        del one.root["garbage"]
    before = oids_of(one)

    def touch() -> None:
        with psycopg.connect(one.db.storage._dsn) as connection:
            connection.execute("UPDATE object_state SET state_size = state_size + 1 WHERE zoid = %s", [oid])

    with (
        packing.steps_of_packs() as steps,
        packing.at(packing.MOMENTS[0], touch),
        pytest.raises(PackConflict, match="pack again") as refused,
    ):
        pack(one)
    # An administrator reads one sentence, not PostgreSQL's message of each attempt.
    assert refused.value.__context__ is None
    assert steps.count(packing.MOMENTS[0]) == PACK_ATTEMPTS
    assert oids_of(one) == before
    pack(one)
    assert before - oids_of(one) == {oid}


def test_other_threads_can_use_the_connection_of_the_storage_and_pack(processes: tuple[Process, Process]) -> None:
    """New oids are fetched by it, which a statement of the pack would block."""
    one, other = processes
    leave_garbage(one)
    storage = one.db.storage
    own = storage._ensure_admin_conn()
    met = []

    def meanwhile() -> None:
        met.append(storage._ensure_admin_conn() is own and storage.new_oid())
        if threading.current_thread() is threading.main_thread():
            thread = threading.Thread(target=pack, args=[one])
            thread.start()
            thread.join(HANGS)
            assert not thread.is_alive()

    with packing.at(packing.MOMENTS[0], meanwhile):
        pack(one)
    assert len(met) > 1
    assert all(met)
    assert storage._ensure_admin_conn() is own
    assert "_ensure_admin_conn" not in vars(storage)
    assert lost(one) == 0
    assert other.read("page") == "kept"


def test_keys_of_files_elsewhere_are_removed_once_and_only_after_the_commit(database: str) -> None:
    """A pack that begins again, or fails, has removed no file."""

    class Bucket:
        def __init__(self) -> None:
            self.files: dict[str, bytes] = {}

        def upload_file(self, path: str, key: str) -> None:
            self.files[key] = Path(path).read_bytes()

        def download_file(self, key: str, path: str) -> None:
            Path(path).write_bytes(self.files[key])

        def delete_object(self, key: str) -> None:
            del self.files[key]

    bucket = Bucket()
    one, other = (Process(database, s3_client=bucket, blob_threshold=1) for _ in range(2))
    with one.manager:
        one.root["folder"] = PersistentMapping(file=Blob(b"put back"))
        one.root["garbage"] = Blob(b"garbage")
        one.root["other"] = PersistentMapping()
    with one.manager:
        del one.root["garbage"]
    other.manager.begin()
    file = other.root["folder"]["file"]
    file.open().close()
    with one.manager:
        del one.root["folder"]

    def put_back() -> None:
        assert b"garbage" in bucket.files.values()
        if "file" not in other.root["other"]:
            other.root["other"].update(file=file, new=Blob(b"new"))
            other.manager.commit()
            other.manager.begin()

    with packing.at(packing.MOMENTS[0], put_back):
        pack(one)
    other.manager.abort()
    assert sorted(bucket.files.values()) == [b"new", b"put back"]
    for process in (one, other):
        process.close()


@pytest.mark.parametrize(
    ("way", "package"),
    [
        ("zodbpack", "plone.pgcatalog"),
        *(pytest.param(way, "plone.pgcatalog", marks=pytest.mark.slow) for way in ("script", "zmi")),
        pytest.param("zodbpack", "zodb_pgjsonb", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("keeps_history", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_each_way_to_pack_is_safe_if_its_configuration_imports_us(
    dsn: str, tmp_path: Path, way: str, keeps_history: bool, package: str
) -> None:
    """Without our package the console script is not safe, as documented."""
    pytest.importorskip("relstorage.zodbpack")
    Process(dsn, history_preserving=keeps_history).close()
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.integration.packing", dsn, str(keeps_history), way, package]
    done = subprocess.run(command, env=environ, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-2:] == ["lost", "0" if package == "plone.pgcatalog" else "1"]
