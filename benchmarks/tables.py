"""Converts result files to tables, for the screen and for the documentation."""

from benchmarks.backends import LABELS
from benchmarks.backends import OTHER
from benchmarks.backends import OURS
from benchmarks.backends import REFERENCE
from benchmarks.page_kinds import GROUPS
from benchmarks.page_kinds import MIX
from benchmarks.page_kinds import READ_ONLY
from benchmarks.timing import mean_ratio
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from rich.table import Table as RichTable
from typing import Any


CATALOGS = (OURS, REFERENCE)
STORAGES = ("pgjsonb", "relstorage")
#: Command -> (rated backend, reference).
PAIRS = {
    **dict.fromkeys(("files", "level1", "level2", "search", "scripts", "pages", "rebuild", "scale"), CATALOGS),
    "plone": ("pgjsonb-zcatalog", REFERENCE),
    **dict.fromkeys(("storage", "zodb", "pack", "zodbbench"), STORAGES),
    "codec": ("codec", "pickle"),
}
ORDER = list(LABELS)
#: The measures of a kind of page in the benchmark ``pages``.
PAGE_COLUMNS = {
    "median": "ms",
    "p95": "p95, ms",
    "per_second": "pages in a second",
    "zope_cpu": "processor time of Zope, ms",
    "postgresql_cpu": "processor time of PostgreSQL, ms",
    "messages": "messages to PostgreSQL",
    "kb": "KB from PostgreSQL",
    "answer_kb": "KB of the answer",
}
Record = dict[str, Any]


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


def cell(figure: Record | None) -> str:
    """Return a figure as ``median (p95)``."""
    if figure is None:
        return "–"
    text = number(figure["median"])
    return f"{text} ({number(figure['p95'])})" if figure.get("p95") is not None and figure["n"] > 1 else text


def ratio(ours: Record | None, theirs: Record | None) -> float | None:
    """Return ours / theirs of the medians."""
    if ours is None or theirs is None or not theirs["median"]:
        return None
    return float(ours["median"]) / float(theirs["median"])


def pair(data: Record) -> tuple[str, str]:
    """Return the rated backend of a result, and its reference: another version of it, if there is one."""
    return (OURS, OTHER) if OTHER in data["results"] else PAIRS[data["command"]]


def backends(data: Record) -> list[str]:
    """Return the backends of a result, in the order of the tables."""
    return sorted(data["results"], key=ORDER.index)


def size_of(data: Record) -> int:
    """Return the number of documents or rows in the result."""
    options = data["options"]
    return int(options.get("docs") or options.get("rows") or options.get("count") or 0)


def title(data: Record) -> str:
    unit = {"level1": "rows", "scale": "rows", "zodbbench": "objects"}.get(data["command"], "documents")
    of_texts = " of real texts" if data["options"].get("texts") else ""
    return f"{data['command']}, {size_of(data):,} {unit}{of_texts}" if size_of(data) else data["command"]


def tables(data: Record) -> Iterator[Table]:
    """Yield the tables of a result file."""
    if any(result["measures"] for result in data["results"].values()):
        yield measures_table(data)
    yield from page_tables(data) if data["command"] == "pages" else query_tables(data)


def measures_table(data: Record) -> Table:
    """Return the measures other than queries."""
    names = backends(data)
    ours, theirs = pair(data)
    measures = {name: data["results"][name]["measures"] for name in names}
    rows = []
    for measure in dict.fromkeys(measure for each in measures.values() for measure in each):
        figures = [measures[name].get(measure) for name in names]
        unit = next(f["unit"] for f in figures if f)
        quotient = ratio(measures.get(ours, {}).get(measure), measures.get(theirs, {}).get(measure))
        rows.append([f"{measure} ({unit})" if unit else measure, *(cell(f) for f in figures), number(quotient)])
    return Table(title(data), ["", *(LABELS[name] for name in names), f"{LABELS[ours]} / {LABELS[theirs]}"], rows)


def query_records(data: Record) -> list[Record]:
    return [record for result in data["results"].values() for record in result.get("queries", ())]


def records_of(
    data: Record, backend: str, values: str, state: str, touch: str, cache: int | None = None
) -> dict[str, Record]:
    """Return scenario -> record of one backend, with a ZODB cache of that size; None: of the smallest one."""
    records: dict[str, Record] = {}
    for record in data["results"].get(backend, {}).get("queries", ()):
        same = (record["values"], record["state"], record["touch"]) == (values, state, touch)
        # The smallest cache was measured first.
        if same and (record["scenario"] not in records if cache is None else record.get("cache") == cache):
            records[record["scenario"]] = record
    return records


def query_tables(data: Record) -> Iterator[Table]:
    """Yield a table of all scenarios for each kind of values, state, touch and size of the ZODB cache."""
    ours, theirs = pair(data)
    records = query_records(data)
    read = {"pages": "8 kB pages read"} if any("pages" in record for record in records) else {}
    for values, state, touch, cache in dict.fromkeys(
        (r["values"], r["state"], r["touch"], r.get("cache")) for r in records
    ):
        by_backend = {name: records_of(data, name, values, state, touch, cache) for name in backends(data)}
        by_backend = {name: each for name, each in by_backend.items() if each}
        rows, ratios = [], []
        for scenario in dict.fromkeys(scenario for each in by_backend.values() for scenario in each):
            sides = {name: each.get(scenario) for name, each in by_backend.items()}
            matches = {side["found"] for side in sides.values() if side}
            quotient = ratio(sides.get(ours), sides.get(theirs))
            ratios += [] if quotient is None else [quotient]
            cells = [scenario, " / ".join(f"{n:,}" for n in sorted(matches)), *(cell(side) for side in sides.values())]
            rows.append([*cells, *(number((sides.get(ours) or {}).get(each)) for each in read), number(quotient)])
        blank = [""] * (1 + len(by_backend) + len(read))
        rows.append(["geometric mean", *blank, number(mean_ratio(ratios))])
        behind = f", cache {cache:,}" if cache else ""
        headers = ["", "found", *(LABELS[name] for name in by_backend), *read.values(), "ratio"]
        yield Table(f"{title(data)}: {touch}, {values} values, {state}{behind} (ms)", headers, rows)


def page_pairs(data: Record, state: str, group: str | None = None) -> list[tuple[Record, Record]]:
    """Return (ours, theirs) of all kinds of page in *state*, of *group* if one is given."""

    def records(backend: str) -> dict[tuple[Any, ...], Record]:
        pages = data["results"].get(backend, {}).get("pages", ())
        return {(each["page"], each["clients"], each["processes"]): each for each in pages if each["state"] == state}

    ours, theirs = (records(backend) for backend in pair(data))
    return [(ours[kind], theirs[kind]) for kind in ours if kind in theirs and group in (None, ours[kind]["group"])]


def page_means(data: Record) -> dict[str, tuple[float, float]]:
    """Return group of pages -> (geometric mean, worst) of ours / theirs, with one client that reads."""
    quotients = {
        group: [quotient for sides in page_pairs(data, READ_ONLY, group) if (quotient := ratio(*sides)) is not None]
        for group in GROUPS
    }
    return {group: (mean_ratio(each) or 0, max(each)) for group, each in quotients.items() if each}


def page_tables(data: Record) -> Iterator[Table]:
    """Yield the tables of the benchmark ``pages``."""
    ours, theirs = (LABELS[name] for name in pair(data))
    means = [[group, number(mean), number(worst)] for group, (mean, worst) in page_means(data).items()]
    yield Table(f"{title(data)}: {ours} / {theirs}", ["", "geometric mean", "worst"], means)
    records = [record for result in data["results"].values() for record in result["pages"]]
    for state in dict.fromkeys(record["state"] for record in records):
        sides = page_pairs(data, state)
        columns = {key: label for key, label in PAGE_COLUMNS.items() if any(key in our for our, _ in sides)}
        rows = []
        for our, their in sides:
            kind = our["page"]
            if kind == MIX:
                kind += f", clients: {our['clients']}, processes: {our['processes']}"
            figures = (number(side.get(key)) for key in columns for side in (their, our))
            rows.append([kind, number(ratio(our, their)), *figures])
        headers = ["", "ratio", *(f"{label}, {side}" for label in columns.values() for side in (theirs, ours))]
        yield Table(f"{title(data)}: {state}", headers, rows)
