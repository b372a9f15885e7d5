"""What kept counts count: the values of columns, told apart by who may see the rows, and by type; see ``database.counts``."""

from collections.abc import Sequence
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.values import as_list_sql


#: Columns by which counts are told apart: the number of who may see a row, and its type.
ROLES, TYPE = Column("allowed_roles", "bigint", is_interned=True), Column("portal_type", "text")
#: From when until when a row counts: that holds for nearly all of them.
EFFECTIVE = ("effective_range_since", "effective_range_until")
#: Until when a row counts that always does.
NO_END = 2**31 - 1
#: The field of the rows themselves.
ROWS = ""


def values_sql(columns: Sequence[Column], rows: str) -> str:
    """Return the SELECT of (allowed_roles, portal_type, field, value, n) for each value of *columns* in *rows*.

    *rows* is an item of FROM with these columns and n.
    """
    single = [f"('{c.name}', {c.quoted}::text)" for c in columns if not (c.is_array or c.is_interned)]
    lists = [f"SELECT '{c.name}', unnest({as_list_sql(c)})" for c in columns if c.is_array or c.is_interned]
    values = " UNION ALL ".join([f"VALUES {', '.join([f"('{ROWS}', '')", *single])}", *lists])
    return (
        f"SELECT {ROLES.quoted}, {TYPE.quoted}, field, value, n FROM {rows}"
        f" CROSS JOIN LATERAL ({values}) AS v (field, value) WHERE value IS NOT NULL"
    )
