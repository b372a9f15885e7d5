"""The catalog's place in one ZODB connection: its snapshot, and what its transaction has pending.

Reads go through the storage's own psycopg connection, so catalog and objects are one REPEATABLE READ
snapshot.  One SAVEPOINT per snapshot keeps an SQL error local to its query.
"""

from Acquisition import aq_base
from Acquisition import aq_parent
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from plone.pgcatalog.database.schema import CatalogState
from plone.pgcatalog.indexing.pending import CatalogPending
from plone.pgcatalog.indexing.pending import Entry
from plone.pgcatalog.indexing.resolve import resolve
from plone.pgcatalog.indexing.resolve import unresolved
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
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

READ_STATE = "SELECT catalog, relation, version, columns, generation FROM pgcatalog_state"
STORED_ROWS = (
    'SELECT rid, path, zoid FROM "{relation}" WHERE path = ANY(%s::text[])'
    ' UNION SELECT rid, path, zoid FROM "{relation}" WHERE zoid = ANY(%s::bigint[])'
)


class Committing(threading.local):
    """The sessions whose transaction this thread is committing."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []


committing = Committing()


def is_supported(jar: Any) -> bool:
    """True when *jar*, a ZODB connection, reads from zodb-pgjsonb."""
    return hasattr(getattr(jar, "_normal_storage", None), "pg_connection")


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
        self._states: dict[int, CatalogState] | None = None
        self._synchronized: Any = None
        #: results that still have to read from this snapshot before it changes
        self.open_results: WeakSet[Any] = WeakSet()
        #: catalog -> overlay that shows its pending rows
        self.overlays: dict[int, Any] = {}

    @classmethod
    def of(cls, jar: Any) -> "Session":
        session: Session | None = jar.__dict__.get("_pgcatalog_session")
        if session is None:
            session = jar._pgcatalog_session = cls(jar)
        session._follow_transactions()
        return session

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
        self.complete_results()
        self.forget_snapshot()

    def beforeCompletion(self, txn: Any) -> None:
        try:
            self.complete_results()
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
        self.overlays.clear()
        self.open_results.clear()

    def complete_results(self) -> None:
        """Let results read what they still need, before the snapshot or the pending rows change."""
        for results in list(self.open_results):
            results.complete()
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
    def states(self) -> dict[int, CatalogState]:
        """The catalogs of this snapshot by tool zoid, read once."""
        if self._states is None:
            connection = self.connection
            prefix = ""
            if connection.info.transaction_status == TransactionStatus.INTRANS:
                prefix = "SAVEPOINT pgcatalog; "
            cursor = connection.cursor(row_factory=tuple_row)
            cursor.execute(prefix + READ_STATE)
            while cursor.nextset():
                pass
            self._states = {
                zoid: CatalogState(relation, version, frozenset(columns), generation)
                for zoid, relation, version, columns, generation in cursor.fetchall()
            }
        return self._states

    def execute(self, query: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run *query* on the snapshot and return its rows.

        Raises psycopg.Error; the transaction stays usable then.
        """
        rows: list[tuple[Any, ...]] = self._guarded(
            lambda cursor: cursor.execute(query, params, prepare=False).fetchall()
        )
        return rows

    def write_overlay(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run *query*, a change of a temporary table, once for each of *rows*."""
        self._guarded(lambda cursor: cursor.executemany(query, rows))

    def run(self, query: str, params: Sequence[Any] = ()) -> None:
        """Run *query*, a change of a temporary table."""
        self._guarded(lambda cursor: cursor.execute(query, params, prepare=False))

    def _guarded(self, action: Callable[[Any], Any]) -> Any:
        connection = self.connection
        try:
            self.states  # noqa: B018  sets the savepoint
            with connection.cursor(row_factory=tuple_row) as cursor:
                return action(cursor)
        except psycopg.Error:
            if connection.info.transaction_status == TransactionStatus.INERROR:
                connection.execute("ROLLBACK TO SAVEPOINT pgcatalog")
                self.overlays.clear()
            raise

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
            state = None if pending.cleared else self.states.get(pending.zoid)
            rows = self.execute(*stored_rows(state.relation, entries)) if state else []
            resolve(pending, entries, rows, self.new_rid)
            pending.settle_metadata()


def stored_rows(relation: str, entries: Iterable[Entry]) -> tuple[str, list[list[Any]]]:
    """Return the query, and its parameters, for the stored rows that *entries* may replace."""
    entries = list(entries)
    paths = [e.path for e in entries]
    zoids = [e.zoid for e in entries if e.zoid is not None]
    return STORED_ROWS.format(relation=relation), [paths, zoids]


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
