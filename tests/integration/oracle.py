"""The oracle: a real ZCatalog with the same settings as ours, filled from the same objects."""

from Acquisition import aq_base
from collections.abc import Callable
from plone.pgcatalog.indexes.registry import settings_of
from plone.pgcatalog.migration.tools import fill
from plone.pgcatalog.migration.tools import revive
from plone.pgcatalog.migration.tools import transfer_settings
from Products.CMFPlone.CatalogTool import CatalogTool
from typing import Any


def make_oracle(portal: Any) -> Any:
    """Return a CatalogTool in the portal's context, not stored, with the content of our catalog."""
    ours = portal.portal_catalog
    tool = CatalogTool()
    transfer_settings(ours, tool)
    oracle = tool.__of__(portal)
    for name, index in aq_base(ours)._indexes.items():
        oracle._catalog.addIndex(name, settings_of(index))
        revive(oracle, name)
    for name in ours._catalog.names:
        oracle._catalog.addColumn(name)
    # In the order of our rids: results without a sort come in the order of the record ids. A ZCatalog begins at a
    # random number, and takes another one at each multiple of 4000, which may be within the content.
    oracle._catalog._v_nextid = 10**9 + 1
    fill(oracle, list(ours._catalog.paths.values()))
    return oracle


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of *call*, or the type of the exception raised."""
    try:
        return call(*arguments)
    except Exception as error:  # noqa: BLE001  whatever it is, both must raise it
        return type(error)


def answer(catalog: Any, query: dict[str, Any], method: str = "unrestrictedSearchResults") -> Any:
    """Return (paths, actual_result_count) of the result of *query* in *catalog*, or the type of the exception raised."""
    results = outcome(lambda: getattr(catalog, method)(**query))
    if isinstance(results, type):
        return results
    paths = [brain.getPath() for brain in results]
    return (paths if "sort_on" in query else sorted(paths)), results.actual_result_count
