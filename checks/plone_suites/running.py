"""Runs tests with their layers, and reports a layer or test that has broken the process."""

from checks.plone_suites.collecting import chain
from checks.plone_suites.collecting import Group
from checks.plone_suites.collecting import layer_name
from checks.plone_suites.collecting import Test
from checks.plone_suites.job import Progress
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from types import TracebackType
from typing import Any

import signal
import sys
import time
import traceback
import unittest


ErrorInfo = tuple[type[BaseException], BaseException, TracebackType]

#: For the test's own tear-down after its timeout.
TEARDOWN_SECONDS = 60
KEPT_CHARACTERS = 6000


class TestTimeout(Exception):
    """Raised when a test exceeds its time limit."""


class Outcome(unittest.TestResult):
    """The result of one test: the worst status, and its first traceback."""

    RANK = ("ok", "skip", "fail", "error")

    def __init__(self) -> None:
        super().__init__()
        self.status = "ok"
        self.err = ""

    def note(self, status: str, err: Any = None) -> None:
        """Set *status* if it is worse; *err* is an exc_info triple or a text."""
        if self.RANK.index(status) > self.RANK.index(self.status):
            self.status = status
            text = err if isinstance(err, str) else "".join(traceback.format_exception(*err))
            self.err = text[-KEPT_CHARACTERS:]

    def addError(self, test: Any, err: Any) -> None:
        self.note("error", err)

    def addFailure(self, test: Any, err: Any) -> None:
        self.note("fail", err)

    def addSkip(self, test: Any, reason: str) -> None:
        self.note("skip", reason)

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.note("fail", "unexpected success")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.note("fail" if issubclass(err[0], test.failureException) else "error", err)


class LayerRunner:
    """Sets layers up and down as tests need them, and records the results of the tests."""

    def __init__(self, progress: Progress, test_timeout: float) -> None:
        self.progress = progress
        self.test_timeout = test_timeout
        self._active: list[Any] = []

    def run(self, groups: list[Group], done: set[str]) -> bool:
        """Run the tests that are not in *done*; return whether all were run.

        False: a layer or a test has failed in a way that may break later tests, and a new process must run the rest.
        """
        for group in groups:
            todo = [test for test in group.tests if test.id not in done]
            if todo and not self._run_group(group.layer, todo):
                return False
        return self._tear_down_except([])

    def _run_group(self, layer: Any, tests: list[Test]) -> bool:
        layers = chain(layer)
        if not self._tear_down_except(layers):
            return False
        for item in layers:
            problem = self._set_up(item)
            if problem:
                for test in tests:
                    self._record(test, layer, "layer-error", 0, problem)
                return False
        return all(self._run_test(test, layer, layers) for test in tests)

    def _set_up(self, layer: Any) -> str:
        """Set one layer up if it is not; return the traceback of a failure."""
        if layer in self._active:
            return ""
        try:
            _call(layer, "setUp")
        except Exception:  # noqa: BLE001 - a layer may raise whatever it likes
            problem = traceback.format_exc()[-KEPT_CHARACTERS:]
            self.progress.append(layer_error=layer_name(layer), err=problem)
            return problem
        self._active.append(layer)
        return ""

    def _tear_down_except(self, wanted: list[Any]) -> bool:
        for layer in reversed(self._active[:]):
            if layer in wanted:
                continue
            self._active.remove(layer)
            try:
                _call(layer, "tearDown")
            except Exception:  # noqa: BLE001 - as above
                self.progress.append(
                    layer_teardown_error=layer_name(layer), err=traceback.format_exc()[-KEPT_CHARACTERS:]
                )
                return False
        return True

    def _run_test(self, test: Test, layer: Any, layers: list[Any]) -> bool:
        """Run one test and record its outcome; return False if its set-up or tear-down broke."""
        self.progress.append(start=test.id)
        started = time.perf_counter()
        outcome = Outcome()
        healthy = self._step(outcome, self.test_timeout, lambda: _set_up_and_run(test, outcome, layers))
        # also after a broken set-up, to undo its completed part
        torn_down = self._step(outcome, TEARDOWN_SECONDS, lambda: _call_all(reversed(layers), "testTearDown"))
        seconds = time.perf_counter() - started
        self._record(test, layer, outcome.status, seconds, outcome.err)
        return healthy and torn_down

    def _step(self, outcome: Outcome, seconds: float, step: Callable[[], None]) -> bool:
        try:
            with time_limit(seconds):
                step()
        except Exception:  # noqa: BLE001 - it becomes the outcome
            outcome.note("error", sys.exc_info())
            return False
        return True

    def _record(self, test: Test, layer: Any, status: str, seconds: float, err: str) -> None:
        self.progress.append(id=test.id, layer=layer_name(layer), status=status, secs=round(seconds, 3), err=err)


def _set_up_and_run(test: Test, outcome: Outcome, layers: list[Any]) -> None:
    _call_all(layers, "testSetUp")
    test.case(outcome)


def _call_all(layers: Any, method: str) -> None:
    for layer in layers:
        _call(layer, method)


def _call(layer: Any, method: str) -> None:
    """Call an optional method of a layer."""
    if hasattr(layer, method):
        getattr(layer, method)()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TestTimeout in the block after *seconds*."""

    def on_alarm(_signal: int, _frame: FrameType | None) -> None:
        raise TestTimeout(f"ran longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
