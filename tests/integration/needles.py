"""Content of a site for the services of the REST API, needles and haystacks, and the services' answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from plone.app.textfield import RichTextValue
from plone.namedfile.file import NamedBlobImage
from plone.pgcatalog.restapi.solr_parameters import RECORD
from plone.registry.interfaces import IRegistry
from tests.integration import site as sites
from tests.integration.content import counted
from tests.integration.content import create
from tests.integration.people import add_users
from tests.integration.people import FUTURE
from tests.integration.people import PAST
from tests.integration.people import publish
from tests.integration.people import share
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from zope.component import getUtility

import base64
import json


#: Logins: a visitor, a member who may read the secret needle, an editor, a manager.
LOGINS = (None, "mara:secret", "edith:secret", "boss:secret")
#: One white pixel.
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/x8AAwMCAO+/p9sAAAAASUVORK5CYII=")
#: Search tabs of a Solr front-end.
TABS = {
    "searchTabs": [
        {
            "label": "All",
            "facetFields": [{"name": "Subject", "label": "Tags"}, {"name": "is_folderish"}],
            "layouts": ["list", "grid"],
        },
        {"label": "Events", "query": {"portal_type": "Event"}},
        {"label": "Pages with tag0", "query": {"portal_type": ["Document"], "Subject": ["tag0"]}},
    ],
    "fieldList": ["getId", "listCreators"],
    "vocabularies": [{"field": "Subject", "name": "plone.app.vocabularies.Keywords", "isMultilingual": False}],
}


def fill(portal: Any) -> None:
    """Pages with tags and texts; some private, expired, not yet effective, or shared."""
    portal.portal_setup.runAllImportStepsFromProfile("profile-plone.restapi:default")
    add_users(portal)
    folder = create(portal, "Folder", "news", title="News")
    publish(folder)
    for number in range(12):
        page = create(
            folder,
            "Document",
            f"page{number:02}",
            title=f"Page {number:02} of the needle",
            description="About <b>needles</b> & pins",
            subject=("even" if number % 2 == 0 else "odd", f"tag{number % 3}"),
            text=RichTextValue(f"<p>A long text with one needle, number {number}, in a haystack.</p>", "text/html"),
        )
        publish(page)
    hidden = create(folder, "Document", "secret", title="The secret needle", subject=("secret",))
    share(hidden, "mara", "Reader")
    old = create(folder, "Document", "old", title="The expired needle", subject=("expired",))
    publish(old)
    old.setExpirationDate(PAST)
    old.reindexObject()
    later = create(folder, "Document", "later", title="The future needle", subject=("future",))
    publish(later)
    later.setEffectiveDate(FUTURE)
    later.reindexObject()
    event = create(portal, "Event", "fair", title="Pin fair", description="No stack of hay", subject=("odd",))
    publish(event)


def fill_for_solr(portal: Any) -> None:
    """Create the same, and an image and a news item."""
    fill(portal)
    portal.portal_workflow.setChainForPortalTypes(("News Item",), ())
    create(portal.news, "Image", "straw", title="A straw", image=NamedBlobImage(PNG, "image/png", "straw.png"))
    create(portal.news, "News Item", "harvest", title="The harvest of straw")


@contextmanager
def solr_site(dsn: str) -> Iterator[Site]:
    """Yield the site in *dsn*, filled by ``fill_for_solr``, with the search tabs TABS."""
    with sites.opened(dsn) as db:
        site = Site(db)
        with site.inside():
            getUtility(IRegistry)[RECORD] = TABS
        with site.inside() as portal:
            counted(dsn, portal.portal_catalog)
        yield site


def encoded(value: Any) -> str:
    """Return *value* as a parameter: JSON in base64."""
    return base64.b64encode(json.dumps(value).encode()).decode()


def ids(answer: Any) -> list[str]:
    """Return the ids of the documents of *answer*, of ``@pgsearch`` or ``@solr``."""
    return [doc["path_string"].rpartition("/")[2] for doc in answer["response"]["docs"]]


def facets(answer: Any) -> dict[str, dict[str, int]]:
    """Return index -> value -> number of hits in *answer*."""
    return {field["name"]: dict(values) for field, values in answer["facet_fields"]}


def found_by_search(web: Web, login: str | None, **query: Any) -> list[str]:
    """Return the ids of the hits of Plone's ``@search``."""
    answer = web.get("/plone/@search", login, "application/json", b_size=100, **query).json
    return [item["@id"].rpartition("/")[2] for item in answer["items"]]
