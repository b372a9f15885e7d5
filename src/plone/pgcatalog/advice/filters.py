"""What a compiled query asks of the typed columns."""

from dataclasses import dataclass
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.ranked import Score
from plone.pgcatalog.sql import predicate
from plone.pgcatalog.sql.column import RID
from plone.pgcatalog.sql.expression import And
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import Or
from plone.pgcatalog.sql.predicate import Predicate
from typing import Any


#: What kind of filter a predicate with an operator is; others are none.
KINDS = {
    predicate.EQUALS: "equal",
    predicate.TRUE: "flag",
    predicate.FALSE: "flag",
    predicate.ANY: "any",
    predicate.OVERLAPS: "array",
    predicate.CONTAINS: "array",
    predicate.MATCHES: "text",
    **dict.fromkeys(predicate.RANGES, "range"),
}


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
    for part in query.where.conjuncts():
        kind = kind_of(part)
        if kind and part.columns:
            name = part.columns[0].name
            value = part.params[0] if kind == "equal" else None
            found.setdefault((name, kind), Filter(name, kind, value))
    return tuple(found.values())


def kind_of(part: Condition) -> str | None:
    """Return what kind of filter *part* is, None for one that is no filter of a single column."""
    if isinstance(part, Predicate):
        return KINDS.get(part.operator)
    # Alternatives within one column, such as several dates.
    if isinstance(part, Or | And) and len(part.columns or ()) == 1:
        kinds = {kind_of(each) for each in part.parts}
        return "range" if kinds <= {"equal", "range"} else None
    return None


def sort_columns(query: CompiledQuery) -> tuple[str, ...]:
    """Return the columns *query* is sorted by in SQL, record ids aside; none when it is sorted by anything else."""
    names = [term.column and term.column.name for term in query.order if term.column is not RID]
    return tuple(name for name in names if name) if query.score is None and all(names) else ()


def columns_of(query: CompiledQuery) -> frozenset[str] | None:
    """Return the names of the columns that *query* reads to find and to rank rows; None if nobody says which."""
    conditions = [query.where]
    if query.score is not None:
        if not isinstance(query.score, Score):
            return None
        # What is ranked by are the columns that it looks for words in.
        conditions += [condition for group in query.score.preferred for condition in group]
    found: set[str] = set()
    for condition in conditions:
        if condition.columns is None:
            return None
        found.update(column.name for column in condition.columns)
    return frozenset(found)
