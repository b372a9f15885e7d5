"""catalog.xml of GenericSetup: what a catalog tool exports, and imports."""

from Products.CMFCore.exportimport.catalog import exportCatalogTool
from Products.CMFCore.exportimport.catalog import importCatalogTool
from Products.GenericSetup.tests.common import DummyExportContext
from Products.GenericSetup.tests.common import DummyImportContext
from typing import Any

import re


def exported(tool: Any) -> str:
    context = DummyExportContext(tool.aq_parent, tool.aq_parent.portal_setup)
    exportCatalogTool(context)
    ((_, text, _),) = [wrote for wrote in context._wrote if wrote[0] == "catalog.xml"]
    return text.decode() if isinstance(text, bytes) else str(text)


def importable(text: str) -> str:
    """Return *text* without DateRecurringIndexes: GenericSetup cannot import one that is there, in a ZCatalog either."""
    return re.sub(r'\s*<index [^>]*"(?:start|end)"(?:[^>]*/>|[^>]*>.*?</index>)', "", text, flags=re.DOTALL)


def imported(tool: Any, text: str, purge: bool = False) -> None:
    context = DummyImportContext(tool.aq_parent, purge)
    context._files["catalog.xml"] = text.encode()
    importCatalogTool(context)
