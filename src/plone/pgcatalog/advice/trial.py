"""Measures the effect of an SQL index by running queries on a temporary copy of some rows."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from plone.pgcatalog.advice.candidates import Candidate
from plone.pgcatalog.advice.candidates import ColumnStatistics
from plone.pgcatalog.advice.candidates import IndexStatistics
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexes.base import quote
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.files import read_statement
from psycopg import Connection
from typing import Any


#: Maximum number of rows in the copy.
SAMPLE_ROWS = 20_000
#: Number of times a statement is run; the best time counts.
RUNS = 2
EXPLAIN = "EXPLAIN (FORMAT JSON, ANALYZE, TIMING OFF)"


@dataclass(frozen=True, slots=True)
class Measure:
    """The cost of statements in the planner's units, their time in milliseconds, and the SQL indexes that they used."""

    cost: float
    ms: float
    indexes: frozenset[str]


class Trial:
    """A temporary copy of *relation*, with its name, on *connection*, in a transaction that the caller rolls back."""

    def __init__(self, connection: Connection[Any], relation: str) -> None:
        self.connection = connection
        self.relation = relation
        self.table = f"pg_temp.{quote(relation)}"
        self.rows = 0

    @property
    def method(self) -> str:
        """The sentence for users on how the queries were measured, with the number of rows in the copy."""
        number = {"rows": f"{self.rows:,}"}
        return _("queries run with the index on a copy of ${rows} rows, which was rolled back", number)

    def copy(
        self,
        columns: Iterable[ColumnStatistics],
        indexes: Iterable[IndexStatistics],
        read: Collection[str] | None,
        total: int,
    ) -> None:
        """Create the copy of a relation with *columns*, *indexes* and *total* rows.

        *read* are the names of the columns that the statements read, None for any.  Raises psycopg.Error.
        """
        execute = self.connection.execute
        [(original,)] = execute(read_statement("advice", "qualified"), {"relation": quote(self.relation)}).fetchall()
        execute(f"CREATE TEMP TABLE {quote(self.relation)} (LIKE {original} INCLUDING STORAGE) ON COMMIT DROP")
        execute(f"ALTER TABLE {self.table} SET (toast_tuple_target = 256)")
        # Texts are large, and are copied only if a query reads them.
        copied = [c.name for c in columns if c.type not in ("tsvector", "jsonb") or read is None or c.name in read]
        names = ", ".join(map(quote, copied))
        sample = "" if total <= SAMPLE_ROWS else f" TABLESAMPLE BERNOULLI ({100 * SAMPLE_ROWS / total:.6f})"
        self.rows = execute(f"INSERT INTO {self.table} ({names}) SELECT {names} FROM {original}{sample}").rowcount
        for index in indexes:
            if index.is_valid and {*index.keys, *index.included} <= {*copied, ""}:
                execute(f"CREATE {'UNIQUE ' * index.is_unique}INDEX ON {self.table} {index.definition}")
        execute(f"ANALYZE {self.table}")

    def measure(self, statements: Sequence[Statement]) -> Measure:
        """Return the sum of the costs and times of *statements*."""
        cost, ms, names = 0.0, 0.0, set()
        for statement, values in statements:
            plans = [self._plan(statement, values) for _run in range(RUNS)]
            cost += plans[0]["Plan"]["Total Cost"]
            ms += min(plan["Execution Time"] for plan in plans)
            names |= set(index_names(plans[0]["Plan"]))
        return Measure(cost, ms, frozenset(names))

    def _plan(self, statement: str, values: Sequence[Any]) -> dict[str, Any]:
        [([plan],)] = self.connection.execute(f"{EXPLAIN} {statement}", values).fetchall()
        data: dict[str, Any] = plan
        return data

    def attempt(self, candidate: Candidate, statements: Sequence[Statement]) -> tuple[Measure, int] | None:
        """Return the measure of *statements* with *candidate*, and its size in bytes; None if they do not use it."""
        execute = self.connection.execute
        with self.connection.transaction(force_rollback=True):
            execute(f"CREATE INDEX {candidate.name} ON {self.table} {candidate.definition}")
            [(size,)] = execute("SELECT pg_relation_size(%s::regclass)", (f"pg_temp.{candidate.name}",)).fetchall()
            measure = self.measure(statements)
        return (measure, size) if candidate.name in measure.indexes else None


def index_names(plan: dict[str, Any]) -> Iterator[str]:
    if "Index Name" in plan:
        yield plan["Index Name"]
    for part in plan.get("Plans", ()):
        yield from index_names(part)
