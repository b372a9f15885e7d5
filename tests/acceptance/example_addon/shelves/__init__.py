"""A third-party add-on: pages have a shelf, and a view lists the pages of a shelf."""

from Products.Five.browser import BrowserView
from typing import Any

import plone.api


def shelf(obj: Any) -> str:
    """Return the shelf of *obj*: the first letter of its title."""
    return str(obj.title[:1]).upper()


class ShelfView(BrowserView):
    """The titles on the shelf given in the request, one per line."""

    def __call__(self) -> str:
        catalog = plone.api.portal.get_tool("portal_catalog")
        brains = catalog(shelf=self.request.form.get("shelf", ""), sort_on="sortable_title")
        return "\n".join(brain.Title for brain in brains)
