"""Runs the integration tests through a PgBouncer in transaction mode, and writes the results into the how-to.

Each test database is then reached through PgBouncer, with the documented ini; see ``pooled.PooledPostgres``.  The results of
a module replace those of an earlier run with the same version and mark.  Exit status 1 if a test fails.
"""

from benchmarks.marks import put_between
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from rich.console import Console
from tests.integration.bouncer import find_pgbouncer
from tests.integration.bouncer import FOLLOWS
from tests.integration.bouncer import version_of
from tests.integration.patched import patch_storage
from typing import Any
from xml.etree import ElementTree

import click
import datetime
import json
import os
import subprocess
import sys
import tempfile


ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "integration"
STORED = ROOT / "benchmarks" / "results" / "pooler.json"
PAGE = ROOT / "docs" / "how-to" / "pgbouncer.md"

#: module -> results of its tests: ``passed`` (a number), ``failed`` (names), ``left out`` (reason -> a number).  Stored
#: results also have the ``date``.
Modules = dict[str, dict[str, Any]]
#: Exit statuses of pytest for: all passed, some failed, no tests found.
RAN = (0, 1, 5)


def read_report(text: str) -> Modules:
    """Return the results of each module in *text*, a report in JUnit's format."""
    found: Modules = {}
    for case in ElementTree.fromstring(text).iter("testcase"):
        module = case.get("classname", "").rpartition(".")[2]
        of_module = found.setdefault(module, nothing())
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            of_module["failed"].append(case.get("name", ""))
        elif skipped is not None:
            reason = skipped.get("message", "")
            of_module["left out"][reason] = of_module["left out"].get(reason, 0) + 1
        else:
            of_module["passed"] += 1
    return found


def nothing() -> dict[str, Any]:
    """Return the results of a module without tests."""
    return {"passed": 0, "failed": [], "left out": {}}


def modules_in(paths: tuple[str, ...]) -> list[str]:
    """Return the names of the modules with tests in *paths*: folders, modules or single tests."""
    files = [Path(path.partition("::")[0]) for path in paths]
    return [file.stem for path in files for file in (path.rglob("test_*.py") if path.is_dir() else [path])]


def table(stored: dict[str, Any]) -> str:
    """Return *stored* (version -> mark -> results) as a Markdown table."""
    versions = sorted(stored, key=lambda name: tuple(map(int, name.split("."))))
    runs = [(f"PgBouncer {name}", mark, stored[name][mark]) for name in versions for mark in sorted(stored[name])]
    modules = [run["modules"] for *_, run in runs]
    counts = [count(found) for found in modules]
    lines = [
        "Made by `make test-pooler`, for each PgBouncer with the documented file; changes by hand are lost.",
        "",
        f"| | {' | '.join(name for name, *_ in runs)} |",
        f"|---|{'--:|' * len(runs)}",
        row("tests", [mark or "all" for _, mark, _ in runs]),
        row("zodb-pgjsonb", [run["storage"] for *_, run in runs]),
        row("date of the oldest", [min(of["date"] for of in found.values()) for found in modules]),
        row(f"modules of {len(list(TESTS.glob('test_*.py')))}", [len(found) for found in modules]),
        row("of these without such a test", [sum(not tests_of(of) for of in found.values()) for found in modules]),
        *(row(what, [found[what] for found in counts]) for what in ("tests that pass", "tests that fail")),
    ]
    reasons = {what for found in counts for what in found if what.startswith("left out: ")}
    lines += [row(what, [found[what] for found in counts]) for what in sorted(reasons)]
    for name, mark, run in runs:
        failed = [f"{module}: {test}" for module, of in run["modules"].items() for test in of["failed"]]
        if failed:
            lines += ["", f"Fail with {name}, {mark or 'all'}:", "", *(f"- `{test}`" for test in sorted(failed))]
    return "\n".join(lines)


def tests_of(of_module: dict[str, Any]) -> int:
    """Return the number of tests of a module."""
    return int(of_module["passed"]) + len(of_module["failed"]) + sum(of_module["left out"].values())


def count(modules: Modules) -> Counter[str]:
    """Return the number of tests of all *modules*, by result."""
    found: Counter[str] = Counter()
    for of_module in modules.values():
        found["tests that pass"] += of_module["passed"]
        found["tests that fail"] += len(of_module["failed"])
        for reason, number in of_module["left out"].items():
            found[f"left out: {reason}"] += number
    return found


def row(name: str, cells: list[Any]) -> str:
    return f"| {name} | {' | '.join(map(str, cells))} |"


def run(program: str, paths: tuple[str, ...], options: list[str]) -> Modules:
    """Run the tests in *paths* through *program*, with further *options* of pytest; return the results by module.

    Each process of pytest has a server and a pooler.
    """
    with tempfile.TemporaryDirectory(prefix="pgcatalog-pooler-") as folder:
        report = Path(folder) / "report.xml"
        environ = dict(os.environ)
        if version_of(program) < FOLLOWS:
            patch_storage(Path(folder))
            environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-m", "pytest", "-q", "--through-pooler", "--pgbouncer", program]
        command += ["--junitxml", str(report), *options, *paths]
        status = subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode
        if status not in RAN:
            raise click.ClickException(f"pytest ended with {status}: nothing is stored")
        return {name: nothing() for name in modules_in(paths)} | read_report(report.read_text("utf-8"))


@click.command()
@click.option("--program", default=find_pgbouncer, help="PgBouncer; by default the one that is installed.")
@click.option("--mark", default="", help="Run only tests with these marks: 'slow' or 'not slow'.")
@click.option("--jobs", default=2, show_default=True, help="Processes that run tests.")
@click.argument("paths", nargs=-1)
def main(program: str | None, mark: str, jobs: int, paths: tuple[str, ...]) -> None:
    """Run the tests in PATHS, all of tests/integration by default, through PgBouncer."""
    if program is None:
        raise click.ClickException("PgBouncer is not installed: apt-get install pgbouncer")
    options = ["-n", str(jobs), *(["-m", mark] if mark else [])]
    found = run(program, paths or (str(TESTS),), options)
    today = datetime.date.today().isoformat()
    dated = {name: {"date": today} | of for name, of in found.items()}
    number = version_of(program)
    stored = json.loads(STORED.read_text("utf-8")) if STORED.exists() else {}
    of_version = stored.setdefault(".".join(map(str, number)), {})
    modules = of_version.get(mark, {}).get("modules", {}) | dated
    there = modules_in((str(TESTS),))
    of_version[mark] = {
        "storage": version("zodb-pgjsonb") + (", patched" if number < FOLLOWS else ""),
        "modules": {name: modules[name] for name in sorted(modules) if name in there},
    }
    STORED.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
    put_between(PAGE, "through-pooler", table(stored))
    failed = count(found)["tests that fail"]
    Console().print(f"{len(found)} modules, {failed} tests fail")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
