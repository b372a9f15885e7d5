"""GenericSetup's catalog.xml: export and import by a catalog tool."""

from pathlib import Path
from Products.CMFCore.exportimport.catalog import exportCatalogTool
from Products.CMFCore.exportimport.catalog import importCatalogTool
from Products.GenericSetup.context import DirectoryExportContext
from Products.GenericSetup.context import DirectoryImportContext
from tempfile import TemporaryDirectory
from typing import Any

import re


def exported(tool: Any) -> str:
    with TemporaryDirectory() as folder:
        exportCatalogTool(DirectoryExportContext(tool.aq_parent.portal_setup, folder))
        return (Path(folder) / "catalog.xml").read_text("utf-8")


def importable(text: str) -> str:
    """Return *text* without DateRecurringIndexes: GenericSetup cannot import an existing one, not even in a ZCatalog."""
    return re.sub(r'\s*<index [^>]*"(?:start|end)"(?:[^>]*/>|[^>]*>.*?</index>)', "", text, flags=re.DOTALL)


def imported(tool: Any, text: str, purge: bool = False) -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "catalog.xml").write_text(text, "utf-8")
        importCatalogTool(DirectoryImportContext(tool.aq_parent.portal_setup, folder, purge))
