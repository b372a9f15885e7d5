"""The benchmark, tiny: each command measures all its backends, and results become tables with the right ratios."""

from benchmarks import meaning_tables
from benchmarks.backends import OTHER
from benchmarks.documents import documents
from benchmarks.report import Pair
from benchmarks.run_benchmarks import main
from benchmarks.run_benchmarks import PLAN
from benchmarks.running import OtherOptions
from benchmarks.running import ResultFile
from benchmarks.scripts import SCRIPTS
from benchmarks.tables import measures_table
from benchmarks.tables import tables
from benchmarks.text_search import SHARED
from benchmarks.timing import repeated
from benchmarks.timing import summary
from benchmarks.timing import value
from benchmarks.wire import Relay
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from typing import Any

import json
import psycopg
import pytest
import shlex
import shutil
import subprocess
import sys


ROOT = Path(__file__).parents[2]
QUICK = "--iterations 3 --warmup 1"
SEARCHES = f"--scenario 'full text' --scenario 'by date, one page' {QUICK}"
CATALOGS = ["pgcatalog", "relstorage-zcatalog"]
STORAGES = ["pgjsonb", "relstorage"]
#: Documents that the reader of ``search`` sees: also private ones, in some folders.
VISIBLE = sum(d.state == "published" or int(d.folder.removeprefix("folder")) % SHARED == 0 for d in documents(40))
#: Command -> its options, its backends, and some of their measures.
COMMANDS: dict[str, tuple[str, list[str], set[str]]] = {
    "level1": (f"--rows 60 {SEARCHES}", [*CATALOGS, "bare-sql"], {"database size"}),
    # This checkout, in place of another.
    "level2": (
        f"--docs 22 --backend pgcatalog --backend relstorage-zcatalog --other {shlex.quote(str(ROOT))} {SEARCHES}",
        [*CATALOGS, OTHER],
        {"site creation", "modification of a document", "rebuild", "resident memory", "store() calls per document"},
    ),
    "search": (f"--docs 40 --backend pgcatalog {QUICK}", ["pgcatalog"], {"with facets and snippets / without"}),
    "scripts": ("--docs 30 --iterations 1", CATALOGS, {script.name for script in SCRIPTS}),
    "scale": (f"--rows 120 {QUICK}", ["pgcatalog"], {"VACUUM ANALYZE after it"}),
    "pages": (
        "--docs 30 --seconds 0.1 --rounds 1 --starts 1 --page 'live search' --page 'Volto page'",
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
    "files": ("--iterations 2 --files 4 --uploads 4 --seconds 1", CATALOGS, {"save a PDF of 5 MB, 200 pages"}),
}
#: Command -> scenario -> number of its matches.
MATCHES = {"search": {"a word of all documents": VISIBLE}, "scale": {"a word of one row": 1, "uid": 1}}
#: Figures that are 0 if nothing is lost, and nothing extracted twice.
NOTHING = ("not found once in the end", "extracted once more after a rebuild")


def run(*command: str) -> None:
    """Run a program of the benchmarks."""
    words = [sys.executable, "-W", "ignore", *command]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_command_measures_the_same_with_each_backend(command: str, tmp_path: Path) -> None:
    if command == "files" and shutil.which("pdftotext") is None:
        pytest.skip("needs pdftotext (poppler-utils)")
    options, backends, names = COMMANDS[command]
    path = tmp_path / "results.json"
    run("benchmarks/run_benchmarks.py", command, *shlex.split(options), "--output", str(path))
    assert str(ROOT) not in path.read_text()
    data = json.loads(path.read_text())
    assert {"machine", "versions", "date", "command_line"} <= data.keys()
    results = data["results"]
    assert set(backends) <= results.keys()
    for backend in backends:
        medians = {name: figure["median"] for name, figure in results[backend]["measures"].items()}
        assert names <= medians.keys()
        assert all(medians[name] > 0 for name in names)
        assert all(count == 0 for name, count in medians.items() if name.endswith(NOTHING))
        records = results[backend].get("queries", []) + results[backend].get("pages", [])
        assert all(record["min"] <= record["median"] <= record["p95"] for record in records)
        found = {record["scenario"]: record["found"] for record in results[backend].get("queries", [])}
        assert found == found | MATCHES.get(command, {})
        assert found == {record["scenario"]: record["found"] for record in results[backends[0]].get("queries", [])}
    if command == "level2":
        ours = results["pgcatalog"]["measures"]
        calls = [ours[f"store() calls {when}"]["median"] for when in ("per document", "without a catalog")]
        assert calls[0] <= calls[1], "the catalog stores an object"
    assert all(table.rows for table in tables(data))


@pytest.mark.slow
def test_search_by_meaning_is_measured_in_a_site_of_any_size(tmp_path: Path) -> None:
    path = tmp_path / "meaning.json"
    sizes = ["--pages", "3", "--chunks", "2000", "--saves", "20", "--output", str(path)]
    run("-m", "benchmarks.meaning", "fill", "latency", "saves", *sizes)
    parts = json.loads(path.read_text())
    assert parts["fill"]["pages"] >= 3
    assert parts["latency"]["2,000 chunks"]["all"]["hits"] > 0
    assert parts["latency"]["2,000 chunks"]["path, 0.1 %"]["recall@10"] == 1
    assert parts["saves"]["with / without"] > 0
    assert {"latency", "costs"} <= meaning_tables.generated(parts).keys()


def test_relay_counts_messages_and_transferred_bytes() -> None:
    with (
        EmbeddedPostgres(settings=TEST_SETTINGS) as server,
        Relay(server.dsn()) as relay,
        psycopg.connect(relay.dsn, autocommit=True) as connection,
    ):
        messages, received = relay.counts()
        connection.execute("SELECT repeat('a', 100000)")
        assert relay.counts()[0] - messages == 1
        assert 100_000 < relay.counts()[1] - received < 101_000


def test_figures_are_those_of_repetitions_behind_the_warm_up() -> None:
    calls: list[int] = []
    assert len(repeated(calls.append, 3, warmup=2)) == 3
    assert calls == [0, 1, 2, 3, 4]
    figure = summary([0.003, 0.001, 0.002, 0.1])
    assert (figure["median"], figure["min"], figure["n"]) == (2.5, 1, 4)


@pytest.mark.parametrize("reference", ["relstorage-zcatalog", OTHER])
def test_ratio_is_our_median_by_that_of_the_reference(reference: str) -> None:
    medians = {"pgcatalog": 3, reference: 6}
    results: dict[str, Any] = {name: {"measures": {"rebuild": value(each, "s")}} for name, each in medians.items()}
    data = {"command": "level2", "options": {"docs": 3}, "results": results}
    assert measures_table(data).rows[0][-1] == "0.50"
    assert Pair("rebuild", 3, theirs=6, ours=3).times_as_fast == "2"


def test_result_file_of_other_options_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "level1.json"
    path.write_text(json.dumps({"command": "level1", "options": {"rows": 60}, "done": ["bare-sql"]}))
    for command, rows in (("level1", 61), ("scale", 60)):
        with pytest.raises(OtherOptions):
            ResultFile(command, {"rows": rows}, path).load(again=False)
    same = ResultFile("level1", {"rows": 60}, path)
    same.load(again=False)
    assert same.data["done"] == ["bare-sql"]


def test_plan_of_the_documentation_has_each_command() -> None:
    for name, *arguments in map(str.split, PLAN.values()):
        main.commands[name].make_context(name, arguments)
    assert {line.split()[0] for line in PLAN.values()} == main.commands.keys() - {"all", "report"}
    assert COMMANDS.keys() == main.commands.keys() - {"all", "report"}
