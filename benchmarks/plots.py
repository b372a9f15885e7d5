"""The plot of the documentation, as SVG."""

from benchmarks.backends import LABELS
from benchmarks.tables import backends
from benchmarks.tables import Record
from benchmarks.tables import records_of
from benchmarks.tables import size_of
from benchmarks.timing import mean_ratio
from collections.abc import Sequence
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from matplotlib.ticker import LogLocator
from matplotlib.ticker import NullLocator
from pathlib import Path

import matplotlib


# The same results give the same file.
matplotlib.rcParams |= {"svg.hashsalt": "plone.pgcatalog", "svg.fonttype": "none", "axes.grid": True, "grid.alpha": 0.3}
COLORS = {"relstorage-zcatalog": "#b45309", "pgcatalog": "#0369a1", "bare-sql": "#15803d"}


def growth(stored: Sequence[Record], path: Path) -> None:
    """Plot how new searches get slower with the size of the catalog: the geometric mean of all kinds."""
    figure = Figure(figsize=(8, 3.2))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, touch, label in zip(panels, ("page", "len"), ("pages", "counts"), strict=True):
        for name in dict.fromkeys(name for data in stored for name in backends(data)):
            records = {size_of(data): records_of(data, name, "varying", "request", touch) for data in stored}
            means = {
                size: mean_ratio([record["median"] for record in each.values()])
                for size, each in records.items()
                if each
            }
            axes.plot(list(means), list(means.values()), marker="o", color=COLORS[name], label=LABELS[name])
        axes.set(xscale="log", yscale="log", xlabel="rows in the catalog", title=label)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator())
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(
                FuncFormatter(lambda value, position: f"{value:,.0f}" if value >= 1 else f"{value:g}")
            )
    panels[0].set(ylabel="ms")
    figure.tight_layout()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, 0.01), ncols=3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    # Without trailing blanks, which matplotlib leaves in paths.
    path.write_text("".join(f"{line.rstrip()}\n" for line in path.read_text("utf-8").splitlines()), "utf-8")
