"""Notices when the database has lost transactions, or would hide one from others.

A failover to an asynchronous standby and a restored backup take back transactions that a process has seen: objects,
rows and answers it keeps are of a history that never was.  And a transaction whose id is not the newest of its history
is never polled by processes that have seen a newer one: ids come from the clocks of several machines.
"""

from contextlib import suppress
from plone.pgcatalog.database import schema
from plone.pgcatalog.database.errors import ClockBehind
from plone.pgcatalog.database.errors import HistoryChanged
from plone.pgcatalog.database.errors import transient_when_lost
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.database.prepared import PreparedStatements
from plone.pgcatalog.database.states import IS_THERE
from plone.pgcatalog.database.states import StatesRead
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

#: The objects that were changed, as zodb-pgjsonb finds them, and their transactions.
CHANGED = "SELECT zoid, tid FROM object_state WHERE tid > %s AND tid <= %s"
IS_LOGGED = "SELECT EXISTS (SELECT FROM transaction_log WHERE tid = %s)"
#: The first statement of ours in a commit also sets how long all that follows may wait for a lock.
NEWEST = f"SELECT (SELECT max(tid) FROM transaction_log), {IS_THERE}, set_config('lock_timeout', %s, true)"


class SnapshotHistory:
    """The history that the snapshot of one ZODB connection, *jar*, belongs to."""

    def __init__(self, jar: Any) -> None:
        self.jar = jar
        self._number: int | None = None
        #: the history whose objects the connection has loaded
        self._loaded: int | None = None
        #: the newest transaction that was known before the snapshot was taken, and in which history
        self._known_before = 0, 0
        #: the same for the next snapshot: the end of a transaction still reads from this one
        self._known_next = 0, 0
        #: the transaction that the database was asked for, and in which history
        self._expected = 0, 0

    @property
    def generations(self) -> Generations:
        """What the process knows of the database's catalogs."""
        return Generations.of(self.jar.db())

    @property
    def tid(self) -> int | None:
        """The newest transaction of the snapshot; None outside of one."""
        return snapshot_tid(self.jar)

    @property
    def number(self) -> int | None:
        """The history of the snapshot, as ``Generations.number``; None when nobody knows."""
        if self._number is None and self.generations.has_seen(self.tid or 0):
            self._number = self.generations.number
        return self._number

    def forget_snapshot(self) -> None:
        """Called when the storage takes a new snapshot."""
        self._number = None
        self._known_before = self._known_next

    def end_snapshot(self) -> None:
        """Called before the storage takes a new snapshot, which shows all that is known by now."""
        history = self.generations.number
        self._known_next = newest_known(self.jar.db()), history

    def _known(self) -> int:
        """Return the newest transaction of this history that was known before the snapshot was taken; 0 for none."""
        tid, history = self._known_before
        return tid if history == self.generations.number else 0

    @property
    def is_newest(self) -> bool:
        """Whether the snapshot has the newest transaction that was known before it was taken, by its id."""
        return (self.tid or 0) >= self._known()

    def expected_tid(self) -> int:
        """Return the newest known transaction that the snapshot must have; 0 if none is known."""
        history, newest = self.generations.number, self.tid or 0
        expected = self._known()
        if expected <= newest:
            newest_known(self.jar.db())
            expected = self.generations.newest_tid(newest)
        self._expected = expected, history
        return expected

    def place(self, is_there: bool) -> None:
        """Find the history of the snapshot, in which the last ``expected_tid()`` *is_there* or not.

        Raises HistoryChanged when it is missing; all that the process knows of the database is forgotten then.
        """
        tid, generations = self.tid, self.generations
        if tid is None:
            return
        expected, history = self._expected
        if expected and not is_there:
            change_history(self.jar.db(), history)
            generations.learn(tid)
            self._load_anew()
            raise HistoryChanged
        advance_clock(self.jar.db(), tid)
        if tid >= generations.newest_tid() or generations.has_seen(tid):
            generations.learn(tid)
            self._number = generations.number
        # Else a newer one is known, which another history may have: nothing says so, or not.

    def check(self, connection: Any) -> None:
        """Forget objects and answers of a lost history before any object is read on *connection*, psycopg's.

        Asks the database if no thread has met the snapshot's newest transaction yet, or what was known before is later.
        """
        tid = self.tid
        if tid is not None:
            if not newest_known(self.jar.db()):
                self.generations.learn(tid)
            elif not self.is_newest or not self.generations.has_seen(tid):
                self._ask(connection)
        self._load_anew()

    def _ask(self, connection: Any) -> None:
        expected = self.expected_tid()
        with transient_when_lost(connection), connection.cursor(row_factory=tuple_row) as cursor:
            [(is_there,)] = cursor.execute(f"SELECT {IS_THERE}", [expected, expected]).fetchall()
        # Nothing has been read yet: the transaction can go on.
        with suppress(HistoryChanged):
            self.place(is_there)

    def require(self) -> None:
        """Raise HistoryChanged if objects of a lost history may have been read in this transaction."""
        if self._loaded != self.generations.number and self._load_anew():
            raise HistoryChanged

    def _load_anew(self) -> bool:
        """Forget the connection's objects if they are of a lost history; return whether they were."""
        number, loaded = self.generations.number, self._loaded
        self._loaded = number
        if loaded == number or not self.generations.changes:
            return False
        forget_objects(self.jar)
        return True


class RefusedCommit:
    """A data manager that stores nothing and fails a commit with *error*."""

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


def newest_known(database: Any) -> int:
    """Return the newest transaction of *database* that the process has seen or committed; 0 for none."""
    generations = Generations.of(database)
    generations.learn(committed_tid(database))
    return generations.newest_tid()


def read_changes(database: Any, connection: Any, since: int, newest: int) -> list[tuple[Any, ...]]:
    """Return (zoid, tid) of objects that were changed after the transaction *since*, in a snapshot up to *newest*; one message.

    *connection*, psycopg's, has the snapshot.  The same message says whether this belongs to the known history of *database*;
    ``SnapshotHistory.check`` asks when it does not.  If the process remembers states of catalogs, and not those of this
    snapshot, the message reads them.  Raises psycopg.Error.
    """
    generations = Generations.of(database)
    newest_known(database)
    history, expected = generations.number, generations.newest_tid(newest)
    is_new = generations.remembers and generations.states_at(newest) is None
    read = StatesRead(generations, expected) if is_new else None
    questions = [Statement(IS_LOGGED, (expected,))] if read is None else read.statements
    # A plan of CHANGED for any transactions would read the whole table.
    changed = Statement(CHANGED, (since, newest), is_prepared=False)
    prepared = PreparedStatements.of(connection)
    try:
        changes, *results = prepared.run([changed, *questions])
    except psycopg.Error:
        # Others may have removed what was prepared.
        prepared.forget()
        raise
    [is_there, *_] = results[0][0]
    if is_there and history == generations.number:
        if newest >= generations.newest_tid():
            advance_clock(database, newest)
            generations.learn(newest)
        if read is not None:
            generations.remember(newest, read.learn(results))
    return changes


def change_history(database: Any, history: int) -> None:
    """Forget what the process knows of *database* in the *history* of that number, unless another thread has done so.

    Connections forget their objects when they are used next.
    """
    if Generations.of(database).change_history(history, committed_tid(database)):
        logger.warning("the database has lost transactions: all that this process knew of it is forgotten")
        database.storage.clear_caches()


def check_order(database: Any, cursor: Any) -> None:
    """Check the commit to *database* that is running with *cursor*, behind the storage's lock, and limit its waits.

    Raises ClockBehind if its id is not the newest: others would never see it.  The repeated one will have the newest.
    Raises HistoryChanged if a transaction that the process has seen is gone.
    """
    expected, history = newest_known(database), Generations.of(database).number
    with cursor.connection.cursor(row_factory=tuple_row) as plain:
        newest, is_there, _ = plain.execute(NEWEST, [expected, expected, schema.LOCK_TIMEOUT]).fetchone()
    if expected and not is_there:
        change_history(database, history)
        raise HistoryChanged
    seconds = advance_clock(database, newest)
    if seconds:
        raise ClockBehind(f"this machine's clock is behind that of another writer by {seconds:.3f} seconds or more")
