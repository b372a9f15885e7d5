"""A site for Volto: pages about hedgehogs in blocks, with tags, dates, authors and states; pages with search blocks."""

from datetime import datetime
from datetime import UTC
from demo import documents
from demo import volto
from plone.dexterity.utils import createContentInContainer
from plone.namedfile.file import NamedBlobImage
from plone.registry.interfaces import IRegistry
from tests.integration.people import publish
from typing import Any
from zope.component import getUtility


PAGES = 30
#: A manager, and an editor.
MANAGER, EDITOR, PASSWORD = "boss", "anna", "a secret of hedgehogs"
FACETS = (
    ("portal_type", "Type", "checkboxFacet", True),
    ("Subject", "Tags", "checkboxFacet", True),
    ("Creator", "Author", "checkboxFacet", True),
)
#: The facets of the page "trees", which are of the add-on.
TREES = (
    *FACETS[:2],
    ("effective", "Date", "pgcatalogTree", True),
    ("path", "Place", "pgcatalogTree", True),
)
#: More tags than a facet shows at first.
TAGS = tuple(f"Badger {number:02}" for number in range(20))
#: The folder of a third of the pages.
FOLDER = "Meadows"
NEWS = {"i": "portal_type", "o": "plone.app.querystring.operation.selection.any", "v": ["News Item"]}


def fill(portal: Any) -> None:
    """Fill *portal*: public pages and news about hedgehogs, a PDF, a private page, one with a search block, one with two."""
    volto.install(portal)
    if "virtual_hosting" not in portal.aq_parent.objectIds():
        portal.aq_parent.manage_addProduct["SiteAccess"].manage_addVirtualHostMonster("virtual_hosting")
    chain = ("simple_publication_workflow",)
    portal.portal_workflow.setChainForPortalTypes(("Document", "News Item", "Event"), chain)
    for name, role in ((MANAGER, "Manager"), (EDITOR, "Editor")):
        portal.acl_users.userFolderAddUser(name, PASSWORD, [role], [])
    registry = getUtility(IRegistry)
    registry["plone.available_languages"] = ["en", "de"]
    meadows = _add(portal, "meadows", FOLDER, "Folder", exclude_from_nav=True)
    publish(meadows)
    for number in range(PAGES):
        _page(meadows if number >= 20 else portal, number)
    picture = NamedBlobImage(documents.picture("A badger in its sett"), "image/png", "badger.png")
    _add(portal, "badger.png", "A badger", "Image", image=picture, subject=TAGS, exclude_from_nav=True)
    report = documents.pdf_of([f"Item {n} of the agenda" for n in range(1, 12)] + [documents.TEXT])
    _add(portal, "minutes.pdf", "Minutes", "File", file=documents.blob(report), exclude_from_nav=True)
    _add(portal, "secret", "A rendezvous of hedgehogs", subject=("Hidden tag",))
    _search(portal, "find", volto.search_block(*FACETS))
    _search(portal, "two", volto.search_block(*FACETS[:2]), volto.search_block(FACETS[1], query=[NEWS, volto.ANYWHERE]))
    _search(portal, "trees", volto.search_block(*TREES))
    listing = {
        "query": [NEWS, volto.ANYWHERE],
        "sort_on": "effective",
        "sort_order": "descending",
        "b_size": "5",
    }
    _search(portal, "listing", {"@type": "listing", "variation": "summary", "querystring": listing})


def _page(portal: Any, number: int) -> None:
    words = "The hedgehog sleeps in winter. " * (number % 4 + 1) + f"In garden {number} it eats slugs and beetles."
    page = _add(
        portal,
        f"page-{number:02}",
        f"Garden {number:02}" if number % 3 else f"The hedgehog of garden {number:02}",
        "News Item" if number % 5 == 0 else "Document",
        description=f"Report {number} on small animals.",
        subject=("Animals", "Winter") if number % 2 else ("Animals", "Summer"),
        exclude_from_nav=True,
        **volto.fields(volto.text_blocks(f"<p>{words}</p>")),
    )
    from DateTime import DateTime

    page.setEffectiveDate(DateTime(datetime(2025, 1 + number % 12, 1 + number % 28, tzinfo=UTC)))
    page.setCreators([EDITOR if number % 2 else MANAGER])
    publish(page)
    page.reindexObject()


def _add(portal: Any, name: str, title: str, portal_type: str = "Document", **values: Any) -> Any:
    return createContentInContainer(portal, portal_type, id=name, title=title, checkConstraints=False, **values)


def _search(portal: Any, name: str, *blocks: dict[str, Any]) -> None:
    publish(_add(portal, name, f"The page {name}", exclude_from_nav=True, **volto.fields(list(blocks))))
