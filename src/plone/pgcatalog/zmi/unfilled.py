"""The notice that a catalog was not filled since its site was copied or imported, with the button that fills it."""

from plone.pgcatalog.database.missing import is_unfilled
from plone.pgcatalog.zmi.jobs import Job
from plone.pgcatalog.zmi.jobs import jobs_of
from Products.Five.browser import BrowserView
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from typing import Any


class UnfilledNotice(BrowserView):
    """HTML for a page that shows something of the catalog tool *context*; empty if the catalog was filled.

    Its form sends ``rebuild`` and a token to *action*, a URL, by POST.
    """

    template = ViewPageTemplateFile("templates/unfilled.pt")

    def __init__(self, context: Any, request: Any, action: str) -> None:
        super().__init__(context, request)
        self.action = action

    def __call__(self) -> str:
        html: str = self.template() if is_unfilled(self.context._core) else ""
        return html

    # -- for the template

    @property
    def advanced(self) -> str:
        """The page that shows how far the work is."""
        return f"{self.context.absolute_url()}/manage_catalogAdvanced"

    def job(self) -> Job | None:
        """Return the last rebuild that somebody has begun in the browser."""
        catalog = self.context._core
        return jobs_of(catalog.session.execute, catalog.zoid).get("rebuild")
