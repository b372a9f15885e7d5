"""Copies the registry's records to the catalog tool, where searches read them without a registry look-up."""

from Acquisition import aq_base
from Acquisition import aq_inner
from Acquisition import aq_parent
from plone.pgcatalog.files import file_kinds
from plone.pgcatalog.files import job as files
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.meaning.job import settings_changed as settings_of_embedder_changed
from plone.pgcatalog.settings import HAS_MARKED_PAGES
from plone.pgcatalog.settings import LANGUAGES
from plone.pgcatalog.settings import SETTINGS
from plone.pgcatalog.settings import SETTINGS_ATTRIBUTE
from plone.pgcatalog.settings import site_settings
from plone.pgcatalog.settings import TIME_ZONE
from plone.registry.interfaces import IRegistry
from typing import Any
from zope.component import queryUtility
from zope.component.hooks import getSite


PREFIX = "plone.pgcatalog"
#: A threshold that every search exceeds; 0 would turn recording off.
EVERY_SEARCH_MS = 0.001
#: The records of Plone's languages control panel.
LANGUAGE_RECORDS = ("plone.default_language", "plone.available_languages")
#: The names of the behavior *Search* in a content type.
BEHAVIOR = {f"{PREFIX}.search", f"{PREFIX}.controlpanel.behavior.ISearchBehavior"}
#: The record of Plone's control panel of date and time.
ZONE_RECORD = "plone.portal_timezone"


def copy_settings(site: Any) -> None:
    """Copy the settings from the registry of *site* to its catalog tool, if it is plone.pgcatalog's."""
    registry = queryUtility(IRegistry, context=site)
    tool = getattr(aq_base(site), "portal_catalog", None)
    if registry is None or not IPGCatalogTool.providedBy(tool):
        return
    # Not by registry.get(): it is cached in the request, with the old value until the event is over.
    records = {name: registry.records.get(f"{PREFIX}.{name}") for name in SETTINGS}
    values = {name: record.value for name, record in records.items() if record is not None and record.value is not None}
    values[LANGUAGES] = site_languages(registry)
    values[HAS_MARKED_PAGES] = has_marked_pages(site)
    values[TIME_ZONE] = getattr(registry.records.get(ZONE_RECORD), "value", None)
    former = getattr(aq_base(tool), SETTINGS_ATTRIBUTE, {})
    if values != former:
        setattr(aq_base(tool), SETTINGS_ATTRIBUTE, values)
        # Wrapped in its site, because pending changes need its path.
        settings_of_embedder_changed(site.portal_catalog, former, values)
        file_kinds.settings_changed(site.portal_catalog, values)
        files.settings_changed(site.portal_catalog, former, values)


def set_slow_query_ms(tool: Any, milliseconds: float) -> None:
    """Set the threshold, in *milliseconds*, of slow searches of the catalog *tool*; 0 means every search, as in ZCatalog.

    The record of the registry is changed, whose event updates the tool.
    """
    value = milliseconds or EVERY_SEARCH_MS
    registry = queryUtility(IRegistry, context=aq_parent(aq_inner(tool)))
    record = None if registry is None else registry.records.get(f"{PREFIX}.slow_query_ms")
    if record is not None:
        record.value = value
    else:
        setattr(aq_base(tool), SETTINGS_ATTRIBUTE, site_settings(tool) | {"slow_query_ms": value})


def site_languages(registry: Any) -> tuple[str, ...]:
    """Return the language codes of the site from Plone's control panel, the default language first."""
    default, available = (getattr(registry.records.get(name), "value", None) for name in LANGUAGE_RECORDS)
    return tuple(dict.fromkeys(filter(None, (default, *(available or ())))))


def has_marked_pages(site: Any) -> bool:
    """Return whether a content type of *site* has the behavior *Search*."""
    types = getattr(aq_base(site), "portal_types", None)
    return types is not None and any(
        not BEHAVIOR.isdisjoint(getattr(fti, "behaviors", ())) for fti in types.objectValues()
    )


def settings_changed(event: Any) -> None:
    """Copy the settings when a record of the registry was added, changed or removed."""
    is_ours = event.record.__name__.removeprefix(f"{PREFIX}.") in SETTINGS
    # By its full name: plone.app.multilingual registers the language records with another schema.
    if (is_ours or event.record.__name__ in (*LANGUAGE_RECORDS, ZONE_RECORD)) and getSite() is not None:
        copy_settings(getSite())
