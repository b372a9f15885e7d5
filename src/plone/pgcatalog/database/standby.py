"""Searches of a Zope that writes, asked of a standby where that must give the same answer.

Off unless PGCATALOG_SEARCH_DSN names one.  A request begins a snapshot there when it begins, without waiting for it.  That
counts if it shows the same newest transaction as the snapshot of the primary, and the same states of the catalogs: ids of
transactions are times, and never come again, so another history does not have them.  Whatever else is the case, the primary
is asked.
"""

from collections import Counter
from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Sequence
from functools import cache
from plone.pgcatalog.database import background
from plone.pgcatalog.database.connections import milliseconds
from plone.pgcatalog.database.connections import plain
from plone.pgcatalog.database.connections import plain_connection
from plone.pgcatalog.database.generations import States
from plone.pgcatalog.database.prepared import PreparedStatements
from plone.pgcatalog.database.states import COLUMNS
from plone.pgcatalog.database.states import OF_CATALOGS
from plone.pgcatalog.database.states import states_of
from plone.pgcatalog.sql.fragment import Statement
from psycopg.conninfo import conninfo_to_dict
from psycopg.conninfo import make_conninfo
from psycopg.waiting import Ready
from psycopg.waiting import Wait
from time import monotonic
from typing import Any

import logging
import os
import psycopg
import threading


logger = logging.getLogger(__name__)

Rows = list[tuple[Any, ...]]

#: The environment variable that says how the standby is reached.
SEARCH = "PGCATALOG_SEARCH_DSN"
#: Seconds that it has for an answer.
SECONDS = 1.0
#: Seconds that the process leaves it alone after an error.
PAUSE = 10.0
#: How often a transaction looks for its state there.  A standby that is behind by little has caught up a moment later.
TRIES = 3
#: Connections that a process has to it at the most.
MOST = 8

BEGIN = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    f"SET LOCAL statement_timeout = {milliseconds(SECONDS)}",
)
SHOWN = Statement(f"SELECT pg_is_in_recovery(), (SELECT max(tid) FROM transaction_log), {COLUMNS} {OF_CATALOGS}")

#: What becomes of a message that could be the standby's.
ANSWERED, PENDING, OTHER_STATE, NO_CONNECTION, FAILED = "answered", "pending", "other state", "no connection", "failed"
OUTCOMES = (ANSWERED, PENDING, OTHER_STATE, NO_CONNECTION, FAILED)
#: Errors of a statement, not of the server that runs it: the primary will say the same.
OWN_FAULTS = (
    psycopg.ProgrammingError,
    psycopg.DataError,
    psycopg.NotSupportedError,
    psycopg.errors.ProgramLimitExceeded,
)


class TooLate(psycopg.OperationalError):
    """The standby has not answered in time."""


class Line(PreparedStatements):
    """A connection to a standby.  What is posted is sent, and its answer read when somebody wants it."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self._posted = 0

    def begin(self) -> bool:
        """Begin a snapshot, and ask what it shows; return True.  Raises psycopg.Error."""
        self.collect()
        self._post(BEGIN, SHOWN)
        return True

    def end(self) -> bool:
        """End the snapshot; return True.  Raises psycopg.Error."""
        self._post(["ROLLBACK"])
        return True

    def _post(self, commands: Sequence[str], statement: Statement | None = None) -> None:
        self._pgconn.enter_pipeline_mode()
        self._sent.clear()
        for command in commands:
            self._pgconn.send_query_params(command.encode(), None)
            self._sent.append(None)
        if statement is not None:
            self._send(True, statement.sql, [], (), [])
        self._pgconn.pipeline_sync()
        self._pgconn.flush()
        self._posted += 1

    def collect(self) -> Rows:
        """Return the rows of the last statement that was posted.  Raises psycopg.Error."""
        results: list[Any] = []
        while self._posted:
            results = self._connection.wait(self._receive(0))
            self._posted -= 1
        if results:
            self._pgconn.exit_pipeline_mode()
        return self._rows(results[-1]) if results else []

    @property
    def closed(self) -> bool:
        """True when the connection is gone."""
        return bool(self._connection.closed)

    def close(self) -> None:
        """End the connection, whatever it is doing."""
        self._connection.close()

    def _receive(self, first: int) -> Generator[Wait, Ready, list[Any]]:
        """As for any connection, but waits no longer than SECONDS.  Raises TooLate."""
        answers, deadline = super()._receive(first), monotonic() + SECONDS
        try:
            wanted = next(answers)
            while True:
                ready = yield wanted
                if not ready and monotonic() > deadline:
                    raise TooLate(f"no answer within {SECONDS:g} s")
                wanted = answers.send(ready)
        except StopIteration as end:
            found: list[Any] = end.value
            return found


class Standby:
    """The standby *dsn*, for all threads of a process: connections to it, which a thread of their own opens."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        #: what has become of messages, by one of OUTCOMES
        self.outcomes: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._idle: list[Line] = []
        #: how many connections there are, one that is being opened included
        self._number = 0
        self._is_opening = False
        self._left_alone_until = 0.0

    def count(self, outcome: str) -> None:
        """Count a message."""
        with self._lock:
            self.outcomes[outcome] += 1

    def take(self) -> Line | None:
        """Return a connection for one transaction, None if there is none now; never waits for one."""
        with self._lock:
            if monotonic() < self._left_alone_until:
                return None
            if self._idle:
                return self._idle.pop()
            if self._is_opening or self._number >= MOST:
                return None
            self._is_opening = True
            self._number += 1
        background.start("standby", self._open)
        return None

    def _open(self) -> None:
        try:
            # What is prepared stays on the session: this is no way for a pooler.
            line = Line(plain_connection(self.dsn, "searches", prepare_threshold=1))
        except psycopg.Error as error:
            self.leave_alone(error)
            with self._lock:
                self._is_opening = False
                self._number -= 1
        else:
            with self._lock:
                self._is_opening = False
                self._idle.append(line)

    def give_back(self, line: Line) -> None:
        """Take back a connection whose transaction has ended."""
        with self._lock:
            self._idle.append(line)

    def drop(self, line: Line) -> None:
        """Close a connection in an unknown state."""
        line.close()
        with self._lock:
            self._number -= 1

    def leave_alone(self, error: psycopg.Error) -> None:
        """Ask nothing for PAUSE seconds because of *error*."""
        with self._lock:
            was_left_alone = monotonic() < self._left_alone_until
            self._left_alone_until = monotonic() + PAUSE
        if not was_left_alone:
            logger.warning("searches are the primary's for %g s: the standby: %s", PAUSE, plain(error))

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            lines, self._idle = self._idle, []
            self._number -= len(lines)
        for line in lines:
            line.close()


standbys = background.PerDatabase(Standby)


def is_standby_named() -> bool:
    """Return whether the environment names a standby, be it rightly or not."""
    return bool(os.environ.get(SEARCH))


def named_standby(dsn: str) -> str | None:
    """Return the connection string of the standby that the environment names for the database *dsn*; None for none."""
    other = os.environ.get(SEARCH)
    return search_dsn(dsn, other) if other else None


@cache
def search_dsn(dsn: str, other: str) -> str | None:
    """Return *dsn* but for what *other*, a connection string, says otherwise; None if that is no connection string.

    A server that is no standby refuses it, as *dsn* may want one that takes writes.
    """
    try:
        return make_conninfo(dsn, **{"target_session_attrs": "standby", **conninfo_to_dict(other)})
    except psycopg.ProgrammingError as error:
        logger.warning("%s is ignored: %s", SEARCH, plain(error))
        return None


class StandbySnapshot:
    """The snapshot of *standby* beside that of one ZODB connection."""

    def __init__(self, standby: Standby) -> None:
        self.standby = standby
        self._line: Line | None = None
        #: the newest transaction it shows, and the states; None as long as its answer has not been read
        self._shown: tuple[int, States] | None = None
        #: whether something has failed since the transaction began
        self._has_failed = False
        #: how often another state than the transaction's was shown
        self._tries = 0

    @classmethod
    def beside(cls, dsn: str) -> "StandbySnapshot | None":
        """Return one for a ZODB connection that reads from the database *dsn*; None without a standby."""
        found = named_standby(dsn)
        return None if found is None else cls(standbys[found])

    def begin(self) -> None:
        """Begin the snapshot, if there is a connection; does not wait for it."""
        if self._line is not None or self._has_failed or self._tries >= TRIES:
            return
        self._line = line = self.standby.take()
        if line is not None:
            self._attempt(line.begin)

    def end(self) -> None:
        """End the snapshot, if there is one, with its transaction; does not wait for it."""
        self._release()
        self._has_failed, self._tries = False, 0

    def _release(self) -> None:
        self._shown = None
        line = self._line
        if line is not None and self._attempt(line.end):
            self._line = None
            self.standby.give_back(line)

    def states(self, tid: int | None) -> States | None:
        """Return the states of catalogs if the snapshot shows *tid* as the newest transaction, else None."""
        self.begin()
        line = self._line
        if line is not None and self._shown is None:
            rows = self._attempt(line.collect)
            if rows and not rows[0][0]:
                self.standby.leave_alone(psycopg.OperationalError("it is no standby any more"))
                self._drop()
            elif rows:
                self._shown = rows[0][1] or 0, states_of(row[2:] for row in rows)
        if self._shown is None or tid is None:
            return None
        newest, states = self._shown
        if newest == tid:
            return states
        # The standby may have to wait for the end of this snapshot to replay more.  It never goes back.
        self._tries = self._tries + 1 if newest < tid else TRIES
        self._release()
        return None

    def ask(
        self, tid: int | None, states: States, statements: Sequence[Statement], before: Sequence[str]
    ) -> list[Rows] | None:
        """Return the rows of each of *statements*, run behind the commands *before* them; None if the primary is to be asked.

        That is so unless the snapshot shows *tid* as the newest transaction, and the same *states*.
        """
        shown = None if self._has_failed else self.states(tid)
        line = self._line
        if line is None or shown is None:
            self.standby.count(FAILED if self._has_failed else OTHER_STATE if self._tries else NO_CONNECTION)
            return None
        if identities(shown) != identities(states):
            self.standby.count(OTHER_STATE)
            return None
        found: list[Rows] | None = self._attempt(lambda: line.run(statements, before))
        self.standby.count(FAILED if found is None else ANSWERED)
        return found

    def _attempt(self, action: Callable[[], Any]) -> Any:
        """Return what *action* does, None if the standby fails; whatever goes wrong, this snapshot is used no more."""
        is_usable = False
        try:
            found = action()
            is_usable = True
            return found
        except OWN_FAULTS as error:
            is_usable = self._shown is not None and self._line is not None and not self._line.closed
            if is_usable:
                self._has_failed = True
            else:
                self.standby.leave_alone(error)
            return None
        except psycopg.Error as error:
            self.standby.leave_alone(error)
            return None
        finally:
            if not is_usable:
                self._drop()

    def _drop(self) -> None:
        line, self._line = self._line, None
        self._shown, self._has_failed = None, True
        if line is not None:
            self.standby.drop(line)


def identities(states: States) -> dict[int, tuple[str, int, int]]:
    """Return what tells *states* of catalogs from all others."""
    return {catalog: (state.relation, state.generation, state.tid) for catalog, state in states.items()}
