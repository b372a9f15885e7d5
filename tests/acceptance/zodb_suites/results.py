"""Which of ZODB's own tests of storages fail, and where."""

from pathlib import Path
from typing import Any

import json
import subprocess
import sys


STORED = Path(__file__).with_name("results.json")
MODES = ("without", "with")
#: Seconds that all tests may take.
MOST_SECONDS = 1800

#: Mode -> name of the test -> whether it passes.
Outcomes = dict[str, dict[str, bool]]


def run(dsn: str) -> Outcomes:
    """Return which tests pass in each mode, on databases of the server of *dsn*."""
    return {mode: run_in(mode, dsn) for mode in MODES}


def run_in(mode: str, dsn: str) -> dict[str, bool]:
    command = [sys.executable, "-m", "tests.acceptance.zodb_suites.driver", mode, dsn]
    process = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=True)
    found: dict[str, bool] = json.loads(process.stdout.splitlines()[-1])
    return found


def table(outcomes: Outcomes) -> dict[str, Any]:
    """Return the numbers of tests, and the names of those that fail without this package, and in one mode only."""
    failing = {mode: {name for name, passes in found.items() if not passes} for mode, found in outcomes.items()}
    return {
        "tests": len(outcomes["without"]),
        "fail without": sorted(failing["without"]),
        "fail with only": sorted(failing["with"] - failing["without"]),
        "fail without only": sorted(failing["without"] - failing["with"]),
    }
