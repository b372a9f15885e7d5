"""How much of a catalog somebody may see, as PostgreSQL estimates it."""

from collections.abc import Callable
from collections.abc import Iterable
from time import monotonic
from typing import Any

import math


#: An estimate is read again after so many seconds.
SECONDS = 600.0
#: The values an array column has most often, and in which share of the rows each is (and three figures about these).
FREQUENCIES = """
SELECT most_common_elems::text::text[], most_common_elem_freqs FROM pg_stats
WHERE schemaname = current_schema() AND tablename = %s AND attname = 'allowed_roles'
"""


class Visibility:
    """The share of a catalog's rows that each role may see, for all threads of a process."""

    def __init__(self) -> None:
        self._relation = ""
        self._until = -math.inf
        self._shares: dict[str, float] = {}

    def share(self, execute: Callable[..., list[Any]], relation: str, roles: Iterable[str]) -> float:
        """Return which share of the rows of *relation*, 0 to 1, somebody with *roles* sees; 1 if nothing is known.

        It is what the planner takes for likely: roles are given independently of each other.  Now and then *execute*,
        which takes SQL and values and returns rows, is asked.
        """
        if relation != self._relation or monotonic() > self._until:
            shares: dict[str, float] = {}
            for elements, frequencies in execute(FREQUENCIES, (relation,)):
                shares = dict(zip(elements or (), frequencies or (), strict=False))
            self._shares = shares  # only now: other threads look at it meanwhile
            self._relation, self._until = relation, monotonic() + SECONDS
        if not self._shares:
            return 1.0
        return 1.0 - math.prod(1.0 - self._shares.get(role, 0.0) for role in roles)
