"""Copies between storages are complete, and losses of an incomplete copy are found and repaired."""

from BTrees.OOBTree import OOBTree
from click.testing import CliRunner
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from persistent.mapping import PersistentMapping
from plone.pgcatalog.cli.commands import main
from plone.pgcatalog.migration import copying
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from tests.acceptance.moves import sources
from tests.integration import site as sites
from tests.integration.patched import is_patched
from typing import Any
from ZODB.blob import Blob
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage
from ZODB.utils import p64
from ZODB.utils import u64
from zodb_pgjsonb.storage import PGJsonbStorage

import itertools
import json
import math
import os
import pytest
import pytz
import time
import transaction
import zodb_json_codec


_numbers = itertools.count(1)
DATA = bytes(range(256)) * 100

type Opens = Callable[[], Any]


@pytest.fixture
def jsonb(postgres: EmbeddedPostgres) -> Opens:
    """Opens a storage of zodb-pgjsonb, the same each time."""
    dsn = postgres.createdb(f"copied_{next(_numbers)}")
    return partial(PGJsonbStorage, dsn=dsn, **sites.STORAGE)


RELSTORAGE = pytest.param(
    "relstorage", marks=pytest.mark.direct("RelStorage does not work with such a pooler, it says")
)


@pytest.fixture(params=["filestorage", RELSTORAGE, "pgjsonb"])
def other(request: pytest.FixtureRequest, postgres: EmbeddedPostgres, tmp_path: Path) -> Opens:
    """Opens a storage of each kind, the same each time."""
    if request.param == "filestorage":
        return lambda: FileStorage(f"{tmp_path}/Data.fs", blob_dir=f"{tmp_path}/blobs")
    dsn = postgres.createdb(f"copied_{next(_numbers)}")
    if request.param == "pgjsonb":
        return partial(PGJsonbStorage, dsn=dsn, **sites.STORAGE)
    from relstorage.adapters.postgresql import PostgreSQLAdapter
    from relstorage.options import Options
    from relstorage.storage import RelStorage

    def opened() -> Any:
        options = Options(keep_history=False, blob_dir=f"{tmp_path}/blobs", shared_blob_dir=False)
        return RelStorage(PostgreSQLAdapter(dsn, options=options), options=options)

    return opened


def fill(opened: Opens) -> None:
    """Two transactions: objects with and without a state, a file that is changed, a table that becomes empty."""
    db = DB(opened())
    with db.transaction() as connection:
        root = connection.root()
        root["empty"], root["full"], root["emptied"] = OOBTree(), OOBTree({"a": 1}), OOBTree({"b": 1})
        root["mapping"], root["file"] = PersistentMapping(), Blob(b"first")
        root["named"] = PersistentMapping(file=Blob(b"small"))
    with db.transaction() as connection:
        root = connection.root()
        del root["emptied"]["b"]
        with root["file"].open("w") as file:
            file.write(DATA)
    db.close()


def holds(storage: Any) -> bool:
    """Return True if *storage*, which is closed at the end, has everything of `fill`."""
    db = DB(storage)
    try:
        with db.transaction() as connection:
            root = connection.root()
            with root["file"].open() as file, root["named"]["file"].open() as small:
                files = file.read(), small.read()
            lengths = [len(root[name]) for name in ("empty", "full", "emptied", "mapping")]
        return files == (DATA, b"small") and lengths == [0, 1, 0, 0]
    finally:
        transaction.abort()
        db.close()


CONF = "instancehome {}\n{}<zodb_db main>\nmount-point /\n{}</zodb_db>\n"


def conf_of(jsonb: Opens, folder: Path) -> str:
    """Return a zope.conf for the storage, in *folder*."""
    section = f"<pgjsonb>\ndsn {dsn_of(jsonb)}\n</pgjsonb>\n"
    (folder / "zope.conf").write_text(CONF.format(folder, "%import zodb_pgjsonb\n", section))
    return str(folder / "zope.conf")


def dsn_of(jsonb: Opens) -> str:
    storage = jsonb()
    storage.close()
    return str(storage._dsn)


def lost(source: Opens, target: Opens) -> list[int]:
    first, second = source(), target()
    try:
        return copying.missing(copying.seen(first), copying.seen(second))
    finally:
        first.close()
        second.close()


def test_a_copy_there_and_back_is_complete(jsonb: Opens, other: Opens, tmp_path: Path) -> None:
    fill(other)
    counts = []
    source, target = other(), jsonb()
    copying.copy(copying.SourceStorage(source, counts.append), target)
    source.close()
    target.close()
    assert counts == list(range(1, len(counts) + 1))
    assert len(counts) >= 2
    assert lost(other, jsonb) == []
    assert holds(jsonb())
    source, target = jsonb(), FileStorage(f"{tmp_path}/Back.fs", blob_dir=f"{tmp_path}/back")
    copying.copy(copying.SourceStorage(source), target)
    source.close()
    assert holds(target)


def test_every_object_of_a_filestorage_is_recorded_whatever_the_target_calls(other: Opens, tmp_path: Path) -> None:
    def opened() -> FileStorage:
        return FileStorage(f"{tmp_path}/Old.fs", blob_dir=f"{tmp_path}/old")

    fill(opened)
    storage, target = opened(), other()
    source = copying.SourceStorage(storage)
    copying.copy(source, target)
    assert sorted(source.tids) == sorted(copying.seen(storage).tids)
    # The root, and seven below it.
    assert (len(source.tids), len(source.blobs)) == (8, 2)
    storage.close()
    target.close()
    assert lost(opened, other) == []
    assert holds(other())


@pytest.mark.skipif(is_patched(), reason="a storage with its patches loses nothing")
def test_losses_of_the_storage_are_found_and_repaired(jsonb: Opens, other: Opens) -> None:
    fill(jsonb)
    source, target = jsonb(), other()
    target.copyTransactionsFrom(source)
    source.close()
    target.close()
    found = lost(jsonb, other)
    # Two empty BTrees and two files.
    assert len(found) == 4
    source, target = jsonb(), other()
    copying.repair(copying.seen(source), target, found)
    source.close()
    target.close()
    assert lost(jsonb, other) == []
    assert holds(other())


def test_repair_leaves_later_changes(jsonb: Opens, other: Opens) -> None:
    fill(jsonb)
    source, target = jsonb(), other()
    target.copyTransactionsFrom(source)
    source.close()
    db = DB(target)
    with db.transaction() as connection:
        connection.root()["full"]["later"] = 2
    db.close()
    found = lost(jsonb, other)
    source, target = jsonb(), other()
    copying.repair(copying.seen(source), target, found)
    source.close()
    db = DB(target)
    with db.transaction() as connection:
        assert dict(connection.root()["full"]) == {"a": 1, "later": 2}
        assert len(connection.root()["empty"]) == 0
    db.close()


def test_copy_names_a_value_that_is_another_one_in_the_target(
    jsonb: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The codec alone stores NaN as null, and `pytz.utc` as an offset, which is repaired on loading."""
    section = f"<filestorage>\npath {tmp_path}/Data.fs\nblob-dir {tmp_path}/blobs\n</filestorage>\n"
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "zope.conf").write_text(CONF.format(tmp_path / "old", "", section))
    command = ["copy", str(tmp_path / "old" / "zope.conf"), conf_of(jsonb, tmp_path)]
    db = DB(FileStorage(f"{tmp_path}/Data.fs", blob_dir=f"{tmp_path}/blobs"))
    with db.transaction() as connection:
        root = connection.root()
        root["event"] = PersistentMapping(start=datetime(2026, 6, 1, tzinfo=pytz.utc))
        root["figures"] = OOBTree({"mean": math.nan})
        connection.add(root["figures"])
        oid = root["figures"]._p_oid
    db.close()
    for name in ("decode_zodb_record_for_pg_json", "encode_zodb_record"):
        monkeypatch.setattr(zodb_json_codec, name, getattr(zodb_json_codec, name).__wrapped__)
    copied = CliRunner().invoke(main, command)
    assert copied.exit_code == 1, copied.output
    assert "the target has all objects\n3 objects were compared by value: 2 differ" in copied.output
    assert f"0x{u64(oid):x} (BTrees.OOBTree.OOBTree)" in copied.output
    assert "float nan became NoneType None" in copied.output
    assert "tzinfo=<UTC>) became" in copied.output
    monkeypatch.undo()
    checked = CliRunner().invoke(main, [*command, "--check", "--json"])
    assert checked.exit_code == 1
    [change] = json.loads(checked.stdout)["changed"]
    assert change["oid"] == u64(oid)
    assert CliRunner().invoke(main, [*command, "--check", "--sample", "0"]).exit_code == 0
    db = DB(jsonb())
    with db.transaction() as connection:
        connection.root()["figures"]["mean"] = 1.5
    db.close()
    checked = CliRunner().invoke(main, [*command, "--check"])
    assert checked.exit_code == 0, "saved since"
    assert "2 objects were compared by value: none differ" in checked.output


def test_a_zeo_server_is_a_source_and_no_target(jsonb: Opens, tmp_path: Path) -> None:
    layout = "cookiecutter-zope-instance"
    sources.make_instance(tmp_path, layout)
    (tmp_path / "new").mkdir()
    fill(lambda: sources.file_in(tmp_path, layout))
    conf, target_conf = tmp_path / "etc" / "zope.conf", conf_of(jsonb, tmp_path / "new")
    with sources.zeo_server(tmp_path, layout) as section:
        conf.write_text(CONF.format(tmp_path, "", section))
        copied = CliRunner().invoke(main, ["copy", str(conf), target_conf])
        refused = CliRunner().invoke(main, ["copy", target_conf, str(conf)])
    assert copied.exit_code == 0, copied.output
    assert "8 objects and 2 files" in copied.output
    assert refused.exit_code == 2
    assert "a copy cannot write through a ZEO server" in refused.output
    assert holds(jsonb())


def test_a_target_may_be_slow(jsonb: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage aborts a transaction without statements for a minute, here for a millisecond."""
    fill(jsonb)
    target = f"<filestorage>\npath {tmp_path}/Slow.fs\nblob-dir {tmp_path}/slow\n</filestorage>\n"
    (tmp_path / "target.conf").write_text(CONF.format(tmp_path, "", target))
    conf = conf_of(jsonb, tmp_path)
    monkeypatch.setattr("zodb_pgjsonb.storage.DEFAULT_IDLE_IN_XACT_TIMEOUT_MS", 1)
    tpc_finish = FileStorage.tpc_finish

    def slow(*args: Any) -> Any:
        time.sleep(0.01)
        return tpc_finish(*args)

    monkeypatch.setattr(FileStorage, "tpc_finish", slow)
    done = CliRunner().invoke(main, ["copy", conf, str(tmp_path / "target.conf")])
    assert done.exit_code == 0, done.output
    assert "ZODB_PGJSONB_IDLE_IN_XACT_TIMEOUT_MS" not in os.environ


def test_nonempty_target_is_refused(jsonb: Opens, other: Opens) -> None:
    fill(jsonb)
    fill(other)
    source, target = other(), jsonb()
    with pytest.raises(copying.CopyError, match="not empty"):
        copying.copy(copying.SourceStorage(source), target)
    source.close()
    target.close()
    assert holds(jsonb())


def test_missing_file_in_the_source_is_counted(jsonb: Opens, tmp_path: Path) -> None:
    def opened() -> FileStorage:
        return FileStorage(f"{tmp_path}/Old.fs", blob_dir=f"{tmp_path}/old")

    fill(opened)
    storage = opened()
    known = copying.seen(storage)
    gone = min(known.blobs)
    Path(storage.loadBlob(p64(gone), p64(known.tids[gone]))).unlink()
    target = jsonb()
    source = copying.SourceStorage(storage)
    copying.copy(source, target)
    assert (gone, known.tids[gone]) in source.lost_files
    assert copying.missing(source, copying.seen(target)) == []
    storage.close()
    target.close()
