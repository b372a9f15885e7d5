"""The tab *Catalog*: the rows, by path."""

from plone.pgcatalog.zmi.browse import Browser
from plone.pgcatalog.zmi.browse import Page
from plone.pgcatalog.zmi.page import ManagePage
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from urllib.parse import urlencode


class CatalogPage(ManagePage):
    """Shows a page of the rows.

    The fields ``filterpath``, ``after`` and ``before`` say which; the form calls the tool's own actions.
    """

    template = ViewPageTemplateFile("templates/catalog.pt")
    name = "manage_catalogView"

    # -- for the template

    def browser(self) -> Browser:
        return Browser(self.catalog.view(), self.field("filterpath"))

    def page(self, browser: Browser) -> Page:
        return browser.page(self.field("after"), self.field("before"))

    def total(self, browser: Browser, page: Page) -> str:
        """Return how many rows there are, for people to read."""
        return f"{len(page.rows):,}" if not page.before and not page.after else browser.total()

    def link(self, browser: Browser, **start: str) -> str:
        return f"{self.url()}?{urlencode({'filterpath': browser.folder, **start}, errors='replace')}"
