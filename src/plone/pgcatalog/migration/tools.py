"""Transfers the settings of one catalog tool to another one: properties, lexicons and indexes; and fills the new one.

The objects of a large site do not fit into one transaction.  With ``filling_later`` the installation's profile leaves the
filling to a command; with SUCCESSOR the uninstallation's profile finds a catalog that is filled already.
"""

from Acquisition import aq_base
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import batched
from plone.folder.nogopip import GopipIndex
from plone.pgcatalog.core.catalog import check_index_name
from plone.pgcatalog.indexes.registry import settings_of
from plone.pgcatalog.indexes.registry import translator_class
from plone.pgcatalog.indexing.objects import content_of
from plone.pgcatalog.indexing.objects import object_at
from plone.pgcatalog.indexing.transition import is_unfilled
from plone.pgcatalog.settings import SETTINGS_ATTRIBUTE
from plone.pgcatalog.sql.files import read_statement
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.ZCatalog.Catalog import CatalogError
from Products.ZCTextIndex.ZCTextIndex import PLexicon
from psycopg import sql
from typing import Any
from ZODB.POSException import POSKeyError

import logging
import transaction


logger = logging.getLogger(__name__)

#: The attribute of plone.pgcatalog's tool with the ZCatalog that will replace it.
SUCCESSOR = "_successor"
#: Attributes that belong to the kind of tool, plone.pgcatalog's or ZCatalog's; the other attributes are settings.
OWN_STATE = (
    "id",
    "_objects",
    "_catalog",
    "_counter",
    "_indexes",
    "_index_columns",
    "_old_columns",
    "_columns",
    # The meaning of this setting differs from ZCatalog's.
    "long_query_time",
    SETTINGS_ATTRIBUTE,
    SUCCESSOR,
)

_later: ContextVar[bool] = ContextVar("filling_later", default=False)


@contextmanager
def filling_later() -> Iterator[None]:
    """Let installations in this context leave the new catalog unfilled; the caller rebuilds it."""
    token = _later.set(True)
    try:
        yield
    finally:
        _later.reset(token)


def is_filled_later() -> bool:
    """Return True inside of ``filling_later``."""
    return _later.get()


def transfer_settings(old: Any, new: Any) -> None:
    """Copy properties, local roles and permissions, lexicons and other sub-objects; lexicons without their words."""
    items = dict(old.objectItems())
    for name, value in vars(aq_base(old)).items():
        if name not in OWN_STATE and name not in items and not name.startswith("_v_"):
            setattr(new, name, value)
    for id, item in items.items():
        item = aq_base(item)
        is_lexicon = isinstance(item, PLexicon)
        new._setObject(id, PLexicon(id, item.title, *item._pipeline) if is_lexicon else item._getCopy(old))


def revive(catalog: Any, name: str) -> None:
    """Turn a stripped index of the ZCatalog *catalog* into a working, empty one."""
    index = catalog._catalog.getIndex(name)
    if index.meta_type == GopipIndex.meta_type:
        index.catalog = aq_base(catalog._catalog)
    if hasattr(index, "caller"):
        index.caller = aq_base(catalog._catalog)
    index.clear()


def add_indexes(catalog: Any, indexes: dict[str, Any], columns: Iterable[str]) -> None:
    """Add *indexes*, results of ``settings_of``, and the metadata *columns* to the ZCatalog *catalog*."""
    for name, index in indexes.items():
        catalog._catalog.addIndex(name, index)
        revive(catalog, name)
    for name in columns:
        catalog._catalog.addColumn(name)


def fill(catalog: Any, paths: Iterable[str]) -> None:
    """Catalogue the objects at *paths*; an object that cannot be found or fully loaded is logged and left out."""
    for path in paths:
        try:
            obj = object_at(catalog, path)
            if obj is None:
                logger.warning("%s: in the old catalog, but the object does not exist: ignored", path)
            else:
                catalog.catalog_object(obj, path)
        except POSKeyError:
            log_missing(path)
            # It may have been catalogued in part.
            catalog.uncatalog_object(path)


def unknown_indexes(tool: Any) -> list[tuple[str, str]]:
    """Return (name, type) of the indexes of the ZCatalog *tool* that have no translator."""
    return [
        (name, getattr(index, "meta_type", type(index).__name__))
        for name, index in aq_base(tool)._catalog.indexes.items()
        # An index whose class is no longer installed has no type.
        if translator_class(getattr(index, "meta_type", "")) is None
    ]


def refused_names(tool: Any) -> list[str]:
    """Return the reasons why names of indexes of *tool* are not allowed in plone.pgcatalog."""
    names = sorted(aq_base(tool)._catalog.indexes)
    return [reason for name in names if (reason := _refusal(name)) is not None]


def _refusal(name: str) -> str | None:
    try:
        check_index_name(name)
    except CatalogError as error:
        return str(error)
    return None


# -- the successor: a ZCatalog that will replace plone.pgcatalog's tool, filled beside it in batches, each a transaction
#
# Meanwhile the present catalog answers, and follows the changes of editors.  Changes since a path was catalogued in the
# successor are found by xmin, the id of the transaction that wrote the row, or the object.

#: Number of objects in one transaction.
BATCH = 500
#: The attribute of a successor with the id of the oldest transaction that may have changed its objects since.
HORIZON = "_pgcatalog_horizon"


def successor_of(tool: Any) -> Any:
    """Return the ZCatalog that will replace *tool*, wrapped like it; None if there is none."""
    found = getattr(aq_base(tool), SUCCESSOR, None)
    return None if found is None else found.__of__(tool.aq_inner.aq_parent)


def new_successor(tool: Any) -> Any:
    """Return an empty ZCatalog with the indexes, columns and settings of *tool*, wrapped like it."""
    new = CatalogTool()
    transfer_settings(tool, new)
    new = new.__of__(tool.aq_inner.aq_parent)
    indexes = {name: settings_of(index) for name, index in aq_base(tool)._indexes.items()}
    add_indexes(new, indexes, tool._catalog.names)
    return new


def paths_of(tool: Any) -> list[str]:
    """Return the paths that a ZCatalog in place of *tool* must contain."""
    core = tool._core
    return (
        [path for path, _ in content_of(tool, on_missing=log_missing)]
        if is_unfilled(core)
        else list(tool._catalog.uids)
    )


def log_missing(path: str) -> None:
    """Log that the object at *path* is left out."""
    logger.warning("%s: the object, or a part of it, is missing in the database: ignored", path)


def begin(tool: Any) -> Any:
    """Return the successor of *tool*: an existing one, or a new, empty one, which is committed."""
    found = successor_of(tool)
    if found is not None and is_current(tool, found):
        return found
    new = new_successor(tool)
    setattr(aq_base(new), HORIZON, horizon(tool))
    setattr(aq_base(tool), SUCCESSOR, aq_base(new))
    transaction.get().note("catalog: uninstallation started")
    transaction.commit()
    return successor_of(tool)


def is_current(tool: Any, successor: Any) -> bool:
    """Return True if *successor* has the present indexes and columns of *tool*."""
    return set(successor._catalog.indexes) == set(aq_base(tool)._indexes) and set(successor._catalog.names) == set(
        tool._catalog.names
    )


def abandon(tool: Any) -> bool:
    """Delete the successor of *tool*, and commit; return whether there was one."""
    if successor_of(tool) is None:
        return False
    delattr(aq_base(tool), SUCCESSOR)
    transaction.get().note("catalog: uninstallation discarded")
    transaction.commit()
    return True


def fill_in_batches(tool: Any, successor: Any) -> Iterator[tuple[int, int]]:
    """Catalogue the missing paths into *successor* in batches; yield (number of paths it has, number of all paths)."""
    paths = paths_of(tool)
    uids = successor._catalog.uids
    rest = [path for path in paths if path not in uids]
    done = len(paths) - len(rest)
    yield done, len(paths)
    for batch in batched(rest, BATCH):
        fill(successor, batch)
        transaction.get().note("catalog: uninstallation continued")
        transaction.commit()
        tool._p_jar.cacheGC()
        done += len(batch)
        yield done, len(paths)


def catch_up(tool: Any, successor: Any) -> None:
    """Update *successor* to the state of *tool* in this transaction."""
    paths = paths_of(tool)
    uids = successor._catalog.uids
    wanted = set(paths)
    for path in [path for path in uids if path not in wanted]:
        successor.uncatalog_object(path)
    changed = changed_since(tool, getattr(aq_base(successor), HORIZON))
    fill(successor, [path for path in paths if path in changed or path not in uids])


def horizon(tool: Any) -> str:
    """Return the id of the oldest transaction whose changes a new snapshot cannot see yet, as text."""
    [(found,)] = tool._core.session.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")
    return str(found)


def changed_since(tool: Any, xid: str) -> set[str]:
    """Return the paths of *tool* whose row, or object, was written by the transaction *xid* or a later one."""
    core = tool._core
    state = core.session.read_states().get(core.zoid)
    if state is None:
        return set()
    statement = sql.SQL(read_statement("migration", "changed_since")).format(relation=sql.Identifier(state.relation))
    return {path for (path,) in core.session.execute(statement.as_string(None), {"xid": xid})}
