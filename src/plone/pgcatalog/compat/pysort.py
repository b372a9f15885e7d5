"""Sorting by indexes that have no column: getObjPositionInParent lives in the folders, not in the catalog."""

from Acquisition import aq_base
from plone.folder.nogopip import GopipIndex
from plone.folder.nogopip import traverse
from plone.pgcatalog.indexes.daterange import ALWAYS_SINCE
from plone.pgcatalog.indexes.daterange import ALWAYS_UNTIL
from plone.pgcatalog.indexes.daterange import DateRangeIndexTranslator
from Products.CMFCore.interfaces import ISiteRoot
from typing import Any
from zope.component import getUtility


def sort_rows(catalog: Any, rows: list[Any], sort: Any) -> list[Any]:
    """Sort (rid, path, score) *rows* by *sort*, (index name, reverse) pairs, as ZCatalog's sortResults does.

    Rows without a key in one of the indexes drop out; ties keep their order.
    """
    for name, reverse in reversed(sort):
        keys = document_keys(catalog, name, rows)
        rows = [row for row in rows if row[0] in keys]
        # None sorts first, as in ZCatalog; rows come ordered by rid, which breaks the ties.
        rows.sort(key=lambda row: (keys[row[0]] is not None, keys[row[0]]), reverse=reverse)
    return rows


def document_keys(catalog: Any, name: str, rows: list[Any]) -> Any:
    """Return rid to sort key for *rows*.

    GopipIndex.documentToKeyMap finds the rows in the local variable ``rs`` of its caller, and their paths in
    ``index.catalog``.
    """
    index = catalog.indexes[name]
    if index.meta_type == DateRangeIndexTranslator.meta_type:
        # Pairs with None for open ends, which have no order; in SQL they are outermost.
        return {
            rid: (ALWAYS_SINCE if since is None else since, ALWAYS_UNTIL if until is None else until)
            for rid, (since, until) in index.documentToKeyMap().items()
        }
    if index.meta_type != GopipIndex.meta_type:
        return index.documentToKeyMap()
    index.__dict__["catalog"] = KnownPaths({rid: path for rid, path, _ in rows})
    rs = [row[0] for row in rows]
    try:
        return GopipIndex.documentToKeyMap(index)
    except ValueError:
        # Rows of objects that are no longer in their folder: a sort over one folder drops them, over several it fails.
        rs = [rid for rid, path, _ in rows if has_position(path)]  # noqa: F841
        return GopipIndex.documentToKeyMap(index)


def has_position(path: str) -> bool:
    """Return whether the folder of *path*, a physical path, can say where its object is."""
    parent, _, name = path.rpartition("/")
    folder = traverse(getUtility(ISiteRoot).getPhysicalRoot(), parent)
    if not hasattr(aq_base(folder), "getObjectPosition"):
        return True
    try:
        folder.getObjectPosition(name)
    except ValueError:
        return False
    return True


class KnownPaths:
    """Stands for a Catalog of which only ``paths`` is asked."""

    def __init__(self, paths: dict[int, str]) -> None:
        self.paths = paths
