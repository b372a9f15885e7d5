"""Stored counts: how many rows of a relation have each value, by who may see them and by type.

Triggers append the changes of each statement, of any client, to ``pgcatalog_count_changes``.  From time to time a commit
adds these changes to ``pgcatalog_counts``; readers add both.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from plone.pgcatalog.database.layout import index_name
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.layout import load_statement
from plone.pgcatalog.sql.column import Column
from plone.pgcatalog.sql.column import quote
from plone.pgcatalog.sql.values import ROLES
from plone.pgcatalog.sql.values import TYPE
from plone.pgcatalog.sql.values import values_sql
from psycopg import Connection
from psycopg import Cursor
from psycopg import sql
from psycopg.rows import tuple_row
from typing import Any


#: Columns whose values are counted, if the relation has them.
COUNTED_FIELDS = ("portal_type", "review_state", "creator", "subject", "is_folderish")
#: Types of columns that can be counted; a number stands for an interned list.
TYPES = ("text", "text[]", "boolean", ROLES.type)
#: Changes are added to the counts after this many commits, or by a commit that writes at least this many rows.
FOLD_COMMITS, FOLD_ROWS = 100, 500

FOLD = load_statement("counts_fold")
#: Without this setting a trigger discards rows inserted into pgcatalog_counts.
COUNTING = "SET LOCAL pgcatalog.counting = 'on'"
COLUMNS = (
    "SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute"
    " WHERE attrelid = to_regclass(quote_ident(%s)) AND attname = ANY(%s) AND NOT attisdropped"
)
TRIGGERS = (
    "SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass(quote_ident(%s))"
    " AND starts_with(tgname, 'pgcatalog_count_') AND tgenabled <> 'D'"
)
#: The events of a relation's triggers: see ``counts_trigger.sql``.
EVENTS = ("insert", "delete", "update", "truncate")
FORGET_ZEROS = "DELETE FROM pgcatalog_counts WHERE ctid = ANY(%s::tid[]) AND n = 0"
#: SQL expression: the counted columns of {relation}, another SQL expression.
COUNTED = "ARRAY(SELECT field FROM pgcatalog_counts c WHERE c.relation = {relation} AND c.summed IS NULL)"
KEYS = "allowed_roles, portal_type, field, value"
#: Levels of counts: by roles and type, by type, and in total.
LEVEL = "GROUPING(allowed_roles, portal_type)::smallint"
LEVELS = f"GROUP BY GROUPING SETS (({KEYS}), (portal_type, field, value), (field, value))"
#: The counts, computed from the rows.
FRESH = f"SELECT {LEVEL} AS summed, {KEYS}, sum(n)::integer AS n FROM ({{values}}) AS valued {LEVELS}"
CHANGE = (
    "INSERT INTO pgcatalog_count_changes (relation, allowed_roles, portal_type, fields, vals, n)"
    " SELECT {name}, allowed_roles, portal_type, array_agg(field), array_agg(value), n FROM"
    f" (SELECT {KEYS}, sum(n) AS n FROM ({{values}}) AS valued GROUP BY {KEYS} HAVING sum(n) <> 0) AS changed"
    " GROUP BY allowed_roles, portal_type, n"
)
#: The stored counts of a relation plus its pending changes.
STORED = (
    f"SELECT summed, {KEYS}, sum(n)::integer AS n FROM ("
    f"SELECT summed, {KEYS}, n FROM pgcatalog_counts WHERE relation = {{name}} AND summed IS NOT NULL"
    f" UNION ALL SELECT {LEVEL}, {KEYS}, sum(n) FROM pgcatalog_count_changes"
    f" CROSS JOIN LATERAL unnest(fields, vals) AS v (field, value) WHERE relation = {{name}} {LEVELS}"
    f") AS every GROUP BY summed, {KEYS} HAVING sum(n) <> 0"
)
DIFFERENT = (
    "WITH stored AS ({stored}), fresh AS ({fresh}) SELECT count(*) FROM"
    " ((TABLE stored EXCEPT TABLE fresh) UNION ALL (TABLE fresh EXCEPT TABLE stored)) AS different"
)


def counted_columns(cursor: Cursor[Any], relation: str) -> tuple[Column, ...]:
    """Return the columns of *relation* whose values can be counted; empty if roles or type are missing or not countable."""
    found = dict(_rows(cursor, COLUMNS, relation, [ROLES.name, *COUNTED_FIELDS]))
    columns = {name: Column(name, kind, is_interned=kind == ROLES.type) for name, kind in found.items()}
    if found.get(ROLES.name) != ROLES.type or found.get(TYPE.name) != TYPE.type:
        return ()
    return tuple(columns[name] for name in COUNTED_FIELDS if found.get(name) in TYPES)


def create(cursor: Cursor[Any], relation: str) -> None:
    """Count the rows of *relation*, and create the triggers that update its counts, unless this is already done.

    Writers of rows wait for the end of the transaction, which has to see all rows committed before.
    """
    columns = counted_columns(cursor, relation)
    if not columns or _counted(cursor, relation) == {c.name for c in columns}:
        return
    names = ", ".join(dict.fromkeys(c.quoted for c in (ROLES, TYPE, *columns)))
    added, removed = f"SELECT {names}, 1 AS n FROM new_rows", f"SELECT {names}, -1 AS n FROM old_rows"
    name = sql.Literal(relation)
    changes = {
        key: sql.SQL(CHANGE).format(name=name, values=sql.SQL(values_sql(columns, f"({rows}) AS r")))
        for key, rows in (("added", added), ("removed", removed), ("changed", f"{added} UNION ALL {removed}"))
    }
    function = sql.Identifier(function_name(relation))
    cursor.execute(
        sql.SQL(load_sql("counts_trigger")).format(
            relation=sql.Identifier(relation), name=name, function=function, names=sql.SQL(names), **changes
        )
    )
    # From here on no other transaction writes rows until the end of this one.
    forget(cursor, [relation])
    cursor.execute(COUNTING)
    cursor.execute(
        f"INSERT INTO pgcatalog_counts (relation, summed, {KEYS}, n) SELECT %s, * FROM ({_fresh(relation, columns)}) AS f"
        f" ORDER BY summed, {KEYS}",
        [relation],
    )
    cursor.execute(
        "INSERT INTO pgcatalog_counts (relation, field, value, n) SELECT %s, unnest(%s::text[]), '', 0",
        [relation, [c.name for c in columns]],
    )


def _fresh(relation: str, columns: Sequence[Column]) -> str:
    return FRESH.format(values=values_sql(columns, f"(SELECT *, 1 AS n FROM {quote(relation)}) AS r"))


def _counted(cursor: Cursor[Any], relation: str) -> set[str]:
    """Return the names of the columns of *relation* whose values are counted."""
    [(names,)] = _rows(cursor, f"SELECT {COUNTED.format(relation='%s')}", relation)
    return set(names)


def _rows(cursor: Cursor[Any], statement: Any, *values: Any) -> list[Any]:
    """Return the rows of *statement*, as tuples."""
    return cursor.connection.cursor(row_factory=tuple_row).execute(statement, values or None).fetchall()


def fold(cursor: Cursor[Any], relation: str) -> None:
    """Add the pending changes of *relation* to its counts, in the transaction of *cursor*."""
    cursor.execute(COUNTING)
    zeros = [ctid for (ctid,) in _rows(cursor, FOLD, *[relation] * 2)]
    if zeros:
        cursor.execute(FORGET_ZEROS, [zeros])


def differences(cursor: Cursor[Any], relation: str) -> int:
    """Return how many counts of *relation* differ from its rows; 0 if it has no counts."""
    names = _counted(cursor, relation)
    columns = [c for c in counted_columns(cursor, relation) if c.name in names]
    if not columns:
        return 0
    stored = sql.SQL(STORED).format(name=sql.Literal(relation))
    [(count,)] = _rows(cursor, sql.SQL(DIFFERENT).format(stored=stored, fresh=sql.SQL(_fresh(relation, columns))))
    return int(count)


def repair(connection: Connection[Any], relation: str) -> bool:
    """Count the rows of *relation* anew if its counts differ from them, or a trigger is missing; return whether.

    *connection* is an autocommit connection.
    """
    with connection.transaction(), connection.cursor() as cursor:
        if not differences(cursor, relation) and are_stored(cursor, relation):
            return False
        # Writers of rows wait from here on.
        cursor.execute(sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(sql.Identifier(relation)))
        forget(cursor, [relation])
        create(cursor, relation)
    return True


def are_stored(cursor: Cursor[Any], relation: str) -> bool:
    """Return whether the triggers that update the counts of *relation*, if it has counts, all exist and are enabled."""
    return not _counted(cursor, relation) or _rows(cursor, TRIGGERS, relation) == [(len(EVENTS),)]


def forget(cursor: Cursor[Any], relations: Iterable[str]) -> None:
    """Delete the counts of *relations*."""
    names = list(relations)
    for table in ("pgcatalog_count_changes", "pgcatalog_counts"):
        cursor.execute(f"DELETE FROM {table} WHERE relation = ANY(%s::text[])", [names])


def drop(cursor: Cursor[Any], relations: Iterable[str]) -> None:
    """Delete the counts of *relations*, which are dropped or emptied, and their triggers with the functions of these."""
    names = list(relations)
    forget(cursor, names)
    for name in names:
        cursor.execute(sql.SQL("DROP FUNCTION IF EXISTS {}() CASCADE").format(sql.Identifier(function_name(name))))


def function_name(relation: str) -> str:
    """Return the name of the trigger function that updates the counts of *relation*."""
    return index_name(relation, "count")
