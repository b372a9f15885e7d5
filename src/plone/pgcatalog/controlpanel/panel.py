"""The control panels, in Classic UI and for plone.restapi's ``@controlpanels``, by which Volto shows them."""

from AccessControl import getSecurityManager
from AccessControl import Unauthorized
from AccessControl.Permissions import manage_zcatalog_entries
from plone.app.registry.browser.controlpanel import ControlPanelFormWrapper
from plone.app.registry.browser.controlpanel import RegistryEditForm
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSettings
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.controlpanel.search import IPGCatalogSearchSettings
from plone.pgcatalog.controlpanel.search_page import IPGCatalogSearchPageSettings
from plone.pgcatalog.i18n import _
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.zmi import jobs
from plone.pgcatalog.zmi.figures import Figures
from plone.pgcatalog.zmi.jobs import JobError
from plone.pgcatalog.zmi.maintenance import rebuild
from plone.pgcatalog.zmi.protect import check
from plone.pgcatalog.zmi.unfilled import UnfilledNotice
from plone.restapi.controlpanels import RegistryConfigletPanel
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from Products.statusmessages.interfaces import IStatusMessage
from typing import Any
from zope.component import adapter
from zope.interface import Interface


class Configlet(RegistryConfigletPanel):
    """A panel for plone.restapi: for those who may use the one in Classic UI, else Unauthorized.

    The service asks for less: everybody who may see the overview of Site Setup may read and write every panel.
    """

    schema_prefix = PREFIX
    configlet_category_id = "Products"
    fields: Any = None

    @property
    def schema(self) -> Any:
        # Plone names the panels that the user has the permission for; reading and writing begin here.
        if self.configlet is None:
            raise Unauthorized(f"you may not use the control panel {self.configlet_id!r}")
        return self.fields


class PanelForm(RegistryEditForm):
    """A form that stores by POST with a token only, else it is Forbidden."""

    schema_prefix = PREFIX

    def applyChanges(self, data: Any) -> Any:
        check(self.request)
        return super().applyChanges(data)


class SettingsForm(PanelForm):
    """The form of the settings."""

    id = "PGCatalogSettings"
    label = _("PostgreSQL Catalog")
    description = _(
        "How searches work, and which of them are recorded. If set, the environment variables PGCATALOG_SLOW_QUERY_MS and"
        " PGCATALOG_RESULT_CACHE_MB override the slow query threshold and the result cache."
    )
    schema = IPGCatalogSettings


class SettingsPanel(ControlPanelFormWrapper):
    """The form in the frame of a control panel; says so if the catalog was not filled, and has it filled on request."""

    form = SettingsForm
    index = ViewPageTemplateFile("settings.pt")

    def update(self) -> None:
        if "rebuild" in self.request.form:
            self._fill()
        else:
            super().update()

    def _fill(self) -> None:
        check(self.request)
        tool = self.context.portal_catalog
        if not getSecurityManager().checkPermission(manage_zcatalog_entries, tool):
            raise Unauthorized("you may not fill the catalog")
        try:
            jobs.start(tool, "rebuild", rebuild)
            message, kind = _("The catalog is being filled."), "info"
        except JobError as error:
            message, kind = error.message, "error"
        IStatusMessage(self.request).addStatusMessage(message, kind)
        self.request.response.redirect(self.url)

    @property
    def url(self) -> str:
        return f"{self.context.absolute_url()}/@@{self.__name__}"

    def unfilled(self) -> str:
        """Return a notice, as HTML, if the catalog was not filled."""
        tool = self.context.portal_catalog
        return UnfilledNotice(tool, self.request, self.url)() if IPGCatalogTool.providedBy(tool) else ""

    def figures(self) -> str:
        """Return how the catalog is, as HTML, for those who may manage it."""
        tool = self.context.portal_catalog
        may = getSecurityManager().checkPermission(manage_zcatalog_entries, tool)
        return Figures(tool, self.request)() if may and IPGCatalogTool.providedBy(tool) else ""


@adapter(Interface, IPGCatalogLayer)
class SettingsConfiglet(Configlet):
    """The same for plone.restapi."""

    fields = IPGCatalogSettings
    configlet_id = "pgcatalog"


@adapter(Interface, IPGCatalogLayer)
class SearchConfiglet(Configlet):
    """The same for plone.restapi."""

    fields = IPGCatalogSearchSettings
    configlet_id = "pgcatalog-search"


class SearchPageForm(PanelForm):
    """The form of the settings of the search page."""

    id = "PGCatalogSearchPageSettings"
    label = _("Search Page")
    description = _("The page that shows search results in Classic UI.")
    schema = IPGCatalogSearchPageSettings


class SearchPagePanel(ControlPanelFormWrapper):
    """That form in the frame of a control panel."""

    form = SearchPageForm


@adapter(Interface, IPGCatalogLayer)
class SearchPageConfiglet(Configlet):
    """The same for plone.restapi."""

    fields = IPGCatalogSearchPageSettings
    configlet_id = "pgcatalog-search-page"
