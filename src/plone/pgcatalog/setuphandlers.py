"""Install and uninstall: one catalog tool takes the place, the indexes, the columns and the entries of another."""

from Acquisition import aq_base
from plone.base.interfaces import INonInstallable
from plone.folder.nogopip import GopipIndex
from plone.pgcatalog.catalog import PlonePGCatalogTool
from plone.pgcatalog.controlpanel.registry_records import copy_settings
from plone.pgcatalog.core import cataloguer
from plone.pgcatalog.core.index_names import check_index_name
from plone.pgcatalog.database.missing import is_unfilled
from plone.pgcatalog.database.session import connection_of
from plone.pgcatalog.indexes.registry import is_known
from plone.pgcatalog.indexes.registry import settings_of
from plone.pgcatalog.indexing.walk import content_of
from plone.pgcatalog.settings import ATTRIBUTE
from plone.pgcatalog.storage import is_supported
from Products.CMFCore.indexing import processQueue
from Products.CMFCore.interfaces import ICatalogTool
from Products.CMFPlone.CatalogTool import CatalogTool
from Products.GenericSetup.tool import importToolset
from Products.GenericSetup.tool import TOOLSET_XML
from Products.ZCatalog.Catalog import CatalogError
from Products.ZCTextIndex.ZCTextIndex import PLexicon
from typing import Any
from xml.dom import minidom
from zope.component.hooks import setSite
from zope.interface import implementer

import logging


logger = logging.getLogger(__name__)

ID = "portal_catalog"
#: Attributes of a catalog tool that make it the tool it is, ours or ZCatalog's; the others are settings.
OWN_STATE = (
    "id",
    "_objects",
    "_catalog",
    "_counter",
    "_indexes",
    "_index_columns",
    "_old_columns",
    "_columns",
    # A setting of ours: a ZCatalog's own value has nothing to do with it.
    "long_query_time",
    ATTRIBUTE,
)
TOOLSET_STEP = "toolset"


class UnsupportedStorage(RuntimeError):
    """plone.pgcatalog needs a site whose storage is zodb-pgjsonb; nothing has been changed."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class UnsupportedIndexes(CatalogError):
    """plone.pgcatalog has no translator for some indexes of this site; nothing has been changed."""

    def __init__(self, unknown: list[tuple[str, str]]) -> None:
        """*unknown* are (name, type) of the indexes."""
        names = ", ".join(f"{name} ({meta_type})" for name, meta_type in unknown)
        super().__init__(f"{self.__doc__} Remove them, or register an IPGIndexTranslator for their type: {names}")


class UnsupportedNames(CatalogError):
    """Some indexes of this site have names that plone.pgcatalog cannot use; nothing has been changed."""

    def __init__(self, reasons: list[str]) -> None:
        """*reasons* say of each index why."""
        super().__init__(f"{self.__doc__} Remove them, or add them again under other names. {'; '.join(reasons)}")


@implementer(INonInstallable)
class HiddenProfiles:
    """The uninstall profile is not offered for installation."""

    def getNonInstallableProfiles(self) -> list[str]:
        return ["plone.pgcatalog:uninstall"]

    def getNonInstallableProducts(self) -> list[str]:
        return []


def check_storage(setup_tool: Any) -> None:
    """Refuse (UnsupportedStorage), before anything is changed, a storage that is not zodb-pgjsonb."""
    if not is_supported(connection_of(setup_tool)):
        raise UnsupportedStorage


def check_indexes(setup_tool: Any) -> None:
    """Refuse, before anything is changed, indexes of types nobody knows (UnsupportedIndexes) or with names that are words
    of the query dict (UnsupportedNames).
    """
    indexes = aq_base(site_of(setup_tool)[ID])._catalog.indexes
    unknown = [(name, getattr(i, "meta_type", type(i).__name__)) for name, i in indexes.items() if not is_known(i)]
    if unknown:
        raise UnsupportedIndexes(unknown)
    reasons = [reason for name in sorted(indexes) if (reason := refusal(name)) is not None]
    if reasons:
        raise UnsupportedNames(reasons)


def refusal(name: str) -> str | None:
    """Return why no index of ours can have the *name*; None if one can."""
    try:
        check_index_name(name)
    except CatalogError as error:
        return str(error)
    return None


def check_site(setup_tool: Any) -> None:
    """Refuse, before anything is changed, a site whose catalog cannot be taken over."""
    check_storage(setup_tool)
    if not isinstance(aq_base(site_of(setup_tool)[ID]), PlonePGCatalogTool):
        check_indexes(setup_tool)


def install(setup_tool: Any) -> None:
    """Replace the site's ZCatalog by ours; does nothing when ours is there."""
    site = site_of(setup_tool)
    protect_tool(setup_tool)
    old = site[ID]
    if isinstance(aq_base(old), PlonePGCatalogTool):
        return
    check_site(setup_tool)
    processQueue()
    paths = list(old._catalog.uids.keys())
    new = PlonePGCatalogTool()
    take_settings(old, new)
    indexes = {name: settings_of(index) for name, index in aq_base(old)._catalog.indexes.items()}
    columns = tuple(aq_base(old)._catalog.names)
    new = replace_tool(site, new)
    for name, index in indexes.items():
        new._catalog.addIndex(name, index)
    for name in columns:
        new._catalog.addColumn(name)
    copy_settings(site)
    fill(site, new, paths)


def upgrade_settings(setup_tool: Any) -> None:
    """Give the catalog the settings of its site, those that an older version did not copy among them."""
    copy_settings(site_of(setup_tool))


def uninstall(setup_tool: Any) -> None:
    """Give the site a ZCatalog with the same indexes, columns and entries, and drop our table."""
    site = site_of(setup_tool)
    unprotect_tool(setup_tool)
    old = site[ID]
    if not isinstance(aq_base(old), PlonePGCatalogTool):
        return
    processQueue()
    catalog = old._catalog
    paths = [path for path, _ in content_of(old)] if is_unfilled(catalog) else list(catalog.uids.keys())
    new = CatalogTool()
    take_settings(old, new)
    indexes = {name: settings_of(index) for name, index in aq_base(old)._indexes.items()}
    columns = old._catalog.names
    cataloguer.drop(old._core)
    new = replace_tool(site, new)
    for name, index in indexes.items():
        new._catalog.addIndex(name, index)
        revive(new, name)
    for name in columns:
        new._catalog.addColumn(name)
    fill(site, new, paths)


def site_of(setup_tool: Any) -> Any:
    return setup_tool.aq_inner.aq_parent


def take_settings(old: Any, new: Any) -> None:
    """Copy properties, local roles and permissions, lexicons and other sub-objects; a lexicon without its words."""
    items = dict(old.objectItems())
    for name, value in vars(aq_base(old)).items():
        if name not in OWN_STATE and name not in items and not name.startswith("_v_"):
            setattr(new, name, value)
    for id, item in items.items():
        item = aq_base(item)
        new._setObject(id, empty_lexicon(item) if isinstance(item, PLexicon) else item._getCopy(old))


def empty_lexicon(lexicon: Any) -> PLexicon:
    """Return a lexicon with the same id, title and pipeline, and no words."""
    return PLexicon(lexicon.getId(), lexicon.title, *lexicon._pipeline)


def revive(catalog: Any, name: str) -> None:
    """Make a stripped index of the ZCatalog *catalog* a working, empty one."""
    index = catalog._catalog.getIndex(name)
    if index.meta_type == GopipIndex.meta_type:
        index.catalog = aq_base(catalog._catalog)
    if hasattr(index, "caller"):
        index.caller = aq_base(catalog._catalog)
    index.clear()


def replace_tool(site: Any, new: Any) -> Any:
    """Put the tool *new* into the place of the site's catalog, in the site's order; return it wrapped."""
    ids = list(site.objectIds())
    position = ids.index(ID)
    site._delObject(ID, suppress_events=True)
    site._setObject(ID, new, suppress_events=True)
    if hasattr(aq_base(site), "moveObjectToPosition"):
        site.moveObjectToPosition(ID, position, suppress_events=True)
    tool = site[ID]
    site.getSiteManager().registerUtility(aq_base(tool), ICatalogTool)
    setSite(site)
    return tool


def fill(site: Any, catalog: Any, paths: list[str]) -> None:
    """Catalogue the objects at *paths*; one that cannot be found any more is logged and left out."""
    for path in paths:
        obj = site.unrestrictedTraverse(path, None)
        if obj is None or "/".join(obj.getPhysicalPath()) != path:
            logger.warning("%s: in the old catalog, but no object is there: left out", path)
        else:
            catalog.catalog_object(obj, path)


# -- later profile imports


def protect_tool(setup_tool: Any) -> None:
    """Let our tool survive imports of a toolset that wants Plone's catalog class.

    Our ``overrides.zcml`` gives the whole instance a toolset step that does it; where that is not loaded, the site
    gets it.
    """
    setup_tool.getToolsetRegistry().addRequiredTool(ID, dotted(PlonePGCatalogTool))
    handler = f"{__name__}.{import_toolset.__name__}"
    step = setup_tool.getImportStepMetadata(TOOLSET_STEP) or {}
    if step.get("handler") != handler:
        setup_tool.getImportStepRegistry().registerStep(
            id=TOOLSET_STEP,
            version=step.get("version"),
            handler=handler,
            dependencies=step.get("dependencies", ()),
            title=step.get("title"),
            description=step.get("description"),
        )
    setup_tool._p_changed = True


def unprotect_tool(setup_tool: Any) -> None:
    """Let GenericSetup's own toolset step, and Plone's catalog class, be in force again."""
    setup_tool.getToolsetRegistry().addRequiredTool(ID, dotted(CatalogTool))
    registry = setup_tool.getImportStepRegistry()
    if TOOLSET_STEP in registry.listSteps():
        registry.unregisterStep(TOOLSET_STEP)
    setup_tool._p_changed = True


def dotted(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}"


def import_toolset(context: Any) -> None:
    """GenericSetup's toolset step; where the site has our catalog, blind to a profile's wish for another one."""
    ours = isinstance(getattr(aq_base(context.getSite()), ID, None), PlonePGCatalogTool)
    importToolset(WithoutCatalog(context) if ours else context)


class WithoutCatalog:
    """An import context whose toolset does not mention the catalog."""

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
