"""Runs the queries that a site itself makes on two catalogs, and compares the results."""

from AccessControl.SecurityManagement import getSecurityManager
from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SecurityManagement import setSecurityManager
from AccessControl.SpecialUsers import nobody
from Acquisition import aq_base
from collections import Counter
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from plone.app.contenttypes.behaviors.collection import ICollection
from plone.app.querystring.interfaces import IParsedQueryIndexModifier
from plone.app.querystring.interfaces import IQueryModifier
from plone.app.querystring.querybuilder import QueryBuilder
from plone.app.querystring.queryparser import parseFormquery
from plone.base.interfaces import IPloneSiteRoot
from plone.pgcatalog.indexing.objects import content_of
from plone.pgcatalog.results.cache import result_cache
from plone.restapi.blocks import visit_blocks
from Products.CMFCore.interfaces import IFolderish
from Products.ZCatalog.ZCatalog import ZCatalog
from statistics import median
from time import perf_counter
from typing import Any
from zope.component import getUtilitiesFor

import logging


try:
    from Products.CMFPlone.browser.navigation import CatalogNavigationTabs
    from Products.CMFPlone.browser.navtree import NavtreeQueryBuilder
    from Products.CMFPlone.browser.navtree import SitemapQueryBuilder
except ModuleNotFoundError:
    HAS_CLASSIC = False
else:
    #: Whether the navigation of Classic UI is installed.
    HAS_CLASSIC = True

logger = logging.getLogger(__name__)

#: Keys of a query that limit its results; left out for the comparison.
LIMITS = ("sort_limit", "b_start", "b_size")
#: Number of times that each query is timed, after a first run that does not count.
REPEATS = 3


@dataclass(frozen=True)
class SiteQuery:
    """A query, its kind, and the path of the object that makes it."""

    kind: str
    path: str
    query: dict[str, Any]


def site_queries(portal: Any, limit: int) -> Iterator[SiteQuery]:
    """Yield the queries of *portal*, *limit* of each kind at most; the site is walked once, and not changed."""
    counts: Counter[str] = Counter()
    for path, obj in content_of(portal.portal_catalog):
        for kind, query in queries_of(obj):
            counts[kind] += 1
            if counts[kind] <= limit:
                yield SiteQuery(kind, path, query)
        obj._p_jar.cacheGC()


def queries_of(obj: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (kind, query) of all queries that the content object *obj* makes when it is shown."""
    if HAS_CLASSIC and IPloneSiteRoot.providedBy(obj):
        yield "tabs", CatalogNavigationTabs(obj, obj.REQUEST)._getNavQuery()
        yield "sitemap", SitemapQueryBuilder(obj)()
    if IFolderish.providedBy(obj):
        path = "/".join(obj.getPhysicalPath())
        if HAS_CLASSIC:
            yield "navigation", NavtreeQueryBuilder(obj)()
        yield "listing", {"path": {"query": path, "depth": 1}, "sort_on": "getObjPositionInParent"}
    collection = ICollection(obj, None)
    if collection is not None and collection.query:
        order = "reverse" if collection.sort_reversed else "ascending"
        yield from parsed("collection", obj, collection.query, collection.sort_on, order, collection.limit)
    blocks = getattr(aq_base(obj), "blocks", None)
    for block in visit_blocks(obj, blocks) if isinstance(blocks, dict) else ():
        data = block.get("querystring") if isinstance(block, dict) else None
        if isinstance(data, dict) and data.get("query"):
            order = "reverse" if data.get("sort_order") == "descending" else "ascending"
            yield from parsed("block", obj, data["query"], data.get("sort_on"), order, data.get("limit"))


def parsed(
    kind: str, obj: Any, criteria: Any, sort_on: Any, sort_order: str, limit: Any
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the query that plone.app.querystring's builder makes of *criteria*; nothing if it cannot read them."""
    try:
        for _, modifier in sorted(getUtilitiesFor(IQueryModifier), key=lambda item: item[0]):
            criteria = modifier(criteria)
        query = parseFormquery(obj, criteria, sort_on or None, sort_order)
        for name, modifier in getUtilitiesFor(IParsedQueryIndexModifier):
            if name in query:
                new_name, value = modifier(query.pop(name))
                query[new_name] = value
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        # An operation or a value that the installed plone.app.querystring cannot read; Plone shows an error, too.
        logger.warning("%s: a %s cannot be parsed and is ignored: %r", "/".join(obj.getPhysicalPath()), kind, error)
        return
    indexes = obj.portal_catalog.indexes()
    if not any(name in indexes for name in query):
        return
    if limit:
        query["sort_limit"] = int(limit)
    query.setdefault("path", {"query": ""})
    yield kind, QueryBuilder(obj, obj.REQUEST).filter_query(query)


@dataclass(frozen=True)
class QueryResults:
    """The results of a query: paths with and without restriction to a visitor's view, in order, and times of a search.

    - ``keys``: path -> sort key, if the sort index has it
    - ``ms``, ``cached_ms``: milliseconds of a visitor's search, without and with plone.pgcatalog's cache
    """

    everything: list[str]
    visible: list[str]
    keys: dict[str, Any]
    ms: float
    cached_ms: float


@dataclass(frozen=True)
class Comparison:
    """The comparison of two answers; verdicts are ``same``, ``ties`` (equal keys reordered), ``order``, ``different``."""

    query: SiteQuery
    verdict: str
    missing: list[str]
    additional: list[str]
    before_ms: float
    after_ms: float
    cached_ms: float

    @property
    def is_fine(self) -> bool:
        """True if both answers are correct."""
        return self.verdict in ("same", "ties")


def run_query(catalog: Any, query: SiteQuery, repeats: int = REPEATS) -> QueryResults:
    """Return the answer of *catalog*, ZCatalog or plone.pgcatalog's, to *query*; times are the median of *repeats*.

    Raises the errors of the catalog.
    """
    whole = {name: value for name, value in query.query.items() if name not in LIMITS}
    everything = catalog.unrestrictedSearchResults(**whole)
    keys = sort_keys(catalog, query.query.get("sort_on"), everything)
    with visitor():
        visible = [brain.getPath() for brain in catalog.searchResults(**whole)]

        def search() -> list[str]:
            return [brain.getPath() for brain in catalog.searchResults(**query.query)]

        ms, cached_ms = timed(search, repeats), timed(search, repeats, is_cached=True)
    return QueryResults([brain.getPath() for brain in everything], visible, keys, ms, cached_ms)


def timed(search: Callable[[], Any], repeats: int, is_cached: bool = False) -> float:
    """Return the median time of *search* in milliseconds; unless *is_cached*, the cache is cleared before each run."""
    search()
    times = []
    for _ in range(repeats):
        if not is_cached:
            result_cache().clear()
        started = perf_counter()
        search()
        times.append(1000 * (perf_counter() - started))
    return median(times)


@contextmanager
def visitor() -> Iterator[None]:
    """Act as an anonymous visitor."""
    manager = getSecurityManager()
    newSecurityManager(None, nobody)
    try:
        yield
    finally:
        setSecurityManager(manager)


def sort_keys(catalog: Any, sort_on: Any, brains: Any) -> dict[str, Any]:
    """Return path -> value by which the index *sort_on* of the ZCatalog *catalog* sorts, for *brains* that have one.

    Empty if *catalog* is no ZCatalog, *sort_on* is not one name, or the index does not offer its sort values.
    """
    if not isinstance(aq_base(catalog), ZCatalog) or not isinstance(sort_on, str):
        return {}
    index = catalog._catalog.indexes.get(sort_on)
    rs = [brain.getRID() for brain in brains]  # GopipIndex reads the variable of this name in its caller
    keys = index.documentToKeyMap() if hasattr(index, "documentToKeyMap") else {}
    return {brain.getPath(): keys[rid] for rid, brain in zip(rs, brains, strict=True) if rid in keys}


def compare(query: SiteQuery, before: QueryResults, after: QueryResults) -> Comparison:
    """Return the comparison of two answers to *query*."""
    missing = sorted({*before.everything} - {*after.everything} | {*before.visible} - {*after.visible})
    additional = sorted({*after.everything} - {*before.everything} | {*after.visible} - {*before.visible})
    if missing or additional:
        verdict = "different"
    elif not query.query.get("sort_on") or (before.everything, before.visible) == (after.everything, after.visible):
        verdict = "same"
    else:
        pairs = ((before.everything, after.everything), (before.visible, after.visible))
        verdict = "ties" if all(only_ties(*pair, before.keys) for pair in pairs) else "order"
    return Comparison(query, verdict, missing, additional, before.ms, after.ms, after.cached_ms)


def only_ties(before: list[str], after: list[str], keys: dict[str, Any]) -> bool:
    """Return True if *after* has the sort keys of *before* in the same order: only rows with equal keys were reordered."""
    return all(one in keys and other in keys for one, other in zip(before, after, strict=True) if one != other) and [
        keys.get(path) for path in before
    ] == [keys.get(path) for path in after]
