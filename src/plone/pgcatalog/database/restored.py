"""What is missing of the catalog's tables, as after a dump was restored without some of them, and how it comes back.

The storage makes what all catalogs share once, and goes by a stamp that is in the dump.  So it is looked for at each start.
"""

from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.schema import load_sql
from plone.pgcatalog.database.sites import TOOL_CLASS
from plone.pgcatalog.protocols import Connection
from psycopg import sql

import re


#: What all catalogs share.
TABLES = tuple(re.findall(r"^CREATE TABLE IF NOT EXISTS (\w+)", load_sql("base"), re.M))
#: (table, SQL index)
INDEXES = tuple(
    (table, name) for name, table in re.findall(r"^CREATE INDEX IF NOT EXISTS (\w+)\s+ON (\w+)", load_sql("base"), re.M)
)
FUNCTIONS = tuple(re.findall(r"^CREATE OR REPLACE FUNCTION (\w+)", load_sql("base"), re.M))
#: (table, column that came later)
COLUMNS = tuple(re.findall(r"^ALTER TABLE (\w+) ADD COLUMN IF NOT EXISTS (\w+)", load_sql("base"), re.M))
#: A table that is missing stands for its SQL indexes and columns.
SHARED = """
SELECT name FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NULL
UNION ALL SELECT name || '()' FROM unnest(%s::text[]) AS name WHERE to_regproc(name) IS NULL
UNION ALL SELECT name FROM unnest(%s::text[], %s::text[]) AS sql_index (of, name)
    WHERE to_regclass(of) IS NOT NULL AND to_regclass(name) IS NULL
UNION ALL SELECT of || '.' || name FROM unnest(%s::text[], %s::text[]) AS later (of, name)
    WHERE to_regclass(of) IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = to_regclass(of) AND attname = name AND NOT attisdropped)
"""
#: Tables of single catalogs, by the table that names them.
OF_CATALOGS = {
    "pgcatalog_state": "SELECT relation AS name FROM pgcatalog_state WHERE to_regclass(quote_ident(relation)) IS NULL",
    "pgcatalog_rebuild": "SELECT name FROM pgcatalog_rebuild, unnest(ARRAY[relation, relation || '_idx']) AS name"
    " WHERE to_regclass(quote_ident(name)) IS NULL",
}
#: Catalogs whose rows have numbers of lists, and there are none.
WITHOUT_LISTS = (
    "SELECT relation, interned FROM pgcatalog_state"
    " WHERE interned <> '{}' AND NOT EXISTS (SELECT FROM pgcatalog_sets) AND to_regclass(quote_ident(relation)) IS NOT NULL"
)
HAS_NUMBERS = "SELECT EXISTS (SELECT FROM {relation} WHERE num_nonnulls({columns}) > 0) AS found"
#: How many of some tables are there.
ARE_THERE = "SELECT count(*) AS found FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NOT NULL"
HAS_TOOL = "SELECT EXISTS (SELECT FROM object_state WHERE class_mod = %s AND class_name = %s) AS found"
#: Longest wait of the start for a lock.
LOCK_SECONDS = 30.0


def missing_shared(connection: Connection) -> list[str]:
    """Return the names of what is missing of what all catalogs share: tables, SQL indexes, functions, columns.

    Reads only; the rows of *connection* are dicts.
    """
    values = [
        list(TABLES),
        list(FUNCTIONS),
        *map(list, zip(*INDEXES, strict=True)),
        *map(list, zip(*COLUMNS, strict=True)),
    ]
    return [row["name"] for row in connection.execute(SHARED, values).fetchall()]


def missing(connection: Connection) -> list[str]:
    """Return the names of all that is missing in the database of *connection*, whose rows are dicts; reads only."""
    shared = missing_shared(connection)
    names = list(shared)
    for table, query in OF_CATALOGS.items():
        if table not in shared:
            names += [row["name"] for row in connection.execute(query).fetchall()]
    if shared:
        return names
    for row in connection.execute(WITHOUT_LISTS).fetchall():
        columns = sql.SQL(", ").join(map(sql.Identifier, row["interned"]))
        asked = sql.SQL(HAS_NUMBERS).format(relation=sql.Identifier(row["relation"]), columns=columns)
        if connection.execute(asked).fetchone()["found"]:
            names.append(f"rows of pgcatalog_sets for {row['relation']}")
    return names


def is_expected(connection: Connection) -> bool:
    """True when the database of *connection*, whose rows are dicts, has or has had a catalog."""
    if connection.execute(ARE_THERE, [list(TABLES)]).fetchone()["found"]:
        return True
    if not connection.execute(ARE_THERE, [["object_state"]]).fetchone()["found"]:
        return False
    return bool(connection.execute(HAS_TOOL, TOOL_CLASS).fetchone()["found"])


def bring_back(dsn: str) -> None:
    """Make what is missing in the database *dsn*; a catalog whose rows cannot be read then counts as one without a table.

    Raises psycopg.Error.
    """
    with connect(dsn, "tables", 0, lock_seconds=LOCK_SECONDS) as connection:
        connection.execute(load_sql("base"))
