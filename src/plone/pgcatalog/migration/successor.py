"""The ZCatalog that is to take our catalog's place, filled beside it in batches, each a transaction.

Our catalog answers meanwhile, and follows what editors do.  What has changed since a path was put into the successor
is found by the versions of rows: PostgreSQL's number of the transaction that wrote the row, or the object.
"""

from Acquisition import aq_base
from collections.abc import Iterator
from itertools import batched
from plone.pgcatalog.database.layout import load_sql
from plone.pgcatalog.indexes.registry import settings_of
from plone.pgcatalog.indexing.objects import content_of
from plone.pgcatalog.indexing.transition import is_unfilled
from plone.pgcatalog.migration.tools import add_indexes
from plone.pgcatalog.migration.tools import fill
from plone.pgcatalog.migration.tools import SUCCESSOR
from plone.pgcatalog.migration.tools import take_settings
from Products.CMFPlone.CatalogTool import CatalogTool
from psycopg import sql
from typing import Any

import transaction


#: Objects in one transaction.
BATCH = 500
#: The attribute of a successor with the number of the oldest transaction that may have changed what it knows.
HORIZON = "_pgcatalog_horizon"


def successor_of(tool: Any) -> Any:
    """Return the ZCatalog that is to take the place of our *tool*, wrapped like it; None when none was begun."""
    found = getattr(aq_base(tool), SUCCESSOR, None)
    return None if found is None else found.__of__(tool.aq_inner.aq_parent)


def new_successor(tool: Any) -> Any:
    """Return an empty ZCatalog with the indexes, columns and settings of our *tool*, wrapped like it."""
    new = CatalogTool()
    take_settings(tool, new)
    new = new.__of__(tool.aq_inner.aq_parent)
    indexes = {name: settings_of(index) for name, index in aq_base(tool)._indexes.items()}
    add_indexes(new, indexes, tool._catalog.names)
    return new


def paths_of(tool: Any) -> list[str]:
    """Return the paths that a ZCatalog in the place of our *tool* is to know."""
    core = tool._core
    return [path for path, _ in content_of(tool)] if is_unfilled(core) else list(tool._catalog.uids)


def begin(tool: Any) -> Any:
    """Return the successor of our *tool*: the one that was begun, or a new, empty one, which is committed."""
    found = successor_of(tool)
    if found is not None and is_current(tool, found):
        return found
    new = new_successor(tool)
    setattr(aq_base(new), HORIZON, horizon(tool))
    setattr(aq_base(tool), SUCCESSOR, aq_base(new))
    transaction.get().note("catalog: uninstallation begun")
    transaction.commit()
    return successor_of(tool)


def is_current(tool: Any, successor: Any) -> bool:
    """True if *successor* has the indexes and columns that *tool* has now."""
    return set(successor._catalog.indexes) == set(aq_base(tool)._indexes) and set(successor._catalog.names) == set(
        tool._catalog.names
    )


def abandon(tool: Any) -> bool:
    """Forget the successor of our *tool*, and commit; return whether there was one."""
    if successor_of(tool) is None:
        return False
    delattr(aq_base(tool), SUCCESSOR)
    transaction.get().note("catalog: uninstallation given up")
    transaction.commit()
    return True


def fill_in_batches(tool: Any, successor: Any) -> Iterator[tuple[int, int]]:
    """Catalogue into *successor* what it does not know, batch by batch; yields how many paths it has, of how many."""
    paths = paths_of(tool)
    uids = successor._catalog.uids
    rest = [path for path in paths if path not in uids]
    done = len(paths) - len(rest)
    yield done, len(paths)
    for batch in batched(rest, BATCH):
        fill(successor, batch)
        transaction.get().note("catalog: uninstallation goes on")
        transaction.commit()
        tool._p_jar.cacheGC()
        done += len(batch)
        yield done, len(paths)


def catch_up(tool: Any, successor: Any) -> None:
    """Bring *successor* to what *tool* knows in this transaction."""
    paths = paths_of(tool)
    uids = successor._catalog.uids
    wanted = set(paths)
    for path in [path for path in uids if path not in wanted]:
        successor.uncatalog_object(path)
    changed = changed_since(tool, getattr(aq_base(successor), HORIZON))
    fill(successor, [path for path in paths if path in changed or path not in uids])


def horizon(tool: Any) -> str:
    """Return the number of the oldest transaction that has changed nothing yet that a new snapshot shows."""
    [(found,)] = tool._core.session.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")
    return str(found)


def changed_since(tool: Any, xid: str) -> set[str]:
    """Return the paths of *tool* whose row, or object, was written by the transaction *xid* or a later one."""
    core = tool._core
    state = core.session.read_states().get(core.zoid)
    if state is None:
        return set()
    query = sql.SQL(load_sql("changed_since")).format(relation=sql.Identifier(state.relation))
    return {path for (path,) in core.session.execute(query.as_string(None), {"xid": xid})}
