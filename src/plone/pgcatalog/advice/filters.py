"""What a compiled query asks of the typed columns: read from its SQL, which is ours."""

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from plone.pgcatalog.query.compiler import CompiledQuery
from typing import Any

import re


COLUMN = r'"([a-z0-9_]+)"'
#: What a condition on one column looks like, and what kind of filter it is; the first that fits counts.
KINDS = (
    (re.compile(rf"{COLUMN} = %s"), "equal"),
    (re.compile(rf"(?:NOT )?{COLUMN}"), "flag"),
    (re.compile(rf"{COLUMN} = ANY\(.*\)"), "any"),
    (re.compile(rf"{COLUMN} (?:<|>|<=|>=) %s"), "range"),
    # A path and what is below it; a date within its resolution.
    (re.compile(rf"{COLUMN} = %s OR \({COLUMN} >= %s AND {COLUMN} < %s\)"), "range"),
    (re.compile(rf"{COLUMN} (?:&&|@>) .*"), "array"),
    (re.compile(rf"{COLUMN} @@ .*"), "text"),
)
ORDER = re.compile(rf"{COLUMN}( DESC)?")


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on a column: equal, flag, any, range, array or text; an equal one has a *value*.

    It is *steady* when all queries of its shape ask for that value.
    """

    column: str
    kind: str
    value: Any = None
    steady: bool = True


def filters_of(query: CompiledQuery) -> tuple[Filter, ...]:
    """Return the conditions that all rows *query* finds fulfil, as far as they are about one column each."""
    found: dict[tuple[str, str], Filter] = {}
    for sql, values in conjuncts(query.where.sql, query.where.params):
        for pattern, kind in KINDS:
            match = pattern.fullmatch(sql)
            if match and len({name for name in match.groups() if name}) == 1:
                value = values[0] if kind == "equal" else None
                found.setdefault((match[1], kind), Filter(match[1], kind, value))
                break
    return tuple(found.values())


def sort_columns(query: CompiledQuery) -> tuple[str, ...]:
    """Return the columns *query* is sorted by in SQL, record ids aside; none when it is sorted by anything else."""
    names = []
    for term in query.order:
        if term.removesuffix(" DESC") == "rid":
            continue
        match = ORDER.fullmatch(term)
        if match is None:
            return ()
        names.append(match[1])
    return tuple(names) if query.score is None else ()


def conjuncts(sql: str, values: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the conditions that *sql* joins by AND, each with its values."""
    start = 0
    parts = split(sql)
    for part in parts:
        count = part.count("%s")
        own = values[start : start + count]
        start += count
        inner = without_parentheses(part)
        if len(parts) == 1 and inner == part:
            yield part, own
        else:
            yield from conjuncts(inner, own)


def split(sql: str) -> list[str]:
    """Return the parts of *sql* between the ANDs outside of parentheses; all of it when there is an OR."""
    parts, depth, start = [], 0, 0
    for match in re.finditer(r"[()]| AND | OR ", sql):
        word = match[0]
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth == 0 and word == " OR ":
            return [sql]
        if depth == 0 and word == " AND ":
            parts.append(sql[start : match.start()])
            start = match.end()
    return [*parts, sql[start:]]


def without_parentheses(sql: str) -> str:
    """Return *sql* without the pair of parentheses around all of it, if there is one."""
    if not sql.startswith("("):
        return sql
    depth = 0
    for place, character in enumerate(sql):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return sql[1:-1] if place == len(sql) - 1 else sql
    return sql
