"""Plone's search page with facets, snippets, and corrections of the typed text.

It replaces Plone's page by the browser layer of the add-on; a setting of the site restores Plone's page.
"""

from functools import cached_property
from plone.pgcatalog.interfaces import IPGCatalogLayer
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.searchpage.page import SiteSearch
from plone.pgcatalog.searchpage.request import Address
from plone.pgcatalog.searchpage.request import ALONE
from plone.pgcatalog.settings import record_opened
from plone.pgcatalog.settings import search_page
from plone.pgcatalog.settings import SOURCE_INDEX
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from typing import Any
from zope.component import getSiteManager
from zope.component.hooks import getSite
from zope.interface import Interface
from zope.interface import providedBy


#: Directives to crawlers for search pages with parameters, which are endless combinations of words and filters.
ROBOTS = "noindex, follow"


class SearchPage(SiteSearch):
    """The search page; it shows Plone's own page in a site with that setting."""

    facets_alone = ViewPageTemplateFile("facets.pt")

    def __call__(self) -> Any:
        if not self.is_on:
            return self._plones_page()()
        if self.has_parameters:
            self.request.response.setHeader("X-Robots-Tag", ROBOTS)
        self.update()
        if not self.facets_are(ALONE):
            return self.index()
        # A fragment of a page, to which no theme is applied.
        self.request.response.setHeader("X-Theme-Disabled", "True")
        return self.facets_alone()

    @property
    def has_parameters(self) -> bool:
        """True if the request has parameters, so that a crawler should not index the page."""
        return bool(self.request.get("QUERY_STRING") or self.request.form)

    @property
    def canonical_url(self) -> str:
        """The URL of the first page of results for the same text, without filters."""
        address = Address(f"{self.context.absolute_url()}/@@{self.__name__}")
        return str(address.having(SOURCE_INDEX, self.text) if self.text else address)

    @cached_property
    def is_on(self) -> bool:
        """True if this is the site's search page."""
        return IPGCatalogTool.providedBy(self.catalog) and search_page(self.catalog)

    def _plones_page(self) -> Any:
        """Return the search view that the site has without the package's layer."""
        provided = providedBy(self.context), providedBy(self.request) - IPGCatalogLayer
        return getSiteManager().adapters.lookup(provided, Interface, self.__name__)(self.context, self.request)

    @property
    def refreshes(self) -> bool:
        """True if a browser without scripts is redirected to the page with facets, because no value is chosen yet."""
        return self.facets_follow and not any(facet.tokens for facet in self.facets)

    @property
    def opened_url(self) -> str | None:
        """The URL to which the browser reports an opened hit; None if the site does not count them."""
        is_counted = self.text and record_opened(self.catalog)
        return f"{getSite().absolute_url()}/@pgcatalog-opened" if is_counted else None
