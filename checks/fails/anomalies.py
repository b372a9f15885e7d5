"""Anomalies in a history of transactions that append values to lists and read the lists.

- A. Adya, *Weak Consistency: A Generalized Theory and Optimistic Implementations for Distributed Transactions*, 1999:
  the anomalies G0, G1a, G1b, G1c and G-single.
- K. Kingsbury, P. Alvaro, *Elle: Inferring Isolation Anomalies from Experimental Observations*, 2020: a list that is read
  names its earlier versions, so the order of all writes is known.
"""

from collections import defaultdict
from collections import deque
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from enum import StrEnum
from itertools import pairwise


class Status(StrEnum):
    """The end of a transaction as its client knows it; UNKNOWN: the answer to its commit was lost."""

    COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"


class Dependency(StrEnum):
    """The reason why a transaction is before another one.

    A write before a write, a read of it, a read before a write; an earlier transaction of the same process.
    """

    WW, WR, RW, PROCESS = "ww", "wr", "rw", "process"


@dataclass
class Transaction:
    """Lists read, as (key, values) without the values of this transaction, and values appended, as (key, value), in order."""

    #: ``<process>.<number>``, or just unique.
    name: str
    reads: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    appends: list[tuple[str, str]] = field(default_factory=list)
    status: Status = Status.COMMITTED


#: Transaction -> the transactions that depend on it -> the dependencies.
Graph = Mapping[str, Mapping[str, set[Dependency]]]


def anomalies(history: Sequence[Transaction]) -> list[str]:
    """Return the anomalies of *history* as lines; values are unique for each key.

    ``order`` is no anomaly of the theory: two reads of a key of which none is the beginning of the other one.  ``lost``
    is a committed value that a read lacks although it has a later one, or that the longest read of its key lacks.
    ``session`` is a process that does not see its own earlier write, or an older state than before.
    """
    writers = {item: txn for txn in history for item in txn.appends}
    versions, found = orders(history)
    found += read_anomalies(history, writers)
    for txn in history:
        if txn.status is Status.COMMITTED:
            lost = [item for item in txn.appends if item[0] in versions and item[1] not in versions[item[0]]]
            found += [f"lost: {key} {value} of {txn.name}" for key, value in lost]
    return found + cycles(graph(history, versions, writers))


def orders(history: Iterable[Transaction]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the longest list read of each key, and lines about the reads that are not its beginning."""
    reads = [(txn, key, values) for txn in history if txn.status is not Status.ABORTED for key, values in txn.reads]
    versions: dict[str, tuple[str, ...]] = {}
    for _, key, values in reads:
        versions[key] = max(versions.get(key, ()), values, key=len)
    wrong = [(txn, key, values) for txn, key, values in reads if versions[key][: len(values)] != values]
    return versions, [f"order: {key} read by {txn.name} as {values}, is {versions[key]}" for txn, key, values in wrong]


def read_anomalies(history: Iterable[Transaction], writers: Mapping[tuple[str, str], Transaction]) -> list[str]:
    """Return lines for reads of aborted transactions (G1a) and of intermediate values (G1b)."""
    found = []
    for txn in history:
        for key, values in txn.reads if txn.status is not Status.ABORTED else ():
            for value in values:
                writer = writers.get((key, value))
                if writer is None or writer.status is Status.ABORTED:
                    found.append(
                        f"G1a: {key} {value} of {writer.name if writer else 'no transaction'} read by {txn.name}"
                    )
            if values and (writer := writers.get((key, values[-1]))) is not None and writer is not txn:
                last = [value for of, value in writer.appends if of == key][-1]
                if values[-1] != last:
                    found.append(f"G1b: {key} {values[-1]} of {writer.name} read by {txn.name}, before {last}")
    return found


def graph(
    history: Iterable[Transaction],
    versions: Mapping[str, Sequence[str]],
    writers: Mapping[tuple[str, str], Transaction],
) -> Graph:
    """Return the dependencies between the transactions that are committed, or whose values were read."""
    found: dict[str, dict[str, set[Dependency]]] = defaultdict(lambda: defaultdict(set))

    def add(one: Transaction | None, other: Transaction | None, dependency: Dependency) -> None:
        if one is not None and other is not None and one is not other:
            found[one.name][other.name].add(dependency)

    for key, values in versions.items():
        for one, other in pairwise(values):
            add(writers.get((key, one)), writers.get((key, other)), Dependency.WW)
    for txn in history:
        for key, values in txn.reads if txn.status is not Status.ABORTED else ():
            if values:
                add(writers.get((key, values[-1])), txn, Dependency.WR)
            for later in versions[key][len(values) : len(values) + 1]:
                add(txn, writers.get((key, later)), Dependency.RW)
    former: dict[str, Transaction] = {}
    for txn in history:
        process, is_numbered, _ = txn.name.partition(".")
        if is_numbered and txn.status is Status.COMMITTED:
            add(former.get(process), txn, Dependency.PROCESS)
            former[process] = txn
    return found


def cycles(dependencies: Graph) -> list[str]:
    """Return a line for each dependency that closes a cycle.

    The cycle is of writes (G0), with reads (G1c), with one RW (G-single), or with the order of a process (session).
    """
    writes, reads = {Dependency.WW}, {Dependency.WW, Dependency.WR}
    session = reads | {Dependency.PROCESS}
    kinds = (
        ("G0", {Dependency.WW}, writes),
        ("G1c", {Dependency.WR}, reads),
        ("G-single", {Dependency.RW}, reads),
        ("session", {Dependency.WW, Dependency.WR, Dependency.RW}, session),
    )
    found = []
    for one, others in list(dependencies.items()):
        for other, by in list(others.items()):
            for name, closing, allowed in kinds:
                if by & closing and (way := path(dependencies, other, one, allowed)):
                    found.append(f"{name}: {' -> '.join([one, *way])}")
                    break
    return found


def path(dependencies: Graph, start: str, end: str, allowed: set[Dependency]) -> list[str]:
    """Return the names from *start* to *end* along *allowed* dependencies; empty if there is no such path."""
    before: dict[str, str] = {start: ""}
    waiting = deque([start])
    while waiting:
        name = waiting.popleft()
        if name == end:
            return list(back(before, end))[::-1]
        for other, by in dependencies.get(name, {}).items():
            if other not in before and by & allowed:
                before[other] = name
                waiting.append(other)
    return []


def back(before: Mapping[str, str], name: str) -> Iterator[str]:
    while name:
        yield name
        name = before[name]
