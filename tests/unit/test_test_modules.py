"""Rules for the tests themselves: imports, access to private names, and the commands that run them."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tests.unit.sources import ROOT
from tests.unit.sources import SOURCE
from tests.unit.sources import text

import ast
import pytest
import re


TESTS = ROOT / "tests"
CHECKS = ROOT / "checks"
MAKEFILE = text(ROOT / "Makefile")
MODULES = sorted((*TESTS.rglob("*.py"), *CHECKS.rglob("*.py")))
TEST_MODULES = [path for path in MODULES if path.name.startswith("test_")]
#: Documented import paths that stay, and nothing else.
OLD_PATHS = {"search"}
ROOMS = sorted({path.parent.name for path in SOURCE.glob("*/__init__.py")} - OLD_PATHS)
#: Rooms that tests access over HTTP only, and the text that they use.
OVER_HTTP = {"restapi": "@search"}
#: Waits that make something slow for the test.
SLOW = {"test_copying.py": ["time.sleep(0.01)"], "test_embedders.py": ["end.wait(0.02)"]}
#: Modules with caches, whose state is private.
CACHES = (
    *("answer", "cache", "counting", "generations", "memory", "pool", "prepared", "reader", "rows", "selectivity"),
)


def imported(path: Path) -> Iterator[str]:
    """Yield the dotted names that a module imports, even inside functions; those of a package's modules in full."""
    for node in ast.walk(ast.parse(text(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_test_module(name: str) -> bool:
    return (
        bool(re.match(r"(tests|checks)\.(\w+\.)*test_\w+$", name))
        and ROOT.joinpath(*name.split(".")).with_suffix(".py").exists()
    )


def private_names(path: Path) -> set[str]:
    """Return the names beginning with an underscore of a module's variables and its objects' attributes."""
    tree = ast.parse(text(path))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    }
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


@pytest.mark.parametrize("folder", ["tests", "checks", "benchmarks"])
def test_nothing_imports_from_a_test_module(folder: str) -> None:
    """Code shared by several modules is in a helper module, which has a name and a purpose."""
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (names := sorted(filter(is_test_module, imported(path))))
    }
    assert found == {}


def test_tests_read_no_cache_directly() -> None:
    """A law is about answers and costs; where it needs more, the cache has a public reader."""
    private = {name for path in SOURCE.rglob("*.py") if path.stem in CACHES for name in private_names(path)}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.attr}"
        for path in MODULES
        for node in ast.walk(ast.parse(text(path)))
        if isinstance(node, ast.Attribute) and node.attr in private
        if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]
    assert found == []


def arguments(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the arguments of *call*."""
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)


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
        if any(isinstance(given, ast.Constant) and not isinstance(given.value, str) for given in arguments(node))
    ]
    assert found == SLOW.get(path.name, [])


# -- commands


def recipe(chore: str) -> str:
    """Return the commands that the Makefile runs for *chore*."""
    found = re.search(rf"^{chore}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found is not None
    return " ".join(found[1].split())


def test_each_test_is_run_by_exactly_one_of_two_commands() -> None:
    """They differ only in their treatment of the mark; together they have all folders.

    Except those of Volto, which have a command of their own: they need node, and gigabytes.
    """
    fast, slow = recipe("test"), recipe("test-slow")
    assert '$(PYTEST) -m "not slow"' in fast
    assert fast.replace('-m "not slow"', "-m slow") == slow
    assert re.search(r"^PYTEST := .* \$\(TESTS\)$", MAKEFILE, re.MULTILINE)
    [tests] = re.findall(r"^TESTS \?= .*$", MAKEFILE, re.MULTILINE)
    folders = {"/".join(path.relative_to(ROOT).parts[:2]) for path in TEST_MODULES}
    assert set(re.findall(r"tests/\w+", tests)) == folders - {"checks/volto"}
    assert "checks/volto" in recipe("test-volto")


def test_arguments_shared_by_chores_have_no_default_that_one_refuses() -> None:
    for name, default in re.findall(r"^(\w+_ARGS) \?=(.*)$", MAKEFILE, re.MULTILINE):
        assert MAKEFILE.count(f"$({name})") == 1 or not default.strip(), name


def says_slow(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr == "slow" for part in ast.walk(node))


@cache
def has_fast_tests(path: Path) -> bool:
    """Return whether ``make test`` runs a test of the module at *path*."""
    body = ast.parse(text(path)).body
    marks = [node for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"]
    tests = [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name.startswith("Test")]
    return not any(map(says_slow, marks)) and any(
        not any(map(says_slow, node.decorator_list)) for node in (*tests, *classes)
    )


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_has_fast_tests(room: str) -> None:
    """A change of a room is checked quickly by ``make test``."""
    named = re.compile(rf"plone\.pgcatalog\.{room}\b|" + re.escape(OVER_HTTP.get(room, f"plone.pgcatalog.{room}")))
    assert any(named.search(text(path)) for path in TEST_MODULES if has_fast_tests(path))
