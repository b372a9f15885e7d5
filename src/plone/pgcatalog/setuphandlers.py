"""Install and uninstall: one catalog tool replaces another, with its indexes, columns and entries."""

from Acquisition import aq_base
from plone.base.interfaces import INonInstallable
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.controlpanel.registry_records import copy_settings
from plone.pgcatalog.controlpanel.tuning_import import decoded
from plone.pgcatalog.controlpanel.tuning_import import findings
from plone.pgcatalog.controlpanel.tuning_import import import_tuning
from plone.pgcatalog.controlpanel.tuning_import import tuning_text
from plone.pgcatalog.core import cataloguer
from plone.pgcatalog.database.session import connection_of
from plone.pgcatalog.i18n import english
from plone.pgcatalog.indexes.registry import settings_of
from plone.pgcatalog.indexing.transition import expect_filling
from plone.pgcatalog.migration import tools
from plone.pgcatalog.storage import is_supported
from Products.CMFCore.indexing import processQueue
from Products.CMFCore.interfaces import ICatalogTool
from Products.GenericSetup.tool import importToolset
from Products.GenericSetup.tool import TOOLSET_XML
from Products.ZCatalog.Catalog import CatalogError
from typing import Any
from xml.dom import minidom
from zope.component.hooks import setSite
from zope.interface import implementer


ID = "portal_catalog"
TOOLSET_STEP = "toolset"
#: The file of a profile with the tuning of a search.
TUNING_FILE = "pgcatalog_tuning.txt"
TRANSLATE = "Remove them, or register an IPGIndexTranslator for their types"
RENAME = "Remove them, or add them again under other names."
OUR_CLASS = "plone.pgcatalog.catalog.PlonePGCatalogTool"
PLONES_CLASS = "Products.CMFPlone.CatalogTool.CatalogTool"


class UnsupportedStorage(RuntimeError):
    """plone.pgcatalog needs the storage zodb-pgjsonb; the site was not changed."""


class UnsupportedIndexes(CatalogError):
    """plone.pgcatalog does not support the types of some indexes of this site; the site was not changed."""


class UnsupportedNames(CatalogError):
    """Some indexes of this site have names that plone.pgcatalog does not support; the site was not changed."""


@implementer(INonInstallable)
class HiddenProfiles:
    """Hides the uninstall profile from the list of profiles to install."""

    def getNonInstallableProfiles(self) -> list[str]:
        return ["plone.pgcatalog:uninstall"]

    def getNonInstallableProducts(self) -> list[str]:
        return []


def check_site(setup_tool: Any) -> None:
    """Raise UnsupportedStorage, UnsupportedIndexes or UnsupportedNames if the site has such a fault; change nothing."""
    if not is_supported(connection_of(setup_tool)):
        raise UnsupportedStorage(UnsupportedStorage.__doc__)
    tool = site_of(setup_tool)[ID]
    if isinstance(aq_base(tool), PlonePGCatalogTool):
        return
    if unknown := tools.unknown_indexes(tool):
        names = ", ".join(f"{name} ({meta_type})" for name, meta_type in unknown)
        raise UnsupportedIndexes(f"{UnsupportedIndexes.__doc__} {TRANSLATE}: {names}")
    if reasons := tools.refused_names(tool):
        raise UnsupportedNames(f"{UnsupportedNames.__doc__} {RENAME} {'; '.join(reasons)}")


def install(setup_tool: Any) -> None:
    """Replace the site's ZCatalog by ours, unless this has been done; inside of ``filling_later`` ours is left unfilled."""
    protect_tool(setup_tool)
    site = site_of(setup_tool)
    old = site[ID]
    if isinstance(aq_base(old), PlonePGCatalogTool):
        return
    check_site(setup_tool)
    processQueue()
    paths = list(old._catalog.uids.keys())
    new = PlonePGCatalogTool()
    tools.transfer_settings(old, new)
    indexes = {name: settings_of(index) for name, index in aq_base(old)._catalog.indexes.items()}
    new = replace_tool(site, new)
    for name, index in indexes.items():
        new._catalog.addIndex(name, index)
    for name in old._catalog.names:
        new._catalog.addColumn(name)
    copy_settings(site)
    if tools.is_filled_later():
        expect_filling(new)
    else:
        tools.fill(new, paths)


def uninstall(setup_tool: Any) -> None:
    """Replace our catalog by a ZCatalog with the same indexes, columns and entries, and drop ours.

    A ZCatalog that was filled beside ours is used if there is one.
    """
    site = site_of(setup_tool)
    unprotect_tool(setup_tool)
    old = site[ID]
    if not isinstance(aq_base(old), PlonePGCatalogTool):
        return
    processQueue()
    new, paths = tools.successor_of(old), []
    if new is not None and tools.is_current(old, new):
        tools.catch_up(old, new)
    else:
        new, paths = tools.new_successor(old), tools.paths_of(old)
    cataloguer.drop(old._core)
    tools.fill(replace_tool(site, aq_base(new)), paths)


def site_of(setup_tool: Any) -> Any:
    return setup_tool.aq_inner.aq_parent


def replace_tool(site: Any, new: Any) -> Any:
    """Replace the site's catalog by the tool *new*, at the same position in the site's order; return it wrapped."""
    position = list(site.objectIds()).index(ID)
    site._delObject(ID, suppress_events=True)
    site._setObject(ID, new, suppress_events=True)
    site.moveObjectToPosition(ID, position, suppress_events=True)
    tool = site[ID]
    site.getSiteManager().registerUtility(aq_base(tool), ICatalogTool)
    setSite(site)
    return tool


def protect_tool(setup_tool: Any) -> None:
    """Protect our tool from imports of a toolset that requires Plone's catalog class, even without ``overrides.zcml``."""
    setup_tool.getToolsetRegistry().addRequiredTool(ID, OUR_CLASS)
    handler = f"{__name__}.import_toolset"
    step = setup_tool.getImportStepMetadata(TOOLSET_STEP) or {}
    if step.get("handler") != handler:
        options = {name: step[name] for name in ("version", "dependencies", "title", "description") if name in step}
        setup_tool.getImportStepRegistry().registerStep(id=TOOLSET_STEP, handler=handler, **options)
    setup_tool._p_changed = True


def unprotect_tool(setup_tool: Any) -> None:
    """Restore GenericSetup's own toolset step, and Plone's catalog class as the required one."""
    setup_tool.getToolsetRegistry().addRequiredTool(ID, PLONES_CLASS)
    registry = setup_tool.getImportStepRegistry()
    if TOOLSET_STEP in registry.listSteps():
        registry.unregisterStep(TOOLSET_STEP)
    setup_tool._p_changed = True


def import_toolset(context: Any) -> None:
    """Run GenericSetup's toolset step; where the site has our catalog, ignore a profile's request for another one."""
    ours = isinstance(getattr(aq_base(context.getSite()), ID, None), PlonePGCatalogTool)
    importToolset(WithoutCatalog(context) if ours else context)


class WithoutCatalog:
    """An import context whose toolset does not contain the catalog."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def readDataFile(self, filename: str, subdir: Any = None) -> Any:
        data = self._context.readDataFile(filename, subdir)
        if filename != TOOLSET_XML or data is None:
            return data
        document = minidom.parseString(data)
        for node in document.getElementsByTagName("required"):
            if node.getAttribute("tool_id") == ID and node.parentNode is not None:
                node.parentNode.removeChild(node)
        return document.toxml(encoding="utf-8")


def import_tuning_file(context: Any) -> None:
    """Import the tuning of the search from a profile's TUNING_FILE, if it has one and the site has our catalog.

    Raises LineError if a line cannot be read; lines without an effect are logged.
    """
    content = context.readDataFile(TUNING_FILE)
    tool = getattr(context.getSite(), ID, None)
    if content is None or not isinstance(aq_base(tool), PlonePGCatalogTool):
        return
    text = decoded(content)
    import_tuning(tool, text)
    for finding in findings(tool, text):
        context.getLogger("plone.pgcatalog").warning(f"{TUNING_FILE}: {english(finding.message)}")


def export_tuning_file(context: Any) -> None:
    """Export the tuning of the search as TUNING_FILE, if the site has our catalog."""
    tool = getattr(context.getSite(), ID, None)
    if isinstance(aq_base(tool), PlonePGCatalogTool):
        context.writeDataFile(TUNING_FILE, tuning_text(tool).encode(), "text/plain")
