"""Why queries were slow: what their time consists of, and which part of it is the largest; in words, too."""

from dataclasses import dataclass
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import ms
from plone.pgcatalog.i18n import percent
from plone.pgcatalog.observe.log import Figures
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.log import History
from plone.pgcatalog.observe.plan import PlanFigures


#: What the time of a search consists of, in the order it comes.
COMPILE, WAITING, PLAN, UNKNOWN, TRANSFER = "compile", "waiting", "plan", "unknown", "transfer"
PARTS = {
    COMPILE: _("making the SQL"),
    WAITING: _("waiting for the server"),
    PLAN: _("PostgreSQL's work"),
    UNKNOWN: _("PostgreSQL, or waiting for it"),
    TRANSFER: _("reading the rows"),
}
COLD = {
    "process": _("the first of its process"),
    "write": _("the first after a change"),
    "connection": _("the first of its kind on its connection"),
}
#: From this share of the queries on that were the first of something, that is why they were slow.
MOSTLY = 0.5
#: The longest period, in hours, that can be compared with the one a week before.
WEEK = 168
#: A deviation from the week before is worth a word from this factor on, and from so many queries on.
DEVIATION = 1.5
FEW = 5


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


def reason(group: Group) -> str:
    """Return a message, one sentence, about the cause for which the queries of *group* were slow."""
    found = why(group)
    if found.cause == "cold":
        kinds = [COLD[kind] for kind, count in group.cold.items() if count]
        values = {"cold": str(found.cold), "number": str(group.count), "kinds": listed(kinds)}
        return _("Cold: ${cold} of ${number} were ${kinds}.", values)
    share = {"share": percent(found.parts[found.cause]), "part": PARTS[found.cause]}
    if found.plan is not None and found.cause == PLAN:
        return _("${share} of the time is ${part}: ${rows}.", share | {"rows": rows_text(found.plan)})
    if found.plan is not None and found.cause == WAITING:
        time = {"time": ms(found.plan.server_ms)}
        return _("${share} of the time is ${part}: explained, it took ${time} ms there.", share | time)
    return _("${share} of the time is ${part}.", share)


def rows_text(figures: PlanFigures) -> str:
    """Return a message how many rows a plan reads, and how many it returns."""
    numbers = {"read": f"{figures.rows_read:,}", "returned": f"{figures.rows_returned:,}"}
    return _("${read} rows read, ${returned} returned", numbers)


def deviation(group: Group, history: History, hours: int | None) -> str:
    """Return a message what is different from the week before for *group* in the last *hours*, which *history* is of.

    It is empty if nothing is, or if nobody can tell.
    """
    now, before = (found.get(group.key, Figures()) for found in (history.now, history.before))
    if hours is None or hours > WEEK or max(now.count, before.count) < FEW:
        return ""
    if not before.count:
        return _("none")
    counts, times = now.count / before.count, now.p95_ms / before.p95_ms
    changes = [
        (_("${factor} times the queries", {"factor": f"{counts:.1f}"}), counts),
        (_("${factor} times the 95 %", {"factor": f"{times:.1f}"}), times),
    ]
    return listed([text for text, change in changes if not 1 / DEVIATION < change < DEVIATION])


def listed(messages: list[str]) -> str:
    """Return one message of several with commas between them; empty for none."""
    if len(messages) < 2:
        return messages[0] if messages else ""
    return _("${first}, ${others}", {"first": messages[0], "others": listed(messages[1:])})
