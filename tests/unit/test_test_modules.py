"""Rules for the tests themselves (imports, waits, and the chores that run them), and the checker of language."""

from collections.abc import Iterator
from pathlib import Path
from scripts.language import findings
from tests.unit.sources import ROOT
from tests.unit.sources import text

import ast
import re


TESTS = ROOT / "tests"
MODULES = sorted((*TESTS.rglob("*.py"), *(ROOT / "checks").rglob("*.py")))
TEST_MODULES = [path for path in MODULES if path.name.startswith("test_")]
#: Waits that make something slow for the test.
SLOW = {("test_copying.py", "time.sleep(0.01)"), ("test_embedders.py", "end.wait(0.02)")}


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


def fixed_waits(tree: ast.Module) -> Iterator[str]:
    """Yield the calls in *tree* that wait a fixed time outside of a loop that polls."""
    polled = {call for loop in ast.walk(tree) if isinstance(loop, ast.While) for call in ast.walk(loop)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node not in polled and isinstance(node.func, ast.Attribute):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            fixed = any(isinstance(each, ast.Constant) and not isinstance(each.value, str) for each in given)
            if fixed and node.func.attr in ("sleep", "wait", "join", "result", "communicate"):
                yield ast.unparse(node)


def test_no_test_waits_a_fixed_time() -> None:
    """A test polls, as ``waiting.until`` does: durations differ on a busy machine."""
    found = [(path.name, wait) for path in TEST_MODULES for wait in fixed_waits(ast.parse(text(path)))]
    assert set(found) == SLOW


def test_each_test_is_run_by_exactly_one_of_two_chores() -> None:
    makefile = text(ROOT / "Makefile")
    [folders] = re.findall(r"^TESTS \?= \$\(wildcard (.+)\)$", makefile, re.M)
    assert set(folders.split()) == {f"tests/{path.relative_to(TESTS).parts[0]}" for path in TESTS.rglob("test_*.py")}
    marks = re.findall(r"^(test|test-slow): .*\n\t\$\(PYTEST\) -m (.+) \$\(PYTEST_ARGS\)$", makefile, re.M)
    assert marks == [("test", '"not slow"'), ("test-slow", "slow")]


# -- words are found in sentences, and none in code


def test_words_are_found_in_docstrings_comments_and_text(tmp_path: Path) -> None:
    module, page = tmp_path / "module.py", tmp_path / "page.md"
    module.write_text(
        '"""A head; ``what`` is code.\n\nA body.  What follows is a rule.\n"""\nx = "nobody is told"  # kept\n'
    )
    page.write_text("# Page\n\n```\nnobody\n```\nRows are\nkept.\n")
    found = [[(line, words) for line, words, _ in findings(path)] for path in (module, page)]
    assert found == [[(3, ".  What"), (5, "kept")], [(7, "kept")]]
