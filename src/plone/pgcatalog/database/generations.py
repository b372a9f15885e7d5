"""What the threads of a process know of a database's catalogs without asking it.

Catalogs are written inside the storage's commits, and those are serialised: snapshots with the same newest
transaction show the same catalogs.  The storage reads that transaction's id with every new snapshot.

A failover to an asynchronous standby, and a restored backup, take transactions back that the process has seen.  Numbers
(generations, xmin) come again then, for other content; ids of transactions, which are times, do not.
"""

from collections import deque
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from plone.pgcatalog.database.counts import COUNTED
from plone.pgcatalog.database.layout import CatalogState
from plone.pgcatalog.database.prepared import FEW_ROWS
from plone.pgcatalog.database.prepared import MANY_ROWS
from plone.pgcatalog.database.prepared import MORE_MEMORY
from plone.pgcatalog.database.prepared import PLAN_CUSTOM
from plone.pgcatalog.database.prepared import PLAN_GENERIC
from plone.pgcatalog.database.sets import KnownSets
from plone.pgcatalog.database.sets import NEWEST as NEWEST_SET
from plone.pgcatalog.database.statistics import Selectivity
from typing import Any
from weakref import WeakKeyDictionary

import itertools
import threading


#: Catalogs by the zoid of their tool.
States = Mapping[int, CatalogState]

#: What a SELECT reads of the states, and from where: one row at least.
COLUMNS = (
    "catalog, relation, version, columns, generation, tid,"
    " coalesce((SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass(quote_ident(relation))), -1),"
    f" CASE WHEN complete_at = generation THEN complete ELSE '{{}}' END, interned, {NEWEST_SET},"
    f" CASE WHEN complete_at = generation THEN collected ELSE '{{}}' END, {COUNTED.format(relation='pgcatalog_state.relation')}"
)
OF_CATALOGS = "FROM (VALUES (1)) AS one LEFT JOIN pgcatalog_state ON true"

#: Ids of transactions that are remembered as part of the history.
REMEMBERED = 100
#: Transactions whose states are remembered: snapshots that threads have open at once.
REMEMBERED_STATES = 20

_numbers = itertools.count(1)
_databases: "WeakKeyDictionary[Any, Generations]" = WeakKeyDictionary()


class Generations:
    """The newest states known of one opened database.

    ``number`` names, in this process, the database and its history: it is another one when the database has lost
    transactions.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: the newest transaction of this process that a lost history had
        self._lost = 0
        #: how often the history has changed
        self.changes = 0
        self._begin()

    def _begin(self) -> None:
        self.number = next(_numbers)
        #: newest transaction of a snapshot -> the states that it shows, in the order of the transactions
        self._states: dict[int, States] = {}
        #: whether a statement of this process has been answered
        self.has_read = False
        #: newest transactions that were seen
        self._tids: deque[int] = deque(maxlen=REMEMBERED)
        #: how many milliseconds the server gives a statement, 0 for any number; None as long as nobody has asked
        self.own_limit: int | None = None
        #: the quoted schema of pg_trgm; None if that, or its index of words, is not there
        self.trigrams: str | None = None
        #: whether the server's own settings leave room for large bitmaps; None as long as nobody has asked
        self.has_memory: bool | None = None
        #: the lists that columns hold the numbers of
        self.sets = KnownSets()
        #: which share of the rows of catalogs has which values
        self.selectivity = Selectivity()

    @classmethod
    def of(cls, database: Any) -> "Generations":
        """Return the one of *database*, a ZODB.DB."""
        found = _databases.get(database)
        return _databases.setdefault(database, cls()) if found is None else found

    @property
    def newest(self) -> States:
        """The remembered states of the newest transaction."""
        return next(reversed(self._states.values()), {})

    @property
    def remembers(self) -> bool:
        """Whether states of any snapshot are remembered."""
        return bool(self._states)

    def states_at(self, tid: int | None) -> States | None:
        """Return the states in snapshots whose newest transaction is *tid*, None if they must be read."""
        return None if tid is None else self._states.get(tid)

    def remember(self, tid: int, states: States) -> None:
        """Note the *states* read in a snapshot whose newest transaction is *tid*."""
        with self._lock:
            # Another dict, since other threads read the former one.
            self._states = dict(sorted({**self._states, tid: states}.items())[-REMEMBERED_STATES:])

    def learn_settings(self, own_limit: int, has_memory: bool, trigrams: str | None) -> None:
        """Note the server's settings; *has_memory* from the first time on: what a session sets itself says nothing."""
        self.own_limit = own_limit
        self.trigrams = trigrams
        if self.has_memory is None:
            self.has_memory = has_memory

    # -- plans

    def is_small(self) -> bool:
        """Return whether plans for any values are good enough: all catalogs are known to have few rows.

        The first statement of a process reads the catalogs, and is sent with how its whole transaction is planned.
        """
        return bool(self.newest) and all(0 <= state.rows < FEW_ROWS for state in self.newest.values())

    def planning(self) -> tuple[str, ...]:
        """Return the commands that set how PostgreSQL plans and runs the statements of a transaction."""
        if self.is_small():
            return (PLAN_GENERIC,)
        most = max((state.rows for state in self.newest.values()), default=0)
        return (PLAN_CUSTOM, MORE_MEMORY) if most > MANY_ROWS and self.has_memory is False else (PLAN_CUSTOM,)

    # -- history

    def learn(self, tid: int) -> None:
        """Note that *tid* is a transaction of the history."""
        if tid > 0 and tid != self._lost and tid not in self._tids:
            self._tids.append(tid)

    def has_seen(self, tid: int) -> bool:
        """True when *tid* is known to be a transaction of the history."""
        return tid in self._tids

    def newest_tid(self, limit: int | None = None) -> int:
        """Return the newest transaction known, up to *limit*; 0 for none."""
        tids = tuple(self._tids)
        newest = max(tids, default=0)
        return newest if limit is None or newest <= limit else max((tid for tid in tids if tid <= limit), default=0)

    def change_history(self, number: int, committed: int) -> bool:
        """Forget everything about the history *number*; *committed* is the newest transaction of this process in it.

        Returns False if another thread was faster.
        """
        with self._lock:
            if number != self.number:
                return False
            self._lost = committed
            self.changes += 1
            self._begin()
            return True


def states_of(rows: Iterable[Sequence[Any]]) -> States:
    """Return the states that *rows* of COLUMNS tell; without a catalog there is a row of NULLs."""
    return {
        row[0]: CatalogState(
            relation=row[1],
            version=row[2],
            columns=frozenset(row[3]),
            generation=row[4],
            tid=row[5],
            rows=row[6],
            complete=frozenset(row[7]),
            interned=frozenset(row[8]),
            newest_set=row[9],
            collected=frozenset(row[10]),
            counted=frozenset(row[11]),
        )
        for row in rows
        if row[0] is not None
    }


def newest_set(states: States) -> int:
    """Return which list (``added``) is the newest one in a snapshot with *states*."""
    return max((state.newest_set for state in states.values()), default=0)
