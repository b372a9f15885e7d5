"""Reads the states of a database's catalogs, and lists and shares that the process has not cached, in one message."""

from collections.abc import Sequence
from plone.pgcatalog.database.errors import OWN_LIMIT
from plone.pgcatalog.database.generations import COLUMNS
from plone.pgcatalog.database.generations import Generations
from plone.pgcatalog.database.generations import newest_set
from plone.pgcatalog.database.generations import OF_CATALOGS
from plone.pgcatalog.database.generations import States
from plone.pgcatalog.database.generations import states_of
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.prepared import HAS_MEMORY
from plone.pgcatalog.database.prepared import Rows
from plone.pgcatalog.database.statistics import FREQUENCIES
from plone.pgcatalog.sql.expression import Statement


#: SQL condition: a transaction is part of the history.  A pack removes transactions without stored objects from the log; a
#: catalog that such a transaction has changed names it in its state until the next change.
TID_EXISTS = (
    "EXISTS (SELECT FROM transaction_log WHERE tid = %s) OR EXISTS (SELECT FROM pgcatalog_state WHERE tid = %s)"
)
#: SQL expression: the quoted schema of pg_trgm, if the extension and its index exist; else NULL.
TRIGRAMS = f"(SELECT quote_ident(name) FROM ({load_sql('trigram_schema')}) AS found (name, has_index) WHERE has_index)"
#: At least one row, because its first columns describe the history and the server.
READ_STATE = f"SELECT {TID_EXISTS}, {OWN_LIMIT}, {HAS_MEMORY}, {TRIGRAMS}, {COLUMNS} {OF_CATALOGS}"


class StatesRead:
    """The *statements* that read the states of all catalogs of a snapshot, and the missing or old parts of *generations*.

    The first value of the first row is whether the transaction *expected* is in the history of the snapshot.
    """

    def __init__(self, generations: Generations, expected: int) -> None:
        self._generations = generations
        # A new process reads all lists.
        self._lists = None if generations.sets.newest else generations.sets.unread()
        with_shares = generations.selectivity.is_old and not generations.is_small()
        shares = FREQUENCIES if with_shares else None
        self.statements = [
            Statement(READ_STATE, (expected, expected)),
            *(each for each in (self._lists, shares) if each is not None),
        ]

    def store(self, results: Sequence[Rows]) -> States:
        """Store the rows of each statement in the process's Generations; return the states."""
        generations = self._generations
        rows, *others = results
        _, own_limit, has_memory, trigrams, *_ = rows[0]
        generations.store_settings(own_limit, has_memory, trigrams)
        states = states_of(row[4:] for row in rows)
        if self._lists is not None:
            generations.sets.store(others.pop(0), newest_set(states), self._lists)
        for shares in others:
            generations.selectivity.store(shares)
        return states
