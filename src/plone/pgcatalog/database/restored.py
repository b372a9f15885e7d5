"""What a database or its sites have not got, and how it comes back; told without Zope.

Tables are missing after a dump was restored without some of them.  The storage makes what all catalogs share once, and
goes by a stamp that is in the dump: so it is looked for at each start.  Upgrade steps wait in sites.
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
LACKS_COLUMN = (
    "SELECT EXISTS (SELECT FROM unnest(%s::text[]) AS name WHERE NOT EXISTS (SELECT FROM pg_attribute"
    " WHERE attrelid = to_regclass(quote_ident(%s)) AND attname = name AND NOT attisdropped)) AS found"
)
HAS_TOOL = "SELECT EXISTS (SELECT FROM object_state WHERE class_mod = %s AND class_name = %s) AS found"
#: Longest wait of the start for a lock.
LOCK_SECONDS = 30.0


def missing(connection: Connection[Any]) -> list[str]:
    """Return the names of all that the start of Zope makes again, in the database of *connection*, whose rows are dicts."""
    faults = shared_faults(lambda query, values: connection.execute(query, values).fetchall())
    lost = {fault["name"] for fault in faults}
    names = [fault["name"] for fault in faults if not fault["line"]]
    for table, query in OF_CATALOGS.items():
        if table not in lost and not any(name.startswith(f"{table}.") for name in lost):
            names += [row["name"] for row in connection.execute(query).fetchall()]
    if not can_be_read(faults):
        return names
    for row in connection.execute(WITHOUT_LISTS).fetchall():
        columns = sql.SQL(", ").join(map(sql.Identifier, row["interned"]))
        has_numbers = sql.SQL(HAS_NUMBERS).format(relation=sql.Identifier(row["relation"]), columns=columns)
        if not lost_columns_of(connection, row) and is_there(connection, has_numbers):
            names.append(f"rows of pgcatalog_sets for {row['relation']}")
    return names


def lost_columns_of(connection: Connection[Any], row: Any) -> bool:
    """Return whether the relation of *row* lacks one of its interned columns."""
    return is_there(connection, LACKS_COLUMN, [row["interned"], row["relation"]])


def is_there(connection: Connection[Any], query: Any, values: Any = None) -> bool:
    """True when what *query* has found is not nothing."""
    [row] = connection.execute(query, values).fetchall()
    return bool(row["found"])


def is_expected(connection: Connection[Any]) -> bool:
    """True when the database of *connection*, whose rows are dicts, has or has had a catalog."""
    if is_there(connection, ARE_THERE, [list(TABLES)]):
        return True
    if not is_there(connection, ARE_THERE, [["object_state"]]):
        return False
    return is_there(connection, HAS_TOOL, TOOL_CLASS)


def bring_back(dsn: str) -> None:
    """Make what is missing in the database *dsn*; a catalog whose rows cannot be read then counts as one without a table.

    Raises psycopg.Error.
    """
    with connect(dsn, "tables", 0, lock_seconds=LOCK_SECONDS) as connection:
        connection.execute(load_sql("base"))


#: The class of the catalog tool, as the storage notes it.
TOOL_CLASS = ("plone.pgcatalog.catalog", "PlonePGCatalogTool")
#: Catalog tools with indexes, and without a table.
TOOLS_WITHOUT_TABLE = load_statement("tools_without_table")
REFERRERS = (
    "SELECT zoid, state ->> 'id' AS id, (SELECT ref FROM unnest(refs) ref WHERE ref = ANY(%(zoids)s) LIMIT 1) AS ref"
    " FROM object_state WHERE refs && %(zoids)s::bigint[] AND zoid <> ALL(%(seen)s::bigint[])"
)
ROOT = 0


def sites_without_table(connection: Connection[Any]) -> dict[int, str]:
    """Return zoid of the catalog tool -> path of its site, for those that have no table; rows of *connection* are dicts."""
    zoids = [row["zoid"] for row in connection.execute(TOOLS_WITHOUT_TABLE, TOOL_CLASS)]
    paths = {zoid: path_above(connection, zoid) for zoid in zoids}
    return {zoid: path for zoid, path in paths.items() if path is not None}


def path_above(connection: Connection[Any], tool: int) -> str | None:
    """Return the path of what contains the object *tool*, by the ids of the objects that refer to it.

    None for one that the root does not reach: it was deleted, and waits to be packed.
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
#: The version of our profile that the setup tools of sites have noted; they keep the versions in an object of their own.
VERSIONS = load_statement("profile_versions")


@cache
def steps() -> list[tuple[int, str]]:
    """Return the version that an upgrade step leads to, and its title, for each, the first one first."""
    root = ElementTree.fromstring((files("plone.pgcatalog") / "upgrades.zcml").read_text("utf-8"))
    return [
        (int(group.get("destination", "")), step.get("title", ""))
        for group in root
        for step in (group if group.tag == f"{GENERIC_SETUP}upgradeSteps" else [group])
    ]


def waiting_since(version: Any) -> list[str]:
    """Return the titles of the steps that wait in a site whose profile has *version*, as GenericSetup notes it."""
    number = version[0] if isinstance(version, tuple) else version
    return [title for to, title in steps() if to > int(number)] if str(number).isdecimal() else []


def waiting(connection: Connection[Any]) -> Iterator[dict[str, Any]]:
    """Yield ``site``, a path, and ``steps``, the titles of the steps that wait there, for each site with our catalog.

    Reads only; the rows of *connection* are dicts.
    """
    sites = {path_above(connection, row["zoid"]) for row in connection.execute(TOOLS, TOOL_CLASS).fetchall()}
    for row in connection.execute(VERSIONS, [PROFILE]).fetchall():
        titles = waiting_since(row["version"])
        site = path_above(connection, row["zoid"]) if titles else None
        if site is not None and site in sites:
            yield {"site": site, "steps": titles}
