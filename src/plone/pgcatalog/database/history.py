"""Detects transactions that the database has lost, and commits that other processes would never see.

A failover to an asynchronous standby, or a restored backup, removes transactions that a process has seen: its cached
objects, rows and results belong to a history that no longer exists.  And a process that has seen a newer transaction never
polls one with an older id; ids come from the clocks of several machines.
"""

from contextlib import suppress
from plone.pgcatalog.database import schema
from plone.pgcatalog.database.errors import ClockBehind
from plone.pgcatalog.database.errors import HistoryChanged
from plone.pgcatalog.database.errors import transient_when_lost
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.database.generations import StatesRead
from plone.pgcatalog.database.generations import TID_EXISTS
from plone.pgcatalog.database.prepared import PreparedStatements
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.storage import advance_clock
from plone.pgcatalog.storage import committed_tid
from plone.pgcatalog.storage import forget_objects
from plone.pgcatalog.storage import snapshot_tid
from psycopg.rows import tuple_row
from typing import Any

import logging
import psycopg


logger = logging.getLogger(__name__)

#: The zoids of the objects that were changed, as zodb-pgjsonb finds them, and their transactions.
CHANGED = "SELECT zoid, tid FROM object_state WHERE tid > %s AND tid <= %s"
IS_LOGGED = "SELECT EXISTS (SELECT FROM transaction_log WHERE tid = %s)"
#: The first statement of ours in a commit; it also limits how long all later statements may wait for a lock.
CHECK_NEWEST = f"SELECT (SELECT max(tid) FROM transaction_log), {TID_EXISTS}, set_config('lock_timeout', %s, true)"


class SnapshotHistory:
    """The history that the snapshot of one ZODB connection, *jar*, belongs to."""

    def __init__(self, jar: Any) -> None:
        self.jar = jar
        self._number: int | None = None
        #: number of the history whose objects the connection has loaded
        self._loaded: int | None = None
        #: newest transaction known before the snapshot was taken, and number of its history
        self._newest_before = 0, 0
        #: the same for the next snapshot: the end of a transaction still reads from the current one
        self._newest_next = 0, 0
        #: last result of ``expected_tid``, and number of its history
        self._expected = 0, 0

    @property
    def generations(self) -> Generations:
        """The process's cache of the states of the database's catalogs."""
        return Generations.of(self.jar.db())

    @property
    def tid(self) -> int | None:
        """The newest transaction of the snapshot; None without a snapshot."""
        return snapshot_tid(self.jar)

    @property
    def number(self) -> int | None:
        """The number of the snapshot's history, as ``Generations.number``; None if it is unknown."""
        if self._number is None and self.generations.has_seen(self.tid or 0):
            self._number = self.generations.number
        return self._number

    def forget_snapshot(self) -> None:
        """Forget the history of the old snapshot; called when the storage takes a new one."""
        self._number = None
        self._newest_before = self._newest_next

    def end_snapshot(self) -> None:
        """Note the newest known transaction; called before the storage takes a new snapshot, which contains it."""
        history = self.generations.number
        self._newest_next = newest_seen_tid(self.jar.db()), history

    def _newest_seen(self) -> int:
        """Return the newest transaction of this history that was known before the snapshot was taken; 0 if there is none."""
        tid, history = self._newest_before
        return tid if history == self.generations.number else 0

    @property
    def is_newest(self) -> bool:
        """Whether the snapshot reaches the newest transaction that was known before it was taken, by its id."""
        return (self.tid or 0) >= self._newest_seen()

    def expected_tid(self) -> int:
        """Return the newest known transaction that the snapshot must contain; 0 if there is none."""
        history, newest = self.generations.number, self.tid or 0
        expected = self._newest_seen()
        if expected <= newest:
            newest_seen_tid(self.jar.db())
            expected = self.generations.newest_tid(newest)
        self._expected = expected, history
        return expected

    def place(self, exists: bool) -> None:
        """Assign the snapshot to its history; *exists* says whether it contains the last ``expected_tid()``.

        Raises HistoryChanged if an expected transaction is missing, after emptying the process's caches of the database.
        """
        tid, generations = self.tid, self.generations
        if tid is None:
            return
        expected, history = self._expected
        if expected and not exists:
            change_history(self.jar.db(), history)
            generations.store_tid(tid)
            self._reload()
            raise HistoryChanged
        advance_clock(self.jar.db(), tid)
        if tid >= generations.newest_tid() or generations.has_seen(tid):
            generations.store_tid(tid)
            self._number = generations.number
        # Otherwise a newer transaction is known, perhaps of another history: the history of the snapshot stays unknown.

    def check(self, connection: Any) -> None:
        """Discard objects and caches of a lost history before any object is read on *connection*, psycopg's.

        Queries the database only if no thread has met the snapshot's newest transaction yet, or a later one was known
        before.
        """
        tid = self.tid
        if tid is not None:
            if not newest_seen_tid(self.jar.db()):
                self.generations.store_tid(tid)
            elif not self.is_newest or not self.generations.has_seen(tid):
                self._query(connection)
        self._reload()

    def _query(self, connection: Any) -> None:
        expected = self.expected_tid()
        with transient_when_lost(connection), connection.cursor(row_factory=tuple_row) as cursor:
            [(exists,)] = cursor.execute(f"SELECT {TID_EXISTS}", [expected, expected]).fetchall()
        # Nothing has been read yet: the transaction can go on.
        with suppress(HistoryChanged):
            self.place(exists)

    def require(self) -> None:
        """Raise HistoryChanged if this transaction may have read objects of a lost history."""
        if self._loaded != self.generations.number and self._reload():
            raise HistoryChanged

    def _reload(self) -> bool:
        """Discard the connection's objects if they are of a lost history; return whether they were."""
        number, loaded = self.generations.number, self._loaded
        self._loaded = number
        if loaded == number or not self.generations.changes:
            return False
        forget_objects(self.jar)
        return True


class RefusedCommit:
    """A data manager that stores nothing and makes a commit fail with *error*."""

    def __init__(self, error: HistoryChanged) -> None:
        self.error = error

    def sortKey(self) -> str:
        return "!plone.pgcatalog"

    def tpc_begin(self, txn: Any) -> None:
        raise self.error

    def savepoint(self) -> "RefusedCommit":
        return self

    def rollback(self) -> None:
        """Do nothing: the error stays."""

    def abort(self, txn: Any) -> None:
        """Do nothing."""

    commit = tpc_vote = tpc_finish = tpc_abort = abort


def newest_seen_tid(database: Any) -> int:
    """Return the newest transaction of *database* that the process has seen or committed; 0 if there is none."""
    generations = Generations.of(database)
    generations.store_tid(committed_tid(database))
    return generations.newest_tid()


def read_changes(database: Any, connection: Any, since: int, newest: int) -> list[tuple[Any, ...]]:
    """Return (zoid, tid) of the objects that were changed after the transaction *since*, up to *newest*; one message.

    *connection*, psycopg's, has a snapshot whose newest transaction is *newest*.  The same message checks whether it belongs
    to the known history of *database*; if not, ``SnapshotHistory.check`` queries again.  It also reads the states of
    catalogs, if the process has cached states, but none for this snapshot.  Raises psycopg.Error.
    """
    generations = Generations.of(database)
    newest_seen_tid(database)
    history, expected = generations.number, generations.newest_tid(newest)
    is_new = generations.remembers and generations.states_at(newest) is None
    read = StatesRead(generations, expected) if is_new else None
    checks = [Statement(IS_LOGGED, (expected,))] if read is None else read.statements
    # A generic plan of CHANGED would read the whole table.
    changed = Statement(CHANGED, (since, newest), is_prepared=False)
    prepared = PreparedStatements.of(connection)
    try:
        changes, *results = prepared.run([changed, *checks])
    except psycopg.Error:
        # Another client may have removed the prepared statements.
        prepared.forget()
        raise
    [exists, *_] = results[0][0]
    if exists and history == generations.number:
        if newest >= generations.newest_tid():
            advance_clock(database, newest)
            generations.store_tid(newest)
        if read is not None:
            generations.remember(newest, read.store(results))
    return changes


def change_history(database: Any, history: int) -> None:
    """Empty the process's caches of *database*, unless another thread has already changed the *history* of that number.

    Connections discard their objects when they are used next.
    """
    if Generations.of(database).change_history(history, committed_tid(database)):
        logger.warning("the database has lost transactions: the caches of this process are cleared")
        database.storage.clear_caches()


def check_order(database: Any, cursor: Any) -> None:
    """Check that the running commit to *database* has the newest id, and limit its waits for locks.

    *cursor* runs the commit, behind the storage's lock.  Raises:

    - ClockBehind if its id is not the newest: other processes would never see it.  The repeated commit gets the newest id.
    - HistoryChanged if a transaction that the process has seen is gone.
    """
    expected, history = newest_seen_tid(database), Generations.of(database).number
    with cursor.connection.cursor(row_factory=tuple_row) as plain:
        newest, exists, _ = plain.execute(CHECK_NEWEST, [expected, expected, schema.LOCK_TIMEOUT]).fetchone()
    if expected and not exists:
        change_history(database, history)
        raise HistoryChanged
    seconds = advance_clock(database, newest)
    if seconds:
        raise ClockBehind(
            f"the clock of this machine is behind that of another writer by {seconds:.3f} seconds or more"
        )
