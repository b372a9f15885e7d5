"""HTTP clients of a site, and the cost of their requests."""

from base64 import b64encode
from benchmarks.page_kinds import Page
from benchmarks.page_kinds import Visited
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from dataclasses import field
from http.client import HTTPConnection
from random import Random
from time import perf_counter
from typing import Any

import json
import psutil


TIMEOUT = 120


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
    """The measurements of one kind of page: seconds of each request, processor time, bytes of the answers."""

    meter: Meter
    seconds: list[float] = field(default_factory=list)
    elapsed: float = 0
    received: int = 0

    def costs(self) -> dict[str, Any]:
        """Return the processor time of a page in ms, and the KB of its answer if they were counted."""
        count = max(1, len(self.seconds))
        times = {"zope_cpu": self.meter.zope / count * 1e3, "postgresql_cpu": self.meter.postgresql / count * 1e3}
        return times | ({"answer_kb": self.received / count / 1024} if self.received else {})


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
        started = perf_counter()
        with sample.meter:
            for seconds in self._pool.map(
                self._visit, range(len(self._clients)), [started + duration] * len(self._clients)
            ):
                sample.seconds += seconds
        sample.elapsed += perf_counter() - started

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
