"""Number of messages of each part of a page of Volto, without changes and after a save of another page."""

from tests.integration.people import add_plain_users
from tests.integration.traffic import traced_requests
from tests.integration.traffic import Traffic
from tests.integration.volto_pages import EXPANSIONS
from tests.integration.volto_pages import LISTING
from tests.integration.volto_pages import make_volto_page
from tests.integration.volto_pages import save_other
from tests.integration.web import MANAGER
from tests.integration.web import Site
from typing import Any

import json
import pytest


def fill(portal: Any) -> None:
    add_plain_users(portal)
    make_volto_page(portal)


SHARED = fill


def asked(site: Site, path: str, query: dict[str, Any]) -> Traffic:
    """Return the Traffic of a manager's request."""
    with traced_requests(site.db) as traffic:
        response = site.web.get(path, MANAGER, accept="application/json", **query)
    assert response.status == 200, response.text
    return traffic[0]


#: Expansions that list pages; the others read objects only.
LISTS = ("navigation", "contextnavigation")
#: Request -> path, parameters, number of messages to the catalog after a save
REQUESTS: dict[str, tuple[str, dict[str, Any], int]] = {
    "page": ("/plone/page", {}, 2),
    "all expansions": ("/plone/page", {"expand": EXPANSIONS}, 6),
    "search block with facets": (
        "/plone/@querystring-search",
        {"query": json.dumps({"query": LISTING["querystring"]["query"], "facets": ["Subject", "portal_type"]})},
        # Plone counts the results before it reads a page of them; the facets are in the count's message.
        2,
    ),
    "relations": ("/plone/@relations", {"source": "/related", "relation": "relatedItems"}, 0),
    "related items": ("/plone/related", {}, 0),
    "listing": ("/plone/@search", {"portal_type": "Document", "sort_on": "modified", "b_size": "30"}, 1),
    "images": ("/plone/targets", {"fullobjects": "1", "b_size": "60"}, 1),
}
SINGLE: dict[str, tuple[str, dict[str, Any], int]] = {
    name: ("/plone/other", {"expand": name}, 2 if name in LISTS else 0) for name in EXPANSIONS.split(",")
}


@pytest.mark.parametrize("name", [*REQUESTS, *(pytest.param(name, marks=pytest.mark.slow) for name in SINGLE)])
def test_request_sends_few_messages_after_a_save(shared_site: Site, name: str) -> None:
    path, query, most = (REQUESTS | SINGLE)[name]
    asked(shared_site, path, query)
    save_other(shared_site)
    asked(shared_site, path, query)
    quiet = asked(shared_site, path, query)
    save_other(shared_site)
    saved = asked(shared_site, path, query)
    assert quiet.matching("pgcatalog_") == []
    assert len(saved.matching("pgcatalog_")) <= most, "\n\n".join(saved.matching("pgcatalog_"))
    # One message reads which objects have changed.
    assert saved.round_trips <= quiet.round_trips + most + 1
