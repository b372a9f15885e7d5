"""The form of the control panel Search Tuning, as a browser sends it."""

from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSearchSettings
from zope.schema import getFieldNames


PANEL = "/plone/@@pgcatalog-search-controlpanel"


def sent(**settings: str) -> dict[str, str]:
    """Return the form as sent by a browser, with *settings* and the defaults of the others."""
    values = {name: IPGCatalogSearchSettings[name].default for name in getFieldNames(IPGCatalogSearchSettings)}
    widgets = {f"form.widgets.{name}": str(value) for name, value in (values | settings).items() if value is not True}
    return widgets | {f"form.widgets.record_{each}:list": "selected" for each in ("searches", "member_searches")}
