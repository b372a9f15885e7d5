"""The tab *Overview*: how the catalog is, and what can be done about it."""

from plone.pgcatalog.zmi.figures import Figures
from plone.pgcatalog.zmi.page import ManagePage
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile


class OverviewPage(ManagePage):
    """Shows figures; its buttons are actions of the tab *Advanced*, which shows how far they are."""

    template = ViewPageTemplateFile("templates/overview.pt")
    name = "manage_catalogOverview"

    # -- for the template

    def figures(self) -> str:
        """Return the figures, as HTML."""
        return Figures(self.context, self.request)()
