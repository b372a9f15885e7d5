"""Sends Zopes a read and a save repeatedly, and measures the time without an answer."""

from checks.soak.clients import SILENT
from checks.soak.clients import TIMEOUT
from checks.soak.server import AREA
from checks.soak.server import PROBED
from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from typing import Self

import requests
import threading
import time


PAUSE = 0.1
#: Time limit for an answer after an outage, in seconds.
LIMIT = 2.0 * TIMEOUT
KINDS = ("read", "write")
#: Begin and end of a request that was answered.
Answered = tuple[float, float]


class Probes:
    """A reader and a writer for each of the Zopes at *urls*, for the duration of the context.

    The context begins when each has had an answer.  Each Zope has a folder of its own, used by the probes only.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        #: requests that were never answered
        self.lost: list[str] = []
        self._ended = threading.Event()
        self._changed = threading.Condition()
        self._answered: dict[tuple[str, str], list[Answered]] = {(kind, url): [] for kind in KINDS for url in urls}
        folders = dict(zip(urls, PROBED, strict=False))
        self._threads = [
            threading.Thread(target=self._ask, args=[kind, url, f"{AREA}/{folders[url]}"], daemon=True)
            for kind, url in self._answered
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        self._wait_for(0.0, LIMIT)
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def seconds_without_answers(self, up: float, limit: float = LIMIT) -> dict[str, float]:
        """Wait for answers to requests begun after the time *up*; return the longest time without one, by kind.

        Of several Zopes, the time of the one that was silent for longest.  Raises TimeoutError after *limit* seconds.
        """
        self._wait_for(up, limit)
        found = dict.fromkeys(KINDS, 0.0)
        for (kind, _), answered in self._answered.items():
            ends = [end for _, end in answered]
            pauses = [after - before for before, after in pairwise(ends)]
            found[kind] = max(found[kind], *pauses)
        return {kind: round(seconds, 2) for kind, seconds in found.items()}

    def _wait_for(self, moment: float, limit: float) -> None:
        """Wait until each has had an answer to a request begun after *moment*."""

        def done() -> bool:
            return all(answered and answered[-1][0] > moment for answered in self._answered.values())

        with self._changed:
            if not self._changed.wait_for(done, limit):
                silent = [key for key, answered in self._answered.items() if not answered or answered[-1][0] <= moment]
                raise TimeoutError(f"no answer: {silent}")

    def _ask(self, kind: str, url: str, path: str) -> None:
        options: dict[str, Any] = {"json": {"description": "probed"}} if kind == "write" else {}
        method = "PATCH" if kind == "write" else "GET"
        while not self._ended.wait(PAUSE):
            begin = time.monotonic()
            try:
                response = requests.request(
                    method,
                    f"{url}/{path}",
                    headers={"Accept": "application/json"},
                    auth=("admin", "admin"),
                    timeout=TIMEOUT,
                    **options,
                )
            except requests.Timeout:
                self.lost.append(f"{method} {url}/{path}: {SILENT}")
                continue
            except requests.ConnectionError:
                continue
            if response.status_code < 400:
                with self._changed:
                    self._answered[kind, url].append((begin, time.monotonic()))
                    self._changed.notify_all()
