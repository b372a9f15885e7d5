"""Tables and means of the benchmark ``pages``."""

from benchmarks.backends import LABELS
from benchmarks.page_kinds import AFTER
from benchmarks.page_kinds import FIRST_REQUEST
from benchmarks.page_kinds import GROUPS
from benchmarks.page_kinds import MIX
from benchmarks.page_kinds import READ_ONLY
from benchmarks.table import number
from benchmarks.table import PAIRS
from benchmarks.table import ratio
from benchmarks.table import size_of
from benchmarks.table import Table
from benchmarks.timing import mean_ratio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


OTHERS = (AFTER, FIRST_REQUEST)
COSTS = {
    "zope_cpu": "processor time of Zope, ms",
    "postgresql_cpu": "processor time of PostgreSQL, ms",
    "messages": "messages to PostgreSQL",
    "kb": "KB from PostgreSQL",
}


@dataclass(frozen=True)
class Kind:
    """What was asked for, and how."""

    page: str
    state: str = READ_ONLY
    clients: int = 1
    processes: int = 1


Record = dict[str, Any]


def records(data: dict[str, Any], side: int) -> dict[Kind, Record]:
    """Return what was measured of us (0), or of those we are compared with (1)."""
    found = data["results"].get(PAIRS[data["command"]][side], {}).get("pages", ())
    return {Kind(each["page"], each["state"], each["clients"], each["processes"]): each for each in found}


def both(data: dict[str, Any], state: str = READ_ONLY, group: str | None = None) -> dict[Kind, tuple[Record, Record]]:
    """Return (ours, theirs) of all kinds in *state*, of *group* if one is given."""
    ours, theirs = records(data, 0), records(data, 1)
    return {
        kind: (ours[kind], theirs[kind])
        for kind in ours
        if kind in theirs and kind.state == state and (group is None or ours[kind]["group"] == group)
    }


def quotients(data: dict[str, Any], state: str = READ_ONLY, group: str | None = None) -> dict[Kind, float]:
    """Return ours / theirs of all kinds in *state*."""
    found = {kind: ratio(*pair) for kind, pair in both(data, state, group).items()}
    return {kind: each for kind, each in found.items() if each is not None}


def mix_ratio(data: dict[str, Any], clients: int, processes: int, state: str) -> float | None:
    """Return the time of a page of the mix, ours / theirs: by the number of pages in a second."""
    ours, theirs = (records(data, side).get(Kind(MIX, state, clients, processes)) for side in (0, 1))
    return theirs["per_second"] / ours["per_second"] if ours and theirs else None


def page_tables(data: dict[str, Any]) -> Iterator[Table]:
    """Yield the tables of a result."""
    what = f"{data['command']}, {size_of(data):,} documents"
    yield means_table(data, f"{what}: ours / ZCatalog's")
    ours, theirs = (LABELS[name] for name in PAIRS[data["command"]])
    headers = ["", *(f"{side}, {figure}" for figure in ("p50", "p95") for side in (theirs, ours)), "ratio"]
    for state in (READ_ONLY, *OTHERS):
        rows = []
        for kind, (our, their) in both(data, state).items():
            if kind.page != MIX:
                times = (number(side[figure]) for figure in ("median", "p95") for side in (their, our))
                rows.append([kind.page, *times, number(ratio(our, their))])
        yield Table(f"{what}: {state}, 1 client, 1 process (ms)", headers, rows)
    yield mixes_table(data, f"{what}: the mix (pages in a second)")
    for state in (READ_ONLY, AFTER):
        yield costs_table(data, state, f"{what}: what a page costs, {state}")


def means_table(data: dict[str, Any], title: str) -> Table:
    """Return the geometric means and the worst pages."""
    rows = []
    for group in GROUPS:
        found = quotients(data, group=group)
        rows.append([group, number(mean_ratio(list(found.values()))), *worst(found)])
    for state in OTHERS:
        found = quotients(data, state)
        rows.append([state, number(mean_ratio(list(found.values()))), *worst(found)])
    return Table(title, ["", "geometric mean", "worst", "page"], rows)


def worst(found: dict[Kind, float]) -> list[str]:
    """Return the cells of the largest quotient."""
    if not found:
        return ["–", "–"]
    kind = max(found, key=lambda kind: found[kind])
    return [number(found[kind]), kind.page]


def mixes_table(data: dict[str, Any], title: str) -> Table:
    ours, theirs = records(data, 0), records(data, 1)
    rows = []
    for kind in ours:
        if kind.page == MIX and kind in theirs:
            name = f"clients: {kind.clients}, processes: {kind.processes}, {kind.state}"
            each = [theirs[kind], ours[kind]]
            rows.append(
                [
                    name,
                    *(number(side["per_second"]) for side in each),
                    *(number(side["p95"]) for side in each),
                    *(number(side["zope_cpu"] + side["postgresql_cpu"]) for side in each),
                    number(mix_ratio(data, kind.clients, kind.processes, kind.state)),
                ]
            )
    names = ("ZCatalog", "ours")
    headers = [f"{name}{what}" for what in ("", ", p95 (ms)", ", processor time of a page (ms)") for name in names]
    return Table(title, ["", *headers, "time, ours / ZCatalog"], rows)


def costs_table(data: dict[str, Any], state: str, title: str) -> Table:
    rows = []
    for kind, sides in both(data, state).items():
        if kind.page != MIX:
            cells = [number(side.get(cost)) for cost in COSTS for side in reversed(sides)]
            rows.append([kind.page, *cells])
    headers = [f"{label}, {name}" for label in COSTS.values() for name in ("ZCatalog", "ours")]
    return Table(title, ["", *headers], rows)
