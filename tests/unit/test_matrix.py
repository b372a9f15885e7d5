"""The pairs of Python and PostgreSQL: their stored results, and the table in the README."""

from checks.matrix import __main__ as main
from checks.matrix import table
from checks.matrix.__main__ import counts
from checks.matrix.__main__ import good
from checks.matrix.__main__ import keep
from checks.matrix.__main__ import name_of
from checks.matrix.__main__ import pairs
from checks.matrix.__main__ import TOLD
from itertools import takewhile
from pathlib import Path
from tests.unit.sources import between
from tests.unit.sources import ROOT
from tests.unit.sources import text
from threading import Timer

import os
import pytest
import subprocess
import sys


OUTPUT = """\
=========================== short test summary info ============================
FAILED tests/unit/test_sql.py::test_one[a b] - AssertionError: assert 1 == 2
ERROR tests/unit/test_sets.py::test_two
===== 1 failed, 6114 passed, 3 skipped, 2 errors in 400.00s (0:06:40) =====
make: *** [Makefile:65: test] Error 1
"""


def test_readme_has_the_stored_results() -> None:
    assert between(ROOT / "README.md", table.MARK) == table.text(table.stored())


def test_each_python_and_each_postgresql_that_are_supported_are_pairs() -> None:
    wanted = {f"{python}/{server}" for python in ("3.12", "3.13", "3.14") for server in (15, 16, 17, 18)}
    assert {name_of(pair) for pair in pairs()} == wanted
    assert table.stored().keys() <= wanted


def test_stored_results_have_no_failure() -> None:
    """Failures are repaired, and the tests run again."""
    failed = [
        (name, stage)
        for name, result in table.stored().items()
        for stage, told in result["stages"].items()
        if told["status"] != 0
    ]
    assert failed == []


def test_stored_results_have_no_address() -> None:
    for path in (ROOT / "checks" / "matrix").iterdir():
        if path.is_file():
            assert "://" not in text(path).replace(r"\w+://", "")


def test_counts_of_pytest_are_read() -> None:
    found = counts(OUTPUT)
    assert (found["passed"], found["failed"], found["error"], found["skipped"]) == (6114, 1, 2, 3)
    assert found["names"] == ["tests/unit/test_sets.py::test_two", "tests/unit/test_sql.py::test_one[a b]"]


def test_failed_test_is_reported_before_the_run_ends(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    module = tmp_path / "test_some.py"
    module.write_text(f"def test_bad():\n    assert 1 == 2\n\ndef test_end():\n    open({str(gate)!r}).read()\n")
    # Names of tests are relative to the root: the folder of the configuration.
    configuration = tmp_path / "pytest.ini"
    configuration.write_text("[pytest]\n")
    pytest_itself = [sys.executable, "-m", "pytest", "-c", str(configuration), "-n1", "--color=no", *TOLD.split()]
    with subprocess.Popen([*pytest_itself, str(module)], cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        limit = Timer(120, run.kill)
        limit.start()
        lines = list(takewhile(lambda line: "assert 1 == 2" not in line, run.stdout))
        gate.write_text("The run may end.")
        rest = run.stdout.read()
        limit.cancel()
    assert "1 failed, 1 passed" in rest
    assert counts("".join(lines)) == {"names": ["test_some.py::test_bad"]}


def test_results_are_stored_by_stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(table, "RESULTS", tmp_path / "results.json")
    page = tmp_path / "page.md"
    page.write_text("<!-- matrix -->\n<!-- end of matrix -->\n")
    monkeypatch.setattr(main, "README", page)
    result = {
        "commit": "a",
        "python": "3.14.8",
        "postgresql": "18.6",
        "place": "Debian testing",
        "server": "its packages",
    }
    keep("3.14/18", result | {"stages": {"test": {"status": 0, "passed": 7}}})
    keep("3.14/18", result | {"stages": {"suites": {"status": 2}}})
    assert good("3.14/18", "a") == {"test"}
    assert good("3.14/18", "b") == good("3.13/18", "a") == set()
    assert "suites: failed |" in page.read_text("utf-8")
    keep("3.14/18", result | {"commit": "b", "stages": {"suites": {"status": 0}}})
    assert good("3.14/18", "b") == {"suites"}


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ({"status": None}, "did not end"),
        ({"status": 0}, "ok"),
        ({"status": 2}, "failed"),
        ({"status": 0, "passed": 6114}, "6,114 passed"),
        (
            {"status": 2, "passed": 6114, "failed": 1, "error": 2, "skipped": 9},
            "6,114 passed, 9 skipped, 1 failed, 2 errors",
        ),
    ],
)
def test_stage_is_described_in_words(stage: dict[str, int], words: str) -> None:
    assert table.summary(stage) == words


def test_the_table_has_a_row_of_each_python_and_a_column_of_each_server() -> None:
    passed = {"test": {"status": 0, "passed": 7}}
    results = {
        "3.13/18": {"stages": passed},
        "3.14/17": {"stages": {"suites": {"status": None}}},
        "3.14/18": {"stages": passed | {"demo-check": {"status": 0}, "suites": {"status": 0}}},
    }
    assert table.text(results).splitlines()[2:4] == [
        "| Python 3.13 | – | ✓ |",
        "| Python 3.14 | suites: did not end | ✓\\* |",
    ]
