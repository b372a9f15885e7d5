"""The methods of ZCatalog's classes whose patches have no effect here, and a log of such patches in this process."""

from collections.abc import Iterator
from plone.pgcatalog.patches import is_stock
from plone.pgcatalog.patches import ORIGINAL_VALUES
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.DateRecurringIndex.index import DateRecurringIndex
from Products.ExtendedPathIndex.ExtendedPathIndex import ExtendedPathIndex
from Products.PluginIndexes.BooleanIndex.BooleanIndex import BooleanIndex
from Products.PluginIndexes.CompositeIndex.CompositeIndex import CompositeIndex
from Products.PluginIndexes.DateIndex.DateIndex import DateIndex
from Products.PluginIndexes.DateRangeIndex.DateRangeIndex import DateRangeIndex
from Products.PluginIndexes.KeywordIndex.KeywordIndex import KeywordIndex
from Products.PluginIndexes.PathIndex.PathIndex import PathIndex
from Products.PluginIndexes.TopicIndex.TopicIndex import TopicIndex
from Products.PluginIndexes.unindex import UnIndex
from Products.PluginIndexes.UUIDIndex.UUIDIndex import UUIDIndex
from Products.ZCatalog.Catalog import Catalog
from Products.ZCatalog.plan import CatalogPlan
from Products.ZCTextIndex.BaseIndex import BaseIndex
from Products.ZCTextIndex.Lexicon import Lexicon
from Products.ZCTextIndex.OkapiIndex import OkapiIndex
from Products.ZCTextIndex.ZCTextIndex import ZCTextIndex
from Record import Record
from types import FunctionType
from typing import Any

import logging


logger = logging.getLogger(__name__)

_PLAN = "the database plans queries"
_SORT = "the database sorts, limits and counts"
_BRAINS = "results create their brains from rows; calls of it still work"
_ROWS = "brains are created from rows, and read a column when it is used"
_METADATA = "metadata is extracted together with the values of the indexes; calls of it still work"
_OURS = "the tool has its own"
_MADE = "objects are created by a constructor of plone.pgcatalog"
PATCHED_BEFORE = "it was patched before plone.pgcatalog was imported, and calls the original"

#: Attributes whose patches affect neither searches nor saves, of a class or one of its bases: class -> name -> reason.
NOT_CALLED: dict[type, dict[str, str]] = {
    CatalogTool: {
        "Indexes": _OURS,
        "__init__": _MADE,
        "_counter": _OURS,
        "long_query_time": "it is a setting of the site",
        "manage_options": _OURS,
        "meta_type": _OURS,
    },
    Catalog: {
        "__getitem__": _BRAINS,
        "__init__": _MADE,
        "__setstate__": "its data is not stored",
        "_get_index_query_names": _PLAN,
        "_limit_sequence": _SORT,
        "_maintain_zodb_cache": _BRAINS,
        "_search_index": _PLAN,
        "_sort_iterate_index": _SORT,
        "_sort_iterate_resultset": _SORT,
        "_sort_limit_arguments": _SORT,
        "_sort_nbest": _SORT,
        "_sort_nbest_reverse": _SORT,
        "_sorted_search_indexes": _PLAN,
        "_v_brains": "the tool has its own, set by `useBrains`",
        "getCatalogPlan": _PLAN,
        "getIndex": "searches and saves read the settings of the indexes; calls of it still work",
        "instantiate": _BRAINS,
        "recordify": _METADATA,
        "sortResults": f"{_SORT}; calls of it still work",
        "updateBrains": _BRAINS,
        "updateMetadata": _METADATA,
        "useBrains": _BRAINS,
    },
    Record: {"__new__": _ROWS, "__setstate__": _ROWS},
    CatalogPlan: dict.fromkeys(("plan", "start", "start_split", "stop", "stop_split"), _PLAN),
}


_STORED = "the values of an object are read by the package, and stored by PostgreSQL"
_FOUND = "PostgreSQL finds the rows"
_HELD = "PostgreSQL holds the values"
_NAMED = "a query names an index by its id"


def _methods(**names_by_reason: str) -> dict[str, str]:
    """Return name -> reason, from space-separated names for each keyword: stores, finds, reads, names."""
    reasons = {"stores": _STORED, "finds": _FOUND, "reads": _HELD, "names": _NAMED}
    return {name: reasons[kind] for kind, names in names_by_reason.items() for name in names.split()}


NOT_CALLED |= {
    UnIndex: _methods(
        stores="_increment_counter _index_object index_object insertForwardIndexEntry removeForwardIndexEntry "
        "unindex_object",
        finds="_apply_index _apply_not getRequestCache getRequestCacheKey query_index",
        reads="__len__ clear documentToKeyMap getCounter getEntryForObject histogram indexSize items keyForDocument "
        "numObjects referencedObjects uniqueValues",
        names="getId getIndexQueryNames",
    ),
    BooleanIndex: _methods(
        stores="_index_object _invert_index insertForwardIndexEntry removeForwardIndexEntry unindex_object",
        finds="query_index",
        reads="clear histogram indexSize items uniqueValues",
    ),
    DateIndex: _methods(reads="clear"),
    DateRangeIndex: _methods(
        stores="_insertForwardIndexEntry _insert_migrate _removeForwardIndexEntry _remove_delete index_object "
        "unindex_object",
        finds="_apply_index getRequestCacheKey query_index",
        reads="clear getEntryForObject uniqueValues",
    ),
    DateRecurringIndex: _methods(stores="index_object unindex_object"),
    KeywordIndex: _methods(stores="_index_object unindex_object unindex_objectKeywords"),
    UUIDIndex: _methods(
        stores="insertForwardIndexEntry removeForwardIndexEntry", reads="clear numObjects uniqueValues"
    ),
    CompositeIndex: _methods(stores="_get_component_keywords _get_permuted_keywords _index_object fastBuild"),
    PathIndex: _methods(
        stores="index_object insertEntry unindex_object",
        finds="_apply_index _search query_index",
        reads="__len__ clear documentToKeyMap getEntryForObject indexSize keyForDocument numObjects uniqueValues",
        names="getIndexQueryNames",
    ),
    ExtendedPathIndex: _methods(
        stores="index_object unindex_object", finds="_apply_index query_index search", reads="clear"
    ),
    TopicIndex: _methods(
        stores="index_object unindex_object",
        finds="_apply_index query_index search",
        reads="clear getEntryForObject indexSize numObjects uniqueValues",
        names="getId getIndexQueryNames",
    ),
    ZCTextIndex: _methods(
        stores="index_object unindex_object",
        finds="_apply_index query query_index",
        reads="clear getEntryForObject indexSize numObjects uniqueValues",
        names="getIndexQueryNames",
    ),
    BaseIndex: _methods(
        stores="_del_wordinfo _mass_add_wordinfo _reindex_doc index_doc unindex_doc",
        finds="_remove_oov_wids query_weight search search_glob search_phrase",
        reads="document_count get_words has_doc length",
    ),
    OkapiIndex: _methods(
        stores="_change_doc_len _get_frequencies _reindex_doc index_doc unindex_doc", finds="_search_wids query_weight"
    ),
    Lexicon: _methods(
        stores="_getWordIdCreate sourceToWordIds",
        finds="globToWordIds isGlob parseTerms termToWordIds",
        reads="get_word",
    ),
}


def ineffective_patches() -> list[tuple[str, str, str]]:
    """Return (patched attribute, module of the patch, reason why it has no effect) for each such patch in this process."""
    found = []
    for base, name, value, reason in _not_called():
        if not is_stock(base, name, value):
            module = getattr(value, "__globals__", {}).get("__name__", "unknown code")
            found.append((f"{base.__module__}.{base.__name__}.{name}", module, reason))
    return found


def _not_called() -> Iterator[tuple[type, str, Any, str]]:
    """Yield (class, name, current value, reason) for each attribute in ``NOT_CALLED`` that exists."""
    for cls, reasons in NOT_CALLED.items():
        for base in cls.__mro__:
            if base.__module__.startswith(("Products.", "Record")):
                yield from ((base, n, vars(base)[n], reason) for n, reason in reasons.items() if n in vars(base))


def log_patches() -> None:
    """Log each patch without effect once per process, with the module that made it."""
    for patched, module, reason in ineffective_patches():
        if patched not in _logged:
            _logged.add(patched)
            logger.warning("%s is patched by %s, but plone.pgcatalog does not call it: %s", patched, module, reason)


#: The patches that were logged.
_logged: set[str] = set()
ORIGINAL_VALUES.update(
    {(base, name): value for base, name, value, _ in _not_called() if not isinstance(value, FunctionType)}
)
