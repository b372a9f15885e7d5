"""Plots of the results, as SVG."""

from benchmarks.backends import LABELS
from benchmarks.claims import compared
from benchmarks.claims import CREATION
from benchmarks.claims import documents
from benchmarks.claims import MODIFICATION
from benchmarks.claims import NEW
from benchmarks.claims import of_command
from benchmarks.claims import Pair
from benchmarks.claims import scenarios
from benchmarks.claims import STATES
from benchmarks.claims import TOUCHES
from benchmarks.claims import typical
from benchmarks.tables import backends
from benchmarks.tables import records_of
from benchmarks.tables import size_of
from benchmarks.timing import mean_ratio
from collections.abc import Sequence
from matplotlib.ticker import FuncFormatter
from matplotlib.ticker import LogLocator
from matplotlib.ticker import NullFormatter
from pathlib import Path
from typing import Any

import matplotlib


# Before pyplot is imported: no display is needed, and the same results give the same file.
matplotlib.use("svg")
matplotlib.rcParams |= {
    "svg.hashsalt": "plone.pgcatalog",
    "svg.fonttype": "none",
    "axes.grid": True,
    "axes.grid.which": "major",
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "legend.frameon": False,
}

from matplotlib import pyplot  # noqa: E402


COLORS = {
    "relstorage-zcatalog": "#b45309",
    "pgjsonb-zcatalog": "#a3a3a3",
    "pgcatalog": "#0369a1",
    "bare-sql": "#15803d",
    "relstorage": "#b45309",
    "pgjsonb": "#0369a1",
    "filestorage": "#7c3aed",
    "plain-sql": "#15803d",
}
SHADES = ("#7dd3fc", "#0369a1", "#0c4a6e")
TIMES_AS_FAST = "times as fast as ZCatalog (right of the line: faster)"


def plots(stored: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write the plots of *stored* into *folder*; what is no longer among them is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.svg"):
        path.unlink()
    sites = compared(stored, "level2")
    if sites:
        states(sites, folder / "states.svg")
        writing(sites, folder / "writing.svg")
    for data in sites:
        searches(data, folder / f"searches-{size_of(data)}.svg")
    rows = of_command(stored, "level1")
    if rows:
        growth(rows, folder / "growth.svg")
    for data in of_command(stored, "zodbbench"):
        curves(data, folder / "zodbbench.svg")


def save(figure: Any, path: Path) -> None:
    """Write and close *figure*, with the legend of all its panels below."""
    labels = {}
    for axes in figure.axes:
        labels |= dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    figure.tight_layout()
    figure.legend(labels.values(), labels, loc="upper center", bbox_to_anchor=(0.5, 0.01), ncols=len(labels))
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)
    # Without trailing blanks, which matplotlib leaves in paths.
    path.write_text("".join(f"{line.rstrip()}\n" for line in path.read_text("utf-8").splitlines()), "utf-8")


def plain(axis: Any, steps: Sequence[float] = (1,)) -> None:
    """Label the logarithmic *axis* with 0.1, 1, 10 instead of powers; *steps* times these are labelled, too."""
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, position: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def bars(axes: Any, labels: Sequence[str], series: dict[str, Sequence[Pair | None]]) -> None:
    """Draw how many times as fast ours is: a group of bars for each label, one of each series."""
    height = 0.8 / len(series)
    for number, (name, pairs) in enumerate(series.items()):
        positions = [position + 0.4 - height * (number + 0.5) for position in range(len(labels))]
        # From 1 on: slower ones go to the left.
        widths = [1 / pair.ratio - 1 if pair else 0 for pair in pairs[::-1]]
        axes.barh(positions, widths, height, left=1, color=SHADES[number], label=name)
    axes.axvline(1, color="#b45309")
    axes.set_yticks(range(len(labels)), labels[::-1])
    axes.set(xscale="log", xlabel=TIMES_AS_FAST)
    least, most = axes.get_xlim()
    axes.set_xlim(min(least, 0.9), max(most, 2))
    axes.grid(axis="y", visible=False)
    plain(axes.xaxis, (1, 2, 5))


def states(sites: Sequence[dict[str, Any]], path: Path) -> None:
    """Plot the means by state of the caches."""
    kinds = [
        (state, touch)
        for touch in TOUCHES
        for state in STATES
        if any(typical(data, state, touch) is not None for data in sites)
    ]
    series = {documents(data): [typical(data, state, touch) for state, touch in kinds] for data in sites}
    figure, axes = pyplot.subplots(figsize=(8, 4.4))
    bars(axes, [state.label.format(TOUCHES[touch]) for state, touch in kinds], series)
    save(figure, path)


def searches(data: dict[str, Any], path: Path) -> None:
    """Plot each kind of search."""
    found = {label: scenarios(data, NEW, touch) for touch, label in TOUCHES.items()}
    names = list(dict.fromkeys(name for pairs in found.values() for name in pairs))
    figure, axes = pyplot.subplots(figsize=(8, 0.3 * len(names) + 1.2))
    bars(axes, names, {label: [pairs.get(name) for name in names] for label, pairs in found.items()})
    save(figure, path)


def writing(sites: Sequence[dict[str, Any]], path: Path) -> None:
    """Plot what writing costs."""
    measures = {CREATION: "creation", MODIFICATION: "modification", "rebuild, per object": "rebuild"}
    figure, panels = pyplot.subplots(1, len(sites), figsize=(8, 2.8), squeeze=False)
    for axes, data in zip(panels[0], sites, strict=True):
        names = backends(data)
        for number, name in enumerate(names):
            figures = data["results"][name]["measures"]
            heights = [figures[measure]["median"] if measure in figures else 0 for measure in measures]
            positions = [position + (number - (len(names) - 1) / 2) * 0.27 for position in range(len(measures))]
            axes.bar(positions, heights, 0.25, color=COLORS.get(name), label=LABELS[name])
        axes.set_xticks(range(len(measures)), measures.values())
        axes.grid(axis="x", visible=False)
        axes.set(ylabel="ms", title=documents(data))
    save(figure, path)


def growth(stored: Sequence[dict[str, Any]], path: Path) -> None:
    """Plot how the searches get slower with the size of the catalog."""
    figure, panels = pyplot.subplots(1, len(TOUCHES), figsize=(8, 3.2), sharey=True)
    for axes, (touch, label) in zip(panels, TOUCHES.items(), strict=True):
        for name in dict.fromkeys(name for data in stored for name in backends(data)):
            points = []
            for data in stored:
                records = records_of(data, name, NEW.values, NEW.state, touch)
                if records:
                    points.append((size_of(data), mean_ratio([record["median"] for record in records.values()])))
            axes.plot(*zip(*points, strict=True), marker="o", color=COLORS.get(name), label=LABELS[name])
        axes.set(xscale="log", yscale="log", xlabel="rows in the catalog", title=f"{label}s")
        plain(axes.xaxis)
        plain(axes.yaxis)
    panels[0].set(ylabel="ms")
    save(figure, path)


def curves(data: dict[str, Any], path: Path) -> None:
    """Plot insertions and lookups as a tree grows."""
    figure, panels = pyplot.subplots(1, 2, figsize=(8, 3.2))
    for axes, what in zip(panels, ("inserts per second", "ms per lookup"), strict=True):
        for backend in backends(data):
            points = data["results"][backend]["curve"]
            sizes, figures = ([point[key] for point in points] for key in ("size", what))
            axes.plot(sizes, figures, marker="o", color=COLORS.get(backend), label=LABELS[backend])
        axes.set(xscale="log", yscale="log", xlabel="objects", title=what)
        plain(axes.xaxis)
        plain(axes.yaxis)
    save(figure, path)
