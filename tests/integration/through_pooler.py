"""Runs the integration tests through a PgBouncer in transaction mode, and writes what came of them into the how-to.

Each database of the tests is then reached through PgBouncer, with the documented ini; see ``pooled.PooledPostgres``.  What
a run says of a module replaces what an earlier one with the same version has said.  Exit status 1 when a test fails.
"""

from benchmarks.marks import put_between
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from rich.console import Console
from scripts.topology.bouncer import find_pgbouncer
from scripts.topology.bouncer import FOLLOWS
from scripts.topology.bouncer import version_of
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


TESTS = Path(__file__).parent
ROOT = TESTS.parents[1]
STORED = ROOT / "benchmarks" / "results" / "pooler.json"
PAGE = ROOT / "docs" / "how-to" / "pgbouncer.md"

#: module -> what came of its tests: ``passed`` (a number), ``failed`` (names), ``left out`` (reason -> a number).
Modules = dict[str, dict[str, Any]]


def read_report(text: str) -> Modules:
    """Return what a report in JUnit's format says of each module."""
    found: Modules = {}
    for case in ElementTree.fromstring(text).iter("testcase"):
        module = case.get("classname", "").rpartition(".")[2]
        of_module = found.setdefault(module, {"passed": 0, "failed": [], "left out": {}})
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            of_module["failed"].append(case.get("name", ""))
        elif skipped is not None:
            reason = skipped.get("message", "")
            of_module["left out"][reason] = of_module["left out"].get(reason, 0) + 1
        else:
            of_module["passed"] += 1
    return found


def table(stored: dict[str, Any]) -> str:
    """Return what *stored* says of each version as Markdown."""
    versions = sorted(stored, key=lambda name: tuple(map(int, name.split("."))))
    counts = {name: count(stored[name]["modules"]) for name in versions}
    lines = [
        "Made by `make test-pooler`, for each PgBouncer with the documented file; changes by hand are lost.",
        "",
        f"| | {' | '.join(f'PgBouncer {name}' for name in versions)} |",
        f"|---|{'--:|' * len(versions)}",
        row("zodb-pgjsonb", [stored[name]["storage"] for name in versions]),
        row("date", [stored[name]["date"] for name in versions]),
        row("tests", [stored[name]["mark"] or "all" for name in versions]),
        row(f"modules of {len(list(TESTS.glob('test_*.py')))}", [len(stored[name]["modules"]) for name in versions]),
        *(row(what, [counts[name][what] for name in versions]) for what in ("tests that pass", "tests that fail")),
    ]
    reasons = {what for found in counts.values() for what in found if what.startswith("left out: ")}
    lines += [row(what, [counts[name][what] for name in versions]) for what in sorted(reasons)]
    for name in versions:
        failed = [f"{module}: {test}" for module, of in stored[name]["modules"].items() for test in of["failed"]]
        if failed:
            lines += ["", f"Fail with {name}:", "", *(f"- `{test}`" for test in sorted(failed))]
    return "\n".join(lines)


def count(modules: Modules) -> Counter[str]:
    """Return how many tests of all *modules* there are of each kind."""
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
    """Run the tests in *paths* through *program*, with further *options* of pytest; return what came of them."""
    with tempfile.TemporaryDirectory(prefix="pgcatalog-pooler-") as folder:
        report = Path(folder) / "report.xml"
        environ = dict(os.environ)
        if version_of(program) < FOLLOWS:
            patch_storage(Path(folder))
            environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "--through-pooler", "--pgbouncer", program]
        subprocess.run([*command, "--junitxml", str(report), *options, *paths], cwd=ROOT, env=environ, check=False)
        return read_report(report.read_text("utf-8"))


@click.command()
@click.option("--program", default=find_pgbouncer, help="PgBouncer; by default the one that is installed.")
@click.option("--mark", default="", help="Run only tests with these marks, such as 'not slow'.")
@click.argument("paths", nargs=-1)
def main(program: str | None, mark: str, paths: tuple[str, ...]) -> None:
    """Run the tests in PATHS, all of tests/integration by default, through PgBouncer."""
    if program is None:
        raise click.ClickException("PgBouncer is not installed: apt-get install pgbouncer")
    found = run(program, paths or (str(TESTS),), ["-m", mark] if mark else [])
    number = version_of(program)
    patched = ", patched" if number < FOLLOWS else ""
    stored = json.loads(STORED.read_text("utf-8")) if STORED.exists() else {}
    modules = stored.get(".".join(map(str, number)), {}).get("modules", {})
    stored[".".join(map(str, number))] = {
        "date": datetime.date.today().isoformat(),
        "storage": version("zodb-pgjsonb") + patched,
        "mark": mark,
        "modules": dict(sorted((modules | found).items())),
    }
    STORED.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
    put_between(PAGE, "through-pooler", table(stored))
    failed = count(found)["tests that fail"]
    Console().print(f"{len(found)} modules, {failed} tests fail")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
