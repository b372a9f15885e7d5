"""A site in German: the pages of the catalog, its control panels and its messages are in German."""

from collections.abc import Iterator
from lxml import html
from plone import api
from tests.integration import site as sites
from tests.integration.content import populate
from tests.integration.fixtures import SiteWith
from tests.integration.web import MANAGER
from tests.integration.web import token
from tests.integration.web import Web
from typing import Any
from urllib.parse import unquote_plus

import pytest


PAGES = {
    "portal_catalog/manage_catalogView": "Pfadfilter setzen",
    "portal_catalog/manage_catalogIndexes": "Metadaten hinzufügen",
    "portal_catalog/manage_catalogAdvanced": "Objekte auslassen und protokollieren",
    "portal_catalog/manage_catalogOverview": "warten auf eine Sperre",
    "portal_catalog/manage_catalogReport": "Keine langsame Suche ist aufgezeichnet.",
    "portal_catalog/manage_catalogPlan": "Keine langsame Suche ist aufgezeichnet.",
    "portal_catalog/manage_slow_queries": "Keine langsame Suche ist aufgezeichnet.",
    "portal_catalog/manage_index_advice": "Indizes suchen",
    "@@pgcatalog-controlpanel": "Zeitlimit für Suchen (Sekunden)",
    "@@pgcatalog-search-controlpanel": "Angeheftete Seiten",
}


def make_german(portal: Any) -> None:
    populate(portal)
    api.portal.set_registry_record("plone.available_languages", ["de"])
    api.portal.set_registry_record("plone.default_language", "de")


@pytest.fixture(scope="module")
def web(site_with: SiteWith) -> Iterator[Web]:
    with sites.opened(site_with(make_german)) as db:
        yield Web(db)


def text(page: str) -> str:
    return " ".join(html.fromstring(page).text_content().split())


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_german(web: Web, page: str) -> None:
    answer = web.get(f"/plone/{page}", MANAGER, accept="text/html")
    assert answer.status == 200, answer.text
    assert PAGES[page] in text(answer.text)
    assert "${" not in text(answer.text)


def test_a_text_with_values_in_it_is_german(web: Web) -> None:
    page = web.get("/plone/portal_catalog/manage_catalogAdvanced", MANAGER, accept="text/html").text
    assert "Der Zwischenspeicher dieses Prozesses" in text(page)


def test_a_message_is_german(web: Web) -> None:
    path = "/plone/portal_catalog/manage_catalogAdvanced"
    right = token(web.get(path, MANAGER, accept="text/html").text)
    answer = web.post(path, MANAGER, clear_cache="1", _authenticator=right)
    assert answer.status == 302
    assert "Der Zwischenspeicher dieses Prozesses ist leer." in unquote_plus(answer.headers["Location"])
