"""Sorting by indexes that have no column: getObjPositionInParent lives in the folders, not in the catalog."""

from Acquisition import aq_base
from array import array
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from plone.folder.default import DefaultOrdering
from plone.folder.nogopip import GopipIndex
from plone.folder.nogopip import traverse
from plone.folder.ordered import OrderedBTreeFolderBase
from plone.pgcatalog.indexes.base import IndexTranslator
from plone.pgcatalog.indexes.daterange import ALWAYS_SINCE
from plone.pgcatalog.indexes.daterange import ALWAYS_UNTIL
from plone.pgcatalog.indexes.daterange import DateRangeIndexTranslator
from plone.pgcatalog.query.compiler import CompiledQuery
from plone.pgcatalog.results.view import CatalogView
from plone.pgcatalog.results.view import entries
from Products.CMFCore.interfaces import ISiteRoot
from typing import Any
from zope.annotation.interfaces import IAnnotations
from zope.component import getUtility


def sorted_rids(
    view: CatalogView,
    lookup: Callable[[str], IndexTranslator],
    query: CompiledQuery,
    rids: Sequence[int],
    paths: Iterable[str],
) -> array[int]:
    """Return *rids*, the rows of *view* with these *paths*, in the Python sort of *query*, as ZCatalog's sortResults does.

    *lookup* finds the translator of an index.  Ties keep their order.  Rows without a key drop out:

    - by any index, in a limited search or if the first index is one of positions
    - by the first index, else; rows without a key in a further one come before the others
    """
    rows: list[Any] = list(zip(rids, paths, strict=True))
    needs_all = query.window.size is not None or is_of_positions(lookup(query.python_sort[0][0]))
    for number, (name, reverse) in reversed(list(enumerate(query.python_sort))):
        keys = document_keys(view, lookup(name), rows)
        if needs_all or number == 0:
            rows = [row for row in rows if row[0] in keys]
        # None sorts before values, as in ZCatalog; rows come ordered by rid, which breaks the ties.
        rows.sort(key=partial(_rank, keys), reverse=reverse)
    return array("q", [rid for rid, _ in rows])


def _rank(keys: Any, row: Any) -> tuple[bool, bool, Any]:
    """Return the rank of *row* among others by *keys*, rid to sort key."""
    key = keys.get(row[0])
    return row[0] in keys, key is not None, key


def is_of_positions(translator: IndexTranslator) -> bool:
    """Return True if *translator* is of an index of positions in folders."""
    return bool(translator.meta_type == GopipIndex.meta_type)


def document_keys(view: CatalogView, translator: IndexTranslator, rows: list[Any]) -> Any:
    """Return rid to sort key for *rows*."""
    if translator.meta_type == DateRangeIndexTranslator.meta_type:
        # Pairs with None for open ends, which have no order; in SQL they are outermost.
        return {
            rid: (ALWAYS_SINCE if since is None else since, ALWAYS_UNTIL if until is None else until)
            for rid, (since, until) in entries(view, translator).value()
        }
    return positions(rows) if is_of_positions(translator) else dict(entries(view, translator).value())


def positions(rows: list[Any]) -> dict[int, int]:
    """Return rid to position in its folder for *rows*, as GopipIndex.documentToKeyMap does.

    That one asks the folder of each row for the adapter that knows the order; this one once for each folder.  Rows of objects
    that are no longer in their folder have no position; there a sort over several folders fails.
    """
    root = getUtility(ISiteRoot).getPhysicalRoot()
    folders: dict[str, dict[str, int]] = {}
    for rid, path in rows:
        parent, _, name = path.rpartition("/")
        folders.setdefault(parent, {})[name] = rid
    if len(folders) == 1:
        [(parent, rids)] = folders.items()
        folder = traverse(root, parent)
        ids = () if folder is None else ids_in_order(folder)
        return {rids[name]: place for place, name in enumerate(ids) if name in rids}
    found = {}
    for parent, rids in folders.items():
        position = position_in(traverse(root, parent))
        for name, rid in rids.items():
            with suppress(KeyError, ValueError):
                found[rid] = position(name)
    return found


def ids_in_order(folder: Any) -> Iterable[str]:
    """Return the ids of what is in *folder*; a folder without an order has one as well."""
    ids: Iterable[str] = (
        folder.getOrdering().idsInOrder() if hasattr(aq_base(folder), "getOrdering") else folder.objectIds()
    )
    return ids


def position_in(folder: Any) -> Callable[[str], int]:
    """Return what returns the position of an id in *folder*, 0 in one without an order.

    It raises KeyError or ValueError for an id that is not there.
    """
    own = getattr(type(aq_base(folder)), "getObjectPosition", None)
    if own is not OrderedBTreeFolderBase.getObjectPosition:
        return lambda name: 0 if own is None else folder.getObjectPosition(name)
    ordering = folder.getOrdering()
    if type(ordering) is not DefaultOrdering:
        return ordering.getObjectPosition  # type: ignore[no-any-return]
    return IAnnotations(folder).get(DefaultOrdering.POS_KEY, {}).__getitem__  # type: ignore[no-any-return]
