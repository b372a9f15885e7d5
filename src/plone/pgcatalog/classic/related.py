"""Viewlets: *Similar pages* (off by default), with pages of similar text, and the canonical link of a search page."""

from html import escape
from plone.app.layout.viewlets.common import ViewletBase
from plone.pgcatalog.discovery.similar import more_like_this
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.meaning.question import as_site_searches
from plone.pgcatalog.settings import related_pages
from plone.registry.interfaces import IRegistry
from Products.CMFCore.utils import getToolByName
from Products.CMFPlone.browser.search import Search
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from typing import Any
from zope.component import getMultiAdapter
from zope.component import queryUtility


class RelatedPages(ViewletBase):
    """Links to similar pages: as many as the setting says, visible to the visitor, of types that Plone's search finds."""

    index = ViewPageTemplateFile("related.pt")

    def update(self) -> None:
        """See IViewlet."""
        self.pages: list[dict[str, str]] = []
        catalog = getToolByName(self.context, "portal_catalog")
        wanted = related_pages(catalog) if IPGCatalogTool.providedBy(catalog) else 0
        if not wanted:
            return
        super().update()
        # The front page of a site, or of a language, is similar to the whole site.
        state = getMultiAdapter((self.context, self.request), name="plone_context_state")
        if not state.is_navigation_root():
            self.pages = self._similar(catalog, wanted)

    def _similar(self, catalog: Any, wanted: int) -> list[dict[str, str]]:
        types = Search(self.context, self.request).filter_types([])
        root = "/".join(self.portal_state.navigation_root().getPhysicalPath())
        query = as_site_searches(catalog, {"portal_type": types, "path": root})
        brains = more_like_this(catalog, self.context, wanted, query).value()
        registry = queryUtility(IRegistry)
        with_view = (registry and registry.get("plone.types_use_view_action_in_listings")) or ()
        return [
            {
                "title": brain.Title or brain.getId,
                "description": brain.Description,
                "url": brain.getURL() + "/view" * (brain.portal_type in with_view),
            }
            for brain in brains
        ]

    def render(self) -> Any:
        """See IViewlet; empty if there is nothing to show."""
        return self.index() if self.pages else ""


class CanonicalLink(ViewletBase):
    """The canonical URL of a search page, for its head."""

    def render(self) -> str:
        """See IViewlet."""
        return f'<link rel="canonical" href="{escape(self.view.canonical_url)}" />'
