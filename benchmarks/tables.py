"""Result files to tables, for the screen and for the documentation."""

from benchmarks.backends import LABELS
from benchmarks.timing import mean_ratio
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from rich.table import Table as RichTable
from typing import Any


#: (what is judged, what it is compared with) by command.
PAIRS = {
    "level1": ("pgcatalog", "relstorage-zcatalog"),
    "level2": ("pgcatalog", "relstorage-zcatalog"),
    "search": ("pgcatalog", "relstorage-zcatalog"),
    "rebuild": ("pgcatalog", "relstorage-zcatalog"),
    "plone": ("pgjsonb-zcatalog", "relstorage-zcatalog"),
    "storage": ("pgjsonb", "relstorage"),
    "zodb": ("pgjsonb", "relstorage"),
    "pack": ("pgjsonb", "relstorage"),
    "zodbbench": ("pgjsonb", "relstorage"),
    "codec": ("codec", "pickle"),
}
ORDER = list(LABELS)


@dataclass(frozen=True)
class Table:
    """Cells as text; the first column is left-aligned, the others right."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self, titled: bool = True) -> str:
        """Return the table as Markdown, its title as a bold line in front."""
        lines = [f"**{self.title}**", ""] if titled else []
        lines.append("| " + " | ".join(self.headers) + " |")
        lines.append("|" + "---|" + "--:|" * (len(self.headers) - 1))
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join(lines)

    def rich(self) -> RichTable:
        """Return the table for the screen."""
        table = RichTable(title=self.title)
        for number, name in enumerate(self.headers):
            table.add_column(name, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        return table


def number(value: float | None) -> str:
    """Return three significant digits."""
    if value is None:
        return "–"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 0.1 and abs(value) < 10 else f"{value:.3g}"


def cell(figure: dict[str, Any] | None, unit: bool = False) -> str:
    """Return a figure as ``median (p95)``."""
    if figure is None:
        return "–"
    text = number(figure["median"])
    if figure.get("p95") is not None and figure["n"] > 1:
        text += f" ({number(figure['p95'])})"
    return f"{text} {figure['unit']}".strip() if unit else text


def ratio(ours: dict[str, Any] | None, theirs: dict[str, Any] | None) -> float | None:
    """Return ours / theirs of the medians."""
    if ours is None or theirs is None or not theirs["median"]:
        return None
    return float(ours["median"]) / float(theirs["median"])


def backends(data: dict[str, Any]) -> list[str]:
    """Return the backends of a result, in the order of the tables."""
    return sorted(data["results"], key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def size_of(data: dict[str, Any]) -> int:
    """Return how many documents or rows the result is about."""
    options = data["options"]
    return int(options.get("docs") or options.get("rows") or options.get("count") or 0)


def tables(data: dict[str, Any]) -> Iterator[Table]:
    """Yield the tables of a result file."""
    if any(result["measures"] for result in data["results"].values()):
        yield measures_table(data)
    if any("curve" in result for result in data["results"].values()):
        yield from curve_tables(data)
    yield from query_tables(data)


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
    unit = {"level1": "rows", "zodbbench": "objects"}.get(data["command"], "documents")
    return f"{data['command']}, {size:,} {unit}" if size else data["command"]


def query_groups(data: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the (values, state, touch) that were measured."""
    records = [record for result in data["results"].values() for record in result.get("queries", ())]
    return list(dict.fromkeys((r["values"], r["state"], r["touch"]) for r in records))


def records_of(data: dict[str, Any], backend: str, values: str, state: str, touch: str) -> dict[str, dict[str, Any]]:
    """Return scenario -> record of one backend."""
    return {
        record["scenario"]: record
        for record in data["results"].get(backend, {}).get("queries", ())
        if (record["values"], record["state"], record["touch"]) == (values, state, touch)
    }


def ratios(data: dict[str, Any], values: str, state: str, touch: str) -> dict[str, float]:
    """Return scenario -> ours / theirs."""
    ours, theirs = (records_of(data, name, values, state, touch) for name in PAIRS[data["command"]])
    found = {scenario: ratio(ours[scenario], theirs.get(scenario)) for scenario in ours}
    return {scenario: each for scenario, each in found.items() if each is not None}


def query_tables(data: dict[str, Any]) -> Iterator[Table]:
    """Yield a table of all scenarios for each kind of values, state and touch."""
    names = backends(data)
    for values, state, touch in query_groups(data):
        records = {name: records_of(data, name, values, state, touch) for name in names}
        present = [name for name in names if records[name]]
        quotients = ratios(data, values, state, touch)
        rows = []
        for scenario in dict.fromkeys(s for name in present for s in records[name]):
            found = {records[name][scenario]["found"] for name in present if scenario in records[name]}
            cells = (cell(records[name].get(scenario)) for name in present)
            rows.append(
                [scenario, " / ".join(f"{n:,}" for n in sorted(found)), *cells, number(quotients.get(scenario))]
            )
        rows.append(["geometric mean", "", *("" for _ in present), number(mean_ratio(list(quotients.values())))])
        heading = f"{title(data)}: {touch}, {values} values, {state} (ms)"
        yield Table(heading, ["", "found", *(LABELS[name] for name in present), "ratio"], rows)


def curve_tables(data: dict[str, Any]) -> Iterator[Table]:
    """Yield what was measured at each size."""
    names = backends(data)
    points = {name: {point["size"]: point for point in data["results"][name]["curve"]} for name in names}
    sizes = sorted({size for each in points.values() for size in each})
    for what in ("inserts per second", "ms per lookup"):
        rows = [[f"{size:,}", *(number(points[n].get(size, {}).get(what)) for n in names)] for size in sizes]
        yield Table(f"{data['command']}: {what}", ["objects", *(LABELS[name] for name in names)], rows)
