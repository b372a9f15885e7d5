"""Plans of slow statements, from EXPLAIN, and the causes of their slowness.  Values of queries are not stored."""

from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from plone.pgcatalog.database.prepared import NO_SCAN
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import ms
from plone.pgcatalog.i18n import percent
from plone.pgcatalog.observe.log import Figures
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.log import History
from plone.pgcatalog.sql.expression import Statement
from psycopg import Connection
from typing import Any

import re


EXECUTED_PLAN = "ANALYZE, BUFFERS, FORMAT JSON"
ONLY_PLAN = "FORMAT JSON"
#: Keys of a plan's node that are stored.
STORED_KEYS = (
    *("Node Type", "Relation Name", "Index Name", "Join Type", "Plan Rows", "Actual Rows", "Actual Loops"),
    *("Actual Total Time", "Rows Removed by Filter", "Rows Removed by Index Recheck", "Rows Removed by Join Filter"),
    *("Shared Hit Blocks", "Shared Read Blocks", "Sort Method"),
)
#: Keys of a plan's node that contain values of the query.
CONDITIONS = ("Index Cond", "Recheck Cond", "Filter", "Hash Cond", "Join Filter", "Sort Key")
REMOVED = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
#: Replaces the numbers of a vector in texts for people.
VECTOR = "[…]"
_NUMBER = r"-?[\d.e+-]+"
_NUMBERS = re.compile(rf"\[{_NUMBER}(?:,{_NUMBER}){{5,}}\]")


def explain_rows(connection: Connection[Any], statement: Statement, options: str) -> list[tuple[Any, ...]]:
    """Return the rows of EXPLAIN with *options* for *statement*, planned as in a search, in a read-only transaction."""
    with connection.transaction():
        connection.execute("SET TRANSACTION READ ONLY")
        connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        if statement.is_costly:
            connection.execute(NO_SCAN)
        rows = connection.execute(f"EXPLAIN ({options}) {statement.sql}", statement.params).fetchall()
    return rows


def explain_json(connection: Connection[Any], statement: Statement, run: bool = True) -> dict[str, Any]:
    """Return the plan of *statement* as PostgreSQL's JSON data; with *run* the statement is executed (EXPLAIN ANALYZE).

    The rows of *connection* are tuples.  Raises psycopg.Error.
    """
    [([plan],)] = explain_rows(connection, statement, EXECUTED_PLAN if run else ONLY_PLAN)
    data: dict[str, Any] = plan
    return data


def summary(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the plan *raw* that is stored: its times, rows and nodes, without values of the query."""
    top = raw["Plan"]
    stored: dict[str, Any] = {"plan": without_values(top)}
    if "Execution Time" in raw:
        stored["server_ms"] = raw["Planning Time"] + raw["Execution Time"]
        stored["planning_ms"] = raw["Planning Time"]
        stored["rows_read"] = round(rows_read(top))
        stored["rows_returned"] = round(rows_returned(top))
        stored["pages_read"] = top.get("Shared Read Blocks", 0)
    return stored


def without_values(node: Mapping[str, Any]) -> dict[str, Any]:
    stored: dict[str, Any] = {name: node[name] for name in STORED_KEYS if name in node}
    if "Plans" in node:
        stored["Plans"] = [without_values(part) for part in node["Plans"]]
    return stored


def rows_read(node: Mapping[str, Any]) -> float:
    """Return the number of rows that the scans of tables at and below *node* have read."""
    below = sum(rows_read(part) for part in node.get("Plans", ()))
    if "Relation Name" not in node:
        return below
    rows = node["Actual Rows"] + sum(node.get(name, 0) for name in REMOVED)
    return float(below + rows * node["Actual Loops"])


def rows_returned(node: Mapping[str, Any]) -> float:
    """Return the number of rows that *node* returned; for an Aggregate, the number of rows that it aggregated.

    Parallel processes aggregate their rows below a Gather.
    """
    while node["Node Type"] in ("Aggregate", "Gather", "Gather Merge") and node.get("Plans"):
        node = node["Plans"][0]
    return float(node["Actual Rows"] * node["Actual Loops"])


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """Figures of an executed plan; times in milliseconds."""

    server_ms: float
    rows_read: int
    rows_returned: int

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> "PlanFigures | None":
        """Return the figures in a result of ``summary``; None if the statement was not executed."""
        if not stored or "server_ms" not in stored:
            return None
        return cls(*(stored[name] for name in cls.__slots__))


def lines(plan: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield lines of text for the node *plan* and those below, of a stored plan or of PostgreSQL's JSON."""
    indent = "  " * depth
    name = " ".join(filter(None, (plan.get("Join Type", ""), plan["Node Type"])))
    name += f" using {plan['Index Name']}" if "Index Name" in plan else ""
    name += f" on {plan['Relation Name']}" if "Relation Name" in plan else ""
    figures = [f"{plan['Plan Rows']:,} rows expected"]
    if "Actual Rows" in plan:
        times = plan["Actual Loops"]
        figures = [f"{plan['Actual Rows']:,.0f} rows", *figures, f"{plan['Actual Total Time'] * times:.2f} ms"]
        figures += [f"{times:,.0f} times"] if times != 1 else []
        removed = sum(plan.get(key, 0) for key in REMOVED)
        figures += [f"{removed * times:,.0f} rows removed by filters"] if removed else []
    yield f"{indent}{name}: {', '.join(figures)}"
    for condition in CONDITIONS:
        if condition in plan:
            terms = plan[condition]
            yield without_vectors(f"{indent}    {condition}: {', '.join(terms) if isinstance(terms, list) else terms}")
    for part in plan.get("Plans", ()):
        yield from lines(part, depth + 1)


def without_vectors(text: str) -> str:
    """Return *text* with each vector replaced by VECTOR."""
    return _NUMBERS.sub(VECTOR, text)


def text(plan: Mapping[str, Any], server_ms: float | None) -> str:
    """Return the text of the plan with the root node *plan*, and of its time on the server."""
    end = [] if server_ms is None else [f"Time on the server: {server_ms:.3f} ms"]
    return "\n".join([*lines(plan), *end])


#: The parts of the time of a search, in their order.
EMBED, COMPILE, WAITING, PLAN, UNKNOWN, TRANSFER = "embed", "compile", "waiting", "plan", "unknown", "transfer"
PARTS = {
    EMBED: _("waiting for the embedder"),
    COMPILE: _("compiling the SQL"),
    WAITING: _("waiting for the server"),
    PLAN: _("execution in PostgreSQL"),
    UNKNOWN: _("execution in PostgreSQL, or waiting for it"),
    TRANSFER: _("reading the rows"),
}
COLD = {
    "process": _("the first in their process"),
    "connection": _("the first of their kind on their connection"),
}
#: Share of cold queries in a group from which coldness counts as the cause.
MOSTLY = 0.5
#: The longest period, in hours, that is compared with the same period a week before.
WEEK = 168
#: Factor and number of queries from which a deviation from the week before is reported.
DEVIATION = 1.5
FEW = 5


@dataclass(frozen=True, slots=True)
class Why:
    """The parts of the time as shares from 0 to 1; the *cause*, a part or "cold"; the number of cold queries; the plan."""

    parts: dict[str, float]
    cause: str
    cold: int
    plan: PlanFigures | None


def why(group: Group) -> Why:
    """Return why the queries of *group* were slow.

    The time on the server is the time that the query took when it was explained.  The rest of the execution time counts as
    waiting: for a busy server, a lock, the network, or pages that were not in memory.
    """
    waiting = unknown = server = 0.0
    if group.server_ms is None:
        unknown = group.execute_ms
    else:
        server, waiting = group.server_ms, group.execute_ms - group.server_ms
    sums = {EMBED: group.embed_ms, COMPILE: group.compile_ms, WAITING: waiting, PLAN: server, UNKNOWN: unknown}
    sums[TRANSFER] = group.decode_ms
    total = sum(sums.values()) or 1.0
    parts = {name: time / total for name, time in sums.items()}
    cold = sum(group.cold.values())
    is_cold = cold >= MOSTLY * group.count and parts[PLAN] < MOSTLY
    cause = "cold" if is_cold else max(parts, key=lambda name: parts[name])
    return Why(parts, cause, cold, PlanFigures.of(group.plan))


def reason(group: Group) -> str:
    """Return a message of one sentence: why the queries of *group* were slow."""
    explanation = why(group)
    if explanation.cause == "cold":
        kinds = [COLD[kind] for kind, count in group.cold.items() if count]
        values = {"cold": str(explanation.cold), "number": str(group.count), "kinds": listed(kinds)}
        return _("Cold: ${cold} of ${number} were ${kinds}.", values)
    share = {"share": percent(explanation.parts[explanation.cause]), "part": PARTS[explanation.cause]}
    if explanation.plan is not None and explanation.cause == PLAN:
        return _("${share} of the time is ${part}: ${rows}.", share | {"rows": rows_text(explanation.plan)})
    if explanation.plan is not None and explanation.cause == WAITING:
        time = {"time": ms(explanation.plan.server_ms)}
        return _("${share} of the time is ${part}: EXPLAIN took only ${time} ms.", share | time)
    return _("${share} of the time is ${part}.", share)


def rows_text(figures: PlanFigures) -> str:
    """Return a message with the numbers of rows that the plan reads and returns."""
    numbers = {"read": f"{figures.rows_read:,}", "returned": f"{figures.rows_returned:,}"}
    return _("${read} rows read, ${returned} returned", numbers)


def deviation(group: Group, history: History, hours: int | None) -> str:
    """Return a message about the change of *group* from the week before, over the last *hours*, the period of *history*.

    It is empty if there is no notable change, or too little to compare.
    """
    now, before = (figures.get(group.key, Figures()) for figures in (history.now, history.before))
    if hours is None or hours > WEEK or not history.is_compared or max(now.count, before.count) < FEW:
        return ""
    if not before.count:
        return _("none")
    counts, times = now.count / before.count, now.p95_ms / before.p95_ms
    changes = [
        (_("${factor} times as many queries", {"factor": f"{counts:.1f}"}), counts),
        (_("${factor} times the 95th percentile", {"factor": f"{times:.1f}"}), times),
    ]
    return listed([text for text, change in changes if not 1 / DEVIATION < change < DEVIATION])


def listed(messages: list[str]) -> str:
    """Return *messages* as one message, separated by commas; empty if there are none."""
    if len(messages) < 2:
        return messages[0] if messages else ""
    return _("${first}, ${others}", {"first": messages[0], "others": listed(messages[1:])})
