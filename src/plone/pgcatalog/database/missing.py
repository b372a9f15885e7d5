"""A catalog that was not filled: its site was copied or imported, or came from another database without its table."""

from Acquisition import aq_base
from plone.pgcatalog.database.layout import is_unfilled as is_unfilled_relation
from plone.pgcatalog.protocols import Catalog
from plone.pgcatalog.protocols import CatalogTool
from ZODB.utils import z64

import logging


logger = logging.getLogger(__name__)

MESSAGE = (
    "%s has no table in this database, as after copying the objects from another one, copying or importing the site, or"
    " restoring a dump in part: it knows nothing, or what has been saved since. pgcatalog rebuild, or its tab Advanced, fills it"
)


def has_indexes(tool: CatalogTool) -> bool:
    """True for a catalog tool that can find something."""
    return bool(aq_base(tool)._indexes)


def expects_relation(tool: CatalogTool) -> bool:
    """True for a catalog tool that was committed with indexes: that commit made its table."""
    base = aq_base(tool)
    return getattr(base, "_p_serial", z64) != z64 and not base._p_changed and has_indexes(tool)


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
