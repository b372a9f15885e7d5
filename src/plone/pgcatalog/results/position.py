"""Sorting in Python by indexes that SQL cannot sort by, such as getObjPositionInParent: folders hold its values."""

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
    compiled: CompiledQuery,
    rids: Sequence[int],
    paths: Iterable[str],
) -> array[int]:
    """Return *rids*, the rows of *view* with these *paths*, sorted in Python for *compiled*, as by ZCatalog's sortResults.

    *lookup* returns the translator of an index.  The sort is stable.  Rows without a key are dropped:

    - for any index, in a limited search or if the first index holds positions
    - otherwise for the first index only; rows without a key in a further index come first
    """
    rows: list[Any] = list(zip(rids, paths, strict=True))
    needs_all = compiled.window.size is not None or is_of_positions(lookup(compiled.python_sort[0][0]))
    for number, (name, reverse) in reversed(list(enumerate(compiled.python_sort))):
        keys = document_keys(view, lookup(name), rows)
        if needs_all or number == 0:
            rows = [row for row in rows if row[0] in keys]
        # None sorts before values, as in ZCatalog; rows are ordered by rid at first, which breaks ties.
        rows.sort(key=partial(_rank, keys), reverse=reverse)
    return array("q", [rid for rid, _ in rows])


def _rank(keys: Any, row: Any) -> tuple[bool, bool, Any]:
    """Return the key to sort *row*, (rid, path), by *keys*, rid -> key: rows without a key first, then rows with None."""
    key = keys.get(row[0])
    return row[0] in keys, key is not None, key


def is_of_positions(translator: IndexTranslator) -> bool:
    """Return True if the index of *translator* holds positions in folders."""
    return bool(translator.meta_type == GopipIndex.meta_type)


def document_keys(view: CatalogView, translator: IndexTranslator, rows: list[Any]) -> Any:
    """Return rid -> sort key for *rows*, (rid, path) pairs."""
    if translator.meta_type == DateRangeIndexTranslator.meta_type:
        # Entries have None for open ends, which Python cannot compare; the outermost values replace it.
        return {
            rid: (ALWAYS_SINCE if since is None else since, ALWAYS_UNTIL if until is None else until)
            for rid, (since, until) in entries(view, translator).value()
        }
    return positions(rows) if is_of_positions(translator) else dict(entries(view, translator).value())


def positions(rows: list[Any]) -> dict[int, int]:
    """Return rid -> position in its folder for *rows*, (rid, path) pairs, as GopipIndex.documentToKeyMap does.

    GopipIndex gets the ordering adapter of the folder for each row, this function once per folder.  Rows whose objects have
    left their folder have no position; GopipIndex raises an error for them in a sort over several folders.
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
    """Return the ids of the items in *folder*: in its order, or as ``objectIds`` returns them if it has none."""
    ids: Iterable[str] = (
        folder.getOrdering().idsInOrder() if hasattr(aq_base(folder), "getOrdering") else folder.objectIds()
    )
    return ids


def position_in(folder: Any) -> Callable[[str], int]:
    """Return a function from an id in *folder* to its position, which is always 0 in a folder without an order.

    The function raises KeyError or ValueError for an unknown id.
    """
    own = getattr(type(aq_base(folder)), "getObjectPosition", None)
    if own is not OrderedBTreeFolderBase.getObjectPosition:
        return lambda name: 0 if own is None else folder.getObjectPosition(name)
    ordering = folder.getOrdering()
    if type(ordering) is not DefaultOrdering:
        return ordering.getObjectPosition  # type: ignore[no-any-return]
    return IAnnotations(folder).get(DefaultOrdering.POS_KEY, {}).__getitem__  # type: ignore[no-any-return]
