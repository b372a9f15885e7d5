"""SQL for facets and keys from stored counts (``database.counts``), for searches without further conditions; no I/O.

Counts are grouped by the list of roles and users that may see a row, and by type.  The other conditions of every search,
effective range and path of the site, hold for nearly all rows: the rows that fail them are found and subtracted.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from plone.pgcatalog.query.bind import condition
from plone.pgcatalog.query.bind import Stored
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.expression import all_of
from plone.pgcatalog.sql.expression import any_of
from plone.pgcatalog.sql.expression import Condition
from plone.pgcatalog.sql.expression import EVERYTHING
from plone.pgcatalog.sql.expression import Fragment
from plone.pgcatalog.sql.expression import NOTHING
from plone.pgcatalog.sql.expression import Statement
from plone.pgcatalog.sql.predicate import BELOW
from plone.pgcatalog.sql.predicate import compared
from plone.pgcatalog.sql.predicate import NOT_NULL
from plone.pgcatalog.sql.predicate import Predicate
from plone.pgcatalog.sql.values import EFFECTIVE
from plone.pgcatalog.sql.values import NO_END
from plone.pgcatalog.sql.values import ROLES
from plone.pgcatalog.sql.values import ROWS
from plone.pgcatalog.sql.values import TYPE
from plone.pgcatalog.sql.values import values_sql
from typing import Any


OPPOSITES = {"<=": ">", ">=": "<"}
#: CTEs for the lists of roles and users: for each list whether the condition holds, and whether it holds for most lists.
LISTS = (
    "lists AS MATERIALIZED (SELECT number, ({condition}) IS TRUE AS is_seen FROM pgcatalog_sets WHERE name = %s),"
    " most AS MATERIALIZED (SELECT sees_most, CASE WHEN sees_most THEN -1 ELSE 1 END AS sign"
    " FROM (SELECT 2 * count(*) FILTER (WHERE is_seen) > count(*) FROM lists) AS counted (sees_most))"
)
VALS = Column("vals", "text[]")
#: Changes that have not been added to the counts yet.
CHANGES = "pgcatalog_count_changes CROSS JOIN LATERAL unnest(fields, vals) AS v (field, value)"


@dataclass(frozen=True, slots=True)
class StoredCounts:
    """The stored counts of *columns*, by name, for the rows of *relation* that match a search."""

    relation: str
    columns: Mapping[str, Column]
    #: the condition on the list of roles and users, of the column ``vals``; and the condition on the type
    lists: Condition
    types: Condition
    #: the condition for counted rows that are subtracted
    away: Condition

    @classmethod
    def of(cls, where: Condition, stored: Stored) -> "StoredCounts | None":
        """Return the counts for the rows of *stored* that match *where*, not bound; None if they do not suffice."""
        if not stored.counted:
            return None
        lists, types, outside = [], [], []
        for part in where.conjuncts():
            if isinstance(part, Predicate) and part.column.name == ROLES.name:
                lists.append(part)
            elif {c.name for c in part.columns or ()} == {TYPE.name}:
                types.append(part)
            elif (opposite := _opposite(condition(part, stored), stored.complete)) is not None:
                outside.append(opposite)
            else:
                return None
        inside = condition(all_of((*lists, *types)), stored)
        of_list = all_of(part.of(VALS) for part in lists)
        return cls(stored.relation, stored.counted, of_list, all_of(types), inside & any_of(outside))

    def field(self, key: str, columns: Collection[str]) -> str | None:
        """Return the field that counts *key*, an SQL expression of the quoted *columns*; None if there is none."""
        return next((c.name for c in self.columns.values() if {c.quoted} == {*columns} and _is_key(key, c)), None)

    def type(self, field: str) -> str:
        """Return the SQL type of the values of *field*."""
        return "boolean" if self.columns[field].type == "boolean" else "text"

    def counts(self, fields: Sequence[str]) -> Fragment:
        """Return the SELECT of (field, value, n) for *fields*, with n > 0."""
        of_types = "" if self.types is EVERYTHING else f" AND ({self.types.sql})"
        params: tuple[Any, ...] = (self.relation, list(fields), *self.types.params)
        every = f"WHERE relation = %s AND field = ANY(%s){of_types} AND summed ="
        level = 3 if self.types is EVERYTHING else 2
        changes = f"SELECT field, value, n FROM {CHANGES} WHERE relation = %s AND field = ANY(%s){of_types}"
        parts = [f"SELECT field, value, n FROM pgcatalog_counts {every} {level} AND allowed_roles IS NULL", changes]
        if level == 3:
            parts[0] += " AND portal_type IS NULL"
        before: tuple[Any, ...] = ()
        if self.lists is not EVERYTHING:
            # Start from all rows or from no row, whichever leaves fewer lists to subtract or to add.
            parts = [
                f"{parts[0]} AND (SELECT sees_most FROM most)",
                f"SELECT field, value, n * (SELECT sign FROM most) FROM pgcatalog_counts {every} 0"
                " AND allowed_roles = ANY(ARRAY(SELECT number FROM lists, most WHERE is_seen <> sees_most))",
                f"SELECT field, value, -n FROM pgcatalog_counts {every} 0"
                " AND allowed_roles IS NULL AND (SELECT sees_most FROM most)",
                f"{parts[1]} AND allowed_roles IN (SELECT number FROM lists WHERE is_seen)",
            ]
            before = (*self.lists.params, ROLES.name)
        params = before + params * len(parts)
        if self.away is not NOTHING:
            columns = [self.columns[name] for name in fields if name != ROWS]
            source = f"(SELECT *, -1 AS n FROM {quote(self.relation)} WHERE {self.away.sql}) AS gone"
            parts.append(f"SELECT field, value, n FROM ({values_sql(columns, source)}) AS away")
            params = (*params, *self.away.params)
        seen = "" if self.lists is EVERYTHING else f"WITH {LISTS.format(condition=self.lists.sql)} "
        return Fragment(
            f"{seen}SELECT field, value, sum(n)::bigint AS n FROM ({' UNION ALL '.join(parts)}) AS every"
            " GROUP BY field, value HAVING sum(n) > 0",
            params,
        )


def key_counts(columns: Sequence[Column], key: str, where: Condition, stored: Stored) -> Statement | None:
    """Return ``statements.key_counts`` from stored counts; None unless *where* only requires a value."""
    stored_counts = StoredCounts.of(EVERYTHING, stored)
    field = None if stored_counts is None else stored_counts.field(key, [c.quoted for c in columns])
    if stored_counts is None or field is None or not isinstance(where, Predicate) or where.operator != NOT_NULL:
        return None
    counts = stored_counts.counts([field])
    return Statement(
        f"SELECT value::{stored_counts.type(field)}, n FROM ({counts.sql}) AS counts ORDER BY 1", counts.params
    )


def _is_key(key: str, column: Column) -> bool:
    is_list = column.is_array or column.is_interned
    return key == (f"unnest({column.quoted})" if is_list else column.quoted)


def _opposite(part: Condition, complete: Collection[str]) -> Condition | None:
    """Return the condition for the rows that fail *part*, if nearly all rows fulfil it, else None."""
    if not isinstance(part, Predicate):
        return NOTHING if part is EVERYTHING else None
    column, operator = part.column, part.operator
    if column.name in EFFECTIVE and operator in OPPOSITES:
        # This lets PostgreSQL use the partial index of the rows with an end.
        has_end = Condition(f"{column.quoted} < {NO_END}", (), (column,)) if operator == ">=" else EVERYTHING
        opposite = all_of((compared(column, OPPOSITES[operator], *part.values), has_end))
    elif operator == BELOW and part.is_hidden:
        path, first, behind = part.values
        between = all_of((compared(column, ">", path), compared(column, "<", first)))
        opposite = any_of((compared(column, "<", path), between, compared(column, ">=", behind)))
    elif operator == NOT_NULL and part.is_hidden:
        opposite = NOTHING
    else:
        return None
    is_null = Condition(f"{column.quoted} IS NULL", (), (column,))
    return opposite if column.name in complete else any_of((opposite, is_null))
