"""Sites in German for Volto: pages about hedgehogs, and one with a search block; the second site is in English, too."""

from checks.volto.content import MANAGER
from checks.volto.content import PASSWORD
from demo import volto
from plone.app.multilingual.browser.setup import SetupMultilingualSite
from plone.dexterity.utils import createContentInContainer
from plone.registry.interfaces import IRegistry
from tests.integration.people import publish
from typing import Any
from zope.component import getUtility


PAGES = 12
FACETS = (("portal_type", "Art", "checkboxFacet", True), ("Subject", "Schlagwörter", "checkboxFacet", True))


def fill(portal: Any) -> None:
    """Fill *portal*, which is in German only."""
    _speak(portal, "de")
    # Volto uses the language of the page it shows, and its search page shows the site.
    portal.language = "de"
    _make_pages(portal)
    portal.acl_users.userFolderAddUser(MANAGER, PASSWORD, ["Manager"], [])


def fill_with_languages(portal: Any) -> None:
    """Fill *portal*, with a folder for each language; one page is in English."""
    _speak(portal, "de", "en")
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.app.multilingual:default")
    SetupMultilingualSite().setupSite(portal)
    _make_pages(portal.de)
    _add(portal.en, "gardens", "Gardens of hedgehogs", volto.text_blocks("<p>Many gardens.</p>"), language="en")


def _speak(portal: Any, *languages: str) -> None:
    volto.install(portal)
    registry = getUtility(IRegistry)
    registry["plone.available_languages"] = list(languages)
    registry["plone.default_language"] = languages[0]
    portal.portal_workflow.setChainForPortalTypes(("Document", "News Item"), ("simple_publication_workflow",))


def _make_pages(folder: Any) -> None:
    """Create public pages and news in German, each with a hedgehog, and a page with a search block."""
    for number in range(PAGES):
        text = f"<p>Die Igel schlafen im Winter. Im Garten {number} fressen sie Schnecken und Käfer.</p>"
        _add(
            folder,
            f"seite-{number:02}",
            f"Garten {number:02}",
            volto.text_blocks(text),
            portal_type="Document" if number % 3 else "News Item",
            description=f"Bericht {number} über kleine Tiere.",
            subject=("Tiere", "Winter") if number % 2 else ("Tiere",),
        )
    _add(folder, "finden", "Suche", [volto.search_block(*FACETS)])


def _add(folder: Any, name: str, title: str, blocks: list[dict[str, Any]], **values: Any) -> None:
    values = {"portal_type": "Document", "language": "de", **values, **volto.fields(blocks)}
    page = createContentInContainer(
        folder, id=name, title=title, exclude_from_nav=True, checkConstraints=False, **values
    )
    publish(page)
