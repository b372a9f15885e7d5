"""Pages with blocks in the site of the benchmark ``pages``, like those of Volto's editors."""

from benchmarks.page_kinds import RELATED
from benchmarks.page_kinds import RELATIONS
from benchmarks.page_kinds import VOLTO_FOLDER
from benchmarks.page_kinds import VOLTO_PAGES
from itertools import cycle
from itertools import islice
from tests.integration.volto_pages import FEW
from tests.integration.volto_pages import image_block
from tests.integration.volto_pages import link_block
from tests.integration.volto_pages import LINKS
from tests.integration.volto_pages import LISTING
from tests.integration.volto_pages import PIXEL
from tests.integration.volto_pages import reference
from tests.integration.volto_pages import related_to
from tests.integration.volto_pages import set_blocks
from tests.integration.volto_pages import teaser_block
from typing import Any


#: The type of these pages: documents have no blocks, so that the other kinds of page are not affected.
TYPE = "volto_page"


def furnish_for_volto(site: Any, paths: list[str]) -> None:
    """Add pages with blocks that refer to the documents at *paths*, and a page with relations; does not commit.

    The site is its own front page, with blocks.
    """
    from plone.namedfile.file import NamedBlobImage

    types = site.portal_types
    types.manage_pasteObjects(types.manage_copyObjects(["Document"]))
    types.manage_renameObject("copy_of_Document", TYPE)
    for name in (TYPE, "Plone Site"):
        if "volto.blocks" not in types[name].behaviors:
            types[name].behaviors = (*types[name].behaviors, "volto.blocks")
    folder = added(site, "Folder", VOLTO_FOLDER, exclude_from_nav=True)
    image = NamedBlobImage(PIXEL, "image/png", "pixel.png")
    images = [added(folder, "Image", f"image{n}", image=image) for n in range(FEW)]
    documents = cycle(paths)
    for number in range(VOLTO_PAGES):
        set_blocks(added(folder, TYPE, f"page{number}"), blocks(site, documents, images))
    set_blocks(site, blocks(site, documents, images))
    objects = [site.unrestrictedTraverse(path) for path in islice(documents, RELATIONS)]
    added(folder, TYPE, RELATED, relatedItems=related_to(objects))


def added(container: Any, portal_type: str, id: str, **fields: Any) -> Any:
    """Create and publish an object; return it."""
    container.invokeFactory(portal_type, id, title=id.title(), **fields)
    obj = container[id]
    if obj.portal_workflow.getChainFor(obj):
        obj.portal_workflow.doActionFor(obj, "publish")
    return obj


def blocks(site: Any, documents: Any, images: list[Any]) -> list[dict[str, Any]]:
    """Return blocks with LINKS links and FEW teasers of the next *documents*, paths, the *images* and a listing."""
    linked = [reference(site.unrestrictedTraverse(path)) for path in islice(documents, LINKS + FEW)]
    return [
        *map(link_block, linked[:LINKS]),
        *map(teaser_block, linked[LINKS:]),
        *(image_block(reference(image)) for image in images),
        LISTING,
    ]
