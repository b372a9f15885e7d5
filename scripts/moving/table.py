"""How long a move takes and how much room it needs, extrapolated from runs with two sizes of site."""

from benchmarks.marks import put_between
from pathlib import Path
from scripts.moving.sources import KINDS
from typing import Any


SIZES = (10_000, 50_000, 200_000)
#: The steps of the table, and their names in the figures.
STEPS = (
    ("copy", "copy"),
    ("install", "install"),
    ("verify", "verify"),
    ("uninstall", "back uninstall"),
    ("copy back", "back copy"),
)
MEGABYTE = 1 << 20


def write(figures: dict[str, Any], path: Path) -> None:
    """Put the table into the page at *path*; nothing without two sizes of a kind."""
    by_kind: dict[str, list[Any]] = {}
    for name, figure in figures.items():
        by_kind.setdefault(name.partition("-")[0], []).append(figure)
    tables = [rows(kind, found) for kind, found in sorted(by_kind.items()) if len(found) > 1]
    if tables:
        put_between(path, "moving", "\n\n".join(tables))


def rows(kind: str, figures: list[Any]) -> str:
    """Return the table of one *kind* of storage, from the smallest and the largest of *figures*."""
    small, large = min(figures, key=lambda f: f["objects"]), max(figures, key=lambda f: f["objects"])
    span = large["objects"] - small["objects"]

    def line(low: float, high: float) -> tuple[float, float]:
        """Return base and growth by object."""
        growth = max(0.0, (high - low) / span)
        return max(0.0, low - growth * small["objects"]), growth

    lines = {name: line(small["seconds"][key], large["seconds"][key]) for name, key in STEPS}
    room = line(small["bytes"], large["bytes"])
    text = [
        f"From {KINDS[kind]}, in minutes; measured with {small['objects']:,} and {large['objects']:,} objects (in bold),"
        " the others by the straight line through both:",
        "",
        f"| objects | {' | '.join(lines)} | database without files |",
        f"|--:|{'--:|' * (len(lines) + 1)}",
    ]
    for size in (small["objects"], large["objects"], *SIZES):
        is_measured = size <= large["objects"]
        minutes = [f"{(base + growth * size) / 60:.1f}" for base, growth in lines.values()]
        count = f"**{size:,}**" if is_measured else f"{size:,}"
        text.append(f"| {count} | {' | '.join(minutes)} | {(room[0] + room[1] * size) / MEGABYTE:,.0f} MB |")
    formula = ", ".join(f"{name} {base:.0f} s + {1000 * growth:.1f} ms" for name, (base, growth) in lines.items())
    text += ["", f"The lines, by object: {formula}; database {room[1] / 1024:.1f} KB."]
    return "\n".join(text)
