"""Reads the states of a database's catalogs, and the lists and shares that a process does not know, in one message."""

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
from plone.pgcatalog.database.statistics import FREQUENCIES
from plone.pgcatalog.sql.expression import Statement
from typing import Any


#: Whether a transaction is part of the history.  A pack removes those from the log that stored no object; the catalog
#: that such a one has changed names it until the next change.
IS_THERE = "EXISTS (SELECT FROM transaction_log WHERE tid = %s) OR EXISTS (SELECT FROM pgcatalog_state WHERE tid = %s)"
#: The quoted schema of pg_trgm, if it and its index are there.
TRIGRAMS = f"(SELECT quote_ident(name) FROM ({load_sql('trigram_schema')}) AS found (name, has_index) WHERE has_index)"
#: One row at least, for what it says of the history.
READ_STATE = f"SELECT {IS_THERE}, {OWN_LIMIT}, {HAS_MEMORY}, {TRIGRAMS}, {COLUMNS} {OF_CATALOGS}"

Rows = Sequence[tuple[Any, ...]]


class StatesRead:
    """The *statements* that read the states of all catalogs of a snapshot, and what of *generations* is not known or old.

    The first value of the first row is whether the transaction *expected* is in the history of the snapshot.
    """

    def __init__(self, generations: Generations, expected: int) -> None:
        self._generations = generations
        # A process begins with all lists.
        self._lists = None if generations.sets.newest else generations.sets.unread()
        with_shares = generations.selectivity.is_old and not generations.is_small()
        shares = FREQUENCIES if with_shares else None
        self.statements = [
            Statement(READ_STATE, (expected, expected)),
            *(each for each in (self._lists, shares) if each is not None),
        ]

    def learn(self, results: Sequence[Rows]) -> States:
        """Give the rows of each of the statements to the process; return the states."""
        generations = self._generations
        rows, *others = results
        _, own_limit, has_memory, trigrams, *_ = rows[0]
        generations.learn_settings(own_limit, has_memory, trigrams)
        states = states_of(row[4:] for row in rows)
        if self._lists is not None:
            generations.sets.learn(others.pop(0), newest_set(states), self._lists)
        for shares in others:
            generations.selectivity.learn(shares)
        return states
