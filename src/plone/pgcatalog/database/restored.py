"""Finds and recreates tables that a partial restore has lost, and finds waiting upgrade steps.  Needs no Zope.

The storage creates the tables that all catalogs share once, and records this in a stamp, which is part of a dump: so each
start of Zope looks for missing tables.
"""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from plone.pgcatalog.database.connections import connect
from plone.pgcatalog.database.expected import can_be_read
from plone.pgcatalog.database.expected import shared_faults
from plone.pgcatalog.database.expected import TABLES
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.database.layout import load_statement
from psycopg import Connection
from psycopg import sql
from typing import Any
from xml.etree import ElementTree


#: Missing tables of single catalogs, by the table that names them.
OF_CATALOGS = {
    "pgcatalog_state": "SELECT relation AS name FROM pgcatalog_state WHERE to_regclass(quote_ident(relation)) IS NULL",
    "pgcatalog_rebuild": "SELECT name FROM pgcatalog_rebuild, unnest(ARRAY[relation, relation || '_idx']) AS name"
    " WHERE to_regclass(quote_ident(name)) IS NULL",
}
#: Catalogs with interned columns, if pgcatalog_sets is empty.
WITHOUT_LISTS = (
    "SELECT relation, interned FROM pgcatalog_state"
    " WHERE interned <> '{}' AND NOT EXISTS (SELECT FROM pgcatalog_sets) AND to_regclass(quote_ident(relation)) IS NOT NULL"
)
HAS_NUMBERS = "SELECT EXISTS (SELECT FROM {relation} WHERE num_nonnulls({columns}) > 0) AS found"
#: How many of some tables exist.
TABLES_EXIST = "SELECT count(*) AS found FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NOT NULL"
COLUMN_MISSING = (
    "SELECT EXISTS (SELECT FROM unnest(%s::text[]) AS name WHERE NOT EXISTS (SELECT FROM pg_attribute"
    " WHERE attrelid = to_regclass(quote_ident(%s)) AND attname = name AND NOT attisdropped)) AS found"
)
HAS_TOOL = "SELECT EXISTS (SELECT FROM object_state WHERE class_mod = %s AND class_name = %s) AS found"
#: Longest wait for a lock, in seconds, at the start of Zope.
LOCK_SECONDS = 30.0


def missing(connection: Connection[Any]) -> list[str]:
    """Return the names of all missing parts that the start of Zope recreates; rows of *connection* are dicts."""
    faults = shared_faults(lambda statement, values: connection.execute(statement, values).fetchall())
    lost = {fault["name"] for fault in faults}
    names = [fault["name"] for fault in faults if not fault["line"]]
    for table, statement in OF_CATALOGS.items():
        if table not in lost and not any(name.startswith(f"{table}.") for name in lost):
            names += [row["name"] for row in connection.execute(statement).fetchall()]
    if not can_be_read(faults):
        return names
    for row in connection.execute(WITHOUT_LISTS).fetchall():
        columns = sql.SQL(", ").join(map(sql.Identifier, row["interned"]))
        has_numbers = sql.SQL(HAS_NUMBERS).format(relation=sql.Identifier(row["relation"]), columns=columns)
        has_lost_columns = exists(connection, COLUMN_MISSING, [row["interned"], row["relation"]])
        if not has_lost_columns and exists(connection, has_numbers):
            names.append(f"rows of pgcatalog_sets for {row['relation']}")
    return names


def exists(connection: Connection[Any], statement: Any, values: Any = None) -> bool:
    """Return whether the column ``found`` in the only row of *statement* is true, or not 0."""
    [row] = connection.execute(statement, values).fetchall()
    return bool(row["found"])


def is_expected(connection: Connection[Any]) -> bool:
    """Return whether the database of *connection*, whose rows are dicts, has or has had a catalog."""
    if exists(connection, TABLES_EXIST, [list(TABLES)]):
        return True
    if not exists(connection, TABLES_EXIST, [["object_state"]]):
        return False
    return exists(connection, HAS_TOOL, TOOL_CLASS)


def recreate_tables(dsn: str) -> None:
    """Recreate the missing tables in the database *dsn*.

    Afterwards a catalog whose rows cannot be read counts as one without a table.  Raises psycopg.Error.
    """
    with connect(dsn, "tables", 0, lock_seconds=LOCK_SECONDS) as connection:
        connection.execute(load_sql("base"))


#: Module and name of the catalog tool's class, as the storage records them.
TOOL_CLASS = ("plone.pgcatalog.catalog", "PlonePGCatalogTool")
#: Catalog tools with indexes, but without a table.
TOOLS_WITHOUT_TABLE = load_statement("tools_without_table")
REFERRERS = (
    "SELECT zoid, state ->> 'id' AS id, (SELECT ref FROM unnest(refs) ref WHERE ref = ANY(%(zoids)s) LIMIT 1) AS ref"
    " FROM object_state WHERE refs && %(zoids)s::bigint[] AND zoid <> ALL(%(seen)s::bigint[])"
)
ROOT = 0


def sites_without_table(connection: Connection[Any]) -> dict[int, str]:
    """Return the catalog tools without a table, zoid -> path of the site; rows of *connection* are dicts."""
    zoids = [row["zoid"] for row in connection.execute(TOOLS_WITHOUT_TABLE, TOOL_CLASS)]
    paths = {zoid: path_above(connection, zoid) for zoid in zoids}
    return {zoid: path for zoid, path in paths.items() if path is not None}


def path_above(connection: Connection[Any], tool: int) -> str | None:
    """Return the path of the container of the object *tool*, built from the ids of the objects that refer to it.

    None if the root does not reach the object: it was deleted, and is not packed yet.
    """
    below: dict[int, int] = {}
    ids: dict[int, str | None] = {}
    level = [tool]
    while level and ROOT not in below:
        rows = connection.execute(REFERRERS, {"zoids": level, "seen": [tool, *below]}).fetchall()
        below |= {row["zoid"]: row["ref"] for row in rows}
        ids |= {row["zoid"]: row["id"] for row in rows}
        level = [row["zoid"] for row in rows]
    if ROOT not in below:
        return None
    names, zoid = [], ROOT
    while zoid != tool:
        names.append(ids[zoid])
        zoid = below[zoid]
    return "/" + "/".join(filter(None, names))


PROFILE = "plone.pgcatalog:default"
GENERIC_SETUP = "{http://namespaces.zope.org/genericsetup}"
TOOLS = "SELECT zoid FROM object_state WHERE class_mod = %s AND class_name = %s ORDER BY zoid"
#: The version of our profile in each site's setup tool, which stores the versions in an object of their own.
VERSIONS = load_statement("profile_versions")
#: The upgrade steps of our profile.
UPGRADES = files("plone.pgcatalog") / "upgrades.zcml"


@cache
def steps() -> list[tuple[int, str]]:
    """Return (version it leads to, title) for each upgrade step of UPGRADES, in their order."""
    root = ElementTree.fromstring(UPGRADES.read_text("utf-8"))
    return [
        (int(group.get("destination", "")), step.get("title", ""))
        for group in root
        for step in (group if group.tag == f"{GENERIC_SETUP}upgradeSteps" else [group])
    ]


def waiting_since(version: Any) -> list[str]:
    """Return the titles of the upgrade steps that wait in a site whose profile has *version*, in GenericSetup's format."""
    number = version[0] if isinstance(version, tuple) else version
    return [title for to, title in steps() if to > int(number)] if str(number).isdecimal() else []


def waiting(connection: Connection[Any]) -> Iterator[dict[str, Any]]:
    """Yield ``site`` (a path) and ``steps`` (titles) for each site with our catalog in which upgrade steps wait.

    Reads only; the rows of *connection* are dicts.
    """
    sites = {path_above(connection, row["zoid"]) for row in connection.execute(TOOLS, TOOL_CLASS).fetchall()}
    for row in connection.execute(VERSIONS, [PROFILE]).fetchall():
        titles = waiting_since(row["version"])
        site = path_above(connection, row["zoid"]) if titles else None
        if site is not None and site in sites:
            yield {"site": site, "steps": titles}
