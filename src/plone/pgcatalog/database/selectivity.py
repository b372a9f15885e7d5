"""Shares of rows per value, from pg_stats."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from plone.pgcatalog.sql.fragment import Statement
from time import monotonic
from typing import Any

import math


#: An estimate is read again with the states of catalogs after so many seconds, and by itself after twice as many.
SECONDS = 600.0
#: Of all catalogs: which share of the rows has a value in each column.  And the values that columns of few different
#: values have, and in which share of the rows each is.
FREQUENCIES = Statement("""
SELECT tablename::text, attname::text, 1 - null_frac,
    CASE WHEN is_asked THEN most_common_vals::text::text[] END, CASE WHEN is_asked THEN most_common_freqs END
FROM pg_stats, LATERAL (SELECT most_common_elems IS NULL AND n_distinct BETWEEN 1 AND 100) AS x (is_asked)
WHERE schemaname = current_schema() AND tablename IN (SELECT relation FROM pgcatalog_state)
""")

#: Column -> share of the rows with a value; and with each of the values known.
Shares = tuple[dict[str, float], dict[str, dict[str, float]]]


class Selectivity:
    """The shares of the rows of a database's catalogs, for all threads of a process.

    They are kept for some time: reading them takes 0.7 ms, nearly as long as a page (300 documents, 2026-11).
    """

    def __init__(self) -> None:
        self._read = -math.inf
        self._shares: dict[str, Shares] = {}

    @property
    def is_old(self) -> bool:
        """True if it is time to read the shares when something is read anyway."""
        return monotonic() > self._read + SECONDS

    def learn(self, rows: Iterable[Sequence[Any]]) -> None:
        """Take the *rows* of FREQUENCIES."""
        shares: dict[str, Shares] = {}
        for relation, name, share, known, frequencies in rows:
            filled, values = shares.setdefault(relation, ({}, {}))
            filled[name] = share
            values[name] = dict(zip(known or (), frequencies or (), strict=False))
        self._shares = shares  # only now: other threads look at it meanwhile
        self._read = monotonic()

    def shares(self, ask: Callable[[Statement], list[Any]], relation: str) -> Shares:
        """Return what is known of *relation*: what the planner takes for likely.

        Now and then *ask*, which returns the rows of a statement, is called.
        """
        if relation not in self._shares or monotonic() > self._read + 2 * SECONDS:
            self.learn(ask(FREQUENCIES))
        return self._shares.setdefault(relation, ({}, {}))
