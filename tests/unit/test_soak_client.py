"""A client of the soak repeats a write that Zope has given up for a conflict, and says so."""

from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from http.server import HTTPServer
from tests.soak.clients import Client
from tests.soak.clients import Gate
from tests.soak.clients import REPEATS
from tests.soak.ledger import ABSENT
from tests.soak.report import errors
from typing import Any

import json
import pytest
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
