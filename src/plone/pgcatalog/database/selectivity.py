"""Which share of a catalog's rows have a value, as PostgreSQL estimates it: who may see how much, how many are pages."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from plone.pgcatalog.sql.column import Column
from time import monotonic
from typing import Any

import math


#: An estimate is read again after so many seconds.
SECONDS = 600.0
#: The values that columns of few different values have, or the elements of some arrays, and in which share of the rows each is
#: (and for elements three figures about these).
FREQUENCIES = """
SELECT attname::text,
    coalesce(most_common_elems, most_common_vals)::text::text[],
    coalesce(most_common_elem_freqs, most_common_freqs)
FROM pg_stats
WHERE schemaname = current_schema() AND tablename = %s
    AND (attname = ANY(%s::text[]) OR most_common_elems IS NULL AND n_distinct BETWEEN 1 AND 100)
"""


class Shares:
    """The shares of a catalog's rows, for all threads of a process."""

    def __init__(self) -> None:
        self._relation = ""
        self._until = -math.inf
        self._shares: dict[str, dict[str, float]] = {}

    def share(
        self,
        execute: Callable[..., list[Any]],
        relation: str,
        column: Column,
        values: Iterable[Any],
        common_elements: Sequence[str],
    ) -> float | None:
        """Return which share of the rows of *relation*, 0 to 1, has one of *values* in *column*; None if nothing is known.

        It is what the planner takes for likely: elements of an array are given independently of each other.  Now and then
        *execute*, which takes SQL and values and returns rows, is asked; *common_elements* are the names of all columns
        that have such.
        """
        if relation != self._relation or monotonic() > self._until:
            shares: dict[str, dict[str, float]] = {}
            for name, known, frequencies in execute(FREQUENCIES, (relation, list(common_elements))):
                shares[name] = dict(zip(known or (), frequencies or (), strict=False))
            self._shares = shares  # only now: other threads look at it meanwhile
            self._relation, self._until = relation, monotonic() + SECONDS
        found = self._shares.get(column.name)
        if not found:
            return None
        each = [found.get(value, 0.0) for value in values]
        return 1.0 - math.prod(1.0 - share for share in each) if column.has_common_elements else sum(each)
