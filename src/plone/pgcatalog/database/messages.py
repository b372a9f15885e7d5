"""Sends statements on the storage's connection behind a savepoint, so that an SQL error does not abort the transaction."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from plone.pgcatalog import storage
from plone.pgcatalog.database.errors import transient_when_lost
from plone.pgcatalog.database.prepared import PreparedStatements
from plone.pgcatalog.database.prepared import Rows
from plone.pgcatalog.sql.expression import Statement
from psycopg.pq import TransactionStatus
from typing import Any

import psycopg


SAVEPOINT = "SAVEPOINT pgcatalog"
ROLL_BACK = "ROLLBACK TO SAVEPOINT pgcatalog"


class Messages:
    """The messages of *jar*, a ZODB connection, to its server; a message is one round trip with several statements."""

    def __init__(self, jar: Any) -> None:
        self._jar = jar
        self._has_savepoint = False
        #: whether the snapshot has temporary tables
        self.has_tables = False
        #: zoid of a catalog -> overlay that shows its pending rows
        self.overlays: dict[int, Any] = {}
        #: changes of temporary tables that the next message runs first
        self._writes: list[Statement] = []
        #: seconds in which rows were decoded so far
        self.fetching = 0.0
        #: seconds so far between the result of a leading statement and the end of its message
        self.trailing_seconds = 0.0
        #: whether the last message contained a statement that was new to the connection
        self.met_new = False

    @property
    def connection(self) -> Any:
        """The storage's psycopg connection."""
        return storage.connection(self._jar)

    def forget_snapshot(self) -> None:
        """Discard savepoint and overlays; called when the storage takes a new snapshot, which has no temporary tables."""
        self._has_savepoint = self.has_tables = False
        self._forget_overlays()

    def _forget_overlays(self) -> None:
        self.overlays.clear()
        self._writes.clear()

    def send(self, statements: Sequence[Statement], settings: Sequence[str], first: int | None) -> list[Rows]:
        """Run *statements* in one message; return the rows of each.

        - *settings*: commands that are sent first if the transaction has no savepoint yet
        - *first*: place of the leading statement, see ``PreparedStatements.run``

        The changes queued by ``write`` run before *statements*.  Statements are prepared from their second use on.
        """
        overlays = dict(self.overlays)
        try:
            return self._send(statements, settings, first)
        except psycopg.errors.InvalidSqlStatementName:
            PreparedStatements.of(self.connection).forget()
            # The rollback to the savepoint has emptied the temporary tables.
            self.overlays.update(overlays)
            for overlay in overlays.values():
                overlay.fill()
            return self._send(statements, settings, first)

    def _send(self, statements: Sequence[Statement], settings: Sequence[str], first: int | None) -> list[Rows]:
        is_first = self._wants_savepoint()
        writes, self._writes = self._writes, []
        if first is not None:
            first += len(writes)

        def action(connection: Any) -> list[Rows]:
            prepared = PreparedStatements.of(connection)
            before = (*settings, SAVEPOINT) if is_first else ()
            results = prepared.run([*writes, *statements], before, first)
            self._has_savepoint = self._has_savepoint or is_first
            self.fetching += prepared.decoding
            self.trailing_seconds += prepared.trailing_seconds
            self.met_new = prepared.met_new
            return results[len(writes) :]

        rows: list[Rows] = self._guarded(action)
        return rows

    def write(self, statement: str, *rows: Sequence[Any]) -> None:
        """Queue *statement*, a change of a temporary table, for the next message: once with each of *rows* as parameters."""
        self._writes += [Statement(statement, tuple(row)) for row in rows]

    def run(self, statement: str) -> None:
        """Run *statement*, one or more commands such as CREATE TEMPORARY TABLE."""
        self.has_tables = True
        self._guarded(lambda connection: connection.execute(statement, prepare=False), sets_savepoint=True)

    def _wants_savepoint(self) -> bool:
        return not self._has_savepoint and self.connection.pgconn.transaction_status == TransactionStatus.INTRANS

    def _guarded(self, action: Callable[[Any], Any], sets_savepoint: bool = False) -> Any:
        """Return the result of *action*, called with the connection; roll back to the savepoint after an error.

        The savepoint is set here if *sets_savepoint*, else by *action*.
        """
        connection = self.connection
        try:
            with transient_when_lost(connection):
                if sets_savepoint and self._wants_savepoint():
                    connection.execute(SAVEPOINT)
                    self._has_savepoint = True
                return action(connection)
        except psycopg.Error:
            if connection.pgconn.transaction_status == TransactionStatus.INERROR:
                # Not with a cursor: behind a rollback, psycopg removes all prepared statements from the server.
                PreparedStatements.of(connection).run([], [ROLL_BACK])
                self._has_savepoint = True
                self._forget_overlays()
            raise


class Batch:
    """The reads of a connection that wait for a common message, by the zoid of their catalog.

    A read takes those of its own catalog along; in a batch *across* catalogs those of all.
    """

    def __init__(self) -> None:
        self.is_open = False
        self._is_across = False
        self._reads: dict[int, list[Any]] = {}

    @contextmanager
    def open(self, across: bool = False) -> Iterator[None]:
        """Collect reads inside the context, and send them in one message; *across*: of all catalogs in one.

        This is the message of the first rows that are used inside, or a message at the end.  Counting a result inside also
        reads its first rows.  A nested batch is part of the outer one.
        """
        if self.is_open:
            yield
            return
        self.is_open, self._is_across = True, across
        try:
            yield
            for zoid in list(self._reads):
                if reads := self._reads.get(zoid):
                    reads[0].send()
        finally:
            self.is_open = self._is_across = False
            self.clear()

    def add(self, zoid: int, *reads: Any) -> None:
        """Add *reads* of the catalog *zoid* to the batch, if it is open."""
        if self.is_open:
            self._reads.setdefault(zoid, []).extend(reads)

    def remove(self, zoid: int, read: Any) -> None:
        """Remove *read* from the batch: only its own message will contain it."""
        reads = self._reads.get(zoid, [])
        if read in reads:
            reads.remove(read)

    def claim(self, zoid: int) -> list[Any]:
        """Remove and return the collected reads that are sent with the next message, of the catalog *zoid*."""
        if not self._is_across:
            return self._reads.pop(zoid, [])
        reads = [read for reads in self._reads.values() for read in reads]
        self._reads.clear()
        return reads

    def clear(self) -> None:
        """Discard the collected reads: each is sent in a message of its own."""
        self._reads.clear()
