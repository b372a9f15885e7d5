"""The benchmark, tiny: every command measures what its documentation states, and the pages are built from stored results."""

from benchmarks import meaning_tables
from benchmarks.documents import documents
from benchmarks.page_kinds import FIRST_REQUEST
from benchmarks.page_kinds import MIX
from benchmarks.run_benchmarks import main
from benchmarks.scripts import SCRIPTS
from benchmarks.tables import page_pairs
from benchmarks.tables import tables
from benchmarks.text_search import SHARED
from benchmarks.wire import Relay
from collections.abc import Iterator
from pathlib import Path
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from plone.pgcatalog.testing.embedded import TEST_SETTINGS
from typing import Any
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage

import json
import psycopg
import pytest
import shlex
import shutil
import subprocess
import sys
import transaction


ROOT = Path(__file__).parents[2]
SCRIPT = "benchmarks/run_benchmarks.py"
QUICK = ("--iterations", "3", "--warmup", "1")
SEARCHES = ("--scenario", "full text", "--scenario", "by date, one page")
STORAGES = ["pgjsonb", "relstorage"]
OURS_AND_THEIRS = ("--backend", "pgcatalog", "--backend", "relstorage-zcatalog")


def benchmark(*arguments: str) -> str:
    """Run the command; return its output."""
    command = [sys.executable, "-W", "ignore", SCRIPT, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the result files of this module."""
    return tmp_path_factory.mktemp("results")


def measured(results: Path, *arguments: str) -> dict[str, Any]:
    """Run a command with stored results; return them."""
    path = results / f"{arguments[0]}.json"
    printed = benchmark(*arguments, "--output", str(path))
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    assert data["command"] == arguments[0]
    assert {"machine", "versions", "date", "command_line"} <= data.keys()
    assert str(ROOT) not in path.read_text("utf-8")
    assert [line for line in printed.splitlines() if line.strip()]
    return data


def medians(data: dict[str, Any], backend: str) -> dict[str, float]:
    return {name: figure["median"] for name, figure in data["results"][backend]["measures"].items()}


def found(data: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return backend -> scenario -> number of matches."""
    return {
        backend: {record["scenario"]: record["found"] for record in result["queries"]}
        for backend, result in data["results"].items()
    }


@pytest.mark.slow
def test_level1_has_the_same_matches_everywhere_in_every_state(results: Path) -> None:
    command = ("level1", "--rows", "60", *SEARCHES, *QUICK)
    data = measured(results, *command)
    matches = found(data)
    assert set(matches) == {"bare-sql", "pgcatalog", "relstorage-zcatalog"}
    assert matches["pgcatalog"] == matches["relstorage-zcatalog"] == matches["bare-sql"]
    assert min(matches["pgcatalog"].values()) > 0
    assert medians(data, "bare-sql")["bare round trip"] > 0
    records = data["results"]["pgcatalog"]["queries"]
    assert len({(r["values"], r["state"], r["touch"]) for r in records}) == 18
    assert {r["n"] for r in records if r["state"] != "warm"} == {3}
    assert all(r["min"] <= r["median"] <= r["p95"] for r in records)
    # A finished command is not run again, and stored results can be shown.
    before = (results / "level1.json").stat().st_mtime_ns
    assert measured(results, *command) == data
    assert (results / "level1.json").stat().st_mtime_ns == before
    printed = benchmark("report", str(results / "level1.json"))
    assert all(table.markdown() in printed for table in tables(data))


@pytest.mark.slow
def test_level2_compares_writes_searches_and_sizes(results: Path) -> None:
    level2 = measured(results, "level2", "--docs", "22", *SEARCHES, *QUICK, *OURS_AND_THEIRS)
    matches = found(level2)
    assert matches["pgcatalog"] == matches["relstorage-zcatalog"]
    records = level2["results"]["pgcatalog"]["queries"]
    assert {(r["values"], r["state"]) for r in records if r["cache"] == 30_000} == {
        ("repeating", "request"),
        ("repeating", "after write"),
        ("varying", "request"),
    }
    ours, theirs = medians(level2, "pgcatalog"), medians(level2, "relstorage-zcatalog")
    assert ours.keys() == theirs.keys()
    assert {"site creation", "modification of a document", "rebuild", "database size", "resident memory"} <= ours.keys()
    assert {"uniqueValuesFor, first time", "getObject over a page", "commit's share of creation"} <= ours.keys()
    assert min([*ours.values(), *theirs.values()]) > 0
    # A new document costs no more store() calls than without any catalog; with ZCatalog's trees it does.
    assert ours["store() calls per document"] <= ours["store() calls without a catalog"]
    assert theirs["store() calls per document"] > theirs["store() calls without a catalog"] + 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "backends", "names"),
    [
        (
            ("rebuild", "--docs", "8", "--worker", "1"),
            ["pgcatalog"],
            {"rebuild, 1 process", "a page meanwhile, 1 process"},
        ),
        (
            ("plone", "--docs", "3", "--backend", "pgjsonb-zcatalog", *QUICK),
            ["pgjsonb-zcatalog"],
            {"site creation", "creation of a document", "catalog query"},
        ),
        (("storage", *QUICK), STORAGES, {"store 1", "store 10", "store 100", "load 1", "load 100"}),
        (("zodb", *QUICK), STORAGES, {"write simple", "write btree", "write batch 10", "read", "connection cycle"}),
        (("pack", "--sizes", "10,20"), STORAGES, {"pack 10", "pack 20"}),
        (
            ("zodbbench", "--count", "200", "--batch", "50"),
            ["filestorage", *STORAGES, "plain-sql"],
            {f"{size} objects, {what}" for size in (100, 200) for what in ("inserts", "look-up")},
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_command_has_the_measurements_of_its_documentation(
    results: Path, command: tuple[str, ...], backends: list[str], names: set[str]
) -> None:
    data = measured(results, *command)
    for backend in backends:
        assert names <= medians(data, backend).keys()
        assert min(medians(data, backend).values()) > 0


@pytest.mark.slow
def test_search_runs_as_a_member_with_private_folders(results: Path) -> None:
    data = measured(results, "search", "--docs", "40", "--backend", "pgcatalog", *QUICK)
    visible = [d for d in documents(40) if d.state == "published" or int(d.folder.removeprefix("folder")) % SHARED == 0]
    assert found(data)["pgcatalog"]["a word of all documents"] == len(visible)
    ours = medians(data, "pgcatalog")
    assert min(ours.values()) > 0
    assert {"with facets and snippets / without", "did you mean, a typo in two words"} <= ours.keys()


@pytest.mark.slow
def test_scale_fills_a_site_and_searches_it(results: Path) -> None:
    rows = 120
    data = measured(results, "scale", "--rows", str(rows), *QUICK)
    matches = found(data)["pgcatalog"]
    assert matches["a word of one row"] == matches["uid"] == 1
    assert 0 < matches["published, as anonymous"] < rows
    assert min(record["pages"] for record in data["results"]["pgcatalog"]["queries"]) > 0
    assert {"VACUUM ANALYZE after it", "size: index searchable_text"} <= medians(data, "pgcatalog").keys()


@pytest.mark.slow
def test_pages_are_requested_over_http(results: Path) -> None:
    asked = ("--page", "front page", "--page", "live search", "--page", "@search, a usual word", "--page", "Volto page")
    http = measured(results, "pages", "--docs", "30", "--seconds", "0.1", "--rounds", "1", "--starts", "1", *asked)
    records = http["results"]["pgcatalog"]["pages"]
    for state in {record["state"] for record in records}:
        pairs = page_pairs(http, state)
        assert len(pairs) == len([record for record in records if record["state"] == state])
        for record in (side for pair in pairs for side in pair):
            assert 0 < record["min"] <= record["median"] <= record["p95"]
            if state != FIRST_REQUEST:
                assert record["zope_cpu"] > 0
                assert record["page"] == MIX or record["messages"] > 0
    assert next(tables(http)).headers[-1] == "plone.pgcatalog / RelStorage + ZCatalog"


@pytest.mark.slow
def test_another_checkout_is_measured_in_alternation(results: Path) -> None:
    # This checkout, in place of another.
    asked = ("--docs", "3", "--backend", "pgcatalog", "--other", str(ROOT), "--rebuild", "0")
    data = measured(results / "versions", "level2", *asked, *SEARCHES, *QUICK)
    assert found(data)["other"] == found(data)["pgcatalog"]
    table = next(tables(data))
    assert table.headers[-1] == "plone.pgcatalog / plone.pgcatalog, other version"
    assert all(row[-1] != "–" for row in table.rows)


def test_relay_counts_the_transferred_bytes() -> None:
    with (
        EmbeddedPostgres(settings=TEST_SETTINGS) as server,
        Relay(server.dsn()) as relay,
        psycopg.connect(relay.dsn, autocommit=True) as connection,
    ):
        messages, received = relay.counts()
        connection.execute("SELECT repeat('a', 100000)")
        assert relay.counts()[0] - messages == 1
        assert 100_000 < relay.counts()[1] - received < 101_000
        messages, received = relay.counts()
        with connection.pipeline():
            for number in range(5):
                connection.execute("SELECT %s::int", (number,))
        assert relay.counts()[0] - messages <= 2


@pytest.fixture
def data_fs(tmp_path: Path) -> Iterator[Path]:
    """A FileStorage with some transactions."""
    path = tmp_path / "Data.fs"
    db = DB(FileStorage(str(path)))
    connection = db.open()
    for number in range(3):
        connection.root()[f"key{number}"] = {"number": number}
        transaction.commit()
    connection.close()
    db.close()
    return path


@pytest.mark.slow
def test_codec_compares_ten_kinds_of_record_and_a_filestorage(results: Path, data_fs: Path) -> None:
    data = measured(results, "codec", "all", "--filestorage", str(data_fs), *QUICK)
    pickled, coded = medians(data, "pickle"), medians(data, "codec")
    assert pickled.keys() == coded.keys()
    kinds = {name.partition(" ")[2] for name in coded if name.startswith("decode ")}
    assert len(kinds) == 10
    assert {f"{step} {kind}" for step in ("encode", "roundtrip", "size") for kind in kinds} <= coded.keys()
    assert coded["FileStorage, records"] == 4
    assert coded["FileStorage, unreadable records"] == 0
    # The scan alone, as called in the reference documents.
    printed = json.loads(benchmark("codec", "filestorage", str(data_fs), "--format", "json"))
    assert {name.split(",")[0] for name in medians(printed, "codec")} == {"FileStorage"}
    assert str(data_fs) not in json.dumps(printed)


@pytest.mark.slow
def test_profile_names_the_functions_that_were_called(results: Path) -> None:
    command = [sys.executable, "-W", "ignore", SCRIPT, "level2", "--docs", "3", "--rebuild", "0", "--profile"]
    command += ["--backend", "pgcatalog", "--format", "json", *SEARCHES, *QUICK]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "cumtime" in done.stderr
    assert "(search)" in done.stderr
    data = json.loads(done.stdout)
    assert data["options"]["profile"] is True
    assert "profile" not in data["results"]["pgcatalog"]


#: The command lines of the project's founding documents, and the subject of each measurement.
CONCEIVED = [
    "level2 --docs 500 --iterations 50 --warmup 5 --cache-size 400 --output results.json",
    "level2 --docs 500 --iterations 50 --warmup 5 --rebuild 1 --profile",
    "codec synthetic --iterations 1000",
    "codec filestorage Data.fs",
    "codec all --filestorage Data.fs --output results.json",
    "storage --iterations 100",
    "zodb --iterations 100",
    "pack",
    "plone --docs 50",
    "all --output results.json --format both",
    "all --filestorage Data.fs --output results.json",
    "zodbbench --count 1000000 --cache-size 400 --profile",
]


@pytest.mark.parametrize("line", CONCEIVED)
def test_command_of_the_reference_documents_exists(line: str) -> None:
    name, *arguments = line.split()
    options = main.commands[name].make_context(name, arguments).params
    given = {word.removeprefix("--").replace("-", "_") for word in arguments if word.startswith("--")}
    names = {"cache_size": "cache_sizes", "format": "shown"} if name in ("level2", "all") else {}
    assert all(options[names.get(option, option)] for option in given)


@pytest.mark.parametrize(
    ("command", "defaults"),
    [
        ("level2", {"docs": 500, "iterations": 50, "warmup": 5}),
        ("codec", {"iterations": 1000, "warmup": 100}),
        ("storage", {"iterations": 100, "warmup": 10}),
        ("zodb", {"iterations": 100, "warmup": 10}),
        ("pack", {"sizes": "100,1000,10000"}),
        ("plone", {"docs": 50}),
    ],
)
def test_defaults_are_those_of_the_reference_documents(command: str, defaults: dict[str, Any]) -> None:
    options = main.commands[command].make_context(command, []).params
    assert options | defaults == options


def test_all_lists_commands_that_exist() -> None:
    lines = benchmark("all", "--list", "--results", "somewhere").splitlines()
    assert {shlex.split(line)[2] for line in lines} == main.commands.keys() - {"all", "report"}
    for line in lines:
        assert line.startswith(f"python {SCRIPT} ")
        _, _, name, *arguments = shlex.split(line)
        options = main.commands[name].make_context(name, arguments).params
        assert options["output"].parent == Path("somewhere")


@pytest.mark.slow
def test_scripts_change_the_same_content_in_both_catalogs(results: Path) -> None:
    data = measured(results, "scripts", "--docs", "30", "--iterations", "1", "--warmup", "1")
    ours, theirs = (medians(data, name) for name in ("pgcatalog", "relstorage-zcatalog"))
    assert ours.keys() == theirs.keys() >= {script.name for script in SCRIPTS}
    assert min(ours[script.name] for script in SCRIPTS) > 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs pdftotext (poppler-utils)")
def test_files_are_found_in_both_and_extracted_once(results: Path) -> None:
    data = measured(results, "files", "--iterations", "2", "--files", "4", "--uploads", "4", "--seconds", "1")
    ours, stock = (medians(data, name) for name in ("pgcatalog", "relstorage-zcatalog"))
    for name in ("save", "rename", "copy"):
        assert min(ours[f"{name} a PDF of 5 MB, 200 pages"], stock[f"{name} a PDF of 5 MB, 200 pages"]) > 0
    assert ours["extracted once more after a rebuild"] == 0
    for figures in (ours, stock):
        lost = [
            number for name, number in figures.items() if name.endswith("acknowledged, and not found once in the end")
        ]
        assert lost == [0] * (3 if figures is ours else 2)
    assert ours["PDFs of 20 pages, 2 workers"] > 0


@pytest.mark.slow
def test_search_by_meaning_is_measured_in_a_site_of_any_size(tmp_path: Path) -> None:
    path = tmp_path / "meaning.json"
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.meaning", "fill", "latency", "saves"]
    sizes = ["--pages", "3", "--chunks", "2000", "--saves", "20", "--output", str(path)]
    done = subprocess.run([*command, *sizes], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    parts = json.loads(path.read_text("utf-8"))
    assert parts["fill"]["pages"] >= 3
    site = parts["latency"]["2,000 chunks"]
    assert site["all"]["hits"] > 0
    assert site["path, 0.1 %"]["recall@10"] == 1
    assert parts["saves"]["with / without"] > 0
    assert parts["saves"]["a page without text search, with / without"] > 0
    assert {"latency", "costs"} <= meaning_tables.generated(parts).keys()
