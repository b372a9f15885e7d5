"""Runs suites in worker processes and replaces a worker that has died."""

from checks.plone_suites.job import BAD
from checks.plone_suites.job import EXIT_RESUME
from checks.plone_suites.job import Job
from checks.plone_suites.job import Progress
from pathlib import Path
from typing import Any

import collections
import contextlib
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import time


HERE = Path(__file__).parent
ROOT = HERE.parents[1]
#: Meaning of a name of a tier; the packages of ``addons`` are installed for that tier only.
TIERS = {"quick": {"quick"}, "medium": {"quick", "medium"}, "all": {"quick", "medium", "wide"}, "addons": {"addons"}}
MAX_RESTARTS = 60
#: A worker without records for this much longer than a test's time limit counts as hung.
IDLE_MARGIN = 120
KILLED = -9


@dataclasses.dataclass
class Options:
    """Options of the command line for every suite."""

    profile: str | None
    dsn: str
    only: str | None = None
    failed_in: dict[str, Any] | None = None
    #: Deadlocked waits end by `lock_timeout`; a busy machine needs minutes for a long doctest.
    test_timeout: float = 600
    suite_timeout: float = 3600


def select(names: list[str]) -> dict[str, dict[str, Any]]:
    """Return the suites for names of suites.json, ``quick``, ``medium``, ``all``, ``only:tier`` or ``module:dotted.name``.

    Raises KeyError for any other name.
    """
    known = json.loads((HERE / "suites.json").read_text("utf-8"))
    selected: dict[str, dict[str, Any]] = {}
    for name in names:
        if name in TIERS:
            selected |= {n: spec for n, spec in known.items() if TIERS[name] & set(spec["tier"].split())}
        elif name.startswith("only:"):
            # The tier whose file has the control: the first of a suite.
            selected |= {n: spec for n, spec in known.items() if spec["tier"].split()[0] == name.removeprefix("only:")}
        elif name.startswith("module:"):
            selected[name] = {"modules": [name.removeprefix("module:")]}
        else:
            selected[name] = known[name]
    return selected


def run_suite(name: str, spec: dict[str, Any], options: Options) -> dict[str, Any]:
    """Run one suite and return its record (see ``results``)."""
    with tempfile.TemporaryDirectory(prefix="plone-suite-", ignore_cleanup_errors=True) as folder:
        return SuiteRun(name, spec, options, Path(folder)).run()


class SuiteRun:
    """One suite, in one working directory."""

    def __init__(self, name: str, spec: dict[str, Any], options: Options, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.log = folder / "log"
        self.progress = Progress(folder / "progress.jsonl")
        self.started = time.monotonic()
        self.restarts = 0
        slug = re.sub(r"\W", "_", name).lower()[-30:]
        Job(
            modules=spec["modules"],
            exclude=spec.get("exclude", []),
            only=options.only,
            ids=_failed_ids(options.failed_in, name),
            profile=options.profile,
            dsn=options.dsn,
            prefix=f"suite_{os.getpid()}_{slug}_",
            progress=str(self.progress.path),
            test_timeout=options.test_timeout,
            drive=bool(spec.get("drive") and options.profile),
            sdist=spec.get("sdist"),
        ).write(folder / "job.json")

    def run(self) -> dict[str, Any]:
        """Start workers until every test has a result, or there is no more progress."""
        code = self._work()
        while code and self.restarts < MAX_RESTARTS and self._time_left() > 0:
            if not self._note_crash(code) and code != EXIT_RESUME:
                break  # it died outside of a test: another one would do the same
            self.restarts += 1
            code = self._work()
        return self._record(code)

    def _work(self) -> int:
        command = [sys.executable, "-m", "checks.plone_suites.worker", "job.json"]
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        environment = os.environ | {
            "LANG": "C.UTF-8",
            # On a busy machine a layer may need more than a minute to set up.
            "ZODB_PGJSONB_IDLE_IN_XACT_TIMEOUT_MS": "0",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": path,
            "PYTHONWARNINGS": "ignore",
            "TZ": "UTC",
        }
        with self.log.open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=self.folder)
            try:
                return self._wait(process)
            finally:
                process.kill()  # no effect on an ended process
                process.wait()

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        """Return the exit status, KILLED when the worker hangs."""
        size, changed = -1, time.monotonic()
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=1)
            now = time.monotonic()
            if self.progress.size() != size:
                size, changed = self.progress.size(), now
            if now - changed > self.options.test_timeout + IDLE_MARGIN or self._time_left() < 0:
                return KILLED

    def _time_left(self) -> float:
        return self.started + self.options.suite_timeout - time.monotonic()

    def _note_crash(self, code: int) -> bool:
        test_id = self.progress.unfinished()
        if test_id:
            err = f"the worker ended with status {code} in this test"
            self.progress.append(id=test_id, layer="", status="crash", secs=0, err=err)
        return bool(test_id)

    def _record(self, code: int) -> dict[str, Any]:
        records = self.progress.records()
        tests = {
            test_id: {key: test[key] for key in ("status", "secs", "err") if test[key] != ""}
            for test_id, test in self.progress.finished().items()
        }
        problems = [
            {key: value[-2000:] for key, value in record.items()}
            for record in records
            if record.keys() & {"import_error", "layer_error", "layer_teardown_error"}
        ]
        if code and not tests:
            problems.append({"log": self.log.read_text(errors="replace")[-4000:]})
        return {
            "seconds": round(time.monotonic() - self.started, 1),
            "restarts": self.restarts,
            "exit": code,
            "partial": bool(self.options.only or self.options.failed_in),
            "catalog": sorted({r["catalog"] for r in records if "catalog" in r}),
            "collected": max((r["collected"] for r in records if "collected" in r), default=0),
            "counts": dict(collections.Counter(test["status"] for test in tests.values())),
            "problems": problems,
            "tests": tests,
        }


def _failed_ids(results: dict[str, Any] | None, suite: str) -> list[str] | None:
    if results is None:
        return None
    tests = results["suites"].get(suite, {"tests": {}})["tests"]
    return [test_id for test_id, test in tests.items() if test["status"] in BAD]
