"""Brings a query into the form that is compiled: as ``Products.ZCatalog.Catalog`` does before its indexes see it."""

from Acquisition import aq_base
from collections.abc import Mapping
from plone.pgcatalog.core.configuration import Configuration
from plone.pgcatalog.protocols import CatalogTool
from plone.pgcatalog.query.compiler import sort_directions
from plone.pgcatalog.query.expression import as_dict
from plone.pgcatalog.query.expression import with_lists
from Products.ZCatalog.Catalog import CatalogError
from typing import Any


#: (index name, reverse) pairs
Sort = list[tuple[str, bool]]


def merged(query: Any, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the query dict of *query*, a query dict, a query object or None, and *keywords*, which count more."""
    query = as_dict(query)
    return with_lists({**(query if isinstance(query, dict) else {}), **keywords})


def option(query: Mapping[str, Any], name: str) -> Any:
    """Return the value of ``sort-`` or ``sort_`` *name* in *query*, None if there is none."""
    value = query.get(f"sort-{name}")
    return query.get(f"sort_{name}") if value is None else value


def sort_of(query: Mapping[str, Any], configuration: Configuration) -> Sort:
    """Return what ``sort_on`` and ``sort_order`` of *query* mean.

    Raises CatalogError for an index that is not there, or by which nothing can be sorted.
    """
    names = option(query, "on")
    if names is None:
        return []
    names = names if isinstance(names, list | tuple) else [names]
    for name in names:
        translator = configuration.translators.get(name)
        if translator is None:
            raise CatalogError(f"Unknown sort_on index: {name!r}")
        if not is_sortable(translator.index):
            raise CatalogError(f"The index chosen for sort_on is not capable of being used as a sort index: {name!r}")
    return list(zip(names, sort_directions(len(names), option(query, "order")), strict=True))


def is_sortable(index: Any) -> bool:
    """True when ZCatalog sorts by indexes of the type of *index*."""
    return hasattr(aq_base(index), "documentToKeyMap")


def rewritten(query: Mapping[str, Any], configuration: Configuration, tool: CatalogTool) -> Mapping[str, Any]:
    """Return *query* as the indexes of the *tool* that rewrite queries want it; what holds several values is a list."""
    query = with_lists(query)
    for index in configuration.rewriters.values():
        query = index.__of__(tool).make_query(query)
    return query


def canonical(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return *query* with its plain lists sorted, as ``Catalog.make_query`` does."""
    return {k: sorted(v) if isinstance(v, list | tuple) else v for k, v in query.items()}
