"""Values of content are loaded as they were stored, whatever zodb-json-codec does to them on the way."""

from pathlib import Path

import json
import pytest
import subprocess
import sys


SCRIPT = Path(__file__).with_name("stored_values.py")
ROOT = Path(__file__).parents[2]


def run(action: str, dsn: str, keeps_history: bool) -> str:
    """Return the output of the script in a process of its own, whose caches are cold."""
    command = [sys.executable, "-m", "tests.integration.stored_values", action, dsn, str(keeps_history)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("keeps_history", [False, True])
def test_each_value_is_loaded_as_it_was_stored(database: str, keeps_history: bool) -> None:
    run("store", database, keeps_history)
    assert json.loads(run("load", database, keeps_history)) == {}
