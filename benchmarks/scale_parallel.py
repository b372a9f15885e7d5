"""What parallel workers make of the statements of a large catalog: plans, processor time, pages."""

from benchmarks.scenarios import Scenario
from benchmarks.timing import value
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from plone.pgcatalog.observe import plan
from plone.pgcatalog.sql.expression import Statement
from typing import Any


Measures = dict[str, Any]
#: Gathers the statements of an action.
Noted = Callable[[Callable[[], object]], list[Statement]]
NONE, PER_GATHER = "no workers", "up to 2 workers"
SETTINGS = {NONE: 0, PER_GATHER: 2}


def parallel(connection: Any, statements: Mapping[str, list[Statement]], run: Iterable[str]) -> Measures:
    """Return how many workers the plans of *statements* (by what they are) have; those in *run* are run, too."""
    measures: Measures = {}
    run = set(run)
    try:
        for setting, workers in SETTINGS.items():
            connection.execute(f"SET max_parallel_workers_per_gather = {workers}")
            for name, sent in statements.items():
                found = [plan.explain_json(connection, statement, name in run) for statement in sent]
                measures |= figures(f"{name}, {setting}", found, name in run)
    finally:
        connection.execute("RESET max_parallel_workers_per_gather")
    return measures


def figures(name: str, plans: list[dict[str, Any]], was_run: bool) -> Measures:
    measures = {
        f"{name}: workers planned": value(max((planned(found["Plan"]) for found in plans), default=0), "workers"),
        f"{name}: cost of the first row": value(sum(found["Plan"]["Startup Cost"] for found in plans), ""),
    }
    if was_run:
        tops = [found["Plan"] for found in plans]
        measures |= {
            f"{name}: time": value(sum(found["Execution Time"] for found in plans), "ms"),
            f"{name}: workers launched": value(max((launched(top) for top in tops), default=0), "workers"),
            f"{name}: pages": value(sum(t["Shared Hit Blocks"] + t["Shared Read Blocks"] for t in tops), "pages"),
        }
    return measures


def planned(node: Mapping[str, Any]) -> int:
    """Return the most workers that a part of the plan *node* wants."""
    return max([node.get("Workers Planned", 0), *(planned(part) for part in node.get("Plans", ()))])


def launched(node: Mapping[str, Any]) -> int:
    return max([node.get("Workers Launched", 0), *(launched(part) for part in node.get("Plans", ()))])


def statements_of(
    place: Any, noted: Noted, scenarios: Iterable[Scenario], touches: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the statements of a page and of a count of each of *scenarios*."""
    found = {}
    for scenario in scenarios:
        for touch, use in touches.items():
            catalog = place.request(scenario.anonymous)
            place.forget_results()
            query = scenario.query(place.place, 1)
            found[f"{scenario.name}, {touch}"] = noted(lambda use=use, c=catalog, q=query: use(c(**q)))
    return found
