"""The chores of the Makefile, from a newcomer's point of view."""

from tests.unit.sources import ROOT
from tests.unit.sources import text

import os
import pytest
import re
import shutil
import subprocess


#: Without the variables of a `make` that runs this test.
ENVIRON = {"PATH": os.environ["PATH"], "HOME": str(ROOT)}
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*words: str) -> str:
    """Return the output of make with *words*."""
    return subprocess.run(["make", *words], cwd=ROOT, env=ENVIRON, capture_output=True, text=True, check=True).stdout


def pytest_words(chore: str, *words: str) -> list[str]:
    """Return the words of the pytest command that *chore* would run."""
    [command] = re.findall(r"^.* -m pytest .*$", make("--dry-run", chore, *words), re.M)
    return str(command).split()


@pytest.mark.parametrize("chore", ["test", "test-slow"])
def test_named_tests_are_run_alone(chore: str) -> None:
    assert [word for word in pytest_words(chore, "TESTS=tests/unit") if "tests/" in word] == ["tests/unit"]
    every = [word for word in pytest_words(chore, "PYTEST_ARGS=-x") if "tests/" in word]
    assert every == ["tests/acceptance", "tests/property", "tests/integration", "tests/unit"]


def test_help_lists_each_chore_in_one_of_two_groups() -> None:
    groups = re.split(r"^(?=\S)", make(), flags=re.M)[1:]
    assert [group.splitlines()[0] for group in groups] == ["To try the catalog:", "To work on it:"]
    listed = [re.findall(r"^  make ([a-z-]+) +\S", group, re.M) for group in groups]
    assert listed[0][0] == "demo"
    phony = " ".join(re.findall(r"^\.PHONY: (.+)$", text(ROOT / "Makefile"), re.M)).split()
    assert sorted(listed[0] + listed[1]) == sorted(set(phony) - {"help"})


def test_each_make_of_a_hint_names_a_chore() -> None:
    """`make PYTHON=…` alone prints the help, and builds nothing."""
    hints = re.findall(r"^(?:    |.*: )make (.+)$", text(ROOT / "scripts" / "find-python"), re.M)
    assert len(hints) == 2
    assert [hint for hint in hints if not hint.startswith("demo PYTHON=")] == []
