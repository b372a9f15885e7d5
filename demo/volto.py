"""The demo's site for Volto: texts in blocks, and a page with a search block."""

from collections.abc import Iterable
from demo import front_page
from demo.words import Item
from html import unescape
from plone.dexterity.utils import createContentInContainer
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.registry.interfaces import IRegistry
from typing import Any
from zope.component import getUtility

import re
import uuid


PROFILE = "profile-plone.volto:default"
#: Types with blocks instead of a rich text.
TYPES = ("Document", "News Item", "Event")
PARTS = re.compile(r"<(p|h2|h3|li)[^>]*>(.*?)</\1>", re.DOTALL)
ANYWHERE = {"i": "path", "o": "plone.app.querystring.operation.string.absolutePath", "v": "/"}
#: The facets of the page with a search block: index, title, widget, whether several values can be selected.
FACETS = (
    ("portal_type", "Type", "checkboxFacet", True),
    ("Subject", "Tags", "checkboxFacet", True),
    ("review_state", "State", "selectFacet", False),
    ("Creator", "Author", "selectFacet", True),
)


def install(site: Any) -> None:
    """Install Volto's requirements in *site*, which is empty."""
    site.portal_setup.runAllImportStepsFromProfile(PROFILE)
    # The demo needs folders, and plone.volto forbids new ones.
    site.portal_types.Folder.global_allow = True


def with_blocks(items: Iterable[Item]) -> list[Item]:
    """Return *items* with texts converted to blocks, if their types have blocks."""
    items = list(items)
    for item in items:
        if item.portal_type in TYPES:
            item.fields.update(fields(text_blocks(item.fields.pop("text", ""))))
    return items


def text_blocks(html: str) -> list[dict[str, Any]]:
    """Return the paragraphs of *html* as Volto's text blocks."""
    parts = ((kind, unescape(re.sub(r"<[^>]+>", "", inner)).strip()) for kind, inner in PARTS.findall(html))
    return [
        {
            "@type": "slate",
            "plaintext": text,
            "value": [{"type": "p" if kind == "li" else kind, "children": [{"text": text}]}],
        }
        for kind, text in parts
        if text
    ]


def fields(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the fields of a page with its title and *blocks* below it."""
    named = {str(uuid.uuid4()): block for block in [{"@type": "title"}, *blocks]}
    return {"blocks": named, "blocks_layout": {"items": list(named)}}


def search_block(*facets: tuple[str, str, str, bool], query: Iterable[dict[str, Any]] = (ANYWHERE,)) -> dict[str, Any]:
    """Return a search block whose *facets* filter the results of *query*."""
    return {
        "@type": "search",
        "variation": "facetsLeftSide",
        "showSearchInput": True,
        "showSearchButton": True,
        "showSortOn": True,
        "showTotalResults": True,
        "sortOnOptions": ["sortable_title", "effective", "modified"],
        "listingBodyTemplate": "summary",
        "query": {"query": list(query), "sort_on": "sortable_title", "sort_order": "ascending", "b_size": "10"},
        "facets": [
            {
                "@id": str(uuid.uuid4()),
                "title": title,
                "type": widget,
                "multiple": multiple,
                "field": {"value": index, "label": title},
            }
            for index, title, widget, multiple in facets
        ],
    }


def make_pages(site: Any) -> None:
    """Create the page with a search block, and a front page; tune the search like the front page of Classic UI does."""
    page = createContentInContainer(
        site, "Document", id="find", title="Find", checkConstraints=False, **fields([search_block(*FACETS)])
    )
    site.portal_workflow.doActionFor(page, "publish")
    for name, value in fields(text_blocks("<p>A Volto front-end, and a catalog in PostgreSQL.</p>")).items():
        setattr(site, name, value)
    registry = getUtility(IRegistry)
    for name, value in front_page.TUNING.items():
        registry[f"{PREFIX}.{name}"] = value
