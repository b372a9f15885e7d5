"""The plots of the documentation, as SVG."""

from benchmarks.backends import LABELS
from benchmarks.page_kinds import HTML
from benchmarks.page_kinds import READ_ONLY
from benchmarks.page_kinds import VOLTO
from benchmarks.tables import backends
from benchmarks.tables import Record
from benchmarks.tables import records_of
from benchmarks.tables import size_of
from benchmarks.timing import mean_ratio
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator
from matplotlib.ticker import FuncFormatter
from matplotlib.ticker import LogLocator
from matplotlib.ticker import NullLocator
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib


# The same results create the same file.
matplotlib.rcParams |= {"svg.hashsalt": "plone.pgcatalog", "svg.fonttype": "none", "axes.grid": True, "grid.alpha": 0.3}
COLORS = {"relstorage-zcatalog": "#b45309", "pgcatalog": "#0369a1", "bare-sql": "#15803d"}


#: Size -> milliseconds, of one backend.
Line = Mapping[int, float]


def growth(stored: Sequence[Record], path: Path) -> None:
    """Plot the time of new searches by the size of the catalog: the geometric mean of all kinds."""

    def line(touch: str, name: str) -> Line:
        records = {size_of(data): records_of(data, name, "varying", "request", touch) for data in stored}
        return {size: mean_ratio([r["median"] for r in each.values()]) or 0.0 for size, each in records.items() if each}

    _save(stored, {"pages": "page", "counts": "len"}, line, "rows in the catalog", path)


def sites(stored: Sequence[Record], path: Path) -> None:
    """Plot a visitor's waiting time by the size of the site: the median of kinds of HTML page, Volto page, and search.

    Sites with real texts have a dashed line for each backend.
    """
    panels: dict[str, Callable[[Record], bool]] = {
        "HTML pages": lambda page: page["group"] == HTML,
        "pages of Volto": lambda page: page["group"] == VOLTO,
        "searches": lambda page: "search" in page["page"] and page["group"] not in (HTML, VOLTO),
    }

    def times(data: Record, name: str, is_meant: Callable[[Record], bool]) -> list[float]:
        pages = data["results"][name]["pages"]
        return [page["median"] for page in pages if page["state"] == READ_ONLY and is_meant(page)]

    def line(is_meant: Callable[[Record], bool], name: str, texts: str | None = None) -> Line:
        chosen = [data for data in stored if data["options"].get("texts") == texts and name in data["results"]]
        found = {size_of(data): times(data, name, is_meant) for data in chosen}
        return {size: median(each) for size, each in found.items() if each}

    def dashed(is_meant: Callable[[Record], bool], name: str) -> Line:
        return line(is_meant, name, "debian")

    names = dict.fromkeys(name for data in stored for name in backends(data))
    panels = {title: kind for title, kind in panels.items() if any(line(kind, name) for name in names)}
    _save(
        stored,
        panels,
        line,
        "documents of the site",
        path,
        sizes=sorted({size_of(data) for data in stored}),
        dashed=dashed,
    )


def _save(
    stored: Sequence[Record],
    panels: Mapping[str, Any],
    line: Callable[[Any, str], Line],
    unit: str,
    path: Path,
    sizes: Sequence[int] = (),
    dashed: Callable[[Any, str], Line] = lambda kind, name: {},
) -> None:
    """Save the lines of all backends in *stored*: a panel for each title in *panels*, whose value is the argument of *line*.

    *dashed* returns the points of a second line for a backend, of real texts.  With *sizes*, the axis has labels for these,
    and more labels for milliseconds than the powers of ten.
    """
    figure = Figure(figsize=(8, 3.2))
    for axes, (title, kind) in zip(
        figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels.items(), strict=True
    ):
        for name in dict.fromkeys(name for data in stored for name in backends(data)):
            points = line(kind, name)
            axes.plot(list(points), list(points.values()), marker="o", color=COLORS[name], label=LABELS[name])
            if points := dashed(kind, name):
                label = f"{LABELS[name]}, real texts"
                axes.plot(list(points), list(points.values()), "--s", color=COLORS[name], label=label)
        axes.set(xscale="log", yscale="log", xlabel=unit, title=title)
        axes.xaxis.set_major_locator(FixedLocator(sizes) if sizes else LogLocator())
        # The last sizes are near each other.
        axes.tick_params("x", labelrotation=30 if sizes else 0)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if sizes else (1,)))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(
                FuncFormatter(lambda value, position: f"{value:,.0f}" if value >= 1 else f"{value:g}")
            )
    first = figure.axes[0]
    first.set(ylabel="ms")
    figure.tight_layout()
    figure.legend(*first.get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, 0.01), ncols=3)
    _write(figure, path)


def long_run(run: Record, path: Path) -> None:
    """Plot memory, tables, queue and objects of a mixed *run* of the soak; lines at its outages and at its rebuilds."""
    levels = run["levels"]
    figure = Figure(figsize=(8, 6))
    memory, tables, queue, objects = figure.subplots(2, 2, sharex=True).flat
    for name, line in levels["memory"].items():
        memory.plot(*_minutes(line["points"]), label=name)
    for name, line in levels["bytes"].items():
        tables.plot(*_minutes(line["points"]), label=name.removeprefix("pgcatalog_"))
    counts = levels["counts"]
    queue.plot(*_minutes(counts["waiting"]["points"]), label="waiting jobs")
    queue.plot(*_minutes(counts["connections"]["points"]), label="connections")
    objects.plot(*_minutes(counts["objects"]["points"]), label="objects in the database")
    objects.plot(*_minutes(counts["dead rows"]["points"]), label="dead rows in all tables")
    titles = {memory: "memory, MiB", tables: "tables, MiB", queue: "queue and connections", objects: "objects"}
    for axes, title in titles.items():
        axes.set(title=title, xlim=(0, run["options"]["seconds"] / 60))
        axes.set_ylim(bottom=0)
        for event in run["events"]:
            if event["kind"] in EVENTS:
                axes.axvline(event["begin"] / 60, color=EVENTS[event["kind"]], linewidth=0.6, linestyle=":", zorder=0)
        axes.legend(loc="best", fontsize="x-small")
    for axes in (queue, objects):
        axes.set(xlabel="minutes")
    figure.tight_layout()
    _write(figure, path)


#: Color of the line at a kind of event.
EVENTS = {"kill": "#b91c1c", "failover": "#7c3aed", "rebuild": "#0369a1"}


def _minutes(points: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    return [second / 60 for second, _ in points], [value for _, value in points]


def _write(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    # Without trailing blanks, which matplotlib writes into paths.
    path.write_text("".join(f"{line.rstrip()}\n" for line in path.read_text("utf-8").splitlines()), "utf-8")
