"""The queries that a site asks by itself, taken from its content: navigation, listings, collections, blocks."""

from Acquisition import aq_base
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from plone.app.contenttypes.behaviors.collection import ICollection
from plone.app.querystring.interfaces import IParsedQueryIndexModifier
from plone.app.querystring.interfaces import IQueryModifier
from plone.app.querystring.querybuilder import QueryBuilder
from plone.app.querystring.queryparser import parseFormquery
from plone.base.interfaces import IPloneSiteRoot
from plone.pgcatalog.indexing.walk import content_of
from plone.restapi.blocks import visit_blocks
from Products.CMFCore.interfaces import IFolderish
from Products.CMFPlone.browser.navigation import CatalogNavigationTabs
from Products.CMFPlone.browser.navtree import NavtreeQueryBuilder
from Products.CMFPlone.browser.navtree import SitemapQueryBuilder
from typing import Any
from zope.component import getUtilitiesFor

import logging


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SiteQuery:
    """A query, of which kind it is, and the path of what asks it."""

    kind: str
    path: str
    query: dict[str, Any]


def site_queries(portal: Any, limit: int) -> Iterator[SiteQuery]:
    """Yield the queries of *portal*, of each kind not more than *limit*; it is walked once, and changed in nothing."""
    taken: Counter[str] = Counter()
    for path, obj in content_of(portal.portal_catalog):
        for kind, query in queries_of(obj):
            taken[kind] += 1
            if taken[kind] <= limit:
                yield SiteQuery(kind, path, query)
        obj._p_jar.cacheGC()


def queries_of(obj: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (kind, query) of all that the content object *obj* asks when it is shown."""
    if IPloneSiteRoot.providedBy(obj):
        yield "tabs", CatalogNavigationTabs(obj, obj.REQUEST)._getNavQuery()
        yield "sitemap", SitemapQueryBuilder(obj)()
    if IFolderish.providedBy(obj):
        path = "/".join(obj.getPhysicalPath())
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
    """Yield the query that plone.app.querystring's builder makes of *criteria*; nothing for those it fails at."""
    try:
        for _, modifier in sorted(getUtilitiesFor(IQueryModifier), key=lambda item: item[0]):
            criteria = modifier(criteria)
        query = parseFormquery(obj, criteria, sort_on or None, sort_order)
        for name, modifier in getUtilitiesFor(IParsedQueryIndexModifier):
            if name in query:
                new_name, value = modifier(query.pop(name))
                query[new_name] = value
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        # An operation or a value that the installed plone.app.querystring cannot read: Plone shows an error here, too.
        logger.warning("%s: a %s that cannot be parsed is left out: %r", "/".join(obj.getPhysicalPath()), kind, error)
        return
    indexes = obj.portal_catalog.indexes()
    if not any(name in indexes for name in query):
        return
    if limit:
        query["sort_limit"] = int(limit)
    query.setdefault("path", {"query": ""})
    yield kind, QueryBuilder(obj, obj.REQUEST).filter_query(query)
