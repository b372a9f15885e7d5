"""Measures the scenarios: which values, how touched, in which state of the caches."""

from benchmarks.connections import Requests
from benchmarks.scenarios import Scenario
from benchmarks.scenarios import TOUCHES
from benchmarks.timing import summary
from benchmarks.timing import timed
from benchmarks.worker import Progress
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from time import perf_counter
from typing import Any


#: Which values are asked in which state.  ``warm``: again in the same transaction.  ``request``: each in a connection
#: from the pool, in a transaction of its own.  ``after write``: as request, after somebody else has changed a
#: document.  ``cold``: in a connection of a newly opened database, nothing of which is in memory.
STATES = {"repeating": ("warm", "request", "after write", "cold"), "varying": ("warm", "request")}
#: Those that a larger ZODB cache makes another thing of.
IN_MEMORY = {"repeating": ("request", "after write"), "varying": ("request",)}
#: From so many objects on a ZODB cache holds what a site's catalog consists of, once it has been read.
LARGE_CACHE = 10_000
#: The slow states are measured less often.
SHARE = {"after write": 0.4, "cold": 0.2}
#: A cell that takes longer than these seconds has fewer repetitions, but at least so many.
PATIENCE = 30.0
LEAST = 3
#: Runs ``action(*arguments)``, and returns its seconds.
Call = Callable[..., float]


def measure(
    requests: Requests,
    scenarios: Iterable[Scenario],
    iterations: int,
    warmup: int,
    progress: Progress,
    states: Mapping[str, Sequence[str]] = STATES,
    call: Call = timed,
) -> list[dict[str, Any]]:
    """Return one record per scenario, touch, values and state; times in milliseconds, taken by *call*."""
    records = []
    size = requests.cache_size
    for scenario in scenarios:
        found = requests.request(scenario.anonymous)(**scenario.query(requests.place, 0)).actual_result_count
        for values, wanted in states.items():
            for state in wanted:
                progress(f"{scenario.name}, {values}, {state}, cache of {size:,}")
                count = max(3, round(iterations * SHARE.get(state, 1)))
                if size >= LARGE_CACHE and state not in SHARE:
                    run(requests, scenario, "page with count", values, state, count, warmup, call)
                for touch in TOUCHES:
                    uncounted = warmup if state not in SHARE else 1
                    times = run(requests, scenario, touch, values, state, count, uncounted, call)
                    record = {
                        "scenario": scenario.name,
                        "touch": touch,
                        "values": values,
                        "state": state,
                        "cache": size,
                    }
                    records.append(record | {"found": found, "limited": scenario.limited} | summary(times))
    return records


def run(
    requests: Requests,
    scenario: Scenario,
    touch: str,
    values: str,
    state: str,
    iterations: int,
    warmup: int,
    call: Call = timed,
) -> list[float]:
    """Return the seconds of each search, touching included."""
    use = TOUCHES[touch]
    enter = entrance(requests, state)
    times: list[float] = []
    if state == "warm":
        requests.request(scenario.anonymous)
    started = perf_counter()
    for n in range(warmup + iterations):
        if perf_counter() - started > PATIENCE:
            warmup = min(warmup, n)
            if n >= warmup + LEAST:
                break
        query = scenario.query(requests.place, 0 if values == "repeating" else n + 1)
        catalog = enter(scenario.anonymous)
        if values == "varying" or state == "cold":
            requests.forget_results()
        times.append(call(search, catalog, query, use))
    return times[warmup:]


def entrance(requests: Requests, state: str) -> Callable[[bool], Any]:
    """Return the method that makes the catalog be in *state*."""
    entrances = {
        "warm": requests.same,
        "request": requests.request,
        "after write": requests.after_write,
        "cold": requests.cold,
    }
    return entrances[state]


def search(catalog: Any, query: dict[str, Any], use: Callable[[Any], Any]) -> Any:
    """Ask and touch: what is timed."""
    return use(catalog(**query))
