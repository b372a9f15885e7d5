"""The plan of all measurements, and the sites that they share and store."""

from benchmarks import kept
from benchmarks import plan
from benchmarks import plots
from benchmarks.backends import BACKENDS
from benchmarks.backends import LABELS
from benchmarks.http_load import summarise_common
from benchmarks.machine import hash_of
from benchmarks.machine import OF_MODEL
from benchmarks.machine import source
from benchmarks.machine import sources
from benchmarks.machine import versions
from benchmarks.page_kinds import HTML
from benchmarks.page_kinds import MIX
from benchmarks.page_kinds import READ_ONLY
from benchmarks.pages import Numbers
from benchmarks.report import generated
from benchmarks.report import load
from benchmarks.run_benchmarks import everything
from benchmarks.run_benchmarks import main
from benchmarks.worker import FILLED
from benchmarks.worker import run_in_turns
from benchmarks.worker import TURNS_FILLED
from click.testing import CliRunner
from collections.abc import Iterator
from pathlib import Path
from tests.unit.sources import between
from typing import Any
from typing import cast

import json
import pytest


HEADER = {"date": "2026-11-28", **sources(), "versions": {}}


@pytest.mark.parametrize(
    ("stored", "state"),
    [
        (None, plan.MISSING),
        ({"date": "2026-11-20"}, plan.OLD),
        (HEADER | {"source": "another", "minutes": 3}, plan.OLD),
        (HEADER, plan.PARTIAL),
        (HEADER | {"minutes": 3}, plan.CURRENT),
    ],
)
def test_state_of_a_result_follows_from_source_and_duration(
    stored: dict[str, Any] | None, state: str, tmp_path: Path
) -> None:
    measurement = plan.Measurement("pages-500", plan.COMMANDS["pages-500"], tmp_path)
    if stored is not None:
        measurement.path.write_text(json.dumps(stored))
    assert measurement.state == state
    options = measurement.options(tmp_path / "sites", "table")
    assert ("--again" in options) == (state == plan.OLD)
    assert options[options.index("--keep") + 1] == (tmp_path / "sites" / source()).as_posix()


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({}, plan.CURRENT),
        ({"PostgreSQL": "15.1", "plone.pgcatalog": "0.1"}, plan.CURRENT),
        ({"zodb-pgjsonb": "0.1"}, plan.OLD),
        ({"Python": "3.1"}, plan.OLD),
    ],
)
def test_state_of_a_measurement_of_storages_follows_from_their_versions(
    changed: dict[str, str], state: str, tmp_path: Path
) -> None:
    measurement = plan.Measurement("storage", plan.COMMANDS["storage"], tmp_path)
    measurement.path.write_text(json.dumps({"source": "another", "minutes": 1, "versions": versions("") | changed}))
    assert measurement.state == state


@pytest.mark.parametrize(
    ("stored", "state"), [({}, plan.OLD), (HEADER, plan.CURRENT), (HEADER | {"source": "another"}, plan.OLD)]
)
def test_program_that_ran_alone_is_of_the_version_that_it_has_stored(
    stored: dict[str, Any], state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "RESULTS", tmp_path)
    measurement = plan.Measurement("corrections", plan.PROGRAMS["corrections"], tmp_path)
    measurement.runs.write_text(json.dumps({"corrections": {"date": "2026-11-20", "source": "older", "minutes": 2}}))
    measurement.path.write_text(json.dumps(stored | {"pairs": 1}))
    assert measurement.state == state
    assert measurement.stored["minutes"] == 2


@pytest.mark.parametrize("name", plan.PROGRAMS)
def test_cutting_and_embedding_texts_count_for_measurements_with_a_model(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "RESULTS", tmp_path)
    measurement = plan.Measurement(name, plan.PROGRAMS[name], tmp_path)
    measurement.path.write_text(json.dumps(HEADER | {"source with model": "another"}))
    assert (measurement.state == plan.OLD) == (name in plan.OF_MODEL)
    measurement.path.write_text(json.dumps(HEADER | {"source": "another"}))
    assert (measurement.state == plan.OLD) == (name not in plan.OF_MODEL)
    assert source() != source(model=True)
    assert all(path.exists() for path in OF_MODEL)


def test_each_generated_figure_has_its_results_in_the_plan() -> None:
    shown = {page: {mark for of, mark in plan.SHOWN if of == page} for page, _ in plan.SHOWN}
    for page, texts in generated(load()).items():
        assert texts.keys() <= shown[page]
    names = [*plan.COMMANDS, *plan.PROGRAMS, *plan.BY_HAND]
    for (page, mark), patterns in plan.SHOWN.items():
        assert mark in page.read_text("utf-8") if mark.endswith(".svg") else between(page, mark)
        assert all(any(plan.shows(pattern, name) for name in names) for pattern in patterns)


def test_each_command_of_the_plan_can_be_parsed() -> None:
    for measurement in plan.measurements():
        if not measurement.is_program:
            _, _, command, *words = measurement.words
            main.commands[command].make_context(command, words)
    assert sorted(plan.ORDER) == sorted({*plan.COMMANDS, *plan.PROGRAMS})


def test_list_has_each_result_and_each_stale_figure() -> None:
    shown = CliRunner().invoke(everything, ["--list"], catch_exceptions=False).output
    for measurement in plan.measurements():
        assert f"| {measurement.name} |" in shown
    assert f"Figures that are not of this version: {len([*plan.stale_figures()])}\n" in shown


def test_stale_results_are_measured_again_and_a_failure_stops_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []
    for name, minutes in (("files", {"minutes": 1}), ("level1-500", {"source": "another"}), ("pack", {"minutes": 1})):
        (tmp_path / f"{name}.json").write_text(json.dumps(HEADER | minutes))
    monkeypatch.setattr(plan.Measurement, "run", lambda self, *more: ran.append((self.name, more)))
    words = ["--results", str(tmp_path), *(f"--only={name}" for name in ("files", "rebuild-20000", "level1-500"))]
    for more, names in (([], ["rebuild-20000"]), (["--stale"], ["rebuild-20000", "level1-500"])):
        ran.clear()
        result = CliRunner().invoke(everything, [*words, *more])
        assert [name for name, _ in ran] == names
        assert result.exit_code == 1
        assert f"These failed: {', '.join(names)}" in result.output


def test_all_writes_its_results_into_one_file_and_reads_a_filestorage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(self: plan.Measurement, *more: str) -> bool:
        self.path.write_text(json.dumps({"name": self.name, "options": more}))
        return True

    monkeypatch.setattr(plan.Measurement, "run", measure)
    output, storage = tmp_path / "all.json", tmp_path / "Data.fs"
    words = ["--only=codec", "--only=storage", "--filestorage", str(storage), "--output", str(output)]
    CliRunner().invoke(everything, ["--results", str(tmp_path), *words], catch_exceptions=False)
    found = {each["name"]: each["options"] for each in json.loads(output.read_text())}
    assert found.keys() == {"codec", "storage"}
    assert found["codec"][-2:] == ["--filestorage", storage.as_posix()]
    assert "--filestorage" not in found["storage"]


def test_source_depends_on_names_and_code(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("x = 1")
    two.write_text("x = 1")
    hashes = {hash_of([one]), hash_of([two]), hash_of([one, two])}
    one.write_text("x = 2")
    assert len(hashes | {hash_of([one])}) == 4
    with_comment = "#: The number.\nx = (\n    2\n)\n"
    former = hash_of([one])
    one.write_text(with_comment)
    assert hash_of([one]) == former


def test_sites_are_shared_by_commands_with_the_same_content_only() -> None:
    site, texts = {"docs": 20_000}, {"docs": 20_000, "texts": "debian"}
    ours = [kept.site_of(command, "pgcatalog", site) for command in ("search", "rebuild", "scripts", "pages", "level2")]
    assert len({*ours[:3]}) == 1
    assert len({*ours}) == 3
    assert kept.site_of("pages", "pgcatalog", texts) == kept.site_of("search", "pgcatalog", texts)
    assert kept.site_of("search", "pgcatalog", texts) not in ours
    assert len({kept.site_of("search", name, site) for name in BACKENDS}) == len(BACKENDS)
    assert kept.site_of("level1", "bare-sql", {"rows": 60}) is None
    assert kept.site_of("storage", "pgjsonb", {}) is None


def page_record(median: float) -> dict[str, Any]:
    return {"page": "document", "group": HTML, "state": READ_ONLY, "clients": 1, "processes": 1, "median": median}


def site_result(docs: int, texts: str | None = None) -> dict[str, Any]:
    """Return the result of ``pages`` with one kind of page."""
    results = {name: {"pages": [page_record(ms)]} for name, ms in (("pgcatalog", 10.0), ("relstorage-zcatalog", 20.0))}
    return {"command": "pages", "options": {"docs": docs, "texts": texts}, "results": results}


def test_curve_has_a_second_line_only_for_stored_results_of_real_texts(tmp_path: Path) -> None:
    path = tmp_path / "sites.svg"
    stored = [site_result(500), site_result(6_000)]
    plots.sites(stored, path)
    assert "real texts" not in path.read_text()
    plots.sites([*stored, site_result(6_000, "debian")], path)
    shown = path.read_text()
    for name in stored[0]["results"]:
        assert f"{LABELS[name]}, real texts" in shown


class FakeWorker:
    """A worker with *steps*, each of which it notes in *log*."""

    def __init__(self, name: str, steps: list[str], log: list[str]) -> None:
        self.name, self.log, self.turns = name, log, 0
        self._steps: Iterator[str] = iter(steps)

    def run_step(self) -> bool:
        self.turns += 1
        step = next(self._steps, None)
        if step == FILLED:
            self.turns = TURNS_FILLED
        elif step is not None:
            self.log.append(f"{self.name} {step}")
        return step is not None


def test_measurements_take_turns_after_fills_of_any_length() -> None:
    log: list[str] = []
    workers = [FakeWorker("a", [FILLED, "1", "2"], log), FakeWorker("b", ["fill", "fill", FILLED, "1", "2"], log)]
    run_in_turns(cast(Any, workers))
    assert log == ["b fill", "b fill", "a 1", "b 1", "a 2", "b 2"]


def test_faster_backend_gets_the_same_requests() -> None:
    fast, slow = Numbers(), Numbers()
    for _ in range(5):
        for backend, requests in ((fast, 900), (slow, 3)):
            backend.begin_turn()
            used = [next(backend) for _ in range(requests)]
            assert len({*used}) == requests
    fast.begin_turn()
    slow.begin_turn()
    assert [next(fast) for _ in range(9)] == [next(slow) for _ in range(9)]


@pytest.mark.parametrize("page", ["document", MIX])
def test_figures_are_of_the_requests_that_all_backends_have_answered(page: str) -> None:
    kind = {"page": page, "group": HTML, "state": READ_ONLY, "clients": 2, "processes": 1}
    # Seconds in two turns: the fast backend has answered another, large page in the first one, the slow one in the second one.
    series = {"fast": [[0.1, 0.1, 0.9], [0.2]], "slow": [[0.4, 0.4], [0.6, 2.0]]}
    records = {backend: dict[str, Any](kind, series=each) for backend, each in series.items()}
    first = {"page": page, "state": "first request", "median": 7}
    summarise_common([[each, dict(first)] for each in records.values()])
    fast, slow = records["fast"], records["slow"]
    assert [fast["median"], slow["median"]] == pytest.approx([100, 400])
    assert [each["n"] for each in (fast, slow)] == [3, 3]
    assert all("series" not in each for each in (fast, slow))
    rates = [each["per_second"] for each in (fast, slow) if "per_second" in each]
    assert rates == (pytest.approx([2 * 3 / 0.4, 2 * 3 / 1.4]) if page == MIX else [])
