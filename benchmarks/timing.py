"""Taking times, and what is kept of them."""

from collections.abc import Callable
from collections.abc import Sequence
from statistics import geometric_mean
from statistics import median
from statistics import quantiles
from time import perf_counter
from typing import Any


#: Seconds to the units of the tables.
FACTORS = {"s": 1.0, "ms": 1e3, "us": 1e6}


def timed(action: Callable[..., Any], *arguments: Any) -> float:
    """Return how many seconds ``action(*arguments)`` took."""
    started = perf_counter()
    action(*arguments)
    return perf_counter() - started


def repeated(action: Callable[[int], Any], iterations: int, warmup: int = 0) -> list[float]:
    """Return the seconds of *iterations* calls of ``action(n)``, after *warmup* ones that do not count."""
    times = [timed(action, number) for number in range(warmup + iterations)]
    return times[warmup:]


def summary(seconds: Sequence[float], unit: str = "ms") -> dict[str, Any]:
    """Return median, 95th percentile, minimum and number of *seconds*, in *unit*."""
    factor = FACTORS[unit]
    p95 = quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]
    return {
        "median": median(seconds) * factor,
        "p95": p95 * factor,
        "min": min(seconds) * factor,
        "n": len(seconds),
        "unit": unit,
    }


def value(number: float, unit: str) -> dict[str, Any]:
    """Return a figure that was taken once, or is no time, in the form of ``summary``."""
    return {"median": number, "p95": None, "min": None, "n": 1, "unit": unit}


def mean_ratio(ratios: Sequence[float]) -> float | None:
    """Return the geometric mean of *ratios*; None when there are none."""
    return geometric_mean(ratios) if ratios else None
