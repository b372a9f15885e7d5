"""Which share of a catalog's rows have a value, as PostgreSQL estimates it: who may see how much, how many are pages."""

from collections.abc import Callable
from collections.abc import Iterable
from plone.pgcatalog.sql.column import Column
from time import monotonic
from typing import Any

import math


#: An estimate is read again after so many seconds.
SECONDS = 600.0
#: Which share of the rows has a value in each column.  And the values that columns of few different values have, and in
#: which share of the rows each is.
FREQUENCIES = """
SELECT attname::text, 1 - null_frac,
    CASE WHEN is_asked THEN most_common_vals::text::text[] END, CASE WHEN is_asked THEN most_common_freqs END
FROM pg_stats, LATERAL (SELECT most_common_elems IS NULL AND n_distinct BETWEEN 1 AND 100) AS x (is_asked)
WHERE schemaname = current_schema() AND tablename = %s
"""


class Selectivity:
    """The shares of a catalog's rows, for all threads of a process.

    They are kept for SECONDS: reading them is a message of 0.7 ms, nearly as long as a page (300 documents, 2026-11).
    """

    def __init__(self) -> None:
        self._relation = ""
        self._until = -math.inf
        #: column -> share of the rows with a value; and with each of the values known
        self._shares: tuple[dict[str, float], dict[str, dict[str, float]]] = ({}, {})

    def share(
        self,
        execute: Callable[..., list[Any]],
        relation: str,
        column: Column,
        values: Iterable[Any] | None,
    ) -> float | None:
        """Return which share of the rows of *relation*, 0 to 1, has one of *values* in *column*; None if nothing is known.

        It is what the planner takes for likely.  None for the *values* stands for any.  Now and then *execute*, which
        takes SQL and values and returns rows, is asked.
        """
        if relation != self._relation or monotonic() > self._until:
            filled: dict[str, float] = {}
            shares: dict[str, dict[str, float]] = {}
            for name, filled[name], known, frequencies in execute(FREQUENCIES, (relation,)):
                shares[name] = dict(zip(known or (), frequencies or (), strict=False))
            self._shares = filled, shares  # only now: other threads look at it meanwhile
            self._relation, self._until = relation, monotonic() + SECONDS
        filled, shares = self._shares
        if values is None:
            return filled.get(column.name)
        found = shares.get(column.name)
        if not found:
            return None
        return sum(found.get(str(value), 0.0) for value in values)
