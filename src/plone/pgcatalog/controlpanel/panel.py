"""The control panels, in Classic UI and for plone.restapi's ``@controlpanels``, by which Volto shows them."""

from plone.app.registry.browser.controlpanel import ControlPanelFormWrapper
from plone.app.registry.browser.controlpanel import RegistryEditForm
from plone.pgcatalog.controlpanel.interfaces import _
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSettings
from plone.pgcatalog.controlpanel.records import PREFIX
from plone.pgcatalog.controlpanel.search import IPGCatalogSearchSettings
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.restapi.controlpanels import RegistryConfigletPanel
from zope.component import adapter
from zope.interface import Interface


class SettingsForm(RegistryEditForm):
    """The form of the settings."""

    id = "PGCatalogSettings"
    label = _("PostgreSQL Catalog")
    description = _("Where an environment variable of the process says otherwise, that one counts.")
    schema = IPGCatalogSettings
    schema_prefix = PREFIX


class SettingsPanel(ControlPanelFormWrapper):
    """The form in the frame of a control panel."""

    form = SettingsForm


@adapter(Interface, IPGCatalogLayer)
class SettingsConfiglet(RegistryConfigletPanel):
    """The same for plone.restapi."""

    schema = IPGCatalogSettings
    schema_prefix = PREFIX
    configlet_id = "pgcatalog"
    configlet_category_id = "Products"


class SearchForm(RegistryEditForm):
    """The form of the settings by which editors tune the search."""

    id = "PGCatalogSearchSettings"
    label = _("Search Tuning")
    description = _("What a search finds first, and what else it finds. Changes count at once.")
    schema = IPGCatalogSearchSettings
    schema_prefix = PREFIX


class SearchPanel(ControlPanelFormWrapper):
    """That form in the frame of a control panel."""

    form = SearchForm


@adapter(Interface, IPGCatalogLayer)
class SearchConfiglet(RegistryConfigletPanel):
    """The same for plone.restapi."""

    schema = IPGCatalogSearchSettings
    schema_prefix = PREFIX
    configlet_id = "pgcatalog-search"
    configlet_category_id = "Products"
