"""A catalog tool without its table: the objects were copied from another database, the table was not."""

from Acquisition import aq_base
from typing import Any
from ZODB.utils import z64

import logging


logger = logging.getLogger(__name__)

MESSAGE = (
    "%s has no table in this database, as after copying the objects from another one:"
    " it knows nothing, or what has been saved since. Call its clearFindAndRebuild()"
)


def expects_relation(tool: Any) -> bool:
    """True for a catalog tool that was committed with indexes: that commit made its table."""
    base = aq_base(tool)
    return getattr(base, "_p_serial", z64) != z64 and not base._p_changed and bool(base._indexes)


def report(tool: Any) -> None:
    """Log that *tool* has lost its table, once as long as the tool stays in its connection's cache."""
    base = aq_base(tool)
    if not getattr(base, "_v_reported_missing", False):
        base._v_reported_missing = True
        logger.error(MESSAGE, "/".join(tool.getPhysicalPath()))
