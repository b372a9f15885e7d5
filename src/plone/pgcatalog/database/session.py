"""The catalog's part of one ZODB connection: its snapshot, and the methods that run statements there.

Reads use the storage's own psycopg connection, so catalog and objects share one REPEATABLE READ snapshot.  One SAVEPOINT per
snapshot limits an SQL error to its query.
"""

from Acquisition import aq_base
from Acquisition import aq_parent
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import AbstractContextManager
from plone.pgcatalog import storage
from plone.pgcatalog.database.errors import HistoryChanged
from plone.pgcatalog.database.errors import RESET_LIMIT
from plone.pgcatalog.database.errors import set_limit
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.database.generations import newest_set
from plone.pgcatalog.database.generations import States
from plone.pgcatalog.database.generations import StatesRead
from plone.pgcatalog.database.history import RefusedCommit
from plone.pgcatalog.database.history import SnapshotHistory
from plone.pgcatalog.database.messages import Batch
from plone.pgcatalog.database.messages import Messages
from plone.pgcatalog.database.prepared import positional
from plone.pgcatalog.database.prepared import Rows
from plone.pgcatalog.database.prepared import with_planner_hints
from plone.pgcatalog.database.sets import CachedSets
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.storage.snapshots import Snapshots
from typing import Any
from weakref import WeakSet
from ZODB.utils import u64

import logging


logger = logging.getLogger(__name__)

#: Reasons why a statement runs cold: it is the first of its process, or the first of its kind on its connection.
COLD_PROCESS = "process"
COLD_CONNECTION = "connection"


def connection_of(obj: Any) -> Any:
    """Return the ZODB connection of *obj*, or of the nearest container that has one."""
    while obj is not None:
        jar = getattr(aq_base(obj), "_p_jar", None)
        if jar is not None:
            return jar
        obj = aq_parent(obj)
    return None


class Session:
    """The session of one ZODB connection; ``Session.of(jar)`` returns or creates it."""

    def __init__(self, jar: Any) -> None:
        self.jar = jar
        #: zoid of a catalog -> pending changes of the transaction there, an ``indexing.pending.CatalogPending``
        self.pending: dict[int, Any] = {}
        #: the data manager of the pending changes, an ``indexing.manager.PendingManager``; None before the first change
        self.manager: Any = None
        #: the catalogs of this snapshot; None before they are read
        self.loaded_states: States | None = None
        self.history = SnapshotHistory(jar)
        self.messages = Messages(jar)
        self._synchronized: Any = None
        #: the snapshots of *jar* at the end of a request, if the current one may outlast the transaction; else None
        self._staying: Snapshots | None = None
        #: catalog -> the table of chunks used in this snapshot, a ``meaning.table.Vectors``; None if there is none
        self.vectors: dict[int, Any] = {}
        #: (catalog, question) without a vector in this snapshot: then all parts of a page search by words
        self.unanswered: set[tuple[int, str]] = set()
        #: results and streams that still have to read rows before this snapshot changes
        self.open_results: WeakSet[Any] = WeakSet()
        #: catalog -> rows announced by a page, a ``results.announced.Announced``
        self.announced: dict[int, Any] = {}
        #: catalog -> its contents in this snapshot, a ``results.seen.Snapshot``
        self.snapshots: dict[int, Any] = {}
        #: catalog -> overlay that shows its pending rows
        self.overlays = self.messages.overlays
        #: reads that wait for a common message, each a ``results.view.RowsFetch``
        self.collected = Batch()

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
        """Discard objects of *jar*, a ZODB connection, that were loaded from a history that the database has lost.

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
        self.materialize_results(ending=True)
        self.forget_snapshot()

    def beforeCompletion(self, txn: Any) -> None:
        self.history.end_snapshot()
        self.materialize_results(ending=True)
        snapshots = storage.snapshots_of(self.jar)
        if snapshots is not None and self.messages.has_tables:
            # The temporary tables hold pending rows of the transaction that ends.
            snapshots.end_with_transaction()
        self._staying = snapshots if snapshots is not None and snapshots.is_ending else None

    def afterCompletion(self, txn: Any) -> None:
        # The storage may be called before this session or after it.
        if self._staying is None or not self._staying.stays_open:
            self.forget_snapshot()

    def newTransaction(self, txn: Any) -> None:
        self.forget_snapshot()

    def forget_snapshot(self) -> None:
        """Discard all data of the old snapshot; called when the storage takes a new one."""
        self.loaded_states = None
        self.snapshots.clear()
        self.vectors.clear()
        self.unanswered.clear()
        self.announced.clear()
        self.history.forget_snapshot()
        self.messages.forget_snapshot()
        self.open_results.clear()
        self.collected.clear()

    def materialize_results(self, ending: bool = False) -> None:
        """Make results read the rows that they still need, before the pending rows change or the snapshot is *ending*.

        A result that cannot be read raises its error when it is used.  After a HistoryChanged the transaction can only be
        aborted.
        """
        for announced in self.announced.values():
            announced.forget_rows()
        changed = None
        for results in list(self.open_results):
            try:
                results.materialize(ending)
            except Exception as error:  # noqa: BLE001  of any kind: the result may never be used
                logger.warning(
                    "the result of a search was not read before the catalog changed or the transaction ended: %r", error
                )
                results.fail(error)
                changed = error if isinstance(error, HistoryChanged) else changed
        self.open_results.clear()
        # A connection that is being closed has no transaction.
        if changed is not None and self._synchronized is not None:
            self._synchronized.get().join(RefusedCommit(changed))

    def batch(self, across: bool = False) -> AbstractContextManager[None]:
        """Return a context in which reads are collected and sent together, *across* catalogs if wished; see ``Batch``."""
        return self.collected.open(across)

    # -- reading

    @property
    def connection(self) -> Any:
        """The storage's psycopg connection."""
        return self.messages.connection

    @property
    def preserves_history(self) -> bool:
        """True if the storage can undo."""
        return storage.preserves_history(self.jar)

    @property
    def generations(self) -> Generations:
        """The process's cache of the states of the database's catalogs."""
        return Generations.of(self.jar.db())

    def read_states(self) -> States:
        """Return the catalogs of this snapshot by tool zoid.  Raises HistoryChanged.

        They are read if the process has not cached them; most snapshots have read them at their begin
        (``history.read_changes``).
        """
        if self.loaded_states is None and self.history.is_newest:
            self.loaded_states = self.generations.states_at(self.history.tid)
        if self.loaded_states is None:
            read = StatesRead(self.generations, self.history.expected_tid())
            results = self.messages.send(read.statements, self.generations.planning(), None)
            [exists, *_] = results[0][0]
            self.history.place(exists)
            self.loaded_states = read.store(results)
            if self.history.tid is not None and not self.preserves_history:
                self.generations.remember(self.history.tid, self.loaded_states)
        return self.loaded_states

    def cached_sets(self) -> CachedSets:
        """Return the process's cached lists, after reading the lists of this snapshot that are new."""
        sets, newest = self.generations.sets, newest_set(self.read_states())
        if sets.newest < newest:
            unread = sets.unread()
            sets.store(self.query(unread), newest, unread)
        return sets

    def look_up(self, part: Predicate) -> None:
        """Load the numbers of the lists that *part*, a predicate, refers to, if its column has many lists."""
        sets = self.cached_sets()
        elements = sets.unread_elements(part)
        if elements:
            rows = self.query(sets.read_elements(part.column.name, elements))
            sets.store_elements(part.column.name, rows, newest_set(self.read_states()))

    def execute(self, statement: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        """Run *statement* on the snapshot and return its rows; see ``query``."""
        if isinstance(params, Mapping):
            statement, params = positional(statement, params)
        return self.query(Statement(statement, tuple(params)))

    def query(self, statement: Statement, seconds: float | None = None) -> Rows:
        """Run *statement* on the snapshot and return its rows.

        *seconds* is the time limit; None for the server's own limit.  Raises:

        - psycopg.Error, such as QueryCanceled at the time limit; the transaction stays usable, except after
          ServiceUnavailable
        - ValueError for *seconds* that are not more than 0
        """
        return self.query_all([(statement, seconds)])[0]

    def query_all(self, reads: Sequence[tuple[Statement, float | None]]) -> list[Rows]:
        """Run statements, each with its time limit in seconds, in one message; return the rows of each.  See ``query``.

        All statements that read are sent from here.  The first message of a snapshot begins with planner settings and
        savepoint; a time limit precedes its statement.
        """
        statements: list[Statement] = []
        places = []
        for statement, seconds in reads:
            # A statement that reads an overlay gets no planner settings.
            hinted, place = [statement], 0
            if not self.overlays:
                hinted, place = with_planner_hints(statement, not self.generations.is_small())
            if seconds is not None:
                limit = Statement(set_limit(seconds, self._own_limit()))
                hinted, place = [limit, *hinted, Statement(RESET_LIMIT)], place + 1
            places.append(len(statements) + place)
            statements += hinted
        first = places[0] if len(reads) > 1 else None
        results = self.messages.send(statements, self.generations.planning(), first)
        self.generations.has_read = True
        return [results[place] for place in places]

    def _own_limit(self) -> int:
        """Return the server's statement_timeout in milliseconds; 0 for no limit."""
        if self.generations.own_limit is None:
            self.read_states()
        return self.generations.own_limit or 0

    def new_rid(self) -> int:
        """Return an oid that no object will ever have."""
        rid: int = u64(self.jar.new_oid())
        return rid
