"""A catalog that was not filled: its site was copied or imported, or came from another database without its table."""

from Acquisition import aq_base
from plone.pgcatalog.database.schema import is_unfilled as is_unfilled_relation
from plone.pgcatalog.protocols import Catalog
from plone.pgcatalog.protocols import CatalogTool
from plone.pgcatalog.protocols import Connection

import logging


logger = logging.getLogger(__name__)

MESSAGE = (
    "%s has no table in this database, as after copying the objects from another one, or copying or importing the"
    " site: it knows nothing, or what has been saved since. pgcatalog rebuild, or its tab Advanced, fills it"
)
#: The serial of an object that was never committed: ZODB.utils.z64, without importing the ZODB into commands that need none.
NEVER = bytes(8)
#: The class of the catalog tool, as the storage notes it.
TOOL_CLASS = ("plone.pgcatalog.catalog", "PlonePGCatalogTool")
#: Catalog tools with indexes, and without a table.
TOOLS = (
    "SELECT zoid FROM object_state o WHERE class_mod = %s AND class_name = %s"
    " AND coalesce(state -> '_indexes', '{}') <> '{}'"
    " AND NOT EXISTS (SELECT FROM pgcatalog_state s WHERE s.catalog = o.zoid) ORDER BY zoid"
)
REFERRERS = (
    "SELECT zoid, state ->> 'id' AS id, (SELECT ref FROM unnest(refs) ref WHERE ref = ANY(%(zoids)s) LIMIT 1) AS ref"
    " FROM object_state WHERE refs && %(zoids)s::bigint[] AND zoid <> ALL(%(seen)s::bigint[])"
)
ROOT = 0


def has_indexes(tool: CatalogTool) -> bool:
    """True for a catalog tool that can find something."""
    return bool(aq_base(tool)._indexes)


def expects_relation(tool: CatalogTool) -> bool:
    """True for a catalog tool that was committed with indexes: that commit made its table."""
    base = aq_base(tool)
    return getattr(base, "_p_serial", NEVER) != NEVER and not base._p_changed and has_indexes(tool)


def is_unfilled(catalog: Catalog) -> bool:
    """Return whether *catalog* has no table, or one with nothing but what was saved since."""
    session = catalog.session
    state = session.read_states().get(catalog.zoid)
    if state is not None:
        return is_unfilled_relation(state.relation)
    return catalog.zoid not in session.pending and expects_relation(catalog.tool)


def expect_filling(tool: CatalogTool) -> None:
    """Have the table that this transaction makes for *tool*, a new catalog, count as unfilled until a rebuild has filled it."""
    aq_base(tool)._v_reported_missing = True
    tool._core.change().is_whole = False


def report(tool: CatalogTool) -> None:
    """Log that *tool* has lost its table, once as long as the tool stays in its connection's cache."""
    base = aq_base(tool)
    if not getattr(base, "_v_reported_missing", False):
        base._v_reported_missing = True
        logger.error(MESSAGE, "/".join(tool.getPhysicalPath()))


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
