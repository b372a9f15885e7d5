"""Counts the statements of searches in this process, by what kind of search they are for, in latency buckets.

Called for each statement.  So each thread has cells of its own, which nobody else writes: no lock is needed, and no
count is lost.
"""

from bisect import bisect_left
from collections.abc import Iterator
from collections.abc import Mapping
from threading import get_ident
from typing import Any


#: Upper ends of the buckets, in seconds; the last one is open.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
#: The first index of these in a query tells its kind.
KINDS = (("SearchableText", "text"), ("UID", "uid"), ("path", "path"))
OTHER = "other"

#: (thread, kind, operation) -> [seconds in all, statements in each bucket]
_cells: dict[tuple[int, str, str], list[float]] = {}


def kind_of(query: Mapping[str, Any]) -> str:
    """Return what kind of search *query* is: ``text``, ``uid``, ``path`` or ``other``."""
    for name, kind in KINDS:
        if name in query:
            return kind
    return OTHER


def observe(query: Mapping[str, Any], operation: str, seconds: float) -> None:
    """Count a statement of *operation* (``page``, ``count`` …) for *query* that took *seconds*."""
    key = (get_ident(), kind_of(query), operation)
    cell = _cells.get(key)
    if cell is None:
        cell = _cells[key] = [0.0] * (len(BUCKETS) + 2)
    cell[0] += seconds
    cell[bisect_left(BUCKETS, seconds) + 1] += 1


def totals() -> Iterator[tuple[str, str, float, list[int]]]:
    """Yield (kind, operation, seconds in all, statements in each bucket) over all threads."""
    sums: dict[tuple[str, str], list[float]] = {}
    for (_thread, kind, operation), cell in list(_cells.items()):
        found = sums.setdefault((kind, operation), [0.0] * len(cell))
        sums[kind, operation] = [a + b for a, b in zip(found, cell, strict=True)]
    for (kind, operation), (seconds, *counts) in sorted(sums.items()):
        yield kind, operation, seconds, [int(n) for n in counts]
