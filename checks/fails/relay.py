"""A relay before a PostgreSQL server that counts the messages of all its clients, and makes one of them fail.

A message is everything up to a Query or Sync of PostgreSQL's protocol, after which a client waits for the server.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from psycopg.conninfo import conninfo_to_dict
from psycopg.conninfo import make_conninfo
from tempfile import TemporaryDirectory
from typing import Self

import enum
import re
import socket
import struct
import threading


class Failure(enum.StrEnum):
    """The moment at which a connection is lost."""

    BEFORE = "not sent"
    AFTER = "answer lost"


QUERY, SYNC, FLUSH, END, COPY_DATA, COPY_DONE, PASSWORD = b"Q", b"S", b"H", b"X", b"d", b"c", b"p"
#: Answers after which a client sends its next message: ReadyForQuery, and the begin of a COPY.
ANSWERS = (b"Z", b"G", b"W")
#: Code of a request to cancel a statement, which has no answer.
CANCEL = 80877102
#: Seconds until a missing answer is an error.
PATIENCE = 60.0
TEXT = re.compile(
    rb"(?:BEGIN|COMMIT|ROLLBACK|SELECT|INSERT|UPDATE|DELETE|WITH|LOCK|CREATE|DROP|ALTER|COPY)\b[^\0]{0,60}"
)
SOCKET = ".s.PGSQL.5432"


class Packets:
    """The packets that arrive at *end*, a socket."""

    def __init__(self, end: socket.socket) -> None:
        self._file = end.makefile("rb", 1 << 16)

    def first(self) -> tuple[int, bytes]:
        """Return (code, packet) of the packet that starts a session.  Raises EOFError."""
        head = self._read(8)
        length, code = struct.unpack("!II", head)
        return code, head + self._read(length - 8)

    def next(self) -> tuple[bytes, bytes]:
        """Return (type, packet).  Raises EOFError."""
        head = self._read(5)
        return head[:1], head + self._read(struct.unpack("!I", head[1:])[0] - 4)

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise EOFError
        return data


class Relay:
    """The relay before the server *dsn*: ``arm`` makes one of the next messages fail, ``disarm`` returns their number.

    ``failed`` is the beginning of the first statement of the message that has failed; empty if none has.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        server = conninfo_to_dict(dsn)
        self._server = f"{server['host']}/.s.PGSQL.{server['port']}"
        self._folder = TemporaryDirectory(prefix="pgcatalog-relay-")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(Path(self._folder.name) / SOCKET))
        self._listener.listen()
        self._lock = threading.Lock()
        self._is_armed = False
        self._count = self._fatal = 0
        self._failure = Failure.BEFORE
        self.failed = ""
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.close()
        self._folder.cleanup()

    def dsn(self, dbname: str) -> str:
        """Return the connection string of a database through the relay."""
        return make_conninfo(self._dsn, host=self._folder.name, port=5432, dbname=dbname)

    def arm(self, number: int, failure: Failure) -> None:
        """Make the message *number* from now on fail, beginning at 1; with 0 none, messages are counted only."""
        with self._lock:
            self._is_armed, self._count, self._fatal, self._failure, self.failed = True, 0, number, failure, ""

    def disarm(self) -> int:
        """Let all further messages pass; return the number of messages since ``arm``."""
        with self._lock:
            self._is_armed = False
            return self._count

    def fate(self, message: bytes) -> Failure | None:
        """Count *message*; return how it fails, None if it passes."""
        with self._lock:
            self._count += self._is_armed
            if not self._is_armed or self._count != self._fatal:
                return None
            self.failed = (
                " ".join(found[0].decode("utf-8", "replace").split()) if (found := TEXT.search(message)) else "prepared"
            )
            return self._failure

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                Session(self, self._listener.accept()[0], self._server)


class Session:
    """A session of *client* with the server at the socket *path*, until a message fails or an end closes it."""

    def __init__(self, relay: Relay, client: socket.socket, path: str) -> None:
        self._relay, self._client = relay, client
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(path)
        #: Numbers of messages, of answers, and of the answer that is withheld.
        self._sent = self._answered = 0
        self._withheld: int | None = None
        self._is_done = threading.Event()
        for work in (self._send, self._answer):
            threading.Thread(target=self._until_closed, args=[work], daemon=True).start()

    def _until_closed(self, work: Callable[[], None]) -> None:
        try:
            with suppress(OSError, EOFError):
                work()
        finally:
            self._is_done.set()
            for end in (self._client, self._server):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def _send(self) -> None:
        packets = Packets(self._client)
        code, packet = packets.first()
        self._server.sendall(packet)
        if code == CANCEL:
            self._server.recv(1)
            return
        self._sent = 1
        message, last = b"", QUERY
        while True:
            kind, packet = packets.next()
            message += packet
            # After a COPY by Query its end is answered; after one by Execute the Sync behind it is.
            if kind in (QUERY, SYNC) or (kind == COPY_DONE and last == QUERY):
                last = kind
                failure = self._relay.fate(message)
                if failure is Failure.BEFORE:
                    return
                if failure is Failure.AFTER:
                    self._withheld = self._sent + 1
                self._sent += 1
                self._server.sendall(message)
                message = b""
                if failure is Failure.AFTER:
                    if not self._is_done.wait(PATIENCE):
                        raise TimeoutError(f"no answer to {self._relay.failed}")
                    return
            elif kind in (FLUSH, END, COPY_DATA, PASSWORD):
                self._server.sendall(message)
                message = b""

    def _answer(self) -> None:
        packets = Packets(self._server)
        while True:
            kind, packet = packets.next()
            if self._withheld is None or self._answered < self._withheld - 1:
                self._client.sendall(packet)
            self._answered += kind in ANSWERS
            if self._withheld is not None and self._answered >= self._withheld:
                return
