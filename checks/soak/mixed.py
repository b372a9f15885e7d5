"""The mixed soak: files, meaning, a pooler and a standby; kills of each process, failovers, packs, rebuilds and vacuums.

One Zope is connected to the servers, the other Zope and ``pgcatalog work`` to a PgBouncer.  The seed decides
the times of all events.  Packs, rebuilds and vacuums run beside the rest, and are repeated until they succeed.
"""

from checks.soak.clients import Client
from checks.soak.failover import fail_over
from checks.soak.failover import Failover
from checks.soak.failover import Pair
from checks.soak.processes import ROOT
from checks.soak.server import configure
from checks.soak.server import UNPREPARED
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextlib import suppress
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from plone.pgcatalog.database.direct import DIRECT
from random import Random
from rich.console import Console
from tests.integration.bouncer import find_pgbouncer
from tests.integration.bouncer import FOLLOWS
from tests.integration.bouncer import PgBouncer
from tests.integration.bouncer import version_of
from tests.integration.embedders import answers
from tests.integration.embedders import free_port
from tests.integration.extractions import TWICE
from tests.integration.patched import patch_storage
from typing import Any
from typing import Self

import json
import os
import psutil
import psycopg
import requests
import signal
import subprocess
import sys
import threading
import time


#: Kind of event -> mean seconds from one to the next.
PERIODS = {
    "kill": 900,
    "failover": 1200,
    "pooler": 1200,
    "embedder": 1200,
    "worker": 900,
    "reader": 900,
    "pack": 480,
    "rebuild": 900,
    "vacuum": 1200,
}
#: Kinds that run beside the others, and are repeated until they succeed.
CHORES = ("pack", "rebuild", "vacuum")
#: Kinds in which requests may fail.
OUTAGES = ("kill", "failover", "pooler")
#: Seconds without events at the beginning and at the end; seconds between the end of an event and the next one.
QUIET = 20.0
PAUSE = 10.0
#: Maximal downtime of a killed process, in seconds.
MAX_DOWN = 3.0
#: Seconds until a chore has succeeded, and until the queue is empty in the end.
PATIENCE = 900.0
#: Seconds until a process reads a file.
READER_PATIENCE = 60.0
#: Part of new objects that are files.
FILES = 0.3
#: A pack that yields to commits five times ends with this status.
PACK_CONFLICT = "503"
#: PgBouncer's ``default_pool_size``.
POOL_SIZE = 20
WAITING = "SELECT count(*) FROM pgcatalog_queue WHERE due < 'infinity'"
#: Makes jobs due that wait for a retry.  The job of a killed worker has no reason; a living worker would have finished by now.
DUE = (
    "UPDATE pgcatalog_queue SET due = now() WHERE due < 'infinity'"
    " AND (reason <> '' OR attempts > 0 AND due < now() + interval '50 seconds')"
)
#: Sessions and locks that clients have left.
LEFT = (
    "SELECT format('session %s, %s', application_name, state) FROM pg_stat_activity"
    " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    " UNION ALL SELECT format('advisory lock of %s', pid) FROM pg_locks WHERE locktype = 'advisory'"
    " UNION ALL SELECT format('prepared transaction %s', gid) FROM pg_prepared_xacts"
)
FAILED = "SELECT format('failed job %s %s: %s', kind, subject, reason) FROM pgcatalog_queue WHERE reason <> ''"
#: Seconds until the sessions of ended processes have ended.
SESSION_SECONDS = 15.0

console = Console(stderr=True)


def counts(seconds: float) -> dict[str, int]:
    """Return how often each kind of event happens in a run of *seconds*: once at least."""
    return {kind: max(1, round(seconds / period)) for kind, period in PERIODS.items()}


def schedule(seconds: float, seed: int) -> list[tuple[float, str]]:
    """Return (second, kind) of all events, in their order: each kind at a random time in each of equal parts of the run."""
    events = []
    for kind, number in counts(seconds).items():
        random, part = Random(f"{seed} {kind}"), (seconds - 2 * QUIET) / number
        events += [(round(QUIET + part * (n + random.random()), 1), kind) for n in range(number)]
    return sorted(events)


@dataclass
class Event:
    """A kind of event with its begin and end in seconds of the run, and the number of attempts."""

    kind: str
    begin: float
    end: float
    attempts: int = 1


@dataclass
class Failure:
    """An attempt at a chore that failed: its kind, start, end and error."""

    kind: str
    start: float
    end: float
    error: str


class Pooled(Pair):
    """A primary, a synchronous standby, and a PgBouncer that leads to the primary; and an embedder."""

    def __init__(self, settings: Mapping[str, str], database: str) -> None:
        super().__init__(settings, synchronous=True)
        self.database = database
        self._stack = ExitStack()
        self._port = free_port()
        self.embedder_url = f"http://127.0.0.1:{self._port}/v1"
        self._embedding: subprocess.Popen[bytes]
        self.pooler: PgBouncer

    def __enter__(self) -> Self:
        program = find_pgbouncer()
        if program is None:
            raise RuntimeError("PgBouncer is not installed: apt-get install pgbouncer")
        super().__enter__()
        self._stack.callback(super().__exit__)
        try:
            settings = {"default_pool_size": str(POOL_SIZE)}
            self.pooler = self._stack.enter_context(PgBouncer(self.primary, program, settings, self.database))
            self.start_embedder()
            self._stack.callback(self.kill_embedder)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def fail_over(self) -> None:
        super().fail_over()
        self.pooler.lead_to(self.primary)

    def start_embedder(self) -> None:
        """Start the embedder, at the address that it had before."""
        command = [sys.executable, "-m", "checks.soak.embedder", str(self._port)]
        self._embedding = subprocess.Popen(command, cwd=ROOT)
        while not answers(self._port):
            time.sleep(0.05)

    def kill_embedder(self) -> None:
        self._embedding.kill()
        self._embedding.wait()


class Mixture:
    """All events of a run on *servers*, with the Zopes at *urls*, which have these *pids*."""

    def __init__(
        self,
        servers: Pooled,
        folder: Path,
        dsn: str,
        urls: Sequence[str],
        pids: dict[str, int],
        clients: Sequence[Client],
        options: dict[str, Any],
    ) -> None:
        self.servers = servers
        self.dsn = dsn
        self.urls = urls
        self.pids = pids
        self.clients = clients
        self.options = options
        self.random = Random(options["seed"])
        self.started = 0.0
        self.outages: list[tuple[float, float]] = []
        self.failovers: list[Failover] = []
        self.events: list[Event] = []
        self.failures: list[Failure] = []
        self.problems: list[str] = []
        self._threads = ThreadPoolExecutor(len(CHORES) + 1)
        self._chores: list[Future[None]] = []
        self._locks = {kind: threading.Lock() for kind in (*CHORES, "reader")}
        dsn = servers.pooler.dsn(servers.database)
        self._confs = {name: str(configure(folder, dsn, name, 1)) for name in ("work", "rebuild", "vacuum")}
        #: The demo has a scan, which has no text.
        self._failed_before = self._ask(FAILED)
        self._ended = threading.Event()
        self._working = self._start_work()
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)

    # -- pgcatalog work

    def _start_work(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(command("work", self._confs["work"], "--jobs", "2"), stderr=subprocess.DEVNULL)
        self.pids["work"] = process.pid
        return process

    def _supervise(self) -> None:
        """Start the worker again whenever it ends, as systemd does."""
        while not self._ended.wait(1.0):
            if self._working.poll() is not None:
                self._working = self._start_work()

    # -- events

    def run(self, started: float) -> list[tuple[float, float]]:
        """Do everything in the schedule; return the outages.  Only in the main thread: a server ends with its thread."""
        self.started = started
        self._supervisor.start()
        last = 0.0
        for second, kind in schedule(self.options["seconds"], self.options["seed"]):
            time.sleep(max(0.0, max(started + second, last + PAUSE) - time.monotonic()))
            if kind in self._locks:
                work = self._read_killed if kind == "reader" else self._chore
                self._chores.append(self._threads.submit(work, kind))
                continue
            begin = time.monotonic()
            getattr(self, f"_{kind}")()
            last = time.monotonic()
            if kind in OUTAGES:
                self.outages.append(self.failovers[-1].outage if kind == "failover" else (begin, last))
            self._record(kind, begin)
        return self.outages

    def _record(self, kind: str, begin: float, attempts: int = 1) -> None:
        event = Event(kind, round(begin - self.started, 1), round(time.monotonic() - self.started, 1), attempts)
        self.events.append(event)
        repeated = f" at the attempt {attempts}" if attempts > 1 else ""
        stale = sum(len(client.stale) for client in self.clients)
        console.print(
            f"{event.begin:7.1f} s: {kind}, {event.end - event.begin:.1f} s{repeated}; stale answers: {stale}"
        )

    def _down(self) -> None:
        time.sleep(self.random.uniform(0, MAX_DOWN))

    def _kill(self) -> None:
        self.servers.primary.kill()
        self._down()
        self.servers.primary.start()

    def _failover(self) -> None:
        threads = self.options["threads"]
        found = fail_over(self.servers, self.dsn, self.clients, self.urls, threads, self.random)
        self.failovers.append(found)

    def _pooler(self) -> None:
        self.servers.pooler.kill()
        self._down()
        self.servers.pooler.start()

    def _embedder(self) -> None:
        self.servers.kill_embedder()
        self._down()
        self.servers.start_embedder()

    def _worker(self) -> None:
        self._working.kill()

    def _read_killed(self, kind: str) -> None:
        """Kill a process that reads files for one of ours, as soon as there is one."""
        with self._locks[kind]:
            begin = time.monotonic()
            while time.monotonic() < begin + READER_PATIENCE:
                for pid in self.pids.values():
                    with suppress(psutil.Error, ProcessLookupError):
                        for child in psutil.Process(pid).children():
                            if any("plone.pgcatalog.files.child" in part for part in child.cmdline()):
                                os.kill(child.pid, signal.SIGKILL)
                                self._record(kind, begin)
                                return
                time.sleep(0.05)

    def _chore(self, kind: str) -> None:
        """Do a chore until it succeeds."""
        with self._locks[kind]:
            started, attempts = time.monotonic(), 0
            while time.monotonic() < started + PATIENCE:
                begin = time.monotonic()
                attempts += 1
                error = self._pack() if kind == "pack" else self._run(kind)
                if not error:
                    self._record(kind, started, attempts)
                    return
                self.failures.append(Failure(kind, begin, time.monotonic(), error))
                time.sleep(1.0)
            self.problems.append(f"{kind} has not succeeded in {PATIENCE:.0f} s: {error}")

    def _pack(self) -> str:
        """Pack by the button of the ZMI; return the error."""
        url = self.random.choice(self.urls).rpartition("/")[0]
        try:
            response = requests.post(
                f"{url}/Control_Panel/Database/main/manage_pack",
                data={"days": "0"},
                auth=("admin", "admin"),
                allow_redirects=False,
                timeout=PATIENCE,
            )
        except requests.RequestException as error:
            return repr(error)
        return "" if response.status_code == 302 else f"{response.status_code} {response.text[:200]}"

    def _run(self, kind: str) -> str:
        """Run the command *kind*; return the error."""
        try:
            done = subprocess.run(
                command(kind, self._confs[kind]), capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired as error:
            return str(error)
        return (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1] if done.returncode else ""

    # -- the end

    def finish(self) -> None:
        """Wait until all chores are done and the queue is empty; end the worker."""
        for chore in self._chores:
            chore.result()
        console.print("Waiting for the queue")
        if not self._wait_for(lambda: self._ask(WAITING) == [(0,)], PATIENCE, DUE):
            self.problems.append(f"the queue is not empty after {PATIENCE:.0f} s")
        self._ended.set()
        self._supervisor.join()
        self.close()
        if self._working.returncode:
            self.problems.append(f"pgcatalog work ended with status {self._working.returncode}")

    def close(self) -> None:
        """End the worker."""
        self._ended.set()
        self._working.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._working.wait(60)
        self._working.kill()
        self._working.wait()

    def left(self) -> list[str]:
        """Return faults that remain after all processes have ended: sessions, locks, failed jobs, findings of the check."""
        self.servers.pooler.kill()
        self._wait_for(lambda: not self._ask(LEFT), SESSION_SECONDS)
        found = [*self._ask(LEFT), *self._ask(FAILED)]
        lines = [line for (line,) in found if (line,) not in self._failed_before]
        if twice := self._ask(TWICE)[0][0]:
            lines.append(f"{twice} texts were extracted twice")
        checked = subprocess.run(
            command("check", "--dsn", self.dsn, "--json"), capture_output=True, text=True, check=False
        )
        findings = json.loads(checked.stdout)["findings"]
        found = [f"check: {finding['subject']}: {finding['text']}" for finding in findings]
        # The machine is busy, so searches are slow.
        return lines + [line for line in found if "slow queries" not in line]

    def observed(self) -> dict[str, Any]:
        """Return the events, and the failed attempts at chores."""
        events = sorted(self.events, key=lambda event: event.begin)
        return {"events": [asdict(event) for event in events], "failures": [asdict(each) for each in self.failures]}

    def _wait_for(self, done: Callable[[], bool], seconds: float, repair: str = "") -> bool:
        """Return True when *done*, False after *seconds*; execute *repair* before each look."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if done():
                return True
            if repair:
                self._ask(repair)
            time.sleep(1.0)
        return False

    def _ask(self, statement: str) -> list[Any]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


def prepare_environment(folder: Path, dsn: str) -> None:
    """Let processes bypass the pooler to *dsn*; patch the storage in *folder* if the pooler follows no prepared statements."""
    os.environ[DIRECT] = dsn
    program = find_pgbouncer()
    if program and version_of(program) < FOLLOWS:
        patched = folder / "patched"
        patched.mkdir(parents=True)
        patch_storage(patched)
        os.environ[UNPREPARED] = "1"
        os.environ["PYTHONPATH"] = os.pathsep.join([str(patched), *filter(None, [os.environ.get("PYTHONPATH")])])


def command(*words: str) -> list[str]:
    """Return the command ``pgcatalog`` with *words*."""
    return [sys.executable, "-W", "ignore", "-m", "plone.pgcatalog.cli", *words]
