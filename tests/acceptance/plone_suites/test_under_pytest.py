"""The runner of tests written for pytest, in a process as the driver starts it, without Plone."""

from pathlib import Path
from tests.acceptance.plone_suites.driver import ROOT
from tests.acceptance.plone_suites.driver import select
from tests.acceptance.plone_suites.job import Job
from tests.acceptance.plone_suites.job import Progress
from tests.acceptance.plone_suites.page import sdists
from typing import Any

import pytest
import re
import subprocess
import sys


pytestmark = pytest.mark.slow

TESTS = """
from plone.testing import Layer
from pytest_plone import fixtures_factory
import pytest, time

UPS = []

class Base(Layer):
    def setUp(self):
        UPS.append(self.__name__)

FIRST, SECOND = (Base(name=name, module="plone.testing") for name in ("first", "second"))
globals().update(fixtures_factory(((FIRST, "first"), (SECOND, "second"))))

@pytest.fixture
def broken():
    raise ValueError("no set-up")

def test_a(first): pass
def test_b(second): assert UPS == ["first", "second"]
def test_c(first): assert UPS == ["first"]
def test_fails(): assert 1 == 2
def test_skipped(): pytest.skip("not today")
def test_broken(broken): pass
def test_slow(): time.sleep(30)
@pytest.mark.xfail
def test_expected(): assert False
def test_excluded(): pass
def test_done(): raise SystemExit
"""

RUN = """
from pathlib import Path
from tests.acceptance.plone_suites.job import Job, Progress
from tests.acceptance.plone_suites.under_pytest import run_pytest
import sys
job = Job.read(Path(sys.argv[1]))
assert run_pytest(job, Path(sys.argv[2]), Progress(Path(job.progress)))
"""


@pytest.fixture
def sdist(tmp_path: Path) -> Path:
    """An unpacked source distribution whose package of tests has the name of ours."""
    folder = tmp_path / "sdist" / "tests"
    folder.mkdir(parents=True)
    (folder.parent / "pyproject.toml").write_text("")
    (folder / "__init__.py").write_text("")
    (folder / "test_all.py").write_text(TESTS)
    (folder / "test_import.py").write_text("import no_such_module")
    return folder.parent


def job_for(sdist: Path, **options: Any) -> Job:
    """Return a job for the tests of *sdist*."""
    progress = str(sdist.parent / "progress")
    arguments: dict[str, Any] = {"exclude": ["test_excluded$"], "only": None, "ids": None} | options
    return Job(["tests"], **arguments, profile=None, dsn="", prefix="", progress=progress, test_timeout=2, sdist="a.b")


def test_every_test_that_is_wanted_and_not_done_gets_its_result(sdist: Path) -> None:
    job = job_for(sdist)
    job.write(sdist.parent / "job")
    progress = Progress(Path(job.progress))
    progress.append(id="a.b/tests/test_all.py::test_done", status="ok")
    subprocess.run([sys.executable, "-c", RUN, sdist.parent / "job", sdist], cwd=ROOT, check=True)
    finished = {test_id.partition("::")[2]: test for test_id, test in progress.finished().items()}
    assert {name: test["status"] for name, test in finished.items()} == {
        "test_a": "ok",
        "test_b": "ok",
        "test_c": "ok",
        "test_fails": "fail",
        "test_skipped": "skip",
        "test_broken": "error",
        "test_slow": "fail",
        "test_expected": "ok",
        "test_done": "ok",
    }
    assert "AssertionError" in finished["test_fails"]["err"]
    assert "ValueError: no set-up" in finished["test_broken"]["err"]
    assert "ran longer than 2" in finished["test_slow"]["err"]
    assert [record["collected"] for record in progress.records() if "collected" in record] == [9]
    (problem,) = [record for record in progress.records() if "import_error" in record]
    assert "no_such_module" in problem["err"]
    assert progress.unfinished() is None


def test_the_source_distributions_are_pinned_and_those_of_the_suites() -> None:
    names = {entry.split()[0] for entry in sdists()}
    assert names == {spec["sdist"] for spec in select(["addons"]).values() if "sdist" in spec}
    pinned = set((ROOT / "constraints.txt").read_text().splitlines())
    assert {re.sub(r"[.\s]", "-", entry.split()[0]) + f"=={entry.split()[1]}" for entry in sdists()} <= pinned
