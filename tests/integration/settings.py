"""Settings of the search, as the control panel stores them."""

from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.registry.interfaces import IRegistry
from zope.component import getUtility


def tune(**settings: str | float) -> None:
    """Store *settings* in the registry of the current site."""
    registry = getUtility(IRegistry)
    for name, value in settings.items():
        registry[f"{PREFIX}.{name}"] = value
