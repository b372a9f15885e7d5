"""The messages that a connection sends to its server."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextlib import contextmanager
from typing import Any

import re
import tempfile


class Traffic:
    """The messages a psycopg connection sent to its server, read from libpq's trace."""

    def __init__(self, text: str) -> None:
        sent = [line.split("\t") for line in text.splitlines() if "\tF\t" in line]
        self.messages = [(fields[3].strip(), "\t".join(fields[4:])) for fields in sent if len(fields) > 3]
        #: bytes of the rows sent by the server
        self.row_bytes = sum(int(size) for size in re.findall(r"\tB\t(\d+)\tDataRow", text))

    @property
    def round_trips(self) -> int:
        """Number of Queries and Syncs: after each the client waits for the server."""
        return sum(kind in ("Query", "Sync") for kind, _ in self.messages)

    @property
    def statements(self) -> list[str]:
        found, parsed = [], []
        for kind, text in self.messages:
            if kind in ("Query", "Parse"):
                parsed.append(text.replace("\\n", " "))
            if kind in ("Query", "Sync") and parsed:
                found.append("; ".join(parsed))
                parsed = []
        return found

    def matching(self, word: str) -> list[str]:
        return [text for text in self.statements if word in text]


def traced(portal: Any, prepares: bool = False) -> AbstractContextManager[list[Traffic]]:
    """Return the context of a list that afterwards holds the Traffic of the portal's snapshot connection.

    Without prepared statements (*prepares* false) every message has its SQL; otherwise it may have a statement's name.
    """
    return traced_connection(portal._p_jar._normal_storage.pg_connection, prepares)


@contextmanager
def traced_connection(connection: Any, prepares: bool = False) -> Iterator[list[Traffic]]:
    """Yield a list that afterwards holds the Traffic of the psycopg *connection*; see ``traced``."""
    if not prepares:
        connection.prepare_threshold, connection.prepares_ours = None, False
    pgconn = connection.pgconn
    result: list[Traffic] = []
    with tempfile.TemporaryFile("w+") as file:
        pgconn.trace(file.fileno())
        pgconn.set_trace_flags(0)
        try:
            yield result
        finally:
            pgconn.untrace()
            file.seek(0)
            result.append(Traffic(file.read()))


@contextmanager
def traced_requests(db: Any) -> Iterator[list[Traffic]]:
    """Yield a list that afterwards holds the Traffic of all snapshot connections of *db*, a ZODB.DB."""
    files: list[tuple[Any, Any]] = []

    def trace(jar: Any) -> None:
        connection = jar._normal_storage.pg_connection
        connection.prepare_threshold, connection.prepares_ours = None, False
        file = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed below
        connection.pgconn.trace(file.fileno())
        connection.pgconn.set_trace_flags(0)
        files.append((connection.pgconn, file))

    db._connectionMap(trace)
    result: list[Traffic] = []
    try:
        yield result
    finally:
        texts = []
        for pgconn, file in files:
            pgconn.untrace()
            file.seek(0)
            texts.append(file.read())
            file.close()
        result.append(Traffic("".join(texts)))
