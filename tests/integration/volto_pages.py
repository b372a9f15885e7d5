"""Pages with blocks, as Volto stores them: links, teasers, images, a listing and related items."""

from base64 import b64decode
from collections.abc import Iterable
from tests.integration.content import create
from tests.integration.web import Site
from typing import Any

import json


#: Links of the page, and its teasers and images.
LINKS, FEW = 30, 5
PIXEL = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=")
#: The expansions that Volto 18 requests with each page.
EXPANSIONS = "actions,breadcrumbs,navigation,navroot,types,workflow,contextnavigation"


def reference(obj: Any) -> str:
    """Return the link to *obj* as Volto stores it."""
    return f"../resolveuid/{obj.UID()}"


def link_block(url: str) -> dict[str, Any]:
    """Return a block of text with a link to *url*."""
    link = {"type": "link", "data": {"url": url}, "children": [{"text": "there"}]}
    return {"@type": "slate", "plaintext": "there", "value": [{"type": "p", "children": [{"text": ""}, link]}]}


def teaser_block(url: str) -> dict[str, Any]:
    """Return a teaser of *url*."""
    return {"@type": "teaser", "overwrite": False, "href": [{"@id": url}]}


def image_block(url: str) -> dict[str, Any]:
    """Return a block with the image at *url*."""
    return {"@type": "image", "url": url, "alt": ""}


LISTING = {
    "@type": "listing",
    "querystring": {
        "query": [
            {"i": "portal_type", "o": "plone.app.querystring.operation.selection.any", "v": ["Document"]},
        ],
        "sort_on": "modified",
    },
}


def set_blocks(obj: Any, blocks: list[dict[str, Any]]) -> None:
    """Set *blocks* as the blocks of *obj*."""
    names = [f"block{number}" for number in range(len(blocks))]
    obj.blocks = json.loads(json.dumps(dict(zip(names, blocks, strict=True))))
    obj.blocks_layout = {"items": names}


def related_to(objects: Iterable[Any]) -> list[Any]:
    """Return a relation to each of *objects*, for a field of relations."""
    from z3c.relationfield import RelationValue
    from zope.component import getUtility
    from zope.intid.interfaces import IIntIds

    intids = getUtility(IIntIds)
    return [RelationValue(intids.register(obj)) for obj in objects]


def allow_blocks(portal: Any) -> None:
    """Let documents have blocks, and all users use the REST API."""
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    fti = portal.portal_types.Document
    fti.behaviors = (*fti.behaviors, "volto.blocks")


def make_volto_page(portal: Any) -> None:
    """Create a page with blocks that refer to pages and images, some of which are private, and another page."""
    from plone.namedfile.file import NamedBlobImage

    allow_blocks(portal)
    portal.portal_workflow.setChainForPortalTypes(("Document", "Folder"), "simple_publication_workflow")
    folder = create(portal, "Folder", "targets", title="Targets")
    targets = [create(folder, "Document", f"target{n:02}", title=f"Target {n}") for n in range(LINKS + FEW)]
    images = [
        create(folder, "Image", f"image{n}", title=f"Image {n}", image=NamedBlobImage(PIXEL, "image/png", "pixel.png"))
        for n in range(FEW)
    ]
    page = create(portal, "Document", "page", title="Page")
    set_blocks(
        page,
        [
            *(link_block(reference(obj)) for obj in targets[:LINKS]),
            *(teaser_block(reference(obj)) for obj in targets[LINKS:]),
            *(image_block(reference(obj)) for obj in images),
            LISTING,
        ],
    )
    create(portal, "Document", "other", title="Another page")
    create(portal, "Document", "related", title="Related", relatedItems=related_to(targets))
    for obj in (folder, *targets[::2], page):
        portal.portal_workflow.doActionFor(obj, "publish")


def save_other(site: Site) -> None:
    """Save a page without references from others."""
    with site.inside() as portal:
        portal.other.setRights(f"{portal.other.Rights()}!")
        portal.other.reindexObject()
