"""plone.pgcatalog: Plone's portal_catalog, answered by PostgreSQL."""

from typing import Any


def initialize(context: Any) -> None:
    """Register the tool in the ZMI's add list (GenericSetup creates tools by class name)."""
    from plone.pgcatalog.catalog import PlonePGCatalogTool
    from Products.CMFCore.utils import ToolInit

    ToolInit("PG Catalog Tool", tools=(PlonePGCatalogTool,), icon="").initialize(context)
    # The inherited icon is used; ToolInit has set one that does not exist.
    del PlonePGCatalogTool.icon
