"""Sorting by indexes that have no column: getObjPositionInParent lives in the folders, not in the catalog."""

from Acquisition import aq_base
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from plone.folder.nogopip import GopipIndex
from plone.folder.nogopip import traverse
from plone.pgcatalog.indexes.base import Condition
from plone.pgcatalog.indexes.base import EVERYTHING
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.daterange import ALWAYS_SINCE
from plone.pgcatalog.indexes.daterange import ALWAYS_UNTIL
from plone.pgcatalog.indexes.daterange import DateRangeIndexTranslator
from plone.pgcatalog.results.view import CatalogView
from Products.CMFCore.interfaces import ISiteRoot
from types import SimpleNamespace
from typing import Any
from zope.component import getUtility


def sort_rows(
    view: CatalogView, lookup: Callable[[str], IndexTranslator], rows: list[Any], sort: Iterable[tuple[str, bool]]
) -> list[Any]:
    """Sort (rid, path, score) *rows* of *view* by *sort*, (index name, reverse) pairs, as ZCatalog's sortResults does.

    *lookup* finds the translator of an index.  Rows without a key in one of the indexes drop out; ties keep their order.
    """
    for name, reverse in reversed(tuple(sort)):
        keys = document_keys(view, lookup(name), rows)
        rows = [row for row in rows if row[0] in keys]
        # None sorts first, as in ZCatalog; rows come ordered by rid, which breaks the ties.
        rows.sort(key=lambda row: (keys[row[0]] is not None, keys[row[0]]), reverse=reverse)
    return rows


def entries(view: CatalogView, translator: IndexTranslator, where: Condition = EVERYTHING) -> Iterator[tuple[int, Any]]:
    """Yield (rid, entry) of the rows that match *where* and have a value in the index, ascending by rid."""
    columns = translator.columns()
    if not columns:
        return
    has_value = Condition(f"{columns[0].quoted} IS NOT NULL") & where
    for rid, *values in view.select(f"rid, {view.lists(columns)}", has_value, "ORDER BY rid"):
        yield rid, translator.entry(tuple(values))


def document_keys(view: CatalogView, translator: IndexTranslator, rows: list[Any]) -> Any:
    """Return rid to sort key for *rows*."""
    if translator.meta_type == DateRangeIndexTranslator.meta_type:
        # Pairs with None for open ends, which have no order; in SQL they are outermost.
        return {
            rid: (ALWAYS_SINCE if since is None else since, ALWAYS_UNTIL if until is None else until)
            for rid, (since, until) in entries(view, translator)
        }
    if translator.meta_type != GopipIndex.meta_type:
        return dict(entries(view, translator))
    return positions(rows)


def positions(rows: list[Any]) -> Any:
    """Return rid to position in its folder for *rows*.

    GopipIndex.documentToKeyMap finds the rows in the local variable ``rs`` of its caller, and their paths in
    ``index.catalog``.
    """
    paths = SimpleNamespace(paths={rid: path for rid, path, _ in rows})
    index = GopipIndex("getObjPositionInParent", caller=SimpleNamespace(_catalog=paths))
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
