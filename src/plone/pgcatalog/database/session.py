"""The catalog's place in one ZODB connection: its snapshot, and the way to run a statement there.

Reads go through the storage's own psycopg connection, so catalog and objects are one REPEATABLE READ
snapshot.  One SAVEPOINT per snapshot keeps an SQL error local to its query.
"""

from Acquisition import aq_base
from Acquisition import aq_parent
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import AbstractContextManager
from plone.pgcatalog import storage
from plone.pgcatalog.database.errors import set_limit
from plone.pgcatalog.database.errors import TAKE_BACK
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.database.generations import newest_set
from plone.pgcatalog.database.generations import States
from plone.pgcatalog.database.history import RefusedCommit
from plone.pgcatalog.database.history import SnapshotHistory
from plone.pgcatalog.database.messages import Batch
from plone.pgcatalog.database.messages import Messages
from plone.pgcatalog.database.messages import Rows
from plone.pgcatalog.database.open_results import OpenResults
from plone.pgcatalog.database.prepared import positional
from plone.pgcatalog.database.prepared import with_planner_hints
from plone.pgcatalog.database.sets import KnownSets
from plone.pgcatalog.database.states import StatesRead
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.storage.snapshots import Snapshots
from typing import Any
from ZODB.utils import u64


#: What a statement was the first one of: its process, its kind on its connection.
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
    """One per ZODB connection; ``Session.of(jar)`` finds or makes it."""

    def __init__(self, jar: Any) -> None:
        self.jar = jar
        #: catalog -> what the transaction has pending there, an ``indexing.pending.CatalogPending``
        self.pending: dict[int, Any] = {}
        #: what ties that to the transaction, an ``indexing.manager.PendingManager``; None before the first change
        self.manager: Any = None
        #: the catalogs of this snapshot; None as long as nobody has asked
        self.known_states: States | None = None
        self.history = SnapshotHistory(jar)
        self.messages = Messages(jar)
        self._synchronized: Any = None
        #: the snapshots of *jar* while a request ends, whose current one may outlast the transaction; else None
        self._staying: Snapshots | None = None
        #: catalog -> which table of chunks answers in this snapshot, a ``meaning.table.Vectors``; None for none
        self.vectors: dict[int, Any] = {}
        #: questions, by catalog, that got no vector in this snapshot: all parts of a page are answered by words then
        self.unanswered: set[tuple[int, str]] = set()
        #: results that still have to read from this snapshot before it changes
        self.open_results = OpenResults()
        #: catalog -> rows that a page has announced, a ``results.announced.Announced``
        self.announced: dict[int, Any] = {}
        #: catalog -> what this snapshot shows of it, a ``results.seen.Snapshot``
        self.snapshots: dict[int, Any] = {}
        #: catalog -> overlay that shows its pending rows
        self.overlays = self.messages.overlays
        #: what waits for a message, each a ``results.view.RowsFetch``
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
        self.materialize_results(ending=True)
        self.forget_snapshot()

    def beforeCompletion(self, txn: Any) -> None:
        self.history.end_snapshot()
        self.materialize_results(ending=True)
        snapshots = storage.snapshots_of(self.jar)
        if snapshots is not None and self.messages.has_tables:
            # They hold pending rows of the transaction that ends.
            snapshots.end_with_transaction()
        self._staying = snapshots if snapshots is not None and snapshots.is_ending else None

    def afterCompletion(self, txn: Any) -> None:
        # The storage may be called before this session or after it.
        if self._staying is None or not self._staying.is_kept:
            self.forget_snapshot()

    def newTransaction(self, txn: Any) -> None:
        self.forget_snapshot()

    def forget_snapshot(self) -> None:
        """Called when the storage takes a new snapshot: nothing known about the old one holds."""
        self.known_states = None
        self.snapshots.clear()
        self.vectors.clear()
        self.unanswered.clear()
        self.announced.clear()
        self.history.forget_snapshot()
        self.messages.forget_snapshot()
        self.open_results.clear()
        self.collected.clear()

    def materialize_results(self, ending: bool = False) -> None:
        """Let results read what they still need, before the pending rows change or the snapshot is *ending*.

        After a HistoryChanged the transaction can only be aborted.
        """
        for announced in self.announced.values():
            announced.forget_rows()
        error = self.open_results.materialize(ending)
        # A connection that is being closed has no transaction.
        if error is not None and self._synchronized is not None:
            self._synchronized.get().join(RefusedCommit(error))

    def batch(self) -> AbstractContextManager[None]:
        """Return the context in which what is to be read is collected: see ``Batch``."""
        return self.collected.open()

    # -- reading

    @property
    def connection(self) -> Any:
        """The storage's psycopg connection."""
        return self.messages.connection

    @property
    def keeps_history(self) -> bool:
        """True when the storage can undo."""
        return storage.keeps_history(self.jar)

    @property
    def generations(self) -> Generations:
        """What the process knows of the database's catalogs."""
        return Generations.of(self.jar.db())

    def read_states(self) -> States:
        """Return the catalogs of this snapshot by tool zoid.  Raises HistoryChanged.

        A message reads them if the process does not know them: most snapshots begin with them (``history.read_changes``).
        """
        if self.known_states is None and self.history.is_newest:
            self.known_states = self.generations.states_at(self.history.tid)
        if self.known_states is None:
            read = StatesRead(self.generations, self.history.expected_tid())
            results = self.messages.send(read.statements, self.generations.planning(), None)
            [is_there, *_] = results[0][0]
            self.history.place(is_there)
            self.known_states = read.learn(results)
            if self.history.tid is not None and not self.keeps_history:
                self.generations.remember(self.history.tid, self.known_states)
        return self.known_states

    def known_sets(self) -> KnownSets:
        """Return the lists of the process, those of this snapshot included; they are read if some are new."""
        sets, newest = self.generations.sets, newest_set(self.read_states())
        if sets.newest < newest:
            unread = sets.unread()
            sets.learn(self.ask(unread), newest, unread)
        return sets

    def look_up(self, part: Predicate) -> None:
        """Have the process know the lists that *part* of a condition is about, where its column has many."""
        sets = self.known_sets()
        elements = sets.unread_elements(part)
        if elements:
            rows = self.ask(sets.read_elements(part.column.name, elements))
            sets.learn_elements(part.column.name, rows, newest_set(self.read_states()))

    def execute(self, query: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        """Run *query* on the snapshot and return its rows; see ``ask``."""
        if isinstance(params, Mapping):
            query, params = positional(query, params)
        return self.ask(Statement(query, tuple(params)))

    def ask(self, statement: Statement, seconds: float | None = None) -> Rows:
        """Run *statement* on the snapshot and return its rows.

        *seconds* is how long it may take, None for as long as the server lets it.  Raises psycopg.Error, QueryCanceled
        when the time is over; the transaction stays usable then, unless it is ServiceUnavailable.  Raises ValueError for
        *seconds* that are not more than 0.
        """
        return self.ask_all([(statement, seconds)])[0]

    def ask_all(self, questions: Sequence[tuple[Statement, float | None]]) -> list[Rows]:
        """Run statements, each with its seconds, in one message: the way of all statements that read.  See ``ask``.

        First in the message are, before the first statement of a snapshot, how to plan and the savepoint, then the time limit.
        """
        statements: list[Statement] = []
        places = []
        for statement, seconds in questions:
            hinted, place = self._hinted(statement)
            if seconds is not None:
                limit = Statement(set_limit(seconds, self._own_limit()))
                hinted, place = [limit, *hinted, Statement(TAKE_BACK)], place + 1
            places.append(len(statements) + place)
            statements += hinted
        first = places[0] if len(questions) > 1 else None
        results = self.messages.send(statements, self.generations.planning(), first)
        self.generations.has_read = True
        return [results[place] for place in places]

    def _hinted(self, statement: Statement) -> tuple[list[Statement], int]:
        """Return what runs *statement*, and at which place of it the statement itself is."""
        return ([statement], 0) if self.overlays else with_planner_hints(statement, not self.generations.is_small())

    def _own_limit(self) -> int:
        """Return how many milliseconds a statement may take by what the server says; 0 for any time."""
        if self.generations.own_limit is None:
            self.read_states()
        return self.generations.own_limit or 0

    def new_rid(self) -> int:
        """Return an oid that no object will ever have."""
        rid: int = u64(self.jar.new_oid())
        return rid
