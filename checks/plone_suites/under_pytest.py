"""Runs a package's tests for pytest from its source distribution under the patched layers."""

from checks.plone_suites.collecting import chain
from checks.plone_suites.collecting import is_wanted
from checks.plone_suites.job import Job
from checks.plone_suites.job import Progress
from checks.plone_suites.running import Outcome
from checks.plone_suites.running import time_limit
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from zope.pytestlayer.fixture import LAYERS

import functools
import pytest
import pytest_plone
import sys
import time


#: The folder into which make unpacks the source distributions.
SDISTS = Path(sys.prefix) / "sdists"


def unpacked(name: str) -> Path:
    """Return the folder of the source distribution of an installed package."""
    return SDISTS / f"{name.replace('.', '_')}-{version(name)}"


def run_pytest(job: Job, root: Path, progress: Progress) -> bool:
    """Run the remaining tests of *job* below *root*; return True if all have a result.

    Raises RuntimeError if pytest fails before running them.
    """
    # By default it leaves all layers of a suite set up, side by side: two layers that create a site conflict.
    pytest_plone.fixtures_factory = functools.partial(pytest_plone.fixtures_factory, keep_session=False)
    # Their package "tests" is not ours: importlib leaves sys.path alone.
    arguments = ["--import-mode=importlib", "--continue-on-collection-errors", "--tb=native", "-p", "no:cacheprovider"]
    arguments += ["-c", str(root / "pyproject.toml"), f"--rootdir={root}", *(str(root / name) for name in job.modules)]
    status = pytest.main(arguments, plugins=[Recorder(job, progress)])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"pytest ended with {status!r}")
    return True


class Recorder:
    """A pytest plugin: deselects finished and unwanted tests, and records the results of the others."""

    def __init__(self, job: Job, progress: Progress) -> None:
        self._job = job
        self._progress = progress
        self._outcome = Outcome()

    def test_id(self, item: pytest.Item) -> str:
        """Return the id of a test, prefixed by its package's name."""
        return f"{self._job.sdist}/{item.nodeid}"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a module that cannot be imported."""
        if report.failed:
            self._progress.append(import_error=report.nodeid, err=report.longreprtext)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Select the tests to be run; set their layer for zope.pytestlayer, which caches it until another is needed."""
        wanted = [item for item in items if is_wanted(self.test_id(item), self._job)]
        self._progress.append(collected=len(wanted))
        done = self._progress.finished()
        items[:] = [item for item in wanted if self.test_id(item) not in done]
        by_fixture = {name: layer for layer, names in LAYERS.items() for name in names.values()}
        for item in items:
            layers = [by_fixture[name] for name in getattr(item, "fixturenames", ()) if name in by_fixture]
            if layers:
                item.layer = max(layers, key=lambda layer: len(chain(layer)))  # type: ignore[attr-defined]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Record one test."""
        test_id = self.test_id(item)
        self._progress.append(start=test_id)
        self._outcome = outcome = Outcome()
        started = time.perf_counter()
        result = yield
        seconds = round(time.perf_counter() - started, 3)
        self._progress.append(id=test_id, layer="", status=outcome.status, secs=seconds, err=outcome.err)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Limit the time of a test; the driver limits that of its layers, which are set up with the first test."""
        with time_limit(self._job.test_timeout):
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the result of the set-up, the test or its tear-down."""
        if report.failed:
            self._outcome.note("fail" if report.when == "call" else "error", report.longreprtext)
        elif report.skipped and not hasattr(report, "wasxfail"):
            self._outcome.note("skip", report.longreprtext)
