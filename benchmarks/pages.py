"""Worker of ``pages``: whole pages of a Plone site over HTTP, served by separate Zope processes."""

from benchmarks import http_site
from benchmarks.backends import vacuum
from benchmarks.http_load import Client
from benchmarks.http_load import Load
from benchmarks.http_load import Meter
from benchmarks.http_load import Sample
from benchmarks.page_kinds import AFTER
from benchmarks.page_kinds import AFTER_SAVE
from benchmarks.page_kinds import BY_NAME
from benchmarks.page_kinds import EDITOR
from benchmarks.page_kinds import FIRST
from benchmarks.page_kinds import FIRST_REQUEST
from benchmarks.page_kinds import MIX
from benchmarks.page_kinds import Page
from benchmarks.page_kinds import PAGES
from benchmarks.page_kinds import READ_ONLY
from benchmarks.page_kinds import Visited
from benchmarks.page_kinds import WITH_WRITER
from benchmarks.timing import summary
from benchmarks.wire import Relay
from benchmarks.worker import Progress
from benchmarks.worker import ROOT
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import ExitStack
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from threading import Event
from threading import Thread
from time import perf_counter
from typing import Any

import itertools
import psutil
import psycopg
import subprocess
import sys
import tempfile


#: Threads of a Zope process.
THREADS = 2
#: For each page and turn: number of ignored requests, and minimum number of measured ones.
WARMUP, LEAST = 1, 2
#: Number of requests of each page whose messages are counted.
COUNTED = 4
#: (clients, processes) of each measurement of the mix.
MIXES = ((1, 1), (4, 1), (4, 2))
#: Seconds between two saves of the writer.
PAUSE = 0.5
#: Distance between the first requests of two turns: more than the requests of a turn, and a prime, so that each turn begins
#: at another folder, document and word.
TURN = 9_973


class Numbers:
    """The numbers of requests and saves; those of a turn do not depend on how many were used in turns before.

    So each backend gets the same requests, though the faster one answers more.
    """

    def __init__(self) -> None:
        self._turn = 0
        self._numbers = itertools.count()

    def begin_turn(self) -> None:
        self._turn += 1
        self._numbers = itertools.count(TURN * self._turn)

    def __next__(self) -> int:
        return next(self._numbers)


@dataclass
class Farm:
    """The site of one backend, and the starter of its processes."""

    backend: str
    dsn: str
    folder: Path
    site: Visited
    postmaster: int = field(init=False)
    numbers: Numbers = field(init=False)

    def __post_init__(self) -> None:
        self.numbers = Numbers()
        with psycopg.connect(self.dsn) as connection:
            self.postmaster = psutil.Process(connection.info.backend_pid).parent().pid

    @contextmanager
    def process(self, dsn: str = "", name: str = "zope") -> Iterator[tuple[int, int]]:
        """Start a Zope process; yield its pid and port when it listens."""
        folder = self.folder / name
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.http_server"]
        command += [self.backend, dsn or self.dsn, str(folder), str(THREADS)]
        pipe = subprocess.PIPE
        with (
            tempfile.TemporaryFile("w+") as log,
            subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=log, text=True) as process,
        ):
            try:
                assert process.stdout is not None
                port = process.stdout.readline()
                if not port:
                    process.wait()
                    log.seek(0)
                    raise RuntimeError(f"Zope has not started:\n{log.read()[-3000:]}")
                yield process.pid, int(port)
            finally:
                process.terminate()

    def meter(self, *pids: int) -> Meter:
        return Meter(self.postmaster, pids)


def run(options: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Return the records of the pages of one backend."""
    site = http_site.make(options, progress)
    vacuum(options["dsn"])
    farm = Farm(options["backend"], options["dsn"], Path(options["folder"]) / "http", site)
    rounds, seconds = options["rounds"], options["seconds"]
    wanted = [page for page in PAGES if page.name in options["pages"]] if options.get("pages") else list(PAGES)
    progress("starting Zope processes")
    with farm.process() as (pid, port), farm.process(name="other") as (other_pid, other_port):
        records = [*single(farm, wanted, pid, port, rounds, seconds, progress)]
        records += after_saves(farm, wanted, (pid, port), other_port, rounds, seconds, progress)
        warm_up(farm, other_port, progress)
        for clients, processes in MIXES:
            used = [(pid, port), (other_pid, other_port)][:processes]
            for state in (READ_ONLY, WITH_WRITER):
                records.append(mix(farm, used, clients, state, rounds, seconds, progress))
    counted = counts(farm, wanted, progress)
    for record in records:
        record |= counted.get((record["page"], record["state"]), {})
    started, first = first_requests(farm, options["starts"], progress)
    return {"measures": {"start of a process": summary(started, "s")}, "pages": records + first}


def record(page: str, state: str, sample: Sample, clients: int = 1, processes: int = 1) -> dict[str, Any]:
    """Return the series of one kind of page, which ``summarise_common`` summarises, and its costs."""
    group = BY_NAME[page].group if page in BY_NAME else MIX
    kind = {"page": page, "group": group, "state": state, "clients": clients, "processes": processes}
    return kind | {"series": sample.series} | sample.costs()


def single(
    farm: Farm, pages: list[Page], pid: int, port: int, rounds: int, seconds: float, progress: Progress
) -> Iterator[dict[str, Any]]:
    """Yield a record for each of *pages*, requested by one client."""
    client = Client(port)
    samples = {page.name: Sample(farm.meter(pid)) for page in pages}
    for _ in range(rounds):
        for page in pages:
            progress(page.name)
            farm.numbers.begin_turn()
            for _ in range(WARMUP):
                client.get(page, farm.site, next(farm.numbers))
            until, sample, before = perf_counter() + seconds, samples[page.name], client.received
            sample.series.append(series := [])
            with sample.meter:
                while len(series) < LEAST or perf_counter() < until:
                    series.append(client.get(page, farm.site, next(farm.numbers)))
            sample.received += client.received - before
    client.close()
    for page in pages:
        yield record(page.name, READ_ONLY, samples[page.name])


def after_saves(
    farm: Farm,
    pages: list[Page],
    reader: tuple[int, int],
    writer_port: int,
    rounds: int,
    seconds: float,
    progress: Progress,
) -> Iterator[dict[str, Any]]:
    """Yield a record for each of *pages*, each request preceded by a save in another process."""
    client, writer = Client(reader[1]), Client(writer_port)
    samples = {page.name: Sample(farm.meter(reader[0])) for page in pages if page.name in AFTER_SAVE}
    for _ in range(rounds):
        for name, sample in samples.items():
            progress(f"{name}, {AFTER}")
            farm.numbers.begin_turn()
            until = perf_counter() + seconds
            sample.series.append(series := [])
            while len(series) < LEAST or perf_counter() < until:
                writer.save(farm.site, next(farm.numbers), EDITOR)
                with sample.meter:
                    series.append(client.get(BY_NAME[name], farm.site, next(farm.numbers)))
    client.close()
    writer.close()
    for name, sample in samples.items():
        yield record(name, AFTER, sample)


def warm_up(farm: Farm, port: int, progress: Progress) -> None:
    """Request each kind of page once, in a new process."""
    progress("warming up")
    client = Client(port)
    farm.numbers.begin_turn()
    for page in PAGES:
        client.get(page, farm.site, next(farm.numbers))
    client.close()


def mix(
    farm: Farm,
    used: list[tuple[int, int]],
    clients: int,
    state: str,
    rounds: int,
    seconds: float,
    progress: Progress,
) -> dict[str, Any]:
    """Return the record of the mix of pages, requested by *clients* clients from the processes *used*."""
    ports = [port for _, port in used]
    sample = Sample(farm.meter(*(pid for pid, _ in used)))
    load = Load(farm.site, PAGES, ports, clients)
    for number in range(1 + rounds):
        progress(f"{MIX}, {clients} clients, {len(used)} processes, {state}")
        farm.numbers.begin_turn()
        with ExitStack() as stack:
            if state == WITH_WRITER:
                stack.enter_context(writing(farm, ports[-1]))
            # In the first round connections are opened, and caches filled.
            load.run(sample if number else Sample(farm.meter()), seconds * 4)
    load.close()
    return record(MIX, state, sample, clients, len(used))


@contextmanager
def writing(farm: Farm, port: int) -> Iterator[None]:
    """Save documents in another thread inside the block."""
    client, ended = Client(port), Event()
    failed: list[Exception] = []

    def write() -> None:
        try:
            while not ended.wait(PAUSE):
                client.save(farm.site, next(farm.numbers), EDITOR)
        except Exception as error:  # noqa: BLE001  raised by the waiting thread
            failed.append(error)

    thread = Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        client.close()
    if failed:
        raise failed[0]


def counts(farm: Farm, pages: list[Page], progress: Progress) -> dict[tuple[str, str], dict[str, float]]:
    """Return (page, state) -> number of messages to PostgreSQL, and KB received."""
    progress("counting messages")
    found = {}
    with ExitStack() as stack:
        relay = stack.enter_context(Relay(farm.dsn))
        _, port = stack.enter_context(farm.process(relay.dsn))
        _, other_port = stack.enter_context(farm.process(name="other"))
        client, writer = Client(port), Client(other_port)
        for page in pages:
            progress(f"counting messages, {page.name}")
            farm.numbers.begin_turn()
            # Until the connections of the threads have filled their caches.
            for _ in range(THREADS * 2):
                client.get(page, farm.site, next(farm.numbers))
            found[page.name, READ_ONLY] = sent(relay, farm, client, page, lambda: None)
            if page.name in AFTER_SAVE:
                save = lambda: writer.save(farm.site, next(farm.numbers), EDITOR)  # noqa: E731
                found[page.name, AFTER] = sent(relay, farm, client, page, save)
        client.close()
        writer.close()
    return found


def sent(relay: Relay, farm: Farm, client: Client, page: Page, before: Callable[[], None]) -> dict[str, float]:
    """Return messages and KB of *page*, each time after calling *before*."""
    messages = received = 0
    for _ in range(COUNTED):
        before()
        earlier = relay.counts()
        client.get(page, farm.site, next(farm.numbers))
        later = relay.counts()
        messages += later[0] - earlier[0]
        received += later[1] - earlier[1]
    return {"messages": messages / COUNTED, "kb": received / COUNTED / 1024}


def first_requests(farm: Farm, starts: int, progress: Progress) -> tuple[list[float], list[dict[str, Any]]]:
    """Return the seconds of *starts* starts of a process, and the records of its first requests."""
    started: list[float] = []
    samples: dict[str, list[float]] = {name: [] for name in FIRST}
    for _ in range(starts):
        progress("first requests of a process")
        farm.numbers.begin_turn()
        begun = perf_counter()
        with farm.process() as (_, port):
            started.append(perf_counter() - begun)
            client = Client(port)
            for name in FIRST:
                samples[name].append(client.get(BY_NAME[name], farm.site, next(farm.numbers)))
            client.close()
    kind = {"state": FIRST_REQUEST, "clients": 1, "processes": 1}
    return started, [
        {"page": name, "group": BY_NAME[name].group} | kind | summary(samples[name]) for name in FIRST if samples[name]
    ]
