"""Sends statements on the storage's connection, behind a savepoint: an SQL error costs its message, not the transaction."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from plone.pgcatalog import storage
from plone.pgcatalog.database.errors import transient_when_lost
from plone.pgcatalog.database.prepared import PreparedStatements
from plone.pgcatalog.sql.expression import Statement
from psycopg.pq import TransactionStatus
from typing import Any

import psycopg


Rows = list[tuple[Any, ...]]

SAVEPOINT = "SAVEPOINT pgcatalog"
ROLL_BACK = "ROLLBACK TO SAVEPOINT pgcatalog"


class Messages:
    """The messages of *jar*, a ZODB connection, to its server."""

    def __init__(self, jar: Any) -> None:
        self._jar = jar
        self._has_savepoint = False
        #: whether the snapshot has temporary tables
        self.has_tables = False
        #: catalog -> overlay that shows its pending rows
        self.overlays: dict[int, Any] = {}
        #: changes of temporary tables, for the next message
        self._writes: list[Statement] = []
        #: seconds it has taken so far to make Python's values of rows
        self.fetching = 0.0
        #: seconds that statements which went along have taken so far
        self.going_along = 0.0
        #: whether the last message had a statement that was new to the connection
        self.met_new = False

    @property
    def connection(self) -> Any:
        """The storage's psycopg connection."""
        return storage.connection(self._jar)

    def forget_snapshot(self) -> None:
        """Called when the storage takes a new snapshot, which has no savepoint and no temporary table."""
        self._has_savepoint = self.has_tables = False
        self._forget_overlays()

    def _forget_overlays(self) -> None:
        self.overlays.clear()
        self._writes.clear()

    def send(self, statements: Sequence[Statement], settings: Sequence[str], first: int | None) -> list[Rows]:
        """Run *statements* in one message; return the rows of each.  Those behind the *first* one go along with it.

        *settings* are the commands for a transaction that has no savepoint yet.  The first statements of the message are
        those that ``write`` was given since the last one.  Statements are prepared when they come again.
        """
        overlays = dict(self.overlays)
        try:
            return self._send(statements, settings, first)
        except psycopg.errors.InvalidSqlStatementName:
            PreparedStatements.of(self.connection).forget()
            # The rollback has emptied their tables.
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
            self.going_along += prepared.going_along
            self.met_new = prepared.met_new
            return results[len(writes) :]

        rows: list[Rows] = self._guarded(action)
        return rows

    def write(self, query: str, *rows: Sequence[Any]) -> None:
        """Have the next message run *query*, a change of a temporary table, once for each of *rows*, its parameters."""
        self._writes += [Statement(query, tuple(row)) for row in rows]

    def run(self, query: str) -> None:
        """Run the commands *query*, such as those that create temporary tables."""
        self.has_tables = True
        self._guarded(lambda connection: connection.execute(query, prepare=False), sets_savepoint=True)

    def _wants_savepoint(self) -> bool:
        return not self._has_savepoint and self.connection.pgconn.transaction_status == TransactionStatus.INTRANS

    def _guarded(self, action: Callable[[Any], Any], sets_savepoint: bool = False) -> Any:
        """Return *action* of the connection; an error is rolled back to the savepoint, set before or by the *action*."""
        connection = self.connection
        try:
            with transient_when_lost(connection):
                if sets_savepoint and self._wants_savepoint():
                    connection.execute(SAVEPOINT)
                    self._has_savepoint = True
                return action(connection)
        except psycopg.Error:
            if connection.pgconn.transaction_status == TransactionStatus.INERROR:
                # Not by a cursor: behind a rollback, psycopg removes all prepared statements from the server.
                PreparedStatements.of(connection).run([], [ROLL_BACK])
                self._has_savepoint = True
                self._forget_overlays()
            raise


class Batch:
    """Reads of a connection that wait for a message, by the zoid of their catalog."""

    def __init__(self) -> None:
        self.is_open = False
        self._reads: dict[int, list[Any]] = {}

    @contextmanager
    def open(self) -> Iterator[None]:
        """Collect what is to be read: it goes in the message of the first rows that somebody inside needs, or of the end.

        Whoever counts a result inside has its first rows read, too.  A batch inside of another is part of that.
        """
        if self.is_open:
            yield
            return
        self.is_open = True
        try:
            yield
            for reads in [reads for reads in self._reads.values() if reads]:
                reads[0].send()
        finally:
            self.is_open = False
            self.clear()

    def add(self, zoid: int, *reads: Any) -> None:
        """Have *reads* of the catalog *zoid* go in the message of the batch, if it is open."""
        if self.is_open:
            self._reads.setdefault(zoid, []).extend(reads)

    def remove(self, zoid: int, read: Any) -> None:
        """Have *read* go in no other message than its own."""
        reads = self._reads.get(zoid, [])
        if read in reads:
            reads.remove(read)

    def take(self, zoid: int) -> list[Any]:
        """Return what is collected of the catalog *zoid*, and forget it: it goes in the next message."""
        return self._reads.pop(zoid, [])

    def clear(self) -> None:
        """Forget what is collected: each is read by itself."""
        self._reads.clear()
