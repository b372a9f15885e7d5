"""Result files to tables, for the screen and for the documentation."""

from benchmarks.backends import LABELS
from benchmarks.page_tables import page_tables
from benchmarks.table import backends
from benchmarks.table import cell
from benchmarks.table import number
from benchmarks.table import PAIRS
from benchmarks.table import ratio
from benchmarks.table import size_of
from benchmarks.table import Table
from benchmarks.timing import mean_ratio
from collections.abc import Iterator
from typing import Any


def tables(data: dict[str, Any]) -> Iterator[Table]:
    """Yield the tables of a result file."""
    if any(result["measures"] for result in data["results"].values()):
        yield measures_table(data)
    if any("curve" in result for result in data["results"].values()):
        yield from curve_tables(data)
    yield from page_tables(data) if data["command"] == "pages" else query_tables(data)


def measures_table(data: dict[str, Any]) -> Table:
    """Return the measures that are no queries."""
    names = backends(data)
    ours, theirs = PAIRS[data["command"]]
    measures = {name: data["results"][name]["measures"] for name in names}
    rows = []
    for measure in dict.fromkeys(measure for each in measures.values() for measure in each):
        figures = [measures[name].get(measure) for name in names]
        unit = next(f["unit"] for f in figures if f)
        quotient = ratio(measures.get(ours, {}).get(measure), measures.get(theirs, {}).get(measure))
        rows.append([f"{measure} ({unit})" if unit else measure, *(cell(f) for f in figures), number(quotient)])
    return Table(title(data), ["", *(LABELS[name] for name in names), f"{LABELS[ours]} / {LABELS[theirs]}"], rows)


def title(data: dict[str, Any]) -> str:
    size = size_of(data)
    unit = {"level1": "rows", "scale": "rows", "resume": "rows", "zodbbench": "objects"}.get(
        data["command"], "documents"
    )
    return f"{data['command']}, {size:,} {unit}" if size else data["command"]


def query_groups(data: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the (values, state, touch) that were measured."""
    return list(dict.fromkeys((r["values"], r["state"], r["touch"]) for r in query_records(data)))


def query_records(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [record for result in data["results"].values() for record in result.get("queries", ())]


def caches(data: dict[str, Any], values: str, state: str) -> list[int | None]:
    """Return the sizes of the ZODB cache that were measured, the smallest first; None for the only one."""
    found = {r.get("cache") for r in query_records(data) if (r["values"], r["state"]) == (values, state)}
    sizes = sorted(found - {None})
    return sizes if len(sizes) > 1 else [None]


def records_of(
    data: dict[str, Any], backend: str, values: str, state: str, touch: str, cache: int | None = None
) -> dict[str, dict[str, Any]]:
    """Return scenario -> record of one backend, with a ZODB cache of that size; None: of the smallest one."""
    found = {}
    for record in data["results"].get(backend, {}).get("queries", ()):
        same = (record["values"], record["state"], record["touch"]) == (values, state, touch)
        # The smallest cache was measured first.
        if same and (record["scenario"] not in found if cache is None else record.get("cache") == cache):
            found[record["scenario"]] = record
    return found


def ratios(data: dict[str, Any], values: str, state: str, touch: str, cache: int | None = None) -> dict[str, float]:
    """Return scenario -> ours / theirs."""
    ours, theirs = (records_of(data, name, values, state, touch, cache) for name in PAIRS[data["command"]])
    found = {scenario: ratio(ours[scenario], theirs.get(scenario)) for scenario in ours}
    return {scenario: each for scenario, each in found.items() if each is not None}


def query_tables(data: dict[str, Any]) -> Iterator[Table]:
    """Yield a table of all scenarios for each kind of values, state and touch."""
    names = backends(data)
    for values, state, touch in query_groups(data):
        sizes = caches(data, values, state)
        records = {(name, size): records_of(data, name, values, state, touch, size) for size in sizes for name in names}
        columns = [column for column, found in records.items() if found]
        quotients = {size: ratios(data, values, state, touch, size) for size in sizes}
        rows = []
        for scenario in dict.fromkeys(s for column in columns for s in records[column]):
            found = {records[column][scenario]["found"] for column in columns if scenario in records[column]}
            cells = [scenario, " / ".join(f"{n:,}" for n in sorted(found))]
            for size in sizes:
                cells += [cell(records[column].get(scenario)) for column in columns if column[1] == size]
                cells.append(number(quotients[size].get(scenario)))
            rows.append(cells)
        last, headers = ["geometric mean", ""], ["", "found"]
        for size in sizes:
            names_of_size = [name for name, other in columns if other == size]
            behind = f", cache {size:,}" if size else ""
            last += [*("" for _ in names_of_size), number(mean_ratio(list(quotients[size].values())))]
            headers += [f"{heading}{behind}" for heading in (*(LABELS[name] for name in names_of_size), "ratio")]
        yield Table(f"{title(data)}: {touch}, {values} values, {state} (ms)", headers, [*rows, last])


def curve_tables(data: dict[str, Any]) -> Iterator[Table]:
    """Yield what was measured at each size."""
    names = backends(data)
    points = {name: {point["size"]: point for point in data["results"][name]["curve"]} for name in names}
    sizes = sorted({size for each in points.values() for size in each})
    for what in ("inserts per second", "ms per lookup"):
        rows = [[f"{size:,}", *(number(points[n].get(size, {}).get(what)) for n in names)] for size in sizes]
        yield Table(f"{data['command']}: {what}", ["objects", *(LABELS[name] for name in names)], rows)
