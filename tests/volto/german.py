"""A site in German for Volto: pages about hedgehogs, and one with a search block."""

from demo import volto
from plone.dexterity.utils import createContentInContainer
from plone.registry.interfaces import IRegistry
from tests.integration.people import publish
from typing import Any
from zope.component import getUtility


PAGES = 12
FACETS = (("portal_type", "Art", "checkboxFacet", True), ("Subject", "Schlagwörter", "checkboxFacet", True))


def fill(portal: Any) -> None:
    """Fill *portal*: public pages and news in German, each with a hedgehog, and a page with a search block."""
    volto.install(portal)
    registry = getUtility(IRegistry)
    registry["plone.available_languages"] = ["de"]
    registry["plone.default_language"] = "de"
    # Volto speaks the language of what it shows, and its search page shows the site.
    portal.language = "de"
    portal.portal_workflow.setChainForPortalTypes(("Document", "News Item"), ("simple_publication_workflow",))
    for number in range(PAGES):
        text = f"<p>Die Igel schlafen im Winter. Im Garten {number} fressen sie Schnecken und Käfer.</p>"
        _add(
            portal,
            f"seite-{number:02}",
            f"Garten {number:02}",
            volto.text_blocks(text),
            portal_type="Document" if number % 3 else "News Item",
            description=f"Bericht {number} über kleine Tiere.",
            subject=("Tiere", "Winter") if number % 2 else ("Tiere",),
        )
    _add(portal, "finden", "Suche", [volto.search_block(*FACETS)])


def _add(portal: Any, name: str, title: str, blocks: list[dict[str, Any]], **values: Any) -> None:
    values = {"portal_type": "Document", **values, **volto.fields(blocks)}
    page = createContentInContainer(
        portal, id=name, title=title, language="de", exclude_from_nav=True, checkConstraints=False, **values
    )
    publish(page)
