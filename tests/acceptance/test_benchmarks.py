"""The benchmark, tiny: commands measure all their backends, and results become tables with the right ratios."""

from benchmarks.backends import OTHER
from benchmarks.documents import documents
from benchmarks.running import OtherOptions
from benchmarks.running import ResultFile
from benchmarks.scripts import SCRIPTS
from benchmarks.tables import tables
from benchmarks.text_search import SHARED
from benchmarks.wire import Relay
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres

import json
import psycopg
import pytest
import shlex
import subprocess
import sys


ROOT = Path(__file__).parents[2]
QUICK = "--iterations 1 --warmup 0"
QUERIES = "--scenario 'full text' --scenario 'by date, one page'"
CATALOGS = ["pgcatalog", "relstorage-zcatalog"]
STORAGES = ["pgjsonb", "relstorage"]
#: Documents that the reader of ``search`` sees: also private ones, in some folders.
VISIBLE = sum(d.state == "published" or int(d.folder.removeprefix("folder")) % SHARED == 0 for d in documents(40))
#: Command -> its options, its backends, and some of their measures.
COMMANDS: dict[str, tuple[str, list[str], set[str]]] = {
    # This checkout, in place of another.
    "level2": (
        f"--docs 12 --backend pgcatalog --other {shlex.quote(str(ROOT))} {QUERIES} {QUICK}",
        ["pgcatalog", OTHER],
        {"site creation", "modification of a document", "rebuild", "resident memory", "store() calls per document"},
    ),
    "level1": (f"--rows 60 {QUERIES} {QUICK}", [*CATALOGS, "bare-sql"], {"database size"}),
    "scripts": (f"--docs 12 --backend pgcatalog {QUICK}", ["pgcatalog"], {script.name for script in SCRIPTS}),
    "scale": (f"--rows 120 {QUICK}", ["pgcatalog"], {"VACUUM ANALYZE after it"}),
    "pages": (
        "--docs 12 --seconds 0.1 --rounds 1 --starts 1 --page 'live search'",
        CATALOGS,
        {"start of a process"},
    ),
    "rebuild": ("--docs 8 --worker 1", ["pgcatalog"], {"a page meanwhile, 1 process"}),
    "plone": (f"--docs 3 {QUICK}", ["pgjsonb-zcatalog"], {"creation of a document", "catalog query"}),
    "storage": (QUICK, STORAGES, {"store 1", "load 100"}),
    "zodb": (QUICK, STORAGES, {"write simple", "connection cycle"}),
    "pack": ("--sizes 10,20", STORAGES, {"pack 10", "pack 20"}),
    "codec": (f"all --with-site {QUICK}", ["codec", "pickle"], {"FileStorage, records", "FileStorage, decode"}),
    "zodbbench": ("--count 200 --batch 50", [*STORAGES, "filestorage", "plain-sql"], {"200 objects, look-up"}),
    "files": (
        "--iterations 1 --files 4 --uploads 4 --seconds 1 --backend pgcatalog",
        ["pgcatalog"],
        {"save a PDF of 5 MB, 200 pages"},
    ),
    "search": (f"--docs 40 --backend pgcatalog {QUICK}", ["pgcatalog"], {"with facets and snippets / without"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_command_measures_the_same_with_each_backend(command: str, tmp_path: Path) -> None:
    options, backends, names = COMMANDS[command]
    path = tmp_path / "results.json"
    words = [sys.executable, "-W", "ignore", "benchmarks/run_benchmarks.py", command, *shlex.split(options)]
    done = subprocess.run(
        [*words, "--output", str(path)], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert str(ROOT) not in path.read_text()
    data = json.loads(path.read_text())
    assert {"machine", "versions", "date"} <= data.keys()
    assert ("--backend" in words) == ("--backend" in shlex.split(data["command_line"]))
    results = data["results"]
    for backend in backends:
        medians = {name: figure["median"] for name, figure in results[backend]["measures"].items()}
        assert names <= medians.keys()
        assert all(medians[name] > 0 for name in names)
        records = results[backend].get("queries", []) + results[backend].get("pages", [])
        assert all(record["min"] <= record["median"] <= record["p95"] for record in records)
        answers = [
            record for record in records if record.get("page") == "live search" and record["state"] == "read only"
        ]
        assert command != "pages" or [record["answer_kb"] > 0 for record in answers] == [True]
        found = {record["scenario"]: record["found"] for record in results[backend].get("queries", [])}
        assert found == {record["scenario"]: record["found"] for record in results[backends[0]].get("queries", [])}
        assert command != "search" or found["a word of all documents"] == VISIBLE
    if command == "level2":
        ours = results["pgcatalog"]["measures"]
        calls = [ours[f"store() calls {when}"]["median"] for when in ("per document", "without a catalog")]
        assert calls[0] <= calls[1], "the catalog stores an object"
    assert all(table.rows for table in tables(data))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "options", "filled"),
    [
        ("search", f"--docs 40 {QUICK}", ()),
        ("level1", f"--rows 60 {QUERIES} {QUICK}", ("filling, per row",)),
        ("level2", f"--docs 12 --backend pgcatalog {QUERIES} {QUICK}", ("site creation",)),
        ("scale", f"--rows 120 {QUICK}", ("rebuild: rows in a second, without taking them from objects",)),
    ],
)
def test_kept_site_is_the_site_as_it_was_filled(
    command: str, options: str, filled: tuple[str, ...], tmp_path: Path
) -> None:
    words = [sys.executable, "-W", "ignore", "benchmarks/run_benchmarks.py", command, *shlex.split(options)]
    words += ["--keep", str(tmp_path / "sites")]
    runs = []
    for number in range(2):
        path = tmp_path / f"{number}.json"
        done = subprocess.run([*words, "--output", path], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        runs.append(json.loads(path.read_text()))
    first, second = (run["results"] for run in runs)
    assert runs[0]["options"] == runs[1]["options"]
    for backend in first:
        found, again = ([record["found"] for record in side[backend].get("queries", ())] for side in (first, second))
        assert found == again
        assert first[backend]["measures"].keys() == second[backend]["measures"].keys()
        assert "kept" not in first[backend]
        if backend != "bare-sql":
            assert second[backend]["kept"] >= runs[0]["date"]
            for name in filled:
                assert first[backend]["measures"][name] == second[backend]["measures"][name]


def test_relay_counts_messages_and_transferred_bytes(postgres: EmbeddedPostgres) -> None:
    with Relay(postgres.dsn()) as relay, psycopg.connect(relay.dsn, autocommit=True) as connection:
        messages, received = relay.counts()
        connection.execute("SELECT repeat('a', 100000)")
        assert relay.counts()[0] - messages == 1
        assert 100_000 < relay.counts()[1] - received < 101_000


def test_result_file_of_other_options_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "level1.json"
    path.write_text(json.dumps({"command": "level1", "options": {"rows": 60}, "done": ["bare-sql"]}))
    for command, rows in (("level1", 61), ("scale", 60)):
        with pytest.raises(OtherOptions):
            ResultFile(command, {"rows": rows}, path).load(again=False)
