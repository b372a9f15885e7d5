"""Measures times, and summarises them."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from statistics import geometric_mean
from statistics import median
from statistics import quantiles
from time import perf_counter
from typing import Any

import cProfile
import io
import pstats


#: Unit of the tables -> factor for seconds.
FACTORS = {"s": 1.0, "ms": 1e3, "us": 1e6}
#: Number of functions in the report of a profile.
PROFILED = 40


def timed[**P](action: Callable[P, object], *arguments: P.args, **options: P.kwargs) -> float:
    """Return the seconds that ``action(*arguments, **options)`` takes."""
    started = perf_counter()
    action(*arguments, **options)
    return perf_counter() - started


@contextmanager
def profiled(wanted: bool) -> Iterator[tuple[Callable[..., Any], Callable[[], str | None]]]:
    """Yield ``call(action, *arguments)``, and a function that returns cProfile's report of all calls.

    Unless *wanted*, calls are not profiled, and the report is None.
    """
    text = io.StringIO()
    stats = pstats.Stats(stream=text)

    def call(action: Callable[..., Any], *arguments: Any) -> Any:
        # One profiler for each call: it sees other threads as well (Python 3.12), and their calls stay on its stack.
        profiler = cProfile.Profile()
        try:
            return profiler.runcall(action, *arguments)
        finally:
            stats.add(profiler)

    def report() -> str:
        stats.sort_stats("cumulative").print_stats(PROFILED)
        return text.getvalue()

    yield (call, report) if wanted else (lambda action, *arguments: action(*arguments), lambda: None)


def repeated(action: Callable[[int], Any], iterations: int, warmup: int = 0) -> list[float]:
    """Return the seconds of *iterations* calls of ``action(n)``, after *warmup* calls that are ignored."""
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
    """Return a figure that was measured once, or is not a time, in the format of ``summary``."""
    return {"median": number, "p95": None, "min": None, "n": 1, "unit": unit}


def mean_ratio(ratios: Sequence[float]) -> float | None:
    """Return the geometric mean of *ratios*; None if there are none."""
    return geometric_mean(ratios) if ratios else None
