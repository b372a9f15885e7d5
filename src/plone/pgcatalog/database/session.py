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
from plone.pgcatalog.database.errors import OWN_LIMIT
from plone.pgcatalog.database.errors import set_limit
from plone.pgcatalog.database.errors import TAKE_BACK
from plone.pgcatalog.database.generations import COLUMNS
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.database.generations import newest_set
from plone.pgcatalog.database.generations import OF_CATALOGS
from plone.pgcatalog.database.generations import States
from plone.pgcatalog.database.generations import states_of
from plone.pgcatalog.database.history import IS_THERE
from plone.pgcatalog.database.history import RefusedCommit
from plone.pgcatalog.database.history import SnapshotHistory
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.messages import Batch
from plone.pgcatalog.database.messages import Messages
from plone.pgcatalog.database.messages import Rows
from plone.pgcatalog.database.open_results import OpenResults
from plone.pgcatalog.database.prepared import HAS_MEMORY
from plone.pgcatalog.database.prepared import positional
from plone.pgcatalog.database.prepared import with_planner_hints
from plone.pgcatalog.database.sets import KnownSets
from plone.pgcatalog.database.statistics import FREQUENCIES
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.storage.snapshots import Snapshots
from typing import Any
from ZODB.utils import u64


#: What a statement was the first one of: its process, since a write, on its connection.
COLD_PROCESS = "process"
COLD_WRITE = "write"
COLD_CONNECTION = "connection"

#: The quoted schema of pg_trgm, if it and its index are there.
TRIGRAMS = f"(SELECT quote_ident(name) FROM ({load_sql('trigram_schema')}) AS found (name, has_index) WHERE has_index)"
#: One row at least, for what it says of the history.
READ_STATE = f"SELECT {IS_THERE}, {OWN_LIMIT}, {HAS_MEMORY}, {TRIGRAMS}, {COLUMNS} {OF_CATALOGS}"


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

    def knows_states(self) -> bool:
        """True when ``read_states`` costs no round trip."""
        if self.known_states is None and not self.keeps_history:
            self.known_states = self.generations.states_at(self.history.tid)
        return self.known_states is not None

    def coldness(self) -> str:
        """Return what the next statement will be the first one of: ``process``, ``write`` (after one), or nothing of these."""
        if self.generations.read_at is None:
            return COLD_PROCESS
        is_newer = self.known_states is None and (self.history.tid or 0) > self.generations.read_at
        return COLD_WRITE if is_newer else ""

    def read_states(self) -> States:
        """Return the catalogs of this snapshot by tool zoid; read from the database when no thread has met its newest
        transaction yet.  Raises HistoryChanged.
        """
        if not self.knows_states():
            self.ask_all([], with_states=True)
        assert self.known_states is not None
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
        if self.generations.sets.unread_elements(part):
            sets = self.known_sets()
            elements = sets.unread_elements(part)
            rows = self.ask(sets.read_elements(part.column.name, elements))
            sets.learn_elements(part.column.name, rows, newest_set(self.read_states()))

    def _state_params(self) -> tuple[int, int]:
        """Return the parameters of READ_STATE."""
        expected = self.history.expected_tid()
        return expected, expected

    def _take_states(self, rows: Rows) -> None:
        is_there, own_limit, has_memory, trigrams, *_ = rows[0]
        self.history.place(is_there=is_there)
        self.generations.read_at = max(self.generations.read_at or 0, self.history.tid or 0)
        self.generations.learn_settings(own_limit, has_memory, trigrams)
        self.known_states = states_of(row[4:] for row in rows)
        if not self.keeps_history:
            self.generations.remember(self.history.tid, self.known_states)

    def execute(self, query: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        """Run *query* on the snapshot and return its rows; see ``ask``."""
        if isinstance(params, Mapping):
            query, params = positional(query, params)
        return self.ask(Statement(query, tuple(params)))

    def ask(self, statement: Statement, with_states: bool = False, seconds: float | None = None) -> Rows:
        """Run *statement* on the snapshot and return its rows; *with_states* reads the states in the same message.

        *seconds* is how long it may take, None for as long as the server lets it.  Raises psycopg.Error, QueryCanceled
        when the time is over; the transaction stays usable then, unless it is ServiceUnavailable.  Raises ValueError for
        *seconds* that are not more than 0.
        """
        return self.ask_all([(statement, seconds)], with_states)[0]

    def ask_all(self, questions: Sequence[tuple[Statement, float | None]], with_states: bool = False) -> list[Rows]:
        """Run statements, each with its seconds, in one message: the way of all statements that read.  See ``ask``.

        First in the message are, before the first statement of a snapshot, how to plan and the savepoint, then the query
        for the states and the time limit.
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
        # What else is read with the states: a process begins with all lists.
        generations, reading = self.generations, []
        if with_states:
            reading = [(Statement(READ_STATE, self._state_params()), self._take_states)]
            if not generations.sets.newest:
                unread = generations.sets.unread()
                reading.append(
                    (unread, lambda rows: generations.sets.learn(rows, newest_set(self.read_states()), unread))
                )
            if generations.selectivity.is_old and not generations.is_small():
                reading.append((FREQUENCIES, generations.selectivity.learn))
        statements = [*(statement for statement, _ in reading), *statements]
        read = len(reading)
        first = read + places[0] if len(questions) > 1 else None
        results = self.messages.send(statements, generations.planning(), first)
        for (_, take), rows in zip(reading, results, strict=False):
            take(rows)
        return [results[read + place] for place in places]

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
