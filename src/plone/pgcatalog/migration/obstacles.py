"""What of a site's ZCatalog cannot be taken over: indexes of types, or with names, that our catalog cannot have."""

from Acquisition import aq_base
from plone.pgcatalog.core.index_names import check_index_name
from plone.pgcatalog.indexes.registry import is_known
from Products.ZCatalog.Catalog import CatalogError
from typing import Any


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
