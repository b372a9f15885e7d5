"""The failures of ZODB's own tests of storages, as stored and as a table."""

from collections import Counter
from pathlib import Path
from typing import Any

import json
import subprocess
import sys


ROOT = Path(__file__).parents[2]
STORED = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "reference" / "zodb-suites.md"
MARKS = ("<!-- results: make test-zodb -->", "<!-- end of results -->")
MODES = ("without", "with")
#: Time limit of all tests, in seconds.
MOST_SECONDS = 1800

#: Mode -> name of the test -> whether it passes.
Outcomes = dict[str, dict[str, bool]]


def run(dsn: str) -> Outcomes:
    """Return mode -> test -> whether it passes, on databases of the server of *dsn*."""
    return {mode: run_in(mode, dsn) for mode in MODES}


def run_in(mode: str, dsn: str) -> dict[str, bool]:
    command = [sys.executable, "-m", "checks.zodb_suites.driver", mode, dsn]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=MOST_SECONDS, check=True)
    found: dict[str, bool] = json.loads(process.stdout.splitlines()[-1])
    return found


#: Tests whose threads share the storage of one connection, which is made for one thread: timing decides whether they fail.
RACES = frozenset(
    f"{group}.{test}"
    for group in ("ConnectionTests", "ConnectionHistoryTests")
    for test in (
        "test2StorageThreads",
        "test2ZODBThreads",
        "test4ExtStorageThread",
        "test7StorageThreads",
        "test7ZODBThreads",
        "testPackNowWhileWriting",
        "testPackWhileWriting",
        "test_race_loadopen_vs_local_invalidate",
    )
)


def group(name: str) -> str:
    """Return the class or the module of the test *name*."""
    return name.removeprefix("tests.").split(".")[0]


def summary(outcomes: Outcomes) -> dict[str, Any]:
    """Return the number of tests of each group, and the tests that fail without this package, or in one mode only."""
    failing = {
        mode: {name for name, passes in found.items() if not passes or name in RACES}
        for mode, found in outcomes.items()
    }
    return {
        "tests": dict(sorted(Counter(map(group, outcomes["without"])).items())),
        "fail without": sorted(failing["without"]),
        "fail with only": sorted(failing["with"] - failing["without"]),
        "fail without only": sorted(failing["without"] - failing["with"]),
    }


def table(found: dict[str, Any]) -> str:
    """Return a summary as a Markdown table with a line for each group."""
    without = Counter(map(group, found["fail without"]))
    both = without - Counter(map(group, found["fail without only"]))
    with_package = both + Counter(map(group, found["fail with only"]))
    lines = ["| tests of ZODB | number | fail without this package | fail with it |", "|---|--:|--:|--:|"]
    lines += [
        f"| `{name}` | {number} | {without[name]} | {with_package[name]} |" for name, number in found["tests"].items()
    ]
    lines.append(f"| all | {sum(found['tests'].values())} | {without.total()} | {with_package.total()} |")
    return "\n".join(lines)


def page(text: str, found: dict[str, Any]) -> str:
    """Return *text*, a page with MARKS, with the table of the summary *found* between them."""
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{table(found)}\n\n{MARKS[1]}{after}"
