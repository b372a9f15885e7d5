"""One catalog tool takes over what another one is set to: properties, lexicons, indexes; and is filled.

The objects of a large site do not fit into one transaction.  So that the installation's profile can leave the filling to
a command, and the uninstallation's can find it done, there is ``filling_later`` and the attribute SUCCESSOR.
"""

from Acquisition import aq_base
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from plone.folder.nogopip import GopipIndex
from plone.pgcatalog.core.catalog import check_index_name
from plone.pgcatalog.indexes.registry import is_known
from plone.pgcatalog.indexing.objects import object_at
from plone.pgcatalog.settings import ATTRIBUTE
from Products.ZCatalog.Catalog import CatalogError
from Products.ZCTextIndex.ZCTextIndex import PLexicon
from typing import Any

import logging


logger = logging.getLogger(__name__)

#: The attribute of our tool with the ZCatalog that is to take its place.
SUCCESSOR = "_successor"
#: Attributes of a catalog tool that make it the tool it is, ours or ZCatalog's; the others are settings.
OWN_STATE = (
    "id",
    "_objects",
    "_catalog",
    "_counter",
    "_indexes",
    "_index_columns",
    "_old_columns",
    "_columns",
    # A setting of ours: a ZCatalog's own value has nothing to do with it.
    "long_query_time",
    ATTRIBUTE,
    SUCCESSOR,
)

_later: ContextVar[bool] = ContextVar("filling_later", default=False)


@contextmanager
def filling_later() -> Iterator[None]:
    """Let an installation inside this context leave the new catalog unfilled: the caller has it rebuilt."""
    token = _later.set(True)
    try:
        yield
    finally:
        _later.reset(token)


def is_filled_later() -> bool:
    """True inside of ``filling_later``."""
    return _later.get()


def take_settings(old: Any, new: Any) -> None:
    """Copy properties, local roles and permissions, lexicons and other sub-objects; a lexicon without its words."""
    items = dict(old.objectItems())
    for name, value in vars(aq_base(old)).items():
        if name not in OWN_STATE and name not in items and not name.startswith("_v_"):
            setattr(new, name, value)
    for id, item in items.items():
        item = aq_base(item)
        new._setObject(id, empty_lexicon(item) if isinstance(item, PLexicon) else item._getCopy(old))


def empty_lexicon(lexicon: Any) -> PLexicon:
    """Return a lexicon with the same id, title and pipeline, and no words."""
    return PLexicon(lexicon.getId(), lexicon.title, *lexicon._pipeline)


def revive(catalog: Any, name: str) -> None:
    """Make a stripped index of the ZCatalog *catalog* a working, empty one."""
    index = catalog._catalog.getIndex(name)
    if index.meta_type == GopipIndex.meta_type:
        index.catalog = aq_base(catalog._catalog)
    if hasattr(index, "caller"):
        index.caller = aq_base(catalog._catalog)
    index.clear()


def add_indexes(catalog: Any, indexes: dict[str, Any], columns: Iterable[str]) -> None:
    """Give the ZCatalog *catalog* the *indexes*, as ``settings_of`` makes them, and the metadata *columns*."""
    for name, index in indexes.items():
        catalog._catalog.addIndex(name, index)
        revive(catalog, name)
    for name in columns:
        catalog._catalog.addColumn(name)


def fill(catalog: Any, paths: Iterable[str]) -> None:
    """Catalogue the objects at *paths*; one that cannot be found any more is logged and left out."""
    for path in paths:
        obj = object_at(catalog, path)
        if obj is None:
            logger.warning("%s: in the old catalog, but no object is there: left out", path)
        else:
            catalog.catalog_object(obj, path)


def unknown_indexes(tool: Any) -> list[tuple[str, str]]:
    """Return (name, type) of the indexes of the ZCatalog *tool* that nobody translates."""
    indexes = aq_base(tool)._catalog.indexes
    return [(name, getattr(i, "meta_type", type(i).__name__)) for name, i in indexes.items() if not is_known(i)]


def refused_names(tool: Any) -> list[str]:
    """Return of each index of *tool* whose name no index of ours can have, why."""
    names = sorted(aq_base(tool)._catalog.indexes)
    return [reason for name in names if (reason := _refusal(name)) is not None]


def _refusal(name: str) -> str | None:
    try:
        check_index_name(name)
    except CatalogError as error:
        return str(error)
    return None
