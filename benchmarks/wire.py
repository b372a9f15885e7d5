"""Counts the messages between a process and PostgreSQL, with any library: a relay between two sockets."""

from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from threading import Thread
from typing import Self

import contextlib
import psycopg
import socket


CHUNK = 65_536


class Relay:
    """Forwards data from its own socket to the server of *dsn*, and counts messages; a context manager."""

    def __init__(self, dsn: str) -> None:
        place = psycopg.conninfo.conninfo_to_dict(dsn)
        name = f".s.PGSQL.{place['port']}"
        # The length of a socket's path is limited.
        self._folder = TemporaryDirectory(prefix="pgcatalog-relay-", dir="/tmp")
        self.dsn = psycopg.conninfo.make_conninfo(dsn, host=self._folder.name)
        #: data that clients have sent before the next response is one message
        self.messages = 0
        self.bytes_received = 0
        self._server = f"{place['host']}/{name}"
        self._path = Path(self._folder.name) / name
        self._lock = Lock()
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> Self:
        self._listener.bind(str(self._path))
        self._listener.listen()
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        for each in (self._listener, *self._sockets):
            # This wakes a waiting thread.
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._folder.cleanup()

    def counts(self) -> tuple[int, int]:
        """Return the number of messages sent, and of bytes received, until now."""
        with self._lock:
            return self.messages, self.bytes_received

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._sockets += [client, server]
                # Whether the server was the last sender; shared by both threads of a connection.
                spoken = [True]
                Thread(target=self._pass, args=(client, server, spoken, True), daemon=True).start()
                Thread(target=self._pass, args=(server, client, spoken, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, spoken: list[bool], is_request: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                with self._lock:
                    if is_request:
                        self.messages += spoken[0]
                        spoken[0] = False
                    else:
                        self.bytes_received += len(data)
                        spoken[0] = True
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
