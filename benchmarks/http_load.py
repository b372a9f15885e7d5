"""HTTP clients of a site, and the cost of their requests."""

from base64 import b64encode
from benchmarks.page_kinds import MIX
from benchmarks.page_kinds import Page
from benchmarks.page_kinds import Visited
from benchmarks.timing import summary
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from dataclasses import field
from http.client import HTTPConnection
from random import Random
from statistics import fmean
from time import perf_counter
from typing import Any

import json
import psutil


TIMEOUT = 120
#: The names in a record that identify its kind of page and state.
KIND = ("page", "state", "clients", "processes")


class RequestFailed(RuntimeError):
    """A failed request for a page."""


class Client:
    """A browser with one connection to the process at *port*; ``received`` are the bytes of all answers."""

    received = 0

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)

    def get(self, page: Page, site: Visited, n: int) -> float:
        """Request the n-th *page*; return the seconds.  Raises RequestFailed."""
        return self._request("GET", page.path(site, n), page.headers | credentials(page.login))

    def save(self, site: Visited, n: int, login: str) -> None:
        """Change the n-th document.  Raises RequestFailed."""
        headers = {"Accept": "application/json", "Content-Type": "application/json", **credentials(login)}
        self._request("PATCH", site.document(n), headers, json.dumps({"description": f"Changed {n} times"}))

    def close(self) -> None:
        self._connection.close()

    def _request(self, method: str, path: str, headers: dict[str, str], body: str | None = None) -> float:
        started = perf_counter()
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        text = response.read()
        seconds = perf_counter() - started
        self.received += len(text)
        # Plone's vocabularies return errors with status 200.
        if response.status not in (200, 204) or (method == "GET" and not text) or text.startswith(b'{"error"'):
            raise RequestFailed(f"{method} {path}: {response.status} {text[:500]!r}")
        return seconds


def credentials(login: str | None) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(login.encode()).decode()}"} if login else {}


@dataclass
class Meter:
    """The processor time of the Zope processes *pids* and of a whole PostgreSQL server."""

    postmaster: int
    pids: Sequence[int]
    zope: float = field(default=0, init=False)
    postgresql: float = field(default=0, init=False)

    def __enter__(self) -> None:
        self.zope -= sum(cpu(psutil.Process(pid)) for pid in self.pids)
        self.postgresql -= server_cpu(self.postmaster)

    def __exit__(self, *exc_info: object) -> None:
        self.zope += sum(cpu(psutil.Process(pid)) for pid in self.pids)
        self.postgresql += server_cpu(self.postmaster)


def cpu(process: psutil.Process, ended: bool = False) -> float:
    """Return the processor seconds of *process*; if *ended*, including those of its ended children."""
    times = process.cpu_times()
    return float(sum(times[:4] if ended else times[:2]))


def server_cpu(postmaster: int) -> float:
    """Return the processor seconds of a PostgreSQL server, of all its processes until now."""
    process = psutil.Process(postmaster)
    total = cpu(process, ended=True)
    for child in process.children():
        try:
            total += cpu(child)
        except psutil.NoSuchProcess:  # it has ended meanwhile, and counts among the ended ones
            continue
    return total


@dataclass
class Sample:
    """The measurements of one kind of page: seconds of requests, processor time, bytes of the answers.

    A series is the seconds of the requests of one client in one turn, which are the same for each backend.
    """

    meter: Meter
    series: list[list[float]] = field(default_factory=list)
    received: int = 0

    @property
    def requests(self) -> int:
        return sum(map(len, self.series))

    def costs(self) -> dict[str, Any]:
        """Return the processor time of a page in ms, and the KB of its answer if they were counted."""
        count = max(1, self.requests)
        times = {"zope_cpu": self.meter.zope / count * 1e3, "postgresql_cpu": self.meter.postgresql / count * 1e3}
        return times | ({"answer_kb": self.received / count / 1024} if self.received else {})


def summarise_common(results: Iterable[Iterable[dict[str, Any]]]) -> None:
    """Replace ``series`` in the records of each backend by the ``summary`` of those requests that all have answered.

    In the same time a faster backend answers more requests.  Those are for other pages, which may be larger or smaller.
    A record of the mix gets the pages in a second, too: its clients wait for nothing but answers.
    """
    kinds: defaultdict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for records in results:
        for record in records:
            if "series" in record:
                kinds[*(record[name] for name in KIND)].append(record)
    for records in kinds.values():
        for record, seconds in zip(records, common([each.pop("series") for each in records]), strict=True):
            record |= summary(seconds)
            if record["page"] == MIX:
                record["per_second"] = record["clients"] / fmean(seconds)


def common(backends: Sequence[Sequence[Sequence[float]]]) -> list[list[float]]:
    """Return the seconds in the series of each of *backends*, without the ends that another one does not have."""
    lengths = [min(map(len, same)) for same in zip(*backends, strict=True)]
    return [
        [seconds for each, length in zip(series, lengths, strict=True) for seconds in each[:length]]
        for series in backends
    ]


class Load:
    """Several simultaneous clients, each of which requests pages of *pages* according to their weight."""

    def __init__(self, site: Visited, pages: Sequence[Page], ports: Sequence[int], clients: int) -> None:
        self._site, self._pages = site, pages
        self._weights = [page.weight for page in pages]
        self._clients = [Client(ports[number % len(ports)]) for number in range(clients)]
        self._chances = [Random(number) for number in range(clients)]
        self._pool = ThreadPoolExecutor(clients)

    def run(self, sample: Sample, duration: float) -> None:
        """Send requests for *duration* seconds, and add the results to *sample*."""
        until = perf_counter() + duration
        with sample.meter:
            for seconds in self._pool.map(self._visit, range(len(self._clients)), [until] * len(self._clients)):
                sample.series.append(seconds)

    def _visit(self, number: int, until: float) -> list[float]:
        chance, client = self._chances[number], self._clients[number]
        times = []
        while perf_counter() < until:
            [page] = chance.choices(self._pages, self._weights)
            times.append(client.get(page, self._site, chance.randrange(1_000_000)))
        return times

    def close(self) -> None:
        self._pool.shutdown()
        for client in self._clients:
            client.close()
