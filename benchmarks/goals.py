"""What was to be reached, what was reached, and why not where it was missed."""

from benchmarks import causes
from benchmarks.backends import OURS
from benchmarks.backends import REFERENCE
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


SMALL, SITE, BIG, HUGE, HUGEST = 500, 6_000, 20_000, 200_000, 1_000_000
#: Objects in a ZODB cache: Plone's default.
DEFAULT_CACHE = 30_000
Results = dict[tuple[str, int], dict[str, Any]]


@dataclass(frozen=True)
class Goal:
    """A figure that is to be at most *limit*; ``reached`` takes it from the results, None when it was not measured.

    *cause* says why it is missed if it is, and what was tried.
    """

    name: str
    limit: float
    reached: Callable[[Results], float | None]
    unit: str = ""
    cause: str = causes.UNKNOWN


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
        ours = measures(results, size, command).get(name)
        return None if ours is None else float(ours["median"])

    return reached


def measure(size: int, name: str, other: str = REFERENCE) -> Callable[[Results], float | None]:
    """Return what takes a measure of ours / that of the backend *other*."""

    def reached(results: Results) -> float | None:
        return ratio(measures(results, size).get(name), measures(results, size, backend=other).get(name))

    return reached


def measures(results: Results, size: int, command: str = "level2", backend: str = OURS) -> dict[str, Any]:
    """Return the measures of *command* with *size* documents or rows."""
    data = results.get((command, size), {"results": {}})
    found: dict[str, Any] = data["results"].get(backend, {}).get("measures", {})
    return found


def rebuilt(results: Results) -> float | None:
    """Return a rebuild by two processes beside the live catalog / one of ZCatalog, by the time for an object."""
    ours = measures(results, BIG, "rebuild").get("rebuild, 2 processes, per object")
    return ratio(ours, measures(results, BIG, backend=REFERENCE).get("rebuild, per object"))


def counted(scenario: str) -> Callable[[Results], float | None]:
    """Return what takes the milliseconds of an uncached count of ours in HUGE rows."""

    def reached(results: Results) -> float | None:
        return ours_in(results, HUGE, "len").get(scenario, {}).get("median")

    return reached


def slowest(size: int, touch: str) -> Callable[[Results], float | None]:
    """Return what takes the milliseconds of our slowest uncached scenario."""
    return lambda results: max((each["median"] for each in ours_in(results, size, touch).values()), default=None)


def growth(results: Results) -> float | None:
    """Return by how much the limited searches get slower from BIG to HUGE: the geometric mean."""
    big, huge = ({s: r for s, r in ours_in(results, size).items() if r["limited"]} for size in (BIG, HUGE))
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


def ours_in(results: Results, size: int, touch: str = "page") -> dict[str, dict[str, Any]]:
    """Return scenario -> record of our uncached searches in level1; none if it was not measured."""
    data = results.get(("level1", size), {"results": {}})
    return records_of(data, OURS, "varying", "request", touch)


def additional_stores(size: int) -> Callable[[Results], float | None]:
    """Return what takes how many store() calls the catalog adds to a document."""

    def reached(results: Results) -> float | None:
        ours = measures(results, size)
        names = ("store() calls per document", "store() calls without a catalog")
        if any(name not in ours for name in names):
            return None
        with_catalog, without = (ours[name]["median"] for name in names)
        return float(with_catalog - without)

    return reached


def goals() -> Iterator[Goal]:
    """Yield all goals; those without a unit are ratios to RelStorage + ZCatalog."""
    yield from search_goals()
    yield from page_goals()
    yield from word_goals()
    yield from large_goals()
    yield from write_goals()


def search_goals() -> Iterator[Goal]:
    """Yield the goals of searches in a Plone site."""
    for touch, limit in (("len", 0.3), ("page", 0.5)):
        name = f"500 documents, warm, repeating, {touch}"
        yield Goal(name, limit, mean(SMALL, "repeating", "warm", touch), cause=causes.REPEATED)
    for touch in ("len", "page"):
        name = f"500 documents, request, varying, {touch}"
        yield Goal(name, 0.9, mean(SMALL, "varying", "request", touch), cause=causes.SMALL)
    for touch, limit, single in (("page", 0.2, 1.0), ("len", 0.8, 2.0), ("page with count", 0.1, None)):
        name = f"20,000 documents, request, varying, {touch}"
        yield Goal(name, limit, mean(BIG, "varying", "request", touch), cause=causes.LITTLE_CACHE)
        if single is not None:
            yield Goal(
                f"{name}, worst scenario", single, worst(BIG, "varying", "request", touch), cause=causes.IN_MEMORY
            )
    for limit, touch, single in ((0.35, "page with count", 1.0), (0.3, "len", 1.0)):
        name = f"20,000 documents, ZODB cache of 30,000, request, varying, {touch}"
        yield Goal(name, limit, mean(BIG, "varying", "request", touch, cache=DEFAULT_CACHE), cause=causes.IN_MEMORY)
        worst_one = worst(BIG, "varying", "request", touch, DEFAULT_CACHE)
        yield Goal(f"{name}, worst scenario", single, worst_one, cause=causes.IN_MEMORY)
    after = mean(SMALL, "repeating", "after write", "page")
    yield Goal("500 documents, after somebody's write, page", 1, after, cause=causes.AFTER_A_SAVE)
    for size, limit in ((SMALL, 0.15), (BIG, 0.05)):
        cold = mean(size, "repeating", "cold", "page")
        yield Goal(f"{size:,} documents, cold, page", limit, cold, cause=causes.COLD)
    name = "uniqueValuesFor at 20,000"
    yield Goal(f"{name}, first time", 5, figure(BIG, "uniqueValuesFor, first time"), "ms")
    yield Goal(f"{name}, repeated", 0.05, figure(BIG, "uniqueValuesFor, repeated"), "ms", causes.VALUES_AGAIN)


def word_goals() -> Iterator[Goal]:
    """Yield the goals of searches for words."""
    for touch in ("page", "len"):
        name = f"20,000 documents, words for a member, {touch}"
        yield Goal(name, 1, mean(BIG, "varying", "request", touch, "search"))
        yield Goal(
            f"20,000 documents, frequent words for a member, {touch}, worst scenario", 0.8, frequent_words(touch)
        )
    both = "with facets and snippets / without"
    yield Goal(
        "20,000 documents, page with facets and snippets / without (ours / ours)", 3, figure(BIG, both, "search")
    )
    for name in ("suggest, two letters typed", "suggest, behind another word", "did you mean, a typo in two words"):
        yield Goal(f"20,000 documents, {name}", 10, figure(BIG, name, "search"), "ms", causes.SPELLING)


def large_goals() -> Iterator[Goal]:
    """Yield the goals of large catalogs."""
    yield Goal("limited searches, 200,000 against 20,000 rows (ours / ours)", 1.3, growth)
    count = counted("published, as anonymous")
    yield Goal("200,000 rows, count of what is published, as anonymous", 15, count, "ms", causes.COUNT)
    facets = "facets of 5 fields, all rows"
    yield Goal(f"200,000 rows, {facets}", 60, figure(HUGE, facets, "scale"), "ms", causes.FACETS)
    for touch, limit in (("page", 20), ("len", 150)):
        name = f"1,000,000 rows, request, varying, {touch}, worst scenario"
        yield Goal(name, limit, slowest(HUGEST, touch), "ms", causes.MANY_ROWS)
    name = "uncached first page / (bare round trip + bare SQL), 20,000 rows"
    yield Goal(name, 2, over_the_floor, cause=causes.FLOOR)


def write_goals() -> Iterator[Goal]:
    """Yield the goals of writing, and of what is written."""
    for size, limit in ((SMALL, 0.55), (BIG, 0.5)):
        name = f"content creation at {size:,}"
        yield Goal(name, limit, measure(size, "creation of a document"), cause=causes.SAVES)
    for size in (SMALL, BIG):
        name = f"content modification at {size:,}"
        yield Goal(name, 0.6, measure(size, "modification of a document"), cause=causes.SAVES)
    for size in (SMALL, BIG):
        yield Goal(f"store() calls that the catalog adds, at {size:,}", 0, additional_stores(size), "calls")
    name = "rebuild of 20,000 in one transaction (clearFindAndRebuild)"
    yield Goal(name, 0.45, measure(BIG, "rebuild"), cause=causes.ONE_CORE)
    yield Goal("rebuild of 20,000 as the command and the ZMI do, 2 cores", 0.45, rebuilt, cause=causes.REBUILD)
    yield Goal("database size at 20,000", 1, measure(BIG, "database size"), cause=causes.SIZE)
    other = measure(SMALL, "database size", "pgjsonb-zcatalog")
    yield Goal("database size at 500, next to ZCatalog on the same storage", 0.55, other, cause=causes.SIZE)
    yield Goal("resident memory after the run at 20,000", 0.6, measure(BIG, "resident memory"), cause=causes.MEMORY)


def page_goals() -> Iterator[Goal]:
    """Yield the goals of whole pages over HTTP."""
    for size, limits in ((SMALL, (0.82, 0.7)), (SITE, (0.82, 0.6))):
        for group, limit, cause in zip(GROUPS, limits, (causes.HTML, causes.REST), strict=True):
            name = f"pages over HTTP, {size:,} documents, {group}"
            yield Goal(name, limit, page_mean(size, group), cause=cause)
            yield Goal(f"{name}, worst page", 0.95, page_worst(size, group), cause=cause)
    for state, cause in ((READ_ONLY, causes.HTML), (WITH_WRITER, causes.WRITER)):
        name = f"mix of pages, 4 clients, 2 processes, {SITE:,} documents, {state}"
        yield Goal(name, 0.85, mixed(SITE, 4, 2, state), cause=cause)
    first = page_worst(SMALL, None, FIRST_REQUEST)
    yield Goal("first requests of a process, 500 documents, worst page", 1, first, cause=causes.COLD)
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


def missed(stored: Sequence[dict[str, Any]]) -> str:
    """Return, in Markdown, the causes of the goals that *stored* results miss; goals with the same one stand together."""
    results = by_size(stored)
    names: dict[str, list[str]] = {}
    for goal in goals():
        reached = goal.reached(results)
        if reached is not None and reached > goal.limit:
            names.setdefault(goal.cause, []).append(f"*{goal.name}*")
    return "\n".join(f"- {'; '.join(found)}: {' '.join(cause.split())}" for cause, found in names.items())
