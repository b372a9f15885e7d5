"""Tries out what an SQL index would change, without making it: three ways, the best that is possible here."""

from abc import ABC
from abc import abstractmethod
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from plone.pgcatalog.advice.candidates import Candidate
from plone.pgcatalog.advice.candidates import Filter
from plone.pgcatalog.advice.statistics import ColumnStatistics
from plone.pgcatalog.advice.statistics import Statistics
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.observe.log import Group
from plone.pgcatalog.observe.log import log_sql
from plone.pgcatalog.observe.sql import log_sql
from plone.pgcatalog.sql.expression import Statement
from psycopg import Connection
from typing import Any

import json


#: Rows of a relation that a sample has at the most.
SAMPLE_ROWS = 20_000
#: A statement is run so often, and its best time counts.
RUNS = 2

Statements = Sequence[Statement]


@dataclass(frozen=True, slots=True)
class Measure:
    """What statements cost: the planner's units, and milliseconds if they have been run; and the indexes they used."""

    cost: float
    ms: float | None
    indexes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What statements cost with a candidate, which takes *bytes*."""

    cost: float
    ms: float | None
    bytes: int


class Trial(ABC):
    """Tries candidates for *relation* on *connection*, an autocommit one of its own."""

    #: How it finds out, for people to read.
    method: str
    #: Run the statements, or only plan them?
    runs = False
    #: Rows of the sample that bytes are about; 0 for the relation itself.
    rows = 0

    def __init__(self, connection: Connection[Any], relation: str) -> None:
        self.connection = connection
        self.relation = relation

    def measure(self, statements: Statements) -> Measure:
        """Return what *statements* cost together."""
        options = "FORMAT JSON" + (", ANALYZE, TIMING OFF" if self.runs else "")
        cost, ms, names = 0.0, 0.0, set()
        for statement, values in statements:
            plans = [self._plan(f"EXPLAIN ({options}) {statement}", values) for _ in range(RUNS if self.runs else 1)]
            cost += plans[0]["Plan"]["Total Cost"]
            ms += min(plan.get("Execution Time", 0.0) for plan in plans)
            names |= set(index_names(plans[0]["Plan"]))
        return Measure(cost, ms if self.runs else None, frozenset(names))

    def _plan(self, query: str, values: Sequence[Any]) -> dict[str, Any]:
        [(plans,)] = self.connection.execute(query, values).fetchall()
        plan: dict[str, Any] = (json.loads(plans) if isinstance(plans, str) else plans)[0]
        return plan

    @abstractmethod
    def attempt(self, candidate: Candidate, statements: Statements, filters: Sequence[Filter]) -> Outcome | None:
        """Return what *statements* cost with *candidate*; None when they do not use it."""


class TrialByPlan(Trial):
    """Lets the index be there for a while, and looks at the plans."""

    def attempt(self, candidate: Candidate, statements: Statements, filters: Sequence[Filter]) -> Outcome | None:
        with self._index(candidate) as (name, size):
            measure = self.measure(statements)
        return Outcome(measure.cost, measure.ms, size) if name in measure.indexes else None

    @abstractmethod
    def _index(self, candidate: Candidate) -> AbstractContextManager[tuple[str, int]]:
        """Let *candidate* be there; yield its name in plans, and its bytes."""


class HypotheticalTrial(TrialByPlan):
    """With the extension hypopg: on the relation itself, by the planner's costs."""

    method = _("hypothetical index on the table itself (hypopg), by the planner's costs")

    @contextmanager
    def _index(self, candidate: Candidate) -> Iterator[tuple[str, int]]:
        ddl = f"CREATE INDEX ON {quote(self.relation)} {candidate.definition}"
        [(oid, name)] = self.connection.execute("SELECT * FROM hypopg_create_index(%s)", (ddl,)).fetchall()
        [(size,)] = self.connection.execute("SELECT hypopg_relation_size(%s)", (oid,)).fetchall()
        try:
            yield name, size
        finally:
            self.connection.execute("SELECT hypopg_drop_index(%s)", (oid,))


class SampleTrial(TrialByPlan):
    """On a temporary copy of some rows that has the name of the relation; its caller rolls it back."""

    runs = True

    def copy(self, asked: Collection[str] | None, total: int) -> None:
        """Make the copy, for statements that read the columns *asked*, None for any, of a relation with *total* rows.

        Raises psycopg.Error.
        """
        execute = self.connection.execute
        statistics = Statistics(lambda query, values: execute(query, values).fetchall(), self.relation)
        columns, indexes = statistics.columns(), statistics.indexes()
        [(original,)] = execute(log_sql("qualified"), {"relation": quote(self.relation)}).fetchall()
        copy = f"pg_temp.{quote(self.relation)}"
        execute(f"CREATE TEMP TABLE {quote(self.relation)} (LIKE {original} INCLUDING STORAGE) ON COMMIT DROP")
        execute(f"ALTER TABLE {copy} SET (toast_tuple_target = 256)")
        # Texts are large, and not worth copying when no query looks at them.
        kept = [
            c.name for c in columns.values() if c.type not in ("tsvector", "jsonb") or asked is None or c.name in asked
        ]
        names = ", ".join(map(quote, kept))
        sample = "" if total <= SAMPLE_ROWS else f" TABLESAMPLE BERNOULLI ({100 * SAMPLE_ROWS / total:.6f})"
        self.rows = execute(f"INSERT INTO {copy} ({names}) SELECT {names} FROM {original}{sample}").rowcount
        self.method = _(
            "index on a copy of ${rows} rows, by running the queries; the copy was rolled back",
            {"rows": f"{self.rows:,}"},
        )
        for index in indexes:
            if index.is_valid and {*index.keys, *index.included} <= {*kept, ""}:
                execute(f"CREATE {'UNIQUE ' * index.is_unique}INDEX ON {copy} {index.definition}")
        execute(f"ANALYZE {copy}")

    @contextmanager
    def _index(self, candidate: Candidate) -> Iterator[tuple[str, int]]:
        with self.connection.transaction(force_rollback=True):
            execute = self.connection.execute
            execute(f"CREATE INDEX {candidate.name} ON pg_temp.{quote(self.relation)} {candidate.definition}")
            [(size,)] = execute("SELECT pg_relation_size(%s::regclass)", (f"pg_temp.{candidate.name}",)).fetchall()
            yield candidate.name, size


class EstimateTrial(Trial):
    """By what ANALYZE knows of the values; where nothing else is possible."""

    method = _("estimated from the statistics of the columns: a sample could not be made")

    def __init__(
        self, connection: Connection[Any], relation: str, columns: Mapping[str, ColumnStatistics], rows: int
    ) -> None:
        super().__init__(connection, relation)
        self._columns = columns
        self._rows = rows

    def attempt(self, candidate: Candidate, statements: Statements, filters: Sequence[Filter]) -> Outcome | None:
        leading = {*candidate.keys, *([candidate.where[0]] if candidate.where else [])}
        fraction = 1.0
        for f in filters:
            if f.kind == "equal" and f.column in leading:
                fraction *= self._columns[f.column].fraction(f.value)
        before = self.measure(statements).cost
        width = 16 + 12 * (len(candidate.keys) + len(candidate.included))
        share = self._columns[candidate.where[0]].fraction(candidate.where[1]) if candidate.where else 1.0
        return Outcome(max(before * fraction, 1.0), None, int(self._rows * share * width))


def index_names(plan: dict[str, Any]) -> Iterator[str]:
    """Yield the names of the indexes that *plan* uses."""
    if "Index Name" in plan:
        yield plan["Index Name"]
    for part in plan.get("Plans", ()):
        yield from index_names(part)


@dataclass(frozen=True, slots=True)
class Question:
    """The queries of one shape, ready to be run again."""

    group: Group
    statements: tuple[Statement, ...]
    filters: tuple[Filter, ...]
    sort: tuple[str, ...]
    #: names of the columns that the statements read; None if nobody says which
    columns: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An index worth building, for the queries of one shape; *gain* is the part of their time it saves."""

    candidate: Candidate
    group: Group
    before: Measure
    after: Outcome
    ddl: str
    #: What the index costs those who save something, for people to read.
    write_cost: str
    #: Of the whole index; a sample's is projected.
    bytes: int

    @property
    def gain(self) -> float:
        if self.before.ms and self.after.ms is not None:
            return max(0.0, 1 - self.after.ms / self.before.ms)
        return max(0.0, 1 - self.after.cost / self.before.cost)

    @property
    def comparison(self) -> str:
        """Before and after, for people to read."""
        if self.before.ms is not None and self.after.ms is not None:
            return f"{self.before.ms:.2f} → {self.after.ms:.2f} ms"
        costs = {"before": f"{self.before.cost:.0f}", "after": f"{self.after.cost:.0f}"}
        return _("cost ${before} → ${after}", costs)


@dataclass(slots=True)
class Advice:
    """What came out: suggestions, the best first, how they were found, and shapes without one, with the reason."""

    method: str
    rows: int
    suggestions: list[Suggestion] = field(default_factory=list)
    without: list[tuple[Group, str]] = field(default_factory=list)
