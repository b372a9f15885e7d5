"""A table, and what its cells are made of."""

from benchmarks.backends import LABELS
from collections.abc import Sequence
from dataclasses import dataclass
from rich.table import Table as RichTable
from typing import Any


#: (what is judged, what it is compared with) by command.
PAIRS = {
    "level1": ("pgcatalog", "relstorage-zcatalog"),
    "level2": ("pgcatalog", "relstorage-zcatalog"),
    "search": ("pgcatalog", "relstorage-zcatalog"),
    "pages": ("pgcatalog", "relstorage-zcatalog"),
    "rebuild": ("pgcatalog", "relstorage-zcatalog"),
    "scale": ("pgcatalog", "relstorage-zcatalog"),
    "resume": ("pgcatalog", "relstorage-zcatalog"),
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
    return int(options.get("docs") or options.get("rows") or options.get("count") or 0) * int(options.get("copies", 1))
