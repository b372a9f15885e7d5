"""Binds conditions, columns and orders to the stored form of a catalog: pure, without a connection.

``Stored`` is what of a catalog's state a statement takes for granted.  A ``results.seen.Snapshot`` has it, and
``CatalogView.statement`` looks up before what a condition needs of the database; nothing here asks anybody.
``query.statements`` makes the statements of a compiled query of what is bound.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from functools import partial
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.nearest import Near
from plone.pgcatalog.query.ranked import Source
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import BELOW
from plone.pgcatalog.sql.predicate import BETWEEN
from plone.pgcatalog.sql.predicate import NOT_NULL
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.sql.values import as_interned
from plone.pgcatalog.sql.values import as_list_sql
from plone.pgcatalog.sql.values import InternedSets
from types import MappingProxyType
from typing import Any


#: Column -> share of the rows, 0 to 1, with a value; and with each of its frequent values.
Shares = tuple[Mapping[str, float], Mapping[str, Mapping[str, float]]]

#: What no more than this share of the rows has finds them best by its index.
SELECTIVE_SHARE = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """How the rows are stored that a transaction sees of a catalog.

    *source* is what to select from; *complete* are columns with a value in every row; *interned_columns* those that hold
    numbers, by name, *known_sets* the sets there are, and *pending_sets* a table with those that nobody has saved, "" for none.
    Of *rows*, an estimate, the hits of a ranked search are all ranked up to *full* of them, 0 for any number.
    *shares* are None where no statement is worth a thought about plans.  *moved* is the SQL condition for rows that the
    transaction has moved, "" if there are none.  *counted* are the columns of *relation*, by name, whose values are counted.
    """

    source: Source
    complete: Collection[str] = ()
    interned_columns: Mapping[str, Column] | None = None
    known_sets: Sequence[InternedSets] = ()
    pending_sets: str = ""
    rows: int | None = None
    full: int = 0
    shares: Shares | None = None
    moved: str = ""
    relation: str = ""
    counted: Mapping[str, Column] = MappingProxyType({})

    @property
    def is_committed(self) -> bool:
        """True if these rows stay the same until the transaction ends."""
        return self.source == (quote(self.relation), ())


# -- conditions


def condition(where: Condition, stored: Stored) -> Condition:
    """Return *where* for the rows of *stored*: drop what holds for every row, and replace lists by their numbers."""
    interned_columns = stored.interned_columns or {}

    def bound(part: Condition) -> Condition:
        if isinstance(part, Near):
            return part.bound(stored.source, condition(part.among, stored), stored.is_committed)
        if not isinstance(part, Predicate):
            return part
        if part.operator == NOT_NULL and part.column.name in stored.complete:
            return EVERYTHING
        return as_interned(part, interned_columns, stored.known_sets) if part.column.name in interned_columns else part

    return where.changed(bound)


def selective_condition(where: Condition, stored: Stored) -> Condition:
    """Return ``condition`` for a statement that needs each row that matches, and not the first ones of an order only."""
    return hide_unselective_indexes(condition(where, stored), partial(share, stored.shares))


def hide_unselective_indexes(
    where: Condition, share: Callable[[Column, Sequence[Any] | None], float | None]
) -> Condition:
    """Hide unselective columns of *where* from the planner, if it compares long values.

    *share* returns which share of the rows, 0 to 1, has one of some values in a column, None for any value; None if nobody
    knows.  What most rows have is compared row by row: PostgreSQL found the index of such a column as good as the GIN of the
    long values, read the rows by it, and decompressed each.
    """
    if not where.is_costly:
        return where

    def hidden(part: Condition) -> Condition:
        if not isinstance(part, Predicate):
            return part
        if part.operator == NOT_NULL:
            filled = share(part.column, None)
            return part if filled is not None and filled <= SELECTIVE_SHARE else part.hidden()
        if not part.can_be_hidden and not part.column.is_interned:
            return part
        [value] = part.values
        matched = share(part.column, value if isinstance(value, list | tuple) else [value])
        return part if matched is None or matched <= SELECTIVE_SHARE else part.hidden()

    return where.changed(hidden)


def asks_share(part: Predicate, complete: Collection[str], interned_columns: Collection[str]) -> bool:
    """True if ``selective_condition`` asks how many rows *part* is true of, where these columns are complete or numbers."""
    if part.operator == NOT_NULL:
        return part.column.name not in complete
    return part.can_be_hidden or part.column.name in interned_columns


def share(shares: Shares | None, column: Column, values: Iterable[Any] | None) -> float | None:
    """Return which share of the rows, 0 to 1, has one of *values* in *column*, None for any value; None if nobody knows."""
    if shares is None:
        return None
    filled, by_value = shares
    if values is None:
        return filled.get(column.name)
    of_values = by_value.get(column.name)
    return sum(of_values.get(str(value), 0.0) for value in values) if of_values else None


def plans_once(where: Condition) -> bool:
    """True if the same plan is good for any values in *where*, a condition on long values.

    PostgreSQL expects 0.5 % of all rows from a text it does not know, and as many from values between two others: of these
    an index could look cheaper than that of the texts.  Planning a ranked page takes 1 ms, ranking 50 hits half of that.
    """
    return all(
        isinstance(part, Predicate) and (part.is_hidden or part.operator not in (BELOW, BETWEEN))
        for part in where.conjuncts()
    )


# -- columns and order


def lists_sql(stored: Stored) -> dict[str, str]:
    """Return the SQL of the lists themselves for each column of *stored* that holds numbers, by name."""
    return {name: as_list_sql(column, stored.pending_sets) for name, column in (stored.interned_columns or {}).items()}


def columns_sql(columns: Iterable[Column], stored: Stored) -> str:
    """Return the SQL of *columns* under their names, with the lists where those are numbers."""
    values = lists_sql(stored)
    return ", ".join(f"{values[c.name]} AS {c.quoted}" if c.name in values else c.quoted for c in columns)


def order(query: CompiledQuery, stored: Stored) -> tuple[Order, ...]:
    """Return the terms that *query* is sorted by."""
    values = lists_sql(stored)

    def bound(term: Order) -> Order:
        if term.nulls_lowest and term.column is not None and term.column.name in stored.complete:
            # No row has NULL: an SQL index has the order.
            term = replace(term, nulls=False, nulls_lowest=False)
        value = values.get(term.column.name) if term.column is not None else None
        return term if value is None else replace(term, expression=value)

    return tuple(map(bound, query.order))


def order_by(query: CompiledQuery, stored: Stored) -> str:
    """Return the ORDER BY of *query*; without an order of its own what the transaction has moved comes last.

    ZCatalog gives a moved object a new rid.  Code that searches while it moves objects, as plone.app.multilingual does,
    takes the first of two for the one that was there before.
    """
    terms = ", ".join([term.sql for term in order(query, stored)])
    return f"{stored.moved}, {terms}" if stored.moved and query.order == (OLDEST_FIRST,) else terms


# -- the statement around them


def select(
    expressions: str,
    where: Condition,
    stored: Stored,
    tail: str = "",
    params: Sequence[Any] = (),
    window: tuple[int, int | None] | None = None,
) -> Statement:
    """Return ``SELECT expressions FROM catalog WHERE where tail``; *params* belong to *expressions*.

    *where* is bound already; *window* is that of ``Statement``.
    """
    relation, source_params = stored.source
    condition = "" if where is EVERYTHING else f" WHERE {where.sql}"
    sql = f"SELECT {expressions} FROM {relation}{condition} {tail}"
    return Statement(sql, (*params, *source_params, *where.params), where.is_costly, window)
