"""Candidates for SQL indexes that might speed up a query.

A btree refuses rows over 2,704 bytes, and an index must never make a save fail.  So columns are only combined if their
longest values fit into one row together; arrays are indexed by GIN only.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from plone.pgcatalog.database.expected import Execute
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.ranked import Score
from plone.pgcatalog.sql import predicate
from plone.pgcatalog.sql.column import RID
from plone.pgcatalog.sql.expression import And
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import Or
from plone.pgcatalog.sql.files import read_statement
from plone.pgcatalog.sql.predicate import Predicate
from psycopg import sql
from typing import Any

import hashlib


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of a column from ANALYZE.

    *distinct*: the number of distinct values, 0 if unknown; *common*: frequent value, as text -> its fraction of the rows.
    """

    name: str
    type: str
    distinct: float = 0
    null_fraction: float = 0
    common: Mapping[str, float] = field(default_factory=dict)

    def fraction(self, value: object) -> float:
        """Return the estimated fraction of the rows with *value*, from 0 to 1."""
        if str(value) in self.common:
            return self.common[str(value)]
        rest = max(0.0, 1 - self.null_fraction - sum(self.common.values()))
        others = self.distinct - len(self.common) if self.distinct > 0 else 100.0
        return rest / max(others, 1.0)


@dataclass(frozen=True, slots=True)
class IndexStatistics:
    """An SQL index; *definition* is the DDL after ``ON table``, *columns* are all columns that it reads."""

    name: str
    definition: str
    method: str
    keys: tuple[str, ...]
    included: tuple[str, ...]
    predicate: str
    is_unique: bool
    is_valid: bool
    bytes: int
    scans: int
    comment: str
    columns: Sequence[str] = ()


def column_statistics(execute: Execute, relation: str) -> dict[str, ColumnStatistics]:
    """Return name -> statistics of the columns of *relation*, read with *execute*."""
    return {
        name: ColumnStatistics(name, type, distinct, nulls, dict(zip(values, fractions, strict=False)))
        for name, type, distinct, nulls, values, fractions in execute(
            read_statement("advice", "columns"), {"relation": quote(relation)}
        )
    }


def index_statistics(execute: Execute, relation: str) -> list[IndexStatistics]:
    """Return the SQL indexes of *relation* with their statistics, read with *execute*."""
    return [
        IndexStatistics(name, definition, method, tuple(keys), tuple(included), *rest)
        for name, definition, method, keys, included, *rest in execute(
            read_statement("advice", "inventory"), {"relation": quote(relation)}
        )
    ]


def duplicates(indexes: list[IndexStatistics]) -> dict[str, str]:
    """Return name of a redundant index -> name of the index that makes it redundant."""
    better: dict[str, str] = {}
    for index in indexes:
        for other in indexes:
            if other.name != index.name and other.name not in better and covers(other, index):
                better[index.name] = other.name
                break
    return better


def covers(larger: IndexStatistics, smaller: IndexStatistics) -> bool:
    if smaller.is_unique or not (larger.is_valid and smaller.is_valid) or larger.method != smaller.method:
        return False
    if larger.predicate != smaller.predicate or "" in smaller.keys:
        return False
    if smaller.method == "gin":
        return set(smaller.keys) <= set(larger.keys)
    same_start = larger.keys[: len(smaller.keys)] == smaller.keys
    return same_start and set(smaller.included) <= {*larger.included, *larger.keys}


#: Operator of a predicate -> kind of filter; predicates with other operators are no filters.
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
    """A condition on a column, of the kind equal, flag, any, range, array or text; *value* is the value of an equal one.

    It is *steady* if all queries of its shape have that value.
    """

    column: str
    kind: str
    value: Any = None
    steady: bool = True


def filters_of(compiled: CompiledQuery) -> tuple[Filter, ...]:
    """Return the conditions on single columns that all rows of the query *compiled* fulfil."""
    filters: dict[tuple[str, str], Filter] = {}
    for part in compiled.where.conjuncts():
        kind = kind_of(part)
        if kind and part.columns:
            name = part.columns[0].name
            value = part.params[0] if kind == "equal" else None
            filters.setdefault((name, kind), Filter(name, kind, value))
    return tuple(filters.values())


def kind_of(part: Condition) -> str | None:
    """Return the kind of filter of *part*; None if it is not a filter of a single column."""
    if isinstance(part, Predicate):
        return KINDS.get(part.operator)
    # Alternatives within one column, such as several dates.
    if isinstance(part, Or | And) and len(part.columns or ()) == 1:
        kinds = {kind_of(each) for each in part.parts}
        return "range" if kinds <= {"equal", "range"} else None
    return None


def sort_columns(compiled: CompiledQuery) -> tuple[str, ...]:
    """Return the columns by which the query *compiled* is sorted in SQL, without the rid; () if by anything else."""
    names = [term.column and term.column.name for term in compiled.order if term.column is not RID]
    return tuple(name for name in names if name) if compiled.score is None and all(names) else ()


def columns_of(compiled: CompiledQuery) -> frozenset[str] | None:
    """Return the names of the columns that the query *compiled* reads to find and to rank rows; None if they are unknown."""
    conditions = [compiled.where]
    if compiled.score is not None:
        if not isinstance(compiled.score, Score):
            return None
        # Ranking reads the columns in which it searches for words.
        conditions += [condition for group in compiled.score.preferred for condition in group]
    names: set[str] = set()
    for condition in conditions:
        if condition.columns is None:
            return None
        names.update(column.name for column in condition.columns)
    return frozenset(names)


#: Length in bytes up to which index rows are surely accepted.
BTREE_BYTES = 2640
FIXED_BYTES = {"bigint": 8, "integer": 8, "boolean": 8, "smallint": 8, "timestamp with time zone": 8}
#: Prefix in the names of all advised indexes, after the name of the relation.
PREFIX = "advice_"
#: Fractions of the rows, from and up to, for which a partial index on a value is proposed.
PARTIAL = (0.01, 0.7)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate for an SQL index; its kind is composite, partial, covering or gin."""

    kind: str
    keys: tuple[str, ...]
    included: tuple[str, ...] = ()
    where: tuple[str, str] | None = None

    @property
    def definition(self) -> str:
        """The DDL after ``ON table``."""
        method = "USING gin " if self.kind == "gin" else ""
        text = f"{method}({', '.join(map(quote, self.keys))})"
        if self.included:
            text += f" INCLUDE ({', '.join(map(quote, self.included))})"
        if self.where:
            column, value = self.where
            text += f" WHERE {quote(column)} = {sql.Literal(value).as_string(None)}"
        return text

    @property
    def name(self) -> str:
        """The name of the index after the name of the relation: a hash of the definition."""
        return PREFIX + hashlib.sha256(self.definition.encode()).hexdigest()[:12]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that the relation must have."""
        names = [*self.keys, *self.included, *([self.where[0]] if self.where else [])]
        return tuple(dict.fromkeys(names))

    def ddl(self, relation: str) -> str:
        return f"CREATE INDEX CONCURRENTLY {quote(f'{relation}_{self.name}')} ON {quote(relation)} {self.definition}"


class Candidates:
    """Proposes candidates for a relation with these *columns* and *indexes*.

    *text_bytes* is the maximum length of the values of text columns; other text columns are not combined.
    """

    def __init__(
        self,
        columns: Mapping[str, ColumnStatistics],
        text_bytes: Mapping[str, int],
        indexes: Sequence[IndexStatistics],
    ) -> None:
        self._columns = columns
        self._text_bytes = text_bytes
        self._indexes = indexes

    def propose(self, filters: Sequence[Filter], sort: Sequence[str]) -> list[Candidate]:
        """Return candidates for a query with these *filters*, sorted by the columns *sort*; the narrow ones first."""
        candidates = dict.fromkeys(self._all(filters, tuple(sort)))
        return [candidate for candidate in candidates if self._is_safe(candidate) and not self._exists(candidate)]

    def _all(self, filters: Sequence[Filter], sort: tuple[str, ...]) -> Iterator[Candidate]:
        of_columns = [f for f in filters if f.column in self._columns]
        equal = sorted((f for f in of_columns if f.kind == "equal"), key=self._fraction)
        names = tuple(dict.fromkeys(f.column for f in equal))
        ranges = [f.column for f in of_columns if f.kind == "range" and f.column not in sort]
        tail = (*sort, "rid") if sort else ()
        for leading in prefixes(names):
            if sort:
                yield Candidate("composite", (*leading, *tail))
            elif len(leading) > 1:
                yield Candidate("composite", leading)
            for column in ranges:
                if leading and not sort:
                    yield Candidate("composite", (*leading, column))
        rest = [f.column for f in of_columns if f.kind in ("any", "range", "flag", "equal")]
        for keys in {tail, (*names[:1], *tail)} - {()} if sort else set():
            included = tuple(name for name in dict.fromkeys(rest) if name not in keys)
            for some in prefixes(sorted(included, key=lambda name: (self._width(name), name))):
                if some:
                    yield Candidate("covering", keys, some)
        yield from self._partial(equal, names, ranges, tail)
        yield from self._gin(of_columns, equal)

    def _partial(
        self, equal: Sequence[Filter], names: tuple[str, ...], ranges: Sequence[str], tail: tuple[str, ...]
    ) -> Iterator[Candidate]:
        for f in equal:
            if not self._is_frequent(f):
                continue
            where = (f.column, f.value)
            others = tuple(name for name in names if name != f.column)
            for leading in prefixes(others):
                keys = (*leading, *(tail or ranges[:1]))
                if keys:
                    yield Candidate("partial", keys, (), where)

    def _gin(self, filters: Sequence[Filter], equal: Sequence[Filter]) -> Iterator[Candidate]:
        for f in filters:
            if f.kind not in ("array", "text"):
                continue
            for e in equal:
                if self._is_frequent(e):
                    yield Candidate("gin", (f.column,), (), (e.column, e.value))

    def _is_frequent(self, f: Filter) -> bool:
        """Return True if a partial index on the value of *f* may be worth it."""
        return f.steady and isinstance(f.value, str) and PARTIAL[0] <= self._fraction(f) <= PARTIAL[1]

    def _fraction(self, f: Filter) -> float:
        return self._columns[f.column].fraction(f.value)

    def _width(self, name: str) -> int:
        if name == "rid":
            return 8
        kind = self._columns[name].type
        if kind == "text":
            return self._text_bytes.get(name, BTREE_BYTES) + 8
        return FIXED_BYTES.get(kind, BTREE_BYTES + 1)

    def _is_safe(self, candidate: Candidate) -> bool:
        names = [*candidate.keys, *candidate.included]
        return candidate.kind == "gin" or (
            sum(map(self._width, names)) <= BTREE_BYTES and len(names) == len(set(names)) and len(names) <= 8
        )

    def _exists(self, candidate: Candidate) -> bool:
        if any(index.name.endswith(candidate.name) for index in self._indexes):
            return True
        method = "gin" if candidate.kind == "gin" else "btree"
        wanted = IndexStatistics("", "", method, candidate.keys, candidate.included, "", False, True, 0, 0, "")
        return candidate.where is None and any(covers(index, wanted) for index in self._indexes)


def prefixes(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return all prefixes of *names*, from () to all names."""
    return [tuple(names[:length]) for length in range(len(names) + 1)]
