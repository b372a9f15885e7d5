"""A client of the soak repeats a write that Zope has given up for a conflict; a Zope that never answers is a failure."""

from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from http.server import HTTPServer
from tests.soak import __main__ as soak
from tests.soak import clients
from tests.soak.clients import Client
from tests.soak.clients import Gate
from tests.soak.clients import REPEATS
from tests.soak.clients import SILENT
from tests.soak.ledger import ABSENT
from tests.soak.report import broken
from tests.soak.report import errors
from typing import Any

import json
import pytest
import socket
import subprocess
import sys
import threading


CONFLICT = (500, {"type": "ConflictError", "message": "database conflict error"})
LOST = (500, {"type": "OperationalError", "message": "the connection is lost"})
MADE = (201, {"UID": "a"})


@contextmanager
def answering(answers: Sequence[tuple[int, Any]]) -> Iterator[str]:
    """Yield the URL of a server that gives these *answers*, and the last one from then on."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, data = left.pop(0) if len(left) > 1 else left[0]
            body = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()


@pytest.mark.parametrize(
    ("answers", "repeated", "is_made", "found"),
    [
        ([MADE], 0, True, {}),
        ([CONFLICT, CONFLICT, MADE], 2, True, {}),
        ([CONFLICT], REPEATS, False, {"500 ConflictError": {"inside": 0, "outside": 1}}),
        ([CONFLICT, LOST, MADE], 1, False, {"500 OperationalError": {"inside": 0, "outside": 1}}),
    ],
    ids=["made", "made in the end", "always a conflict", "another error"],
)
def test_only_a_conflict_is_repeated(
    answers: Sequence[tuple[int, Any]], repeated: int, is_made: bool, found: dict[str, Any]
) -> None:
    with answering(answers) as url:
        client = Client(0, [url], [], 0, Gate())
        page = client.create("Document", "soak/f0")
        client.session.close()
    assert [answer.repeated for answer in client.answers] == [True] * repeated + [False]
    assert errors(client.answers, []) == found
    assert (ABSENT in page.possible, page in client.live) == (not is_made, is_made)


def test_a_request_that_is_never_answered_breaks_a_promise_also_in_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(0, [f"http://127.0.0.1:{silent.getsockname()[1]}"], [], 0, Gate())
        client.search()
        client.session.close()
        client.visitor.close()
    [answer] = client.answers
    outage = [(answer.start, answer.end)]
    found = errors(client.answers, outage)
    assert found == {SILENT: {"inside": 1, "outside": 0}}
    report = {
        **dict.fromkeys(("lost", "phantom", "stale", "differences", "problems"), ()),
        "options": {"failovers": 0, "kills": 1, "seconds": 1},
        "outages": outage,
        "connections": {},
    }
    assert broken(report | {"errors": {}}) == []
    assert broken(report | {"errors": found}) == [f"in an outage: 1 × {SILENT}"]


def test_a_zope_that_does_not_end_is_killed_and_told() -> None:
    program = "import time; print('serves', flush=True); time.sleep(6000)"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    soak.end(process, 0.1)
    assert soak.failed([process]) == [f"process {process.pid} ended with status -9"]
