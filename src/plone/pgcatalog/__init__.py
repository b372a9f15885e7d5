"""plone.pgcatalog: Plone's portal_catalog, answered by PostgreSQL."""

from typing import Any


def initialize(context: Any) -> None:
    """Make the tool known to the ZMI's add list (GenericSetup creates tools by class name)."""
    from plone.pgcatalog.catalog import PlonePGCatalogTool
    from Products.CMFCore.utils import ToolInit

    ToolInit("PG Catalog Tool", tools=(PlonePGCatalogTool,), icon="").initialize(context)
    # The icon that the tool inherits, instead of one that is not there.
    del PlonePGCatalogTool.icon
