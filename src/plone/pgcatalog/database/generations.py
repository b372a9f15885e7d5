"""The process's cache of the states of a database's catalogs, shared by all threads.

Catalogs are written inside the storage's commits, which are serialised: snapshots with the same newest transaction show the
same catalogs.  The storage reads that transaction's id with every new snapshot.

A failover to an asynchronous standby, or a restored backup, removes transactions that the process has seen.  Numbers
(generations, xmin) are then assigned again, for other content; ids of transactions are times and are not reused.
"""

from collections import deque
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.database.counts import COUNTED
from plone.pgcatalog.database.errors import OWN_LIMIT
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.prepared import FEW_ROWS
from plone.pgcatalog.database.prepared import HAS_MEMORY
from plone.pgcatalog.database.prepared import MANY_ROWS
from plone.pgcatalog.database.prepared import MORE_MEMORY
from plone.pgcatalog.database.prepared import PLAN_CUSTOM
from plone.pgcatalog.database.prepared import PLAN_GENERIC
from plone.pgcatalog.database.prepared import Rows
from plone.pgcatalog.database.sets import CachedSets
from plone.pgcatalog.database.sets import NEWEST_SET
from plone.pgcatalog.database.statistics import FREQUENCIES
from plone.pgcatalog.database.statistics import Selectivity
from plone.pgcatalog.sql.expression import Statement
from typing import Any
from weakref import WeakKeyDictionary

import itertools
import threading


#: Zoid of a catalog tool -> state of the catalog.
States = Mapping[int, CatalogState]

#: SQL condition: a transaction is part of the history.  A pack removes transactions without stored objects from the log; a
#: catalog that such a transaction has changed names it in its state until the next change.
TID_EXISTS = (
    "EXISTS (SELECT FROM transaction_log WHERE tid = %s) OR EXISTS (SELECT FROM pgcatalog_state WHERE tid = %s)"
)
#: SQL expression: the quoted schema of pg_trgm, if the extension and its index exist; else NULL.
TRIGRAMS = f"(SELECT quote_ident(name) FROM ({load_sql('trigram_schema')}) AS found (name, has_index) WHERE has_index)"
#: At least one row, because its first columns describe the history and the server; the columns of a state follow.
READ_STATES = (
    f"SELECT {TID_EXISTS}, {OWN_LIMIT}, {HAS_MEMORY}, {TRIGRAMS}, catalog, relation, version, columns, generation, tid,"
    " coalesce((SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass(quote_ident(relation))), -1),"
    f" complete, interned, {NEWEST_SET}, {COUNTED.format(relation='pgcatalog_state.relation')}"
    " FROM (VALUES (1)) AS one LEFT JOIN pgcatalog_state ON true"
)

#: Number of transaction ids that are cached as part of the history.
REMEMBERED = 100
#: Number of transactions whose states are cached: snapshots that threads have open at once.
REMEMBERED_STATES = 20

_numbers = itertools.count(1)
_databases: "WeakKeyDictionary[Any, Generations]" = WeakKeyDictionary()


class Generations:
    """The cached states, history, lists and statistics of one opened database.

    ``number`` identifies the database and its history within this process; it changes when the database has lost
    transactions.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: newest transaction that this process committed in the history that was lost last
        self._lost = 0
        #: how often the history has changed
        self.changes = 0
        self._begin()

    def _begin(self) -> None:
        self.number = next(_numbers)
        #: newest transaction of a snapshot -> the states that it shows, sorted by transaction
        self._states: dict[int, States] = {}
        #: whether a statement of this process has returned
        self.has_read = False
        #: the last transactions known to be part of the history
        self._tids: deque[int] = deque(maxlen=REMEMBERED)
        #: the server's statement_timeout in milliseconds, 0 for no limit; None before it is read
        self.own_limit: int | None = None
        #: the quoted schema of pg_trgm; None if the extension or its index of words is missing
        self.trigrams: str | None = None
        #: whether the server's own work_mem is large enough for large bitmaps; None before it is read
        self.has_memory: bool | None = None
        #: the interned lists
        self.sets = CachedSets()
        #: shares of rows by column and value
        self.selectivity = Selectivity()

    @classmethod
    def of(cls, database: Any) -> "Generations":
        """Return the Generations of *database*, a ZODB.DB, created on first use."""
        found = _databases.get(database)
        return _databases.setdefault(database, cls()) if found is None else found

    @property
    def newest(self) -> States:
        """The cached states of the newest transaction."""
        return next(reversed(self._states.values()), {})

    @property
    def remembers(self) -> bool:
        """Whether states of any snapshot are cached."""
        return bool(self._states)

    def states_at(self, tid: int | None) -> States | None:
        """Return the states in snapshots whose newest transaction is *tid*; None if they are not cached."""
        return None if tid is None else self._states.get(tid)

    def remember(self, tid: int, states: States) -> None:
        """Cache *states*, which were read in a snapshot whose newest transaction is *tid*."""
        with self._lock:
            # A new dict, because other threads read the former one.
            self._states = dict(sorted({**self._states, tid: states}.items())[-REMEMBERED_STATES:])

    def store_settings(self, own_limit: int, has_memory: bool, trigrams: str | None) -> None:
        """Store the server's settings.

        *has_memory* counts only the first time: later the session may have set its own work_mem.
        """
        self.own_limit = own_limit
        self.trigrams = trigrams
        if self.has_memory is None:
            self.has_memory = has_memory

    # -- plans

    def is_small(self) -> bool:
        """Return whether generic plans are good enough: all catalogs are known to have few rows.

        False before the catalogs are read: the first statement of a transaction is sent with its planner settings.
        """
        return bool(self.newest) and all(0 <= state.rows < FEW_ROWS for state in self.newest.values())

    def planning(self) -> tuple[str, ...]:
        """Return the SET LOCAL commands for planner and work_mem of a transaction."""
        if self.is_small():
            return (PLAN_GENERIC,)
        most = max((state.rows for state in self.newest.values()), default=0)
        return (PLAN_CUSTOM, MORE_MEMORY) if most > MANY_ROWS and self.has_memory is False else (PLAN_CUSTOM,)

    # -- history

    def store_tid(self, tid: int) -> None:
        """Note that *tid* is a transaction of the history."""
        if tid > 0 and tid != self._lost and tid not in self._tids:
            self._tids.append(tid)

    def has_seen(self, tid: int) -> bool:
        """Return whether *tid* is known to be a transaction of the history."""
        return tid in self._tids

    def newest_tid(self, limit: int | None = None) -> int:
        """Return the newest known transaction, up to *limit*; 0 if there is none."""
        tids = tuple(self._tids)
        newest = max(tids, default=0)
        return newest if limit is None or newest <= limit else max((tid for tid in tids if tid <= limit), default=0)

    def change_history(self, number: int, committed: int) -> bool:
        """Empty this cache if it still has the history *number*; return False if another thread was faster.

        *committed* is the newest transaction of this process in that history.
        """
        with self._lock:
            if number != self.number:
                return False
            self._lost = committed
            self.changes += 1
            self._begin()
            return True


def newest_set(states: States) -> int:
    """Return the ``added`` of the newest list in a snapshot with *states*; 0 if there are no lists."""
    return max((state.newest_set for state in states.values()), default=0)


def _field(value: Any) -> Any:
    """Return *value*, of a column of READ_STATES, as the value of a field of CatalogState."""
    return frozenset(value) if isinstance(value, list) else value


class StatesRead:
    """The *statements* that read the states of all catalogs of a snapshot, and the missing or old parts of *generations*.

    The first value of the first row is whether the transaction *expected* is in the history of the snapshot.
    """

    def __init__(self, generations: Generations, expected: int) -> None:
        self._generations = generations
        # A new process reads all lists.
        self._lists = None if generations.sets.newest else generations.sets.unread()
        shares = FREQUENCIES if generations.selectivity.is_old else None
        self.statements = [
            Statement(READ_STATES, (expected, expected)),
            *(each for each in (self._lists, shares) if each is not None),
        ]

    def store(self, results: Sequence[Rows]) -> States:
        """Store the rows of each statement in the process's Generations; return the states."""
        generations = self._generations
        rows, *others = results
        _, own_limit, has_memory, trigrams, *_ = rows[0]
        generations.store_settings(own_limit, has_memory, trigrams)
        # Without a catalog there is one row of NULLs.
        states = {row[4]: CatalogState(*map(_field, row[5:])) for row in rows if row[4] is not None}
        if self._lists is not None:
            generations.sets.store(others.pop(0), newest_set(states), self._lists)
        for shares in others:
            generations.selectivity.store(shares)
        return states
