"""Copies the registry's records to the catalog tool, where searches find them without a look-up."""

from Acquisition import aq_base
from plone.i18n.interfaces import ILanguageSchema
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSettings
from plone.pgcatalog.controlpanel.search import IPGCatalogSearchSettings
from plone.pgcatalog.controlpanel.search_page import IPGCatalogSearchPageSettings
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.settings import ATTRIBUTE
from plone.pgcatalog.settings import LANGUAGES
from plone.registry.interfaces import IRegistry
from typing import Any
from zope.component import queryUtility
from zope.component.hooks import getSite
from zope.schema import getFieldNames


PREFIX = "plone.pgcatalog"
SCHEMAS = (IPGCatalogSettings, IPGCatalogSearchSettings, IPGCatalogSearchPageSettings)


def copy_settings(site: Any) -> None:
    """Give the catalog tool of *site*, if it is ours, the settings in the site's registry."""
    registry = queryUtility(IRegistry, context=site)
    tool = getattr(aq_base(site), "portal_catalog", None)
    if registry is None or not IPGCatalogTool.providedBy(tool):
        return
    names = [name for schema in SCHEMAS for name in getFieldNames(schema)]
    # Not by registry.get(): it answers from the request, where the old value is until the event is over.
    found = {name: registry.records.get(f"{PREFIX}.{name}") for name in names}
    records = {name: record.value for name, record in found.items() if record is not None}
    kept = {name: value for name, value in records.items() if value is not None}
    kept[LANGUAGES] = site_languages(registry)
    if kept != getattr(aq_base(tool), ATTRIBUTE, {}):
        setattr(aq_base(tool), ATTRIBUTE, kept)


def site_languages(registry: Any) -> tuple[str, ...]:
    """Return the codes of the languages that Plone's control panel says a site has, its default first."""
    names = ("plone.default_language", "plone.available_languages")
    default, available = (getattr(registry.records.get(name), "value", None) for name in names)
    return tuple(dict.fromkeys(filter(None, (default, *(available or ())))))


def settings_changed(event: Any) -> None:
    """A record of the registry was added, changed or removed."""
    ours = event.record.interfaceName in [schema.__identifier__ for schema in (*SCHEMAS, ILanguageSchema)]
    if ours and getSite() is not None:
        copy_settings(getSite())
