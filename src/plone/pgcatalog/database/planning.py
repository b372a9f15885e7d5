"""How PostgreSQL is to plan a catalog's statements, where its own judgement is known to be wrong."""

from plone.pgcatalog.sql.expression import Statement


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
