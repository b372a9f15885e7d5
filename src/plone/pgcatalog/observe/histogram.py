"""Counts queries by how long they took, in buckets that are few enough to be kept for each hour."""

from bisect import bisect_right
from collections.abc import Iterable
from collections.abc import Sequence


#: Lower ends of the buckets but the first, in milliseconds; the last one is open.
BOUNDS = (1, 2, 5, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 10_000, 30_000)


def histogram(times: Iterable[float]) -> list[int]:
    """Return how many of *times*, in milliseconds, are in each bucket."""
    counts = [0] * (len(BOUNDS) + 1)
    for ms in times:
        counts[bisect_right(BOUNDS, ms)] += 1
    return counts


def quantile(counts: Sequence[int], part: float) -> float:
    """Return about the time that *part* (0 to 1) of the queries in *counts* did not exceed; 0.0 when there are none."""
    wanted = part * sum(counts)
    for number, count in enumerate(counts):
        if count and wanted <= count:
            low = BOUNDS[number - 1] if number else 0
            high = BOUNDS[number] if number < len(BOUNDS) else 2 * low
            return low + (high - low) * wanted / count
        wanted -= count
    return 0.0
