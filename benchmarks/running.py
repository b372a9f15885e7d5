"""Runs the workers of a command, and writes their results to a file."""

from benchmarks import kept
from benchmarks.backends import OURS
from benchmarks.http_load import summarise_common
from benchmarks.machine import header
from benchmarks.timing import summary
from benchmarks.worker import fill_at_once
from benchmarks.worker import run_in_turns
from benchmarks.worker import Worker
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from contextlib import ExitStack
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from plone.pgcatalog.testing.embedded import DEMO_SETTINGS
from plone.pgcatalog.testing.embedded import EmbeddedPostgres
from rich.console import Console
from rich.progress import Progress
from rich.progress import SpinnerColumn
from rich.progress import TextColumn
from rich.progress import TimeElapsedColumn
from time import perf_counter
from typing import Any

import json
import psutil
import psycopg
import re
import shlex
import tempfile


#: Settings of a production server: a commit is on the disk.
SETTINGS = {
    **DEMO_SETTINGS,
    "synchronous_commit": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    # RelStorage locks each object that a commit changes: thousands, while a site is filled.
    "max_locks_per_transaction": "1024",
}


#: Steps of workers whose processor times are recorded.
STEPS = ("creating documents", "modifying documents")
#: Options that a command line has as arguments, without their names.
ARGUMENTS = ("what",)


class OtherOptions(ValueError):
    """This file contains a run with other options: name another file, or add --again."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: {self.__doc__}")


@dataclass(frozen=True)
class Job:
    """One process: ``run`` of *module* with *options*; its result belongs to *backend*.

    *checkout* is the folder of another version of the project that runs as OURS; None: this one.
    """

    module: str
    backend: str
    options: dict[str, Any] = field(default_factory=dict)
    checkout: Path | None = None
    #: whether the worker returns the results of several backends, by their names
    several: bool = False

    @property
    def id(self) -> str:
        size = self.options.get("size")
        return self.backend if size is None else f"{self.backend} {size}"


@dataclass
class ResultFile:
    """The results of one command; they are not written if *path* is None.

    *backends* are the chosen ones, empty if the command's default is measured.
    """

    command: str
    options: dict[str, Any]
    path: Path | None
    backends: Sequence[str] = ()
    data: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=perf_counter)

    def load(self, again: bool) -> None:
        """Load the results in the file.  Raises OtherOptions."""
        if self.path is None or again or not self.path.exists():
            return
        data = json.loads(self.path.read_text("utf-8"))
        if (data["command"], data["options"]) != (self.command, self.options):
            raise OtherOptions(self.path)
        self.data = data

    def begin(self, postgresql: str) -> None:
        if not self.data:
            self.data = {"command": self.command, "options": self.options, "command_line": self.command_line()}
            self.data |= header(postgresql)
            self.data |= {"done": [], "results": {}}

    def command_line(self) -> str:
        """Return the command line of this measurement."""
        words = ["python", "benchmarks/run_benchmarks.py", self.command]
        for name, setting in self.options.items():
            if name in ARGUMENTS:
                words.append(setting)
                continue
            option = name.removesuffix("s") if isinstance(setting, list) else name
            flag = f"--{option.replace('_', '-')}"
            if isinstance(setting, list):
                words += [word for each in setting for word in (flag, str(each))]
            elif setting is not False:
                words += [flag] if setting is True else [flag, str(setting)]
        words += [word for backend in self.backends for word in ("--backend", backend)]
        return shlex.join(words)

    def add(self, job: Job, result: dict[str, Any]) -> None:
        """Add the result of *job*, and write the file."""
        for backend, found in result.items() if job.several else [(job.backend, result)]:
            mine = self.data["results"].setdefault(backend, {})
            found["measures"] = mine.get("measures", {}) | found["measures"]
            mine.update(found)
        self.data["done"].append(job.id)
        self._write()

    def end(self) -> None:
        """Add the duration of the whole measurement: only complete results have one."""
        self.data["minutes"] = round((perf_counter() - self.started) / 60, 1)
        self._write()

    def _write(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(compact(self.data), "utf-8")


def compact(data: Any) -> str:
    """Return *data* as JSON, one line for each record."""
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return re.sub(r"\{[^{}]*\}", lambda record: " ".join(record[0].split()), text) + "\n"


def run_jobs(
    file: ResultFile, jobs: Iterable[Job], again: bool = False, in_turn: bool = False, sites: Path | None = None
) -> dict[str, Any]:
    """Run the *jobs* that *file* does not contain yet, each on a fresh database; return its data.

    They run one after the other, or *in_turn*: see ``run_in_turns``.  Filled sites are stored in the folder *sites*, and
    fresh databases are copies of those.  Raises OtherOptions, WorkerFailed.
    """
    file.load(again)
    open_jobs = [job for job in jobs if job.id not in file.data.get("done", ())]
    if not open_jobs:
        return file.data
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    folder = sites / "postgresql" if sites else None
    with EmbeddedPostgres(folder, SETTINGS) as server, Progress(*columns, console=console) as progress:
        file.begin(str(server.version))
        for group in [open_jobs] if in_turn else [[job] for job in open_jobs]:
            run_group(server, group, file, progress, sites is not None)
    file.end()
    return file.data


def run_group(
    server: EmbeddedPostgres, jobs: Sequence[Job], file: ResultFile, progress: Progress, with_stored: bool
) -> None:
    """Run *jobs* in turns, and add their results to *file*."""
    with ExitStack() as stack:
        running = [
            (job, stack.enter_context(started(server, job, file.command, progress, with_stored))) for job in jobs
        ]
        workers = [worker for _, worker in running]
        if with_stored and file.command in kept.NOT_MEASURED:
            fill_at_once(workers)
        run_in_turns(workers)
        summarise_common(worker.result.get("pages", ()) for _, worker in running)
        for job, worker in running:
            if profile := worker.result.pop("profile", None):
                progress.console.print(
                    f"{file.command}: {job.id}\n{profile}", markup=False, highlight=False, soft_wrap=True
                )
            if not job.several:
                worker.result["measures"] |= step_costs(worker)
            if worker.kept:
                worker.result["kept"] = worker.kept
            file.add(job, worker.result)


def step_costs(worker: Worker) -> dict[str, Any]:
    """Return the measures of the STEPS that *worker* has done."""
    return {
        f"{step}: processor time of {process}": summary(seconds)
        for step in STEPS
        for process, seconds in zip(("Zope", "PostgreSQL"), zip(*worker.costs[step], strict=True), strict=False)
    }


@contextmanager
def started(
    server: EmbeddedPostgres, job: Job, command: str, progress: Progress, with_stored: bool = False
) -> Iterator[Worker]:
    """Start the worker of *job* on a fresh database; *with_stored*: on a copy of the stored site, or it stores the site."""
    title, database = f"{command}: {job.id}", re.sub(r"\W", "_", f"bench_{job.id}")
    task = progress.add_task(title, total=None)

    def show(text: str) -> None:
        progress.update(task, description=f"{title}: {text}")

    with tempfile.TemporaryDirectory(prefix="pgcatalog-bench-") as folder:
        backend = OURS if job.checkout else job.backend
        site = kept.site_of(command, job.backend, job.options) if with_stored else None
        fill = kept.found(server.dsn(), site, job.backend) if site else None
        server.dropdb(database)  # of a run that was killed, on a stored server
        dsn = server.createdb(database, template=site if fill else None)
        options = {**job.options, "backend": backend, "dsn": dsn, "folder": folder}
        options |= {"keep": site, "kept": fill} if with_stored else {}
        with psycopg.connect(options["dsn"]) as connection:
            postmaster = psutil.Process(connection.info.backend_pid).ppid()
        worker = Worker(job.module, options, show, postmaster, job.checkout)
        worker.kept = fill["date"] if fill else ""
        try:
            yield worker
            progress.update(task, description=f"{title}: done", total=1, completed=1)
        finally:
            worker.close()
            server.dropdb(database)
