"""The pairs of Python and PostgreSQL: their stored results, and the table in the README."""

from checks.matrix import __main__ as main
from checks.matrix import table
from pathlib import Path
from tests.unit.sources import between
from tests.unit.sources import ROOT
from typing import Any

import pytest


OUTPUT = """\
FAILED tests/unit/test_sql.py::test_one[a b] - AssertionError: assert 1 == 2
ERROR tests/unit/test_sets.py::test_two
===== 1 failed, 6114 passed, 3 skipped, 2 errors in 400.00s (0:06:40) =====
make: *** [Makefile:65: test] Error 1
"""


def test_readme_has_the_stored_results_of_all_pairs_without_a_failure() -> None:
    stored = table.stored()
    assert between(ROOT / "README.md", table.MARK) == table.text(stored)
    wanted = {f"{python}/{server}" for python in ("3.12", "3.13", "3.14") for server in (15, 16, 17, 18)}
    assert {main.name_of(pair) for pair in main.pairs()} == wanted >= stored.keys()
    assert {stage["status"] for result in stored.values() for stage in result["stages"].values()} == {0}


def test_failed_tests_are_read_from_the_output() -> None:
    found = main.counts(OUTPUT)
    assert (found["passed"], found["failed"], found["error"], found["skipped"]) == (6114, 1, 2, 3)
    assert found["names"] == ["tests/unit/test_sets.py::test_two", "tests/unit/test_sql.py::test_one[a b]"]


@pytest.mark.parametrize(
    ("stages", "cell"),
    [
        ({"test": {"status": 0, "passed": 7}}, "✓"),
        ({"test": {"status": 0, "passed": 7}, "demo-check": {"status": 0}, "suites": {"status": 0}}, "✓\\*"),
        ({"test": {"status": 2, "passed": 7, "failed": 1}, "suites": {"status": 0}}, "test: 7 passed, 1 failed"),
        ({"suites": {"status": None}}, "suites: did not end"),
    ],
)
def test_cell_shows_each_failed_stage(stages: dict[str, Any], cell: str) -> None:
    assert table.cell({"stages": stages}) == cell


def test_results_of_another_commit_are_not_taken_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- matrix -->\n<!-- end of matrix -->\n")
    monkeypatch.setattr(table, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(main, "README", page)
    main.keep("3.14/18", {"commit": "a", "stages": {"test": {"status": 0}}})
    main.keep("3.14/18", {"commit": "a", "stages": {"suites": {"status": 2}}})
    assert [main.good("3.14/18", commit) for commit in "ab"] == [{"test"}, set()]
    main.keep("3.14/18", {"commit": "b", "stages": {"suites": {"status": 0}}})
    assert main.good("3.14/18", "b") == {"suites"}
