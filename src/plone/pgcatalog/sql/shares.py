"""Shares of the rows of a catalog that have some values, as PostgreSQL's planner estimates them."""

from bisect import bisect_left
from bisect import bisect_right
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from datetime import datetime
from datetime import UTC
from plone.pgcatalog.sql.column import Column
from typing import Any


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of rows, 0 to 1, by the name of a column.

    - ``filled``: the share with a value
    - ``of_value``: of a column with few different values: value, as text -> the share with it
    - ``bounds``: of a column of texts or times: ascending values, as ``bound`` returns them, with equally many rows between each
      two of them
    """

    filled: Mapping[str, float] = field(default_factory=dict)
    of_value: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    bounds: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def with_any(self, column: Column, values: Iterable[Any]) -> float | None:
        """Return the share of the rows with one of *values* in *column*; None if it is unknown."""
        of_value = self.of_value.get(column.name)
        return sum(of_value.get(str(value), 0.0) for value in values) if of_value else None

    def between(self, column: Column, low: str | None, high: str | None) -> float | None:
        """Return the share of the rows from *low* to *high*, results of ``bound`` (None: no limit); None if it is unknown."""
        bounds = self.bounds.get(column.name)
        if not bounds:
            return None
        first = 0 if low is None else bisect_left(bounds, low)
        behind = len(bounds) if high is None else bisect_right(bounds, high)
        return self.filled.get(column.name, 1.0) * max(behind - first, 0) / len(bounds)


#: Nothing is known of a catalog that PostgreSQL has not analyzed yet.
UNKNOWN = Shares()


def bound(value: Any) -> str | None:
    """Return a text or a time of a query as a text that sorts as the values do; None for other values."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
    return value if isinstance(value, str) else None
