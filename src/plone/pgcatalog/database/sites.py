"""Sites whose catalog has no table, found without Zope: commands and metrics ask for them."""

from plone.pgcatalog.protocols import Connection


#: The class of the catalog tool, as the storage notes it.
TOOL_CLASS = ("plone.pgcatalog.catalog", "PlonePGCatalogTool")
#: Catalog tools with indexes, and without a table.
TOOLS = (
    "SELECT zoid FROM object_state o WHERE class_mod = %s AND class_name = %s"
    " AND coalesce(state -> '_indexes', '{}') <> '{}'"
    " AND NOT EXISTS (SELECT FROM pgcatalog_state s WHERE s.catalog = o.zoid"
    " AND to_regclass(quote_ident(s.relation)) IS NOT NULL) ORDER BY zoid"
)
REFERRERS = (
    "SELECT zoid, state ->> 'id' AS id, (SELECT ref FROM unnest(refs) ref WHERE ref = ANY(%(zoids)s) LIMIT 1) AS ref"
    " FROM object_state WHERE refs && %(zoids)s::bigint[] AND zoid <> ALL(%(seen)s::bigint[])"
)
ROOT = 0


def sites_without_table(connection: Connection) -> dict[int, str]:
    """Return zoid of the catalog tool -> path of its site, for those that have no table; rows of *connection* are dicts."""
    zoids = [row["zoid"] for row in connection.execute(TOOLS, TOOL_CLASS)]
    paths = {zoid: path_above(connection, zoid) for zoid in zoids}
    return {zoid: path for zoid, path in paths.items() if path is not None}


def path_above(connection: Connection, tool: int) -> str | None:
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
