"""Why queries were slow: what their time consists of, and which part of it is the largest."""

from dataclasses import dataclass
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.plan import PlanFigures


#: What the time of a search consists of, in the order it comes.
COMPILE, WAITING, PLAN, UNKNOWN, TRANSFER = "compile", "waiting", "plan", "unknown", "transfer"
#: From this share of the queries on that were the first of something, that is why they were slow.
MOSTLY = 0.5


@dataclass(frozen=True, slots=True)
class Why:
    """The parts of the time as shares from 0 to 1, in their order; the *cause*, a part or "cold"; what the plan says."""

    parts: dict[str, float]
    cause: str
    cold: int
    plan: PlanFigures | None


def why(group: Group) -> Why:
    """Return why the queries of *group* were slow.

    The server's own part is what the same query took there when it was explained; what is beyond that was waiting: for a
    busy server or a lock, for the network, for pages that were not in memory.
    """
    waiting = unknown = server = 0.0
    if group.server_ms is None:
        unknown = group.execute_ms
    else:
        server, waiting = group.server_ms, group.execute_ms - group.server_ms
    sums = {COMPILE: group.compile_ms, WAITING: waiting, PLAN: server, UNKNOWN: unknown, TRANSFER: group.decode_ms}
    total = sum(sums.values()) or 1.0
    parts = {name: found / total for name, found in sums.items()}
    cold = sum(group.cold.values())
    is_cold = cold >= MOSTLY * group.count and parts[PLAN] < MOSTLY
    cause = "cold" if is_cold else max(parts, key=lambda name: parts[name])
    return Why(parts, cause, cold, PlanFigures.of(group.plan))
