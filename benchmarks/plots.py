"""Plots of the results, as SVG."""

from benchmarks.backends import LABELS
from benchmarks.tables import backends
from benchmarks.tables import ratios
from benchmarks.tables import records_of
from benchmarks.tables import size_of
from benchmarks.timing import mean_ratio
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib


# Before pyplot is imported: no display is needed, and the same results give the same file.
matplotlib.use("svg")
matplotlib.rcParams |= {"svg.hashsalt": "plone.pgcatalog", "svg.fonttype": "none", "axes.grid": True, "grid.alpha": 0.3}

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


def plots(stored: Sequence[dict[str, Any]], folder: Path) -> Iterator[tuple[str, str]]:
    """Write the plots of *stored* into *folder*; yield (file name, what it shows)."""
    folder.mkdir(parents=True, exist_ok=True)
    level1 = sorted((data for data in stored if data["command"] == "level1"), key=size_of)
    if level1:
        for touch in ("page", "len"):
            yield growth(level1, touch, folder)
    for data in stored:
        if data["command"] == "level2":
            yield ratio_bars(data, folder)
            yield write_bars(data, folder)
        if data["command"] == "zodbbench":
            yield from curves(data, folder)


def save(figure: Any, folder: Path, name: str) -> str:
    """Write and close *figure*; return the file's name."""
    figure.tight_layout()
    # Without trailing blanks, which matplotlib leaves in paths.
    path = folder / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    path.write_text("".join(f"{line.rstrip()}\n" for line in path.read_text("utf-8").splitlines()), "utf-8")
    return path.name


def growth(level1: Sequence[dict[str, Any]], touch: str, folder: Path) -> tuple[str, str]:
    """Plot how the searches get slower with the size of the catalog."""
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name in dict.fromkeys(name for data in level1 for name in backends(data)):
        points = []
        for data in level1:
            records = records_of(data, name, "varying", "request", touch)
            if records:
                points.append((size_of(data), mean_ratio([record["median"] for record in records.values()])))
        axes.plot(*zip(*points, strict=True), marker="o", color=COLORS.get(name), label=LABELS[name])
    axes.set(xscale="log", yscale="log", xlabel="rows in the catalog", ylabel="ms (geometric mean of the scenarios)")
    axes.legend()
    what = {"page": "a page of 25", "len": "the number of matches"}[touch]
    return save(figure, folder, f"growth-{touch}"), f"Uncached searches for {what}, as the catalog grows"


def ratio_bars(data: dict[str, Any], folder: Path) -> tuple[str, str]:
    """Plot the ratio of each scenario."""
    found = {touch: ratios(data, "varying", "request", touch) for touch in ("page", "len")}
    scenarios = list(found["page"])[::-1]
    figure, axes = pyplot.subplots(figsize=(7, 0.38 * len(scenarios) + 1.4))
    for offset, (touch, color) in zip((0.2, -0.2), (("page", "#0369a1"), ("len", "#7dd3fc")), strict=True):
        positions = [number + offset for number in range(len(scenarios))]
        # From 1 on: faster ones go to the left.
        widths = [found[touch].get(s, 1) - 1 for s in scenarios]
        axes.barh(positions, widths, 0.38, left=1, color=color, label=touch)
    axes.axvline(1, color="#b45309")
    axes.set_yticks(range(len(scenarios)), scenarios)
    axes.set(xscale="log", xlabel="ours / RelStorage + ZCatalog (left of the line: faster)")
    axes.legend()
    size = size_of(data)
    return save(figure, folder, f"ratios-{size}"), f"Uncached searches in a site of {size:,} documents"


def write_bars(data: dict[str, Any], folder: Path) -> tuple[str, str]:
    """Plot what writing costs."""
    measures = ("creation of a document", "modification of a document", "rebuild, per object")
    names = backends(data)
    figure, axes = pyplot.subplots(figsize=(7, 3.2))
    for number, name in enumerate(names):
        figures = data["results"][name]["measures"]
        heights = [figures[measure]["median"] if measure in figures else 0 for measure in measures]
        positions = [position + (number - (len(names) - 1) / 2) * 0.27 for position in range(len(measures))]
        axes.bar(positions, heights, 0.25, color=COLORS.get(name), label=LABELS[name])
    axes.set_xticks(range(len(measures)), measures)
    axes.set(ylabel="ms")
    axes.legend()
    size = size_of(data)
    return save(figure, folder, f"writes-{size}"), f"Writing in a site of {size:,} documents"


def curves(data: dict[str, Any], folder: Path) -> Iterator[tuple[str, str]]:
    """Plot insertions and lookups as the tree grows."""
    for what, name in (("inserts per second", "inserts"), ("ms per lookup", "lookups")):
        figure, axes = pyplot.subplots(figsize=(7, 4))
        for backend in backends(data):
            points = data["results"][backend]["curve"]
            axes.plot(
                [point["size"] for point in points],
                [point[what] for point in points],
                marker="o",
                color=COLORS.get(backend),
                label=LABELS[backend],
            )
        axes.set(xscale="log", yscale="log", xlabel="objects", ylabel=what)
        axes.legend()
        yield save(figure, folder, f"zodbbench-{name}"), f"A growing OOBTree: {what}"
