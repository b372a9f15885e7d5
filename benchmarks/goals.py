"""What was to be reached, what was reached, and whether that is enough."""

from benchmarks.page_kinds import AFTER
from benchmarks.page_kinds import FIRST_REQUEST
from benchmarks.page_kinds import GROUPS
from benchmarks.page_kinds import READ_ONLY
from benchmarks.page_kinds import WITH_WRITER
from benchmarks.page_tables import Kind
from benchmarks.page_tables import mix_ratio
from benchmarks.page_tables import quotients
from benchmarks.page_tables import records
from benchmarks.tables import number
from benchmarks.tables import PAIRS
from benchmarks.tables import ratio
from benchmarks.tables import ratios
from benchmarks.tables import records_of
from benchmarks.tables import size_of
from benchmarks.tables import Table
from benchmarks.timing import mean_ratio
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


SMALL, SITE, BIG, HUGE = 500, 6_000, 20_000, 200_000
#: Objects in a ZODB cache: Plone's default.
DEFAULT_CACHE = 30_000
Results = dict[tuple[str, int], dict[str, Any]]


@dataclass(frozen=True)
class Goal:
    """A figure that is to be at most *limit*; ``reached`` takes it from the results, None when it was not measured."""

    name: str
    limit: float
    reached: Callable[[Results], float | None]
    unit: str = ""


def by_size(stored: Sequence[dict[str, Any]]) -> Results:
    """Return the results by command and size."""
    return {(data["command"], size_of(data)): data for data in stored}


def mean(
    size: int, values: str, state: str, touch: str, command: str = "level2", cache: int | None = None
) -> Callable[[Results], float | None]:
    """Return what takes the geometric mean of the scenarios' ratios."""

    def reached(results: Results) -> float | None:
        data = results.get((command, size))
        return mean_ratio(list(ratios(data, values, state, touch, cache).values())) if data else None

    return reached


def worst(
    size: int, values: str, state: str, touch: str, cache: int | None = None
) -> Callable[[Results], float | None]:
    """Return what takes the ratio of the worst scenario."""

    def reached(results: Results) -> float | None:
        data = results.get(("level2", size))
        return max(ratios(data, values, state, touch, cache).values(), default=None) if data else None

    return reached


def frequent_words(touch: str) -> Callable[[Results], float | None]:
    """Return what takes the worst ratio of the searches for words that most documents have."""

    def reached(results: Results) -> float | None:
        data = results.get(("search", BIG))
        found = ratios(data, "varying", "request", touch) if data else {}
        frequent = [each for name, each in found.items() if "frequent" in name or "of all documents" in name]
        return max(frequent, default=None)

    return reached


def figure(size: int, name: str, command: str = "level2") -> Callable[[Results], float | None]:
    """Return what takes our own figure of a measure."""

    def reached(results: Results) -> float | None:
        ours = measures(results, size, 0, command).get(name)
        return None if ours is None else float(ours["median"])

    return reached


def measure(size: int, name: str) -> Callable[[Results], float | None]:
    """Return what takes ours / theirs of a measure."""

    def reached(results: Results) -> float | None:
        return ratio(measures(results, size, 0).get(name), measures(results, size, 1).get(name))

    return reached


def measures(results: Results, size: int, side: int, command: str = "level2") -> dict[str, Any]:
    """Return the measures of *command* with *size* documents: ours (0), or those we are compared with (1)."""
    data = results.get((command, size), {"results": {}})
    found: dict[str, Any] = data["results"].get(PAIRS[command][side], {}).get("measures", {})
    return found


def growth(results: Results) -> float | None:
    """Return by how much the limited searches get slower from BIG to HUGE: the geometric mean."""
    big, huge = (
        {s: r for s, r in ours_in(results, size).items() if r["limited"]} if ("level1", size) in results else {}
        for size in (BIG, HUGE)
    )
    found = [ratio(huge[scenario], big.get(scenario)) for scenario in huge]
    return mean_ratio([each for each in found if each is not None])


def over_the_floor(results: Results) -> float | None:
    """Return our uncached first page over the bare round trip and the bare SQL: the geometric mean."""
    if ("level1", BIG) not in results:
        return None
    data = results["level1", BIG]
    floor = records_of(data, "bare-sql", "varying", "request", "page")
    trip = data["results"].get("bare-sql", {}).get("measures", {}).get("bare round trip")
    if trip is None:
        return None
    ours = ours_in(results, BIG)
    return mean_ratio([ours[s]["median"] / (floor[s]["median"] + trip["median"]) for s in ours if s in floor])


def ours_in(results: Results, size: int) -> dict[str, dict[str, Any]]:
    """Return scenario -> record of our uncached pages in level1."""
    return records_of(results["level1", size], PAIRS["level1"][0], "varying", "request", "page")


def additional_stores(size: int) -> Callable[[Results], float | None]:
    """Return what takes how many store() calls the catalog adds to a document."""

    def reached(results: Results) -> float | None:
        ours = measures(results, size, 0)
        names = ("store() calls per document", "store() calls without a catalog")
        if any(name not in ours for name in names):
            return None
        with_catalog, without = (ours[name]["median"] for name in names)
        return float(with_catalog - without)

    return reached


def goals() -> Iterator[Goal]:
    """Yield all goals; those without a unit are ratios to RelStorage + ZCatalog."""
    for touch, limit in (("len", 0.3), ("page", 0.5)):
        yield Goal(f"500 documents, warm, repeating, {touch}", limit, mean(SMALL, "repeating", "warm", touch))
    for touch, limit in (("len", 0.8), ("page", 0.6)):
        yield Goal(f"500 documents, request, varying, {touch}", limit, mean(SMALL, "varying", "request", touch))
    for touch, limit, single in (("page", 0.2, 1.0), ("len", 0.8, 2.0)):
        name = f"20,000 documents, request, varying, {touch}"
        yield Goal(name, limit, mean(BIG, "varying", "request", touch))
        yield Goal(f"{name}, worst scenario", single, worst(BIG, "varying", "request", touch))
    for limit, touch, single in ((0.35, "page with count", 1.0), (0.3, "len", 1.0)):
        name = f"20,000 documents, ZODB cache of 30,000, request, varying, {touch}"
        yield Goal(name, limit, mean(BIG, "varying", "request", touch, cache=DEFAULT_CACHE))
        yield Goal(f"{name}, worst scenario", single, worst(BIG, "varying", "request", touch, DEFAULT_CACHE))
    yield from page_goals()
    yield Goal("500 documents, after somebody's write, page", 0.8, mean(SMALL, "repeating", "after write", "page"))
    for size, limit in ((SMALL, 0.15), (BIG, 0.05)):
        yield Goal(f"{size:,} documents, cold, page", limit, mean(size, "repeating", "cold", "page"))
    yield Goal("uniqueValuesFor at 20,000, first time", 5, figure(BIG, "uniqueValuesFor, first time"), "ms")
    yield Goal("uniqueValuesFor at 20,000, repeated", 0.05, figure(BIG, "uniqueValuesFor, repeated"), "ms")
    for touch in ("page", "len"):
        name = f"20,000 documents, words for a member, {touch}"
        yield Goal(name, 1, mean(BIG, "varying", "request", touch, "search"))
        yield Goal(f"20,000 documents, frequent words for a member, {touch}, worst scenario", 1, frequent_words(touch))
    both = "with facets and snippets / without"
    yield Goal(
        "20,000 documents, page with facets and snippets / without (ours / ours)", 3, figure(BIG, both, "search")
    )
    for name in ("suggest, two letters typed", "suggest, behind another word", "did you mean, a typo in two words"):
        yield Goal(f"20,000 documents, {name}", 10, figure(BIG, name, "search"), "ms")
    yield Goal("limited searches, 200,000 against 20,000 rows (ours / ours)", 1.3, growth)
    for size in (SMALL, BIG):
        yield Goal(f"content creation at {size:,}", 0.5, measure(size, "creation of a document"))
        yield Goal(f"content modification at {size:,}", 0.5, measure(size, "modification of a document"))
    for size in (SMALL, BIG):
        yield Goal(f"store() calls that the catalog adds, at {size:,}", 0, additional_stores(size), "calls")
    yield Goal("full rebuild of 20,000", 0.3, measure(BIG, "rebuild"))
    yield Goal("database size at 20,000", 0.8, measure(BIG, "database size"))
    yield Goal("resident memory after the run at 20,000", 0.6, measure(BIG, "resident memory"))
    yield Goal("uncached first page / (bare round trip + bare SQL), 20,000 rows", 2, over_the_floor)


def page_goals() -> Iterator[Goal]:
    """Yield the goals of whole pages over HTTP."""
    for size, limits in ((SMALL, (0.82, 0.7)), (SITE, (0.82, 0.6))):
        for group, limit in zip(GROUPS, limits, strict=True):
            name = f"pages over HTTP, {size:,} documents, {group}"
            yield Goal(name, limit, page_mean(size, group))
            yield Goal(f"{name}, worst page", 0.95, page_worst(size, group))
    for state in (READ_ONLY, WITH_WRITER):
        yield Goal(f"mix of pages, 4 clients, 2 processes, {SITE:,} documents, {state}", 0.85, mixed(SITE, 4, 2, state))
    yield Goal("first requests of a process, 500 documents, worst page", 1, page_worst(SMALL, None, FIRST_REQUEST))
    yield Goal("front page after a save, 500 documents", 30, kilobytes(SMALL, Kind("front page", AFTER)), "KB")


def page_mean(size: int, group: str) -> Callable[[Results], float | None]:
    """Return what takes the geometric mean of the ratios of the pages of *group*."""
    return lambda results: mean_ratio(list(page_ratios(results, size, group).values()))


def page_worst(size: int, group: str | None, state: str = READ_ONLY) -> Callable[[Results], float | None]:
    """Return what takes the ratio of the worst page of *group*."""
    return lambda results: max(page_ratios(results, size, group, state).values(), default=None)


def page_ratios(results: Results, size: int, group: str | None, state: str = READ_ONLY) -> dict[Kind, float]:
    data = results.get(("pages", size))
    return quotients(data, state, group) if data else {}


def mixed(size: int, clients: int, processes: int, state: str) -> Callable[[Results], float | None]:
    """Return what takes the ratio of the mix of pages."""

    def reached(results: Results) -> float | None:
        data = results.get(("pages", size))
        return mix_ratio(data, clients, processes, state) if data else None

    return reached


def kilobytes(size: int, kind: Kind) -> Callable[[Results], float | None]:
    """Return what takes the KB that our pages of *kind* read from PostgreSQL."""

    def reached(results: Results) -> float | None:
        data = results.get(("pages", size))
        return records(data, 0).get(kind, {}).get("kb") if data else None

    return reached


def goals_table(stored: Sequence[dict[str, Any]]) -> Table:
    """Return the table of all goals."""
    results = by_size(stored)
    rows = []
    for goal in goals():
        reached = goal.reached(results)
        verdict = "not measured" if reached is None else "yes" if reached <= goal.limit else "**no**"
        unit = f" {goal.unit}" if goal.unit else ""
        figure_text = "–" if reached is None else f"{number(reached)}{unit}"
        rows.append([goal.name, f"≤ {number(goal.limit)}{unit}", figure_text, verdict])
    return Table("Goals", ["", "goal", "reached", "enough"], rows)
