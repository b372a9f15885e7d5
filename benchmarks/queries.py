"""Measures the scenarios: by values, by use of the result, and by state of the caches."""

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


#: Values -> states of the caches.  ``warm``: again in the same transaction.  ``request``: each in a connection
#: from the pool, in a separate transaction.  ``after write``: like request, after another user has changed a
#: document.  ``cold``: in a connection of a newly opened database, with empty caches.
STATES = {"repeating": ("warm", "request", "after write", "cold"), "varying": ("warm", "request")}
#: The states that a larger ZODB cache affects.
IN_MEMORY = {"repeating": ("request", "after write"), "varying": ("request",)}
#: From this number of objects on, a ZODB cache holds all objects of a site's catalog, once they have been read.
LARGE_CACHE = 10_000
#: The slow states are measured less often.
SHARE = {"after write": 0.4, "cold": 0.2}
#: A measurement that takes longer than these seconds has fewer repetitions, but at least LEAST.
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
    """Return one record per scenario, touch, values and state; times in milliseconds, measured by *call*."""
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
    """Return the seconds of each search, including the use of the result."""
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
    """Return the method that returns the catalog in *state*."""
    entrances = {
        "warm": requests.same,
        "request": requests.request,
        "after write": requests.after_write,
        "cold": requests.cold,
    }
    return entrances[state]


def search(catalog: Any, query: dict[str, Any], use: Callable[[Any], Any]) -> Any:
    """Search and use the result: the measured action."""
    return use(catalog(**query))
