"""HTTP requests with a time limit for the whole exchange: DNS look-up, connection, headers and body.

A time limit of the HTTP client holds for each read, and none holds for the DNS look-up, which blocks.  So requests run in
the event loop of one thread, where each can be cancelled, and a caller waits until its time limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from plone.pgcatalog.database import background
from threading import Lock
from typing import Any
from typing import TYPE_CHECKING

import asyncio
import logging
import os


if TYPE_CHECKING:
    import httpx


class ExchangeFailed(Exception):
    """A request without a usable response; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Response:
    """The status, ``Retry-After`` header ("" without one) and body of an HTTP response."""

    status: int
    retry_after: str
    body: bytes


class _Loop:
    """An event loop in a daemon thread, and the HTTP client that its requests share.  The client follows no redirects."""

    def __init__(self) -> None:
        import httpx

        # Short, since some servers close an idle connection while the next request is on its way.
        limits = httpx.Limits(keepalive_expiry=2.0)
        # httpx logs a line for each request.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        # Callers have time limits of their own, all shorter.
        self.client = httpx.AsyncClient(follow_redirects=False, limits=limits, timeout=600)
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = background.start("embedder", self.loop.run_forever, ends=False)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.client.aclose(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


_lock = Lock()
_running: _Loop | None = None


def _loop() -> _Loop:
    """Return the loop of this process, created on first use; a forked process has its own."""
    global _running
    with _lock:
        if _running is None or _running.pid != os.getpid():
            _running = _Loop()
        return _running


def close() -> None:
    """Close the connections and the loop of this process.  The next request opens new ones."""
    global _running
    with _lock:
        running, _running = _running, None
    if running is not None:
        running.close()


def post(url: str, body: Any, headers: Mapping[str, str], seconds: float, most_bytes: int) -> Response:
    """Return the response to a POST of *body* as JSON.

    Raises ExchangeFailed after *seconds* at the latest, or for a response body of more than *most_bytes*.
    """
    import httpx

    try:
        running = _loop()
        exchange = asyncio.run_coroutine_threadsafe(_post(running.client, url, body, headers, most_bytes), running.loop)
    except (ImportError, OSError, ValueError) as error:
        # The environment may name proxies or certificates that do not exist.
        raise ExchangeFailed(f"{type(error).__name__}: {error}") from error
    try:
        return exchange.result(seconds)
    except TimeoutError as error:
        exchange.cancel()
        raise ExchangeFailed(f"no vectors after {seconds:g} seconds") from error
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise ExchangeFailed(f"{type(error).__name__}: {error}") from error


async def _post(
    client: "httpx.AsyncClient", url: str, body: Any, headers: Mapping[str, str], most_bytes: int
) -> Response:
    received = bytearray()
    async with client.stream("POST", url, json=body, headers=headers) as response:
        async for piece in response.aiter_raw():
            received += piece
            if len(received) > most_bytes:
                raise ExchangeFailed("the response of the embedder is too long")
    return Response(response.status_code, response.headers.get("retry-after", ""), bytes(received))
