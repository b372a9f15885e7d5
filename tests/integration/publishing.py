"""Subscribers to the publisher's events, and a site whose requests they observe."""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import publish
from tests.integration.web import Web
from typing import Any
from zope.component import getGlobalSiteManager
from ZPublisher import interfaces

import transaction


#: Number of pages that have a word of their own.
RARE = 20

_words = count()


def fill_with_rare_words(portal: Any) -> None:
    from tests.acceptance.search_site import fill

    fill(portal)
    portal.manage_permission("plone.restapi: Use REST API", ["Anonymous"], acquire=1)
    for number in range(RARE):
        publish(create(portal, "Document", f"rare{number}", title=f"Rarity rareword{number}"))


def save(db: Any) -> None:
    """Change and catalogue the page ``rare19``, which no request of the tests shows."""
    with sites.inside(db) as portal:
        portal.rare19.title = f"Rarity {next(_words)}"
        portal.rare19.reindexObject()
        transaction.commit()


def titles(portal: Any) -> list[str]:
    """Return the title of ``rare19`` in the catalog."""
    return [brain.Title for brain in portal.portal_catalog.unrestrictedSearchResults(getId="rare19")]


def portal_of(event: Any) -> Any:
    """Return the site ``plone`` of the request of *event*, a publisher's."""
    return event.request["PARENTS"][-1].plone


@contextmanager
def handlers(**by_interface: Callable[[Any], None]) -> Iterator[None]:
    """Register each function as a handler of the publisher's event of its name."""
    manager = getGlobalSiteManager()
    found = [(handler, (getattr(interfaces, name),)) for name, handler in by_interface.items()]
    for handler, required in found:
        manager.registerHandler(handler, required)
    try:
        yield
    finally:
        for handler, required in found:
            manager.unregisterHandler(handler, required)


def front_page(web: Web) -> None:
    response = web.get("/plone", accept="text/html")
    assert response.status == 200, response.text
