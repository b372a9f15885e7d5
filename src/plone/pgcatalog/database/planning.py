"""How PostgreSQL is to plan a catalog's statements, where its own judgement is known to be wrong."""

from collections.abc import Callable
from collections.abc import Sequence
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.condition import Condition
from plone.pgcatalog.sql.fragment import Statement
from plone.pgcatalog.sql.predicate import BELOW
from plone.pgcatalog.sql.predicate import BETWEEN
from plone.pgcatalog.sql.predicate import NOT_NULL
from plone.pgcatalog.sql.predicate import Predicate
from typing import Any


#: Returns which share of the rows, 0 to 1, has one of some values in a column; None if nobody knows.
Share = Callable[[Column, Sequence[Any] | None], float | None]

#: Planning takes longer than any plan for a catalog with fewer rows than this.
FEW_ROWS = 2000
PLAN_GENERIC = "SET LOCAL plan_cache_mode = force_generic_plan"
#: How many rows a value finds differs too much for a plan without it.
PLAN_CUSTOM = "SET LOCAL plan_cache_mode = force_custom_plan"

#: A bitmap of the rows of a table with more than these may not fit into the 4 MB that PostgreSQL takes by default.
MANY_ROWS = 50_000
#: What does not fit is kept by pages, and each row of such a page is fetched and compared again.
MORE_MEMORY = "SET LOCAL work_mem = '64MB'"
HAS_MEMORY = "pg_size_bytes(current_setting('work_mem')) >= pg_size_bytes('64MB')"

#: What no more than this share of the rows has finds them best by its index.
SELECTIVE_SHARE = 0.1

NO_SCAN = "SET LOCAL enable_seqscan = off"
ANY_SCAN = "SET LOCAL enable_seqscan TO DEFAULT"


def with_planner_hints(statement: Statement, plans_anew: bool = True) -> tuple[list[Statement], int]:
    """Return the statements that run *statement* with the right plan, and which one of them it is itself.

    *plans_anew* says whether the transaction plans a prepared statement each time.

    PostgreSQL thinks that comparing long values is as cheap as comparing numbers.  But a long value has to be decompressed,
    and most texts fetched from where long values are, so a scan of the table takes several times as long as the GIN, which
    knows the answer without them.
    """
    before, after = [], []
    if statement.is_costly:
        before, after = [Statement(NO_SCAN)], [Statement(ANY_SCAN)]
    if statement.plans_once and plans_anew:
        before, after = [Statement(PLAN_GENERIC), *before], [*after, Statement(PLAN_CUSTOM)]
    return [*before, statement, *after], len(before)


def plans_once(where: Condition) -> bool:
    """True if the same plan is good for any values in *where*, a condition on long values.

    PostgreSQL expects 0.5 % of all rows from a text it does not know, and as many from values between two others: of these
    an index could look cheaper than that of the texts.  Planning a ranked page takes 1 ms, ranking 50 hits half of that.
    """
    return all(
        isinstance(part, Predicate) and (part.is_hidden or part.operator not in (BELOW, BETWEEN))
        for part in where.conjuncts()
    )


def hide_unselective_indexes(where: Condition, share: Share) -> Condition:
    """Return *where* for a statement that needs each row that matches, and not the first ones of an order only.

    If it compares long values, what most rows have is compared row by row: *share* returns of how many of them, 0 to 1, a
    column has one of some values, or (None) any value, None if nobody knows.  PostgreSQL found the index of such a column as
    good as the GIN of the long values, read the rows by it, and decompressed each.
    """
    if not where.is_costly:
        return where

    def hidden(part: Condition) -> Condition:
        if not isinstance(part, Predicate):
            return part
        if part.operator == NOT_NULL:
            found = share(part.column, None)
            return part if found is not None and found <= SELECTIVE_SHARE else part.hidden()
        if not part.can_be_hidden and not part.column.is_interned:
            return part
        [value] = part.values
        found = share(part.column, value if isinstance(value, list | tuple) else [value])
        return part if found is None or found <= SELECTIVE_SHARE else part.hidden()

    return where.changed(hidden)
