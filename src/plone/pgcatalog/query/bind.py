"""Binds conditions, columns and orders to the stored form of a catalog, without a connection.

``Stored`` describes the rows that a statement reads; it is an attribute of ``results.seen.Snapshot``.
``CatalogView.statement`` first adds the values from the database that binding a condition needs.
``query.statements`` builds the statements of a compiled query from the bound parts.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.query.compiler import OLDEST_FIRST
from plone.pgcatalog.query.nearest import Near
from plone.pgcatalog.query.ranked import Source
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import Order
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.column import RID
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import NOT_NULL
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.sql.predicate import RANGES
from plone.pgcatalog.sql.shares import bound
from plone.pgcatalog.sql.shares import Shares
from plone.pgcatalog.sql.shares import UNKNOWN
from plone.pgcatalog.sql.values import as_interned
from plone.pgcatalog.sql.values import as_list_sql
from plone.pgcatalog.sql.values import InternedSets
from types import MappingProxyType
from typing import Any


#: True for each row.  IS NOT NULL, because PostgreSQL expects a function to be true for a third of the rows.
COMPARED = Condition("pgcatalog_compared(rid) IS NOT NULL", (), (RID,))
#: For a value in at most this share of the rows, the index of its column is the best plan.
SELECTIVE_SHARE = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """The stored form of the rows that a transaction sees of a catalog.

    - ``source``: the SQL relation to select from, with its values
    - ``complete``: the columns with a value in every row
    - ``interned_columns``: the columns that hold numbers of lists, by name
    - ``cached_sets``: the interned sets in memory; ``pending_sets``: a table with uncommitted sets, "" if there is none
    - ``rows``: the estimated number of rows; ``full``: up to this many hits of a ranked search are all ranked, 0: all
    - ``shares``: those of its values, as PostgreSQL estimates them
    - ``moved``: the SQL condition for rows that the transaction has moved, "" if there are none
    - ``relation``: the catalog table; ``counted``: its columns, by name, whose values are counted
    """

    source: Source
    complete: Collection[str] = ()
    interned_columns: Mapping[str, Column] | None = None
    cached_sets: Sequence[InternedSets] = ()
    pending_sets: str = ""
    rows: int | None = None
    full: int = 0
    shares: Shares = UNKNOWN
    moved: str = ""
    relation: str = ""
    counted: Mapping[str, Column] = MappingProxyType({})

    @property
    def is_committed(self) -> bool:
        """True if these are the rows of the table, without an overlay."""
        return self.source == (quote(self.relation), ())


# -- conditions


def condition(where: Condition, stored: Stored) -> Condition:
    """Return *where* bound to *stored*: without conditions that hold for every row, and with numbers in place of lists."""
    interned_columns = stored.interned_columns or {}

    def bound(part: Condition) -> Condition:
        if isinstance(part, Near):
            return part.bound(stored.source, condition(part.among, stored), stored.is_committed)
        if not isinstance(part, Predicate):
            return part
        if part.operator == NOT_NULL and part.column.name in stored.complete:
            return EVERYTHING
        return as_interned(part, interned_columns, stored.cached_sets) if part.column.name in interned_columns else part

    return where.changed(bound)


def selective_condition(where: Condition, stored: Stored) -> Condition:
    """Return ``condition`` for a statement that reads all rows that match, not only the first ones of an order."""
    return hide_unselective_indexes(condition(where, stored), stored.shares)


def first_condition(where: Condition, stored: Stored) -> Condition:
    """Return ``condition`` for a statement that reads the first rows of an order that match.

    PostgreSQL can read rows in the order of an index, and compare each, or sort those that another index finds.  If *where*
    compares long values, ``COMPARED`` adds their cost; no index is hidden, because the order may need it.
    """
    where = condition(where, stored)
    return where & COMPARED if where.is_costly else where


def hide_unselective_indexes(where: Condition, shares: Shares) -> Condition:
    """Hide unselective columns of *where*, such as the ends of a period, from the planner, if *where* compares long values.

    Without this, PostgreSQL rated the index of an unselective column as good as the GIN index of the long values, read the
    rows by it, and decompressed the long value of each.
    """
    if not where.is_costly:
        return where
    ranges = _ranges(where.conjuncts())

    def matched(part: Predicate) -> float | None:
        if part.operator == NOT_NULL:
            return shares.filled.get(part.column.name, 1.0)
        if part.column.is_period:
            return 1.0
        if part.operator in RANGES:
            # The ends of a range are parts of their own, neither of which needs to be selective.
            return shares.between(part.column, *ranges.get(part.column, _ends(part)))
        if not part.can_be_hidden and not part.column.is_interned:
            return None
        [value] = part.values
        return shares.with_any(part.column, value if isinstance(value, list | tuple) else [value])

    def hidden(part: Condition) -> Condition:
        if not isinstance(part, Predicate):
            return part
        share = matched(part)
        return part if share is None or share <= SELECTIVE_SHARE else part.hidden()

    return where.changed(hidden)


def _ranges(parts: Iterable[Condition]) -> dict[Column, tuple[str | None, str | None]]:
    """Return column -> lowest and highest value that all ranges among *parts* allow, as ``bound`` returns them."""
    ranges: dict[Column, tuple[str | None, str | None]] = {}
    for part in parts:
        if isinstance(part, Predicate) and part.operator in RANGES:
            (low, high), (least, most) = _ends(part), ranges.get(part.column, (None, None))
            lows, highs = ([each for each in pair if each is not None] for pair in ((low, least), (high, most)))
            ranges[part.column] = max(lows, default=None), min(highs, default=None)
    return ranges


def _ends(part: Predicate) -> tuple[str | None, str | None]:
    """Return the lowest and the highest value of a range."""
    first, last = bound(part.values[0]), bound(part.values[-1])
    return (None if part.operator.startswith("<") else first), (None if part.operator.startswith(">") else last)


def needs_share(part: Predicate, complete: Collection[str], interned_columns: Collection[str]) -> bool:
    """Return True if ``selective_condition`` needs the share of rows that match *part*; other arguments as in ``Stored``."""
    if part.operator == NOT_NULL:
        return part.column.name not in complete
    return part.can_be_hidden or part.column.name in interned_columns or part.operator in RANGES


# -- columns and order


def lists_sql(stored: Stored) -> dict[str, str]:
    """Return name -> SQL of the list, for each column of *stored* that holds numbers."""
    return {name: as_list_sql(column, stored.pending_sets) for name, column in (stored.interned_columns or {}).items()}


def columns_sql(columns: Iterable[Column], stored: Stored) -> str:
    """Return the SQL that selects *columns* under their names, with lists in place of numbers."""
    values = lists_sql(stored)
    return ", ".join(f"{values[c.name]} AS {c.quoted}" if c.name in values else c.quoted for c in columns)


def order(compiled: CompiledQuery, stored: Stored) -> tuple[Order, ...]:
    """Return the terms that the query *compiled* is sorted by, bound to *stored*."""
    values = lists_sql(stored)

    def bound(term: Order) -> Order:
        if term.nulls_lowest and term.column is not None and term.column.name in stored.complete:
            # No row has NULL, so an SQL index has this order.
            term = replace(term, nulls=False, nulls_lowest=False)
        value = values.get(term.column.name) if term.column is not None else None
        return term if value is None else replace(term, expression=value)

    return tuple(map(bound, compiled.order))


def order_by(compiled: CompiledQuery, stored: Stored) -> str:
    """Return the ORDER BY of *compiled*; if the query has no order, rows that the transaction has moved come last.

    In ZCatalog, a moved object gets a new rid.  Code that searches while it moves objects, such as plone.app.multilingual,
    expects that the first of two rows is the one that existed before.
    """
    terms = ", ".join([term.sql for term in order(compiled, stored)])
    return f"{stored.moved}, {terms}" if stored.moved and compiled.order == (OLDEST_FIRST,) else terms


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

    *where* is already bound; *window* as in ``Statement``.
    """
    relation, source_params = stored.source
    condition = "" if where is EVERYTHING else f" WHERE {where.sql}"
    sql = f"SELECT {expressions} FROM {relation}{condition} {tail}"
    return Statement(sql, (*params, *source_params, *where.params), where.is_costly, window)
