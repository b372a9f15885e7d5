"""The add-on's own tests, which are independent of the catalog in use."""

from plone.app.testing import setRoles
from plone.app.testing import SITE_OWNER_NAME
from plone.app.testing import SITE_OWNER_PASSWORD
from plone.app.testing import TEST_USER_ID
from plone.testing.zope import Browser
from shelves.testing import SHELVES_FUNCTIONAL_TESTING
from shelves.testing import SHELVES_INTEGRATION_TESTING
from typing import Any

import os
import transaction
import unittest


def titles(portal: Any, **query: Any) -> list[str]:
    return [brain.Title for brain in portal.portal_catalog(sort_on="sortable_title", **query)]


class TestShelves(unittest.TestCase):
    layer = SHELVES_INTEGRATION_TESTING

    def setUp(self) -> None:
        self.portal = self.layer["portal"]
        setRoles(self.portal, TEST_USER_ID, ["Manager"])

    def test_the_catalog_is_the_one_that_is_asked_for(self) -> None:
        wanted = os.environ["SHELVES_CATALOG"]
        assert type(self.portal.portal_catalog.aq_base).__name__ == wanted

    def test_pages_stand_on_the_shelf_of_their_first_letter(self) -> None:
        assert titles(self.portal, shelf=["A", "B", "C"]) == []
        for title in ("Apples", "Almonds", "Bread"):
            self.portal.invokeFactory("Document", title.lower(), title=title)
        assert titles(self.portal, shelf="A") == ["Almonds", "Apples"]
        assert [brain.shelf for brain in self.portal.portal_catalog(shelf="B")] == ["B"]
        self.portal.bread.title = "A loaf"
        self.portal.bread.reindexObject(idxs=["shelf", "Title", "sortable_title"])
        assert titles(self.portal, shelf="A") == ["A loaf", "Almonds", "Apples"]


class TestOverHTTP(unittest.TestCase):
    layer = SHELVES_FUNCTIONAL_TESTING

    def shelf(self, *names: str) -> list[str]:
        """Return the pages on the shelf C as the view lists them, after pages *names* are created."""
        portal = self.layer["portal"]
        setRoles(portal, TEST_USER_ID, ["Manager"])
        for title in names:
            portal.invokeFactory("Document", title.lower(), title=title)
        transaction.commit()
        browser = Browser(self.layer["app"])
        browser.handleErrors = False
        browser.addHeader("Authorization", f"Basic {SITE_OWNER_NAME}:{SITE_OWNER_PASSWORD}")
        browser.open("http://nohost/plone/@@shelf?shelf=C")
        return browser.contents.splitlines()  # type: ignore[no-any-return]

    def test_the_view_lists_a_shelf(self) -> None:
        assert self.shelf("Cherries", "Carrots") == ["Carrots", "Cherries"]

    def test_what_is_committed_stays_in_its_test(self) -> None:
        assert self.shelf("Candles") == ["Candles"]
