"""A relay before a PostgreSQL server that counts the messages of all its clients, and makes one of them fail.

A message is everything up to a Query or Sync of PostgreSQL's protocol, after which a client waits for the server.
"""

from collections import Counter
from collections.abc import Callable
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from psycopg.conninfo import conninfo_to_dict
from psycopg.conninfo import make_conninfo
from tempfile import TemporaryDirectory
from typing import NamedTuple
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
PARSE, BIND = b"P", b"B"
#: Answers after which a client sends its next message: ReadyForQuery, and the begin of a COPY.
ANSWERS = (b"Z", b"G", b"W")
#: Code of a request to cancel a statement, which has no answer.
CANCEL = 80877102
#: Seconds until a missing answer is an error.
PATIENCE = 60.0
#: Space and comments before a statement, and the numbers in names of relations.
HEAD = re.compile(r"^(?:\s|--[^\n]*\n)*")
OWN = re.compile(r"pgcatalog_[0-9a-f]{3,}(?:_\d+)?")
#: Characters of a statement that name it.
LENGTH = 70
SOCKET = ".s.PGSQL.5432"


def name_of(text: bytes) -> str:
    """Return the beginning of the statement *text*."""
    statement = HEAD.sub("", text.rstrip(b"\0").decode("utf-8", "replace"))
    return OWN.sub("pgcatalog_…", " ".join(statement.split()))[:LENGTH]


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


class Message(NamedTuple):
    """The *turn*-th message with the statements *text*, counted from 1."""

    text: str
    turn: int


class Relay:
    """The relay before the server *dsn*: ``arm`` makes one of the next messages fail, ``disarm`` lets all pass.

    ``messages`` are those since ``arm``; ``has_failed`` is True if one of them has failed.
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
        self._is_armed = self.has_failed = False
        self._fatal: Message | None = None
        self._failure = Failure.BEFORE
        self._turns: Counter[str] = Counter()
        self.messages: list[Message] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.close()
        self._folder.cleanup()

    def dsn(self, dbname: str) -> str:
        """Return the connection string of a database through the relay."""
        return make_conninfo(self._dsn, host=self._folder.name, port=5432, dbname=dbname)

    def arm(self, message: Message | None, failure: Failure = Failure.BEFORE) -> None:
        """Record messages from now on, and make *message* fail; with None, none."""
        with self._lock:
            self._is_armed, self._fatal, self._failure, self.has_failed = True, message, failure, False
            self._turns, self.messages = Counter(), []

    def disarm(self) -> None:
        """Let all further messages pass."""
        with self._lock:
            self._is_armed = False

    def fate(self, statements: Sequence[str]) -> Failure | None:
        """Record the message of *statements*; return how it fails, None if it passes."""
        with self._lock:
            if not self._is_armed:
                return None
            text = "; ".join(dict.fromkeys(statements))
            self._turns[text] += 1
            self.messages.append(Message(text, self._turns[text]))
            if self.messages[-1] != self._fatal or self.has_failed:
                return None
            self.has_failed = True
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
        prepared: dict[bytes, str] = {}
        statements: list[str] = []
        while True:
            kind, packet = packets.next()
            message += packet
            if kind == QUERY:
                statements.append(name_of(packet[5:]))
            elif kind == PARSE:
                name, text = packet[5:].split(b"\0", 2)[:2]
                prepared[name] = name_of(text)
            elif kind == BIND:
                statements.append(prepared.get(packet[5:].split(b"\0", 2)[1], "unknown"))
            # After a COPY by Query its end is answered; after one by Execute the Sync behind it is.
            if kind in (QUERY, SYNC) or (kind == COPY_DONE and last == QUERY):
                last = kind
                failure = self._relay.fate(statements)
                if failure is Failure.BEFORE:
                    return
                if failure is Failure.AFTER:
                    self._withheld = self._sent + 1
                self._sent += 1
                self._server.sendall(message)
                if failure is Failure.AFTER:
                    if not self._is_done.wait(PATIENCE):
                        raise TimeoutError(f"no answer to {statements}")
                    return
                message, statements = b"", []
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
