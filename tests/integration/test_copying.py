"""Copies between storages are complete, and losses of an incomplete copy are found and repaired."""

from BTrees.OOBTree import OOBTree
from click.testing import CliRunner
from click.testing import Result
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import closing
from contextlib import contextmanager
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
        return partial(file_storage, tmp_path, "Data")
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


@contextmanager
def root_of(storage: Any) -> Iterator[Any]:
    """Yield the root of *storage* in a transaction; close *storage* at the end."""
    db = DB(storage)
    try:
        with db.transaction() as connection:
            yield connection.root()
    finally:
        db.close()


def fill(opened: Opens) -> None:
    """Two transactions: objects with and without a state, a file that is changed, a table that becomes empty."""
    with root_of(opened()) as root:
        root["empty"], root["full"], root["emptied"] = OOBTree(), OOBTree({"a": 1}), OOBTree({"b": 1})
        root["mapping"], root["file"] = PersistentMapping(), Blob(b"first")
        root["named"] = PersistentMapping(file=Blob(b"small"))
    with root_of(opened()) as root:
        del root["emptied"]["b"]
        with root["file"].open("w") as file:
            file.write(DATA)


def holds(storage: Any) -> bool:
    """Return True if *storage*, which is closed at the end, has everything of `fill`."""
    with root_of(storage) as root:
        with root["file"].open() as file, root["named"]["file"].open() as small:
            files = file.read(), small.read()
        lengths = [len(root[name]) for name in ("empty", "full", "emptied", "mapping")]
    return files == (DATA, b"small") and lengths == [0, 1, 0, 0]


CONF = "instancehome {}\n{}<zodb_db main>\nmount-point /\n{}</zodb_db>\n"


def write_conf(folder: Path, section: str, head: str = "") -> str:
    """Return the path of a zope.conf in *folder* for the storage of *section*."""
    folder.mkdir(exist_ok=True)
    (folder / "zope.conf").write_text(CONF.format(folder, head, section))
    return str(folder / "zope.conf")


def conf_of(jsonb: Opens, folder: Path) -> str:
    with closing(jsonb()) as storage:
        return write_conf(folder, f"<pgjsonb>\ndsn {storage._dsn}\n</pgjsonb>\n", "%import zodb_pgjsonb\n")


def file_conf(folder: Path, name: str) -> str:
    files = f"path {folder}/{name}.fs\nblob-dir {folder}/{name}-blobs"
    return write_conf(folder / name, f"<filestorage>\n{files}\n</filestorage>\n")


def lost(source: Opens, target: Opens) -> list[int]:
    with closing(source()) as first, closing(target()) as second:
        return copying.missing(copying.seen(first), copying.seen(second))


def file_storage(folder: Path, name: str) -> Any:
    return FileStorage(f"{folder}/{name}.fs", blob_dir=f"{folder}/{name}-blobs")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def test_a_copy_there_and_back_is_complete(jsonb: Opens, other: Opens, tmp_path: Path) -> None:
    fill(other)
    counts: list[int] = []
    with closing(other()) as source, closing(jsonb()) as target:
        copying.copy(copying.SourceStorage(source, counts.append), target)
    assert counts == list(range(1, len(counts) + 1))
    assert len(counts) >= 2
    assert lost(other, jsonb) == []
    assert holds(jsonb())
    target = file_storage(tmp_path, "Back")
    with closing(jsonb()) as source:
        copying.copy(copying.SourceStorage(source), target)
    assert holds(target)


def test_every_object_of_a_filestorage_is_recorded_whatever_the_target_calls(other: Opens, tmp_path: Path) -> None:
    opened = partial(file_storage, tmp_path, "Old")
    fill(opened)
    with closing(opened()) as storage, closing(other()) as target:
        source = copying.SourceStorage(storage)
        copying.copy(source, target)
        assert sorted(source.tids) == sorted(copying.seen(storage).tids)
    # The root, and seven below it.
    assert (len(source.tids), len(source.blobs)) == (8, 2)
    assert lost(opened, other) == []
    assert holds(other())


def repair(source: Opens, target: Opens) -> None:
    found = lost(source, target)
    with closing(source()) as first, closing(target()) as second:
        copying.repair(copying.seen(first), second, found)


@pytest.fixture
def incomplete(jsonb: Opens, other: Opens) -> Opens:
    """Opens a copy that the storage's own code has made."""
    fill(jsonb)
    with closing(jsonb()) as source, closing(other()) as target:
        target.copyTransactionsFrom(source)
    return other


@pytest.mark.skipif(is_patched(), reason="a storage with its patches loses nothing")
def test_losses_of_the_storage_are_found_and_repaired(jsonb: Opens, incomplete: Opens) -> None:
    # Two empty BTrees and two files.
    assert len(lost(jsonb, incomplete)) == 4
    repair(jsonb, incomplete)
    assert lost(jsonb, incomplete) == []
    assert holds(incomplete())


def test_repair_leaves_later_changes(jsonb: Opens, incomplete: Opens) -> None:
    with root_of(incomplete()) as root:
        root["full"]["later"] = 2
    repair(jsonb, incomplete)
    with root_of(incomplete()) as root:
        assert dict(root["full"]) == {"a": 1, "later": 2}
        assert len(root["empty"]) == 0


def test_copy_names_a_value_that_is_another_one_in_the_target(
    jsonb: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The codec alone stores NaN as null, and `pytz.utc` as an offset, which is repaired on loading."""
    command = ["copy", file_conf(tmp_path, "Data"), conf_of(jsonb, tmp_path)]
    with root_of(file_storage(tmp_path, "Data")) as root:
        root["event"] = PersistentMapping(start=datetime(2026, 6, 1, tzinfo=pytz.utc))
        root["figures"] = OOBTree({"mean": math.nan})
        root._p_jar.add(root["figures"])
        oid = root["figures"]._p_oid
    for name in ("decode_zodb_record_for_pg_json", "encode_zodb_record"):
        monkeypatch.setattr(zodb_json_codec, name, getattr(zodb_json_codec, name).__wrapped__)
    copied = run(*command)
    assert copied.exit_code == 1, copied.output
    assert "the target has all objects\n3 objects were compared by value: 2 differ" in copied.output
    assert f"0x{u64(oid):x} (BTrees.OOBTree.OOBTree)" in copied.output
    assert "float nan became NoneType None" in copied.output
    assert "tzinfo=<UTC>) became" in copied.output
    monkeypatch.undo()
    checked = run(*command, "--check", "--json")
    assert checked.exit_code == 1
    [change] = json.loads(checked.stdout)["changed"]
    assert change["oid"] == u64(oid)
    assert run(*command, "--check", "--sample", "0").exit_code == 0
    with root_of(jsonb()) as root:
        root["figures"]["mean"] = 1.5
    checked = run(*command, "--check")
    assert checked.exit_code == 0, "saved since"
    assert "2 objects were compared by value: none differ" in checked.output


def test_a_zeo_server_is_a_source_and_no_target(jsonb: Opens, tmp_path: Path) -> None:
    layout = "cookiecutter-zope-instance"
    sources.make_instance(tmp_path, layout)
    fill(lambda: sources.file_in(tmp_path, layout))
    conf, target_conf = tmp_path / "etc" / "zope.conf", conf_of(jsonb, tmp_path / "new")
    with sources.zeo_server(tmp_path, layout) as section:
        conf.write_text(CONF.format(tmp_path, "", section))
        copied = run("copy", str(conf), target_conf)
        refused = run("copy", target_conf, str(conf))
    assert copied.exit_code == 0, copied.output
    assert "8 objects and 2 files" in copied.output
    assert refused.exit_code == 2
    assert "a copy cannot write through a ZEO server" in refused.output
    assert holds(jsonb())


def test_a_target_may_be_slow(jsonb: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage aborts a transaction without statements for a minute, here for a millisecond."""
    fill(jsonb)
    confs = conf_of(jsonb, tmp_path), file_conf(tmp_path, "Slow")
    monkeypatch.setattr("zodb_pgjsonb.storage.DEFAULT_IDLE_IN_XACT_TIMEOUT_MS", 1)
    tpc_finish = FileStorage.tpc_finish

    def slow(*args: Any) -> Any:
        time.sleep(0.01)
        return tpc_finish(*args)

    monkeypatch.setattr(FileStorage, "tpc_finish", slow)
    done = run("copy", *confs)
    assert done.exit_code == 0, done.output
    assert "ZODB_PGJSONB_IDLE_IN_XACT_TIMEOUT_MS" not in os.environ


def test_nonempty_target_is_refused(jsonb: Opens, other: Opens) -> None:
    fill(jsonb)
    fill(other)
    refused = pytest.raises(copying.CopyError, match="not empty")
    with closing(other()) as source, closing(jsonb()) as target, refused:
        copying.copy(copying.SourceStorage(source), target)
    assert holds(jsonb())


def test_missing_file_in_the_source_is_counted(jsonb: Opens, tmp_path: Path) -> None:
    opened = partial(file_storage, tmp_path, "Old")
    fill(opened)
    with closing(opened()) as storage, closing(jsonb()) as target:
        known = copying.seen(storage)
        gone = min(known.blobs)
        Path(storage.loadBlob(p64(gone), p64(known.tids[gone]))).unlink()
        source = copying.SourceStorage(storage)
        copying.copy(source, target)
        assert (gone, known.tids[gone]) in source.lost_files
        assert copying.missing(source, copying.seen(target)) == []
