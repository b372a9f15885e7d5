"""The catalog's place in one ZODB connection: its snapshot, and what its transaction has pending.

Reads go through the storage's own psycopg connection, so catalog and objects are one REPEATABLE READ
snapshot.  One SAVEPOINT per snapshot keeps an SQL error local to its query.
"""

from Acquisition import aq_base
from Acquisition import aq_parent
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.database.errors import transient_when_lost
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.database.generations import States
from plone.pgcatalog.database.history import IS_THERE
from plone.pgcatalog.database.history import SnapshotHistory
from plone.pgcatalog.database.planning import FEW_ROWS
from plone.pgcatalog.database.planning import HAS_MEMORY
from plone.pgcatalog.database.planning import MANY_ROWS
from plone.pgcatalog.database.planning import MORE_MEMORY
from plone.pgcatalog.database.planning import PLAN_CUSTOM
from plone.pgcatalog.database.planning import PLAN_GENERIC
from plone.pgcatalog.database.planning import with_planner_hints
from plone.pgcatalog.database.prepared import client_cursor
from plone.pgcatalog.database.prepared import PreparedStatements
from plone.pgcatalog.database.schema import CatalogState
from plone.pgcatalog.database.time_limit import OWN_LIMIT
from plone.pgcatalog.database.time_limit import set_limit
from plone.pgcatalog.database.time_limit import TAKE_BACK
from plone.pgcatalog.indexing.overlap import seen_rows
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.resolve import resolve
from plone.pgcatalog.indexing.resolve import unresolved
from plone.pgcatalog.sql.fragment import Statement
from plone.pgcatalog.storage import names_states
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from time import perf_counter
from transaction.interfaces import IDataManagerSavepoint
from transaction.interfaces import ISavepointDataManager
from typing import Any
from weakref import WeakSet
from ZODB.utils import u64
from zope.interface import implementer

import logging
import psycopg
import threading


logger = logging.getLogger(__name__)

Rows = list[tuple[Any, ...]]

SAVEPOINT = "SAVEPOINT pgcatalog"
ROLL_BACK = "ROLLBACK TO SAVEPOINT pgcatalog"
#: One row at least, for what it says of the history.
READ_STATE = (
    f"SELECT {IS_THERE}, {OWN_LIMIT}, catalog, relation, version, columns, generation, tid,"
    " coalesce((SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass(quote_ident(relation))), -1),"
    " CASE WHEN complete_at = generation THEN complete ELSE '{}' END"
    " FROM (VALUES (1)) AS one LEFT JOIN pgcatalog_state ON true"
)

#: Statements that PostgreSQL's parser has accepted: only these go into one message with the savepoint, since a message
#: that cannot be parsed as a whole would not even set that.
_accepted: set[str] = set()
ACCEPTED_LIMIT = 1000


class Committing(threading.local):
    """The sessions whose transaction this thread is committing."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []


committing = Committing()


def connection_of(obj: Any) -> Any:
    """Return the ZODB connection of *obj*, or of the nearest container that has one."""
    while obj is not None:
        jar = getattr(aq_base(obj), "_p_jar", None)
        if jar is not None:
            return jar
        obj = aq_parent(obj)
    return None


class Session:
    """One per ZODB connection; ``Session.of(jar)`` finds or makes it."""

    def __init__(self, jar: Any) -> None:
        self.jar = jar
        self.pending: dict[int, CatalogPending] = {}
        #: objects whose idx is being stored with their state in the running commit
        self.idx_written: set[int] = set()
        self.manager = PendingManager(self)
        self._states: States | None = None
        self.history = SnapshotHistory(jar)
        self._has_savepoint = False
        self._cursor: Any = None
        self._synchronized: Any = None
        #: seconds it has taken so far to make Python's values of rows
        self.fetching = 0.0
        #: results that still have to read from this snapshot before it changes
        self.open_results: WeakSet[Any] = WeakSet()
        #: catalog -> overlay that shows its pending rows
        self.overlays: dict[int, Any] = {}

    @classmethod
    def of(cls, jar: Any) -> "Session":
        """Return the session of *jar*, a ZODB connection.  Raises HistoryChanged."""
        session: Session | None = jar.__dict__.get("_pgcatalog_session")
        if session is None:
            session = jar._pgcatalog_session = cls(jar)
        session._follow_transactions()
        session.history.require()
        return session

    @classmethod
    def begin(cls, jar: Any) -> None:
        """Forget what *jar*, a ZODB connection, has loaded of a history that the database has lost.

        Called before a request reads objects; see ``SnapshotHistory.check``.
        """
        session: Session = jar.__dict__.get("_pgcatalog_session") or cls(jar)
        jar._pgcatalog_session = session
        session._follow_transactions()
        session.history.check(session.connection)

    # -- the life of a snapshot

    def _follow_transactions(self) -> None:
        manager = self.jar.transaction_manager
        if manager is not None and manager is not self._synchronized:
            self.forget_snapshot()
            manager.registerSynch(self)
            self.jar.onCloseCallback(self._closed)
            self._synchronized = manager

    def _closed(self) -> None:
        manager, self._synchronized = self._synchronized, None
        if manager is not None:
            manager.unregisterSynch(self)
        self.history.end_snapshot()
        self.complete_results(ending=True)
        self.forget_snapshot()

    def beforeCompletion(self, txn: Any) -> None:
        self.history.end_snapshot()
        try:
            self.complete_results(ending=True)
        except psycopg.Error as error:
            # The end of a transaction must not fail for a result somebody might still look at.
            logger.warning("results of the ending transaction stay incomplete: %s", error)
            self.open_results.clear()

    def afterCompletion(self, txn: Any) -> None:
        self.forget_snapshot()

    def newTransaction(self, txn: Any) -> None:
        self.forget_snapshot()

    def forget_snapshot(self) -> None:
        """Called when the storage takes a new snapshot: nothing known about the old one holds."""
        self._states = None
        self.history.forget_snapshot()
        self._has_savepoint = False
        self.overlays.clear()
        self.open_results.clear()

    def complete_results(self, ending: bool = False) -> None:
        """Let results read what they still need, before the pending rows change or the snapshot is *ending*."""
        if self.open_results:
            for results in list(self.open_results):
                results.complete(ending)
            self.open_results.clear()

    # -- reading

    @property
    def connection(self) -> Any:
        """The storage's psycopg connection."""
        return self.jar._normal_storage.pg_connection

    @property
    def keeps_history(self) -> bool:
        """True when the storage can undo."""
        return bool(self.jar._normal_storage.supportsUndo())

    @property
    def generations(self) -> Generations:
        """What the process knows of the database's catalogs."""
        return Generations.of(self.jar.db())

    @property
    def knows_states(self) -> bool:
        """True when ``states`` costs no round trip."""
        if self._states is None and names_states(self.jar._normal_storage):
            self._states = self.generations.states_at(self.history.tid)
        return self._states is not None

    @property
    def states(self) -> States:
        """The catalogs of this snapshot by tool zoid; read from the database when no thread has met its newest
        transaction yet.  Raises HistoryChanged.
        """
        if not self.knows_states:
            self._guarded(lambda _: self._execute_first(None, (), with_states=True), prepared=True)
        assert self._states is not None
        return self._states

    @property
    def snapshot_states(self) -> States | None:
        """``states`` if they are known already: the same object as long as the snapshot lasts."""
        return self._states

    def _state_params(self) -> tuple[int, int]:
        """Return the parameters of READ_STATE."""
        expected = self.history.expected_tid()
        return expected, expected

    def _take_states(self, rows: Rows) -> None:
        self.history.place(is_there=rows[0][0])
        self.generations.own_limit = rows[0][1]
        self._states = {
            zoid: CatalogState(relation, version, frozenset(columns), generation, tid, count, frozenset(complete))
            for _, _, zoid, relation, version, columns, generation, tid, count, complete in rows
            if zoid is not None
        }
        if names_states(self.jar._normal_storage):
            self.generations.remember(self.history.tid, self._states)

    def execute(
        self,
        query: str,
        params: Sequence[Any] | Mapping[str, Any] = (),
        with_states: bool = False,
        seconds: float | None = None,
    ) -> Rows:
        """Run *query* on the snapshot and return its rows; *with_states* reads ``states`` in the same message.

        *seconds* is how long it may take, None for as long as the server lets it.  Raises psycopg.Error, QueryCanceled
        when the time is over; the transaction stays usable then, unless it is ServiceUnavailable.  Raises ValueError for
        *seconds* that are not more than 0.
        """
        if not isinstance(params, Mapping):  # named values are psycopg's to number
            return self.ask(Statement(query, tuple(params)), with_states, seconds)
        return self._run_unprepared(query, params, with_states, self._limit(seconds))

    def ask(self, statement: Statement, with_states: bool = False, seconds: float | None = None) -> Rows:
        """Run *statement* as ``execute`` does, planned as it needs."""
        limit = self._limit(seconds)
        prepared = PreparedStatements.of(self.connection)
        if prepared is not None:
            try:
                return self._run_prepared(prepared, statement, with_states, limit)
            except psycopg.errors.InvalidSqlStatementName:
                prepared.forget()
        return self._run_unprepared(statement.sql, statement.params, with_states, limit)

    def _limit(self, seconds: float | None) -> tuple[str, ...]:
        """Return the command that lets what follows it take *seconds*, none for None."""
        return () if seconds is None else (set_limit(seconds, self._own_limit()),)

    def _run_unprepared(
        self, query: str, params: Sequence[Any] | Mapping[str, Any], with_states: bool, limit: tuple[str, ...]
    ) -> Rows:
        if query in _accepted and (with_states or self._wants_savepoint()) and not isinstance(params, Mapping):
            rows: Rows = self._guarded(lambda _: self._execute_first(query, params, with_states, limit), prepared=True)
            return rows
        if with_states:
            self.states  # noqa: B018  a message of its own
        if limit:
            rows = self._guarded(lambda _: self._execute_first(query, params, False, limit))
        else:
            rows = self._guarded(lambda cursor: self._fetch(cursor.execute(query, params, prepare=False)))
        if len(_accepted) >= ACCEPTED_LIMIT:
            _accepted.clear()
        _accepted.add(query)
        return rows

    def _run_prepared(
        self, prepared: PreparedStatements, statement: Statement, with_states: bool, limit: tuple[str, ...]
    ) -> Rows:
        """Run *statement* behind what ``_execute_first`` puts before it, as prepared statements.

        What is asked of an overlay is not prepared: a rollback, because of a statement that is prepared no more, would take
        its table along.
        """
        is_first = self._wants_savepoint()
        before = (*self._settings(), SAVEPOINT) if is_first else ()
        asked, position = ([statement], 0) if self.overlays else with_planner_hints(statement)
        if limit:
            asked, position = [Statement(limit[0]), *asked, Statement(TAKE_BACK)], position + 1
        statements = [Statement(READ_STATE, self._state_params()), *asked] if with_states else asked

        def action(_: Any) -> Rows:
            results = prepared.run(statements, before, prepare=not self.overlays)
            if is_first:
                self._has_savepoint = True
            if with_states:
                self._take_states(results.pop(0))
            self.fetching += prepared.decoding
            return results[position]

        found: Rows = self._guarded(action, prepared=True)
        return found

    def _own_limit(self) -> int:
        """Return how many milliseconds a statement may take by what the server says; 0 for any time."""
        if self.generations.own_limit is None:
            self.states  # noqa: B018  brings it along
        return self.generations.own_limit or 0

    def _settings(self) -> tuple[str, ...]:
        """Return the commands that tell PostgreSQL how to plan and run the statements of this transaction."""
        if self.is_small():
            return (PLAN_GENERIC,)
        most = max((state.rows for state in self.generations.newest.values()), default=0)
        if most <= MANY_ROWS:
            return (PLAN_CUSTOM,)
        if self.generations.has_memory is None:
            [(self.generations.has_memory,)] = self._guarded(lambda cursor: self._fetch(cursor.execute(HAS_MEMORY)))
        return (PLAN_CUSTOM,) if self.generations.has_memory else (PLAN_CUSTOM, MORE_MEMORY)

    def is_small(self) -> bool:
        """Return whether plans for any values are good enough: all catalogs are known to have few rows."""
        return all(0 <= state.rows < FEW_ROWS for state in self.generations.newest.values())

    def _execute_first(self, query: str | None, params: Any, with_states: bool, limit: tuple[str, ...] = ()) -> Rows:
        """Run *query*, if there is one, behind the savepoint, the query for the states and its *limit*: in one message.

        Several statements in a message take no parameters, so psycopg writes the values into them as literals.
        """
        savepoint = SAVEPOINT if self._wants_savepoint() else ""
        statements = [savepoint, READ_STATE if with_states else "", *limit, query or "", TAKE_BACK if limit else ""]
        values = (*self._state_params(), *params) if with_states else params
        with client_cursor(self.connection.cursor_factory)(self.connection, row_factory=tuple_row) as cursor:
            cursor.execute("; ".join(filter(None, statements)), values)
            if savepoint:
                self._has_savepoint = True
                cursor.nextset()
            if with_states:
                self._take_states(cursor.fetchall())
                cursor.nextset()
            if limit:
                cursor.nextset()
            return self._fetch(cursor) if query else []

    def _fetch(self, cursor: Any) -> Rows:
        started = perf_counter()
        rows: Rows = cursor.fetchall()
        self.fetching += perf_counter() - started
        return rows

    def _wants_savepoint(self) -> bool:
        return not self._has_savepoint and self.connection.pgconn.transaction_status == TransactionStatus.INTRANS

    def write_overlay(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run *query*, a change of a temporary table, once for each of *rows*."""
        self._guarded(lambda cursor: cursor.executemany(query, rows))

    def run(self, query: str, params: Sequence[Any] = ()) -> None:
        """Run *query*, a change of a temporary table."""
        self._guarded(lambda cursor: cursor.execute(query, params, prepare=False))

    def _guarded(self, action: Callable[[Any], Any], prepared: bool = False) -> Any:
        """Return *action* of a cursor; an error is rolled back to the savepoint, which *action* has *prepared* itself."""
        connection = self.connection
        try:
            with transient_when_lost(connection):
                if not prepared and self._wants_savepoint():
                    connection.execute(SAVEPOINT)
                    self._has_savepoint = True
                return action(self._cursor_of(connection))
        except psycopg.Error:
            if connection.pgconn.transaction_status == TransactionStatus.INERROR:
                self._roll_back(connection)
                self._has_savepoint = True
                self.overlays.clear()
            raise

    def _roll_back(self, connection: Any) -> None:
        prepared = PreparedStatements.of(connection)
        if prepared is None:
            connection.execute(ROLL_BACK)
        else:
            # Not by a cursor: behind a rollback, psycopg removes all prepared statements from the server.
            prepared.run([], [ROLL_BACK])

    def _cursor_of(self, connection: Any) -> Any:
        """Return a cursor of *connection*, the same one until the storage takes another connection."""
        if self._cursor is None or self._cursor.connection is not connection:
            self._cursor = connection.cursor(row_factory=tuple_row)
        return self._cursor

    # -- changing

    def change(self, tool: Any, zoid: int, site_path: str | None) -> CatalogPending:
        """Return the pending changes of the catalog *tool* for writing; joins the transaction.

        *site_path* is the path of the site whose catalog it is, None if it is not a site's.
        """
        self.complete_results()
        self.manager.join()
        # A commit without a changed object reaches the storage only when the connection has joined.
        self.jar._register()
        if zoid not in self.pending:
            self.pending[zoid] = CatalogPending(tool, zoid)
        self.pending[zoid].site_path = site_path
        return self.pending[zoid]

    def new_rid(self) -> int:
        """Return an oid that no object will ever have."""
        rid: int = u64(self.jar.new_oid())
        return rid

    def resolve(self, pending: CatalogPending) -> None:
        """Give pending entries their rids, as this snapshot knows them."""
        entries = unresolved(pending)
        if entries:
            state = self.states.get(pending.zoid)
            rows = seen_rows(self.execute, state, entries) if state and not pending.cleared else []
            pending.see(rows)
            resolve(pending, entries, (row[:3] for row in rows), self.new_rid)


@implementer(ISavepointDataManager)
class PendingManager:
    """Ties a session's pending changes to its transaction: abort, savepoints, commit."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.transaction_manager = None
        self._joined = False

    def join(self) -> None:
        if not self._joined:
            self._joined = True
            self.session.jar.transaction_manager.get().join(self)

    def sortKey(self) -> str:
        # Before every storage: pending rows must be settled when the storage begins to store objects.
        return "!plone.pgcatalog"

    def abort(self, txn: Any) -> None:
        self._forget()

    def tpc_begin(self, txn: Any) -> None:
        for pending in self.session.pending.values():
            self.session.resolve(pending)
        committing.sessions.append(self.session)

    def commit(self, txn: Any) -> None:
        pass

    def tpc_vote(self, txn: Any) -> None:
        pass

    def tpc_finish(self, txn: Any) -> None:
        self._forget()

    def tpc_abort(self, txn: Any) -> None:
        self._forget()

    def savepoint(self) -> "PendingSavepoint":
        return PendingSavepoint(self.session)

    def _forget(self) -> None:
        self._joined = False
        self.session.pending.clear()
        self.session.idx_written.clear()
        self.session.overlays.clear()
        if self.session in committing.sessions:
            committing.sessions.remove(self.session)


@implementer(IDataManagerSavepoint)
class PendingSavepoint:
    """A state of the pending changes to which a transaction can go back."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.states = {zoid: (pending, pending.snapshot()) for zoid, pending in session.pending.items()}

    def rollback(self) -> None:
        self.session.complete_results()
        self.session.pending = {}
        for zoid, (pending, state) in self.states.items():
            pending.restore(state)
            self.session.pending[zoid] = pending
