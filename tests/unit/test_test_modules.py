"""Rules for the tests themselves: imports, waits, and the chores that run them."""

from collections.abc import Iterator
from pathlib import Path
from tests.unit.sources import ROOT
from tests.unit.sources import text

import ast
import os
import pytest
import shlex
import shutil
import subprocess


TESTS = ROOT / "tests"
CHECKS = ROOT / "checks"
MODULES = sorted((*TESTS.rglob("*.py"), *CHECKS.rglob("*.py")))
TEST_MODULES = [path for path in MODULES if path.name.startswith("test_")]
#: Waits that make something slow for the test.
SLOW = {"test_copying.py": ["time.sleep(0.01)"], "test_embedders.py": ["end.wait(0.02)"]}


def imported(path: Path) -> Iterator[str]:
    """Yield the dotted names that a module imports, even inside functions; those of a package's modules in full."""
    for node in ast.walk(ast.parse(text(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_nothing_imports_from_a_test_module() -> None:
    """Code shared by several modules is in a helper module, which has a name and a purpose."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in TEST_MODULES}
    paths = [*MODULES, *(ROOT / "benchmarks").rglob("*.py")]
    assert [path.name for path in paths if names & set(imported(path))] == []


@pytest.mark.parametrize("path", TEST_MODULES, ids=lambda path: path.stem)
def test_no_test_waits_a_fixed_time(path: Path) -> None:
    """A test polls, as ``waiting.until`` does: durations differ on a busy machine."""
    tree = ast.parse(text(path))
    loops = [loop for loop in ast.walk(tree) if isinstance(loop, ast.While)]
    polled = {call for loop in loops for call in ast.walk(loop)}
    found = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node not in polled and isinstance(node.func, ast.Attribute)
        if node.func.attr in ("sleep", "wait", "join", "result", "communicate")
        if any(
            isinstance(given, ast.Constant) and not isinstance(given.value, str)
            for given in (*node.args, *(keyword.value for keyword in node.keywords))
        )
    ]
    assert found == SLOW.get(path.name, [])


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_each_test_is_run_by_exactly_one_of_two_chores() -> None:
    """They differ only in their treatment of the mark; together they have all folders, or those that are named."""
    folders = {path.relative_to(ROOT).parts[1] for path in TEST_MODULES if path.is_relative_to(TESTS)}
    for chore, mark in (("test", "not slow"), ("test-slow", "slow")):
        for words, expected in (([], {f"tests/{name}" for name in folders}), (["TESTS=tests/unit"], {"tests/unit"})):
            # Without the variables of a make that runs this test.
            environ = {"PATH": os.environ["PATH"], "HOME": str(ROOT)}
            output = subprocess.check_output(["make", "--dry-run", chore, *words], cwd=ROOT, env=environ, text=True)
            [command] = [shlex.split(line) for line in output.splitlines() if " -m pytest " in line]
            assert {word for word in command if word.startswith("tests/")} == expected
            assert command[-2:] == ["-m", mark]
