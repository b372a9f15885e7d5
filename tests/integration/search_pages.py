"""The search page, as seen by a visitor without JavaScript."""

from html import unescape
from tests.integration.content import counted
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any
from urllib.parse import parse_qsl
from urllib.parse import urlsplit

import lxml.html
import pytest


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Site:
    """The module's shared site, with counted words."""
    with shared_site.inside() as portal:
        counted(shared_site.dsn, portal.portal_catalog)
    return shared_site


@pytest.fixture(scope="module")
def web(site: Site) -> Web:
    """The shared site over HTTP."""
    return site.web


class Page:
    """A search page."""

    def __init__(self, response: Any) -> None:
        assert response.status == 200, response.text
        self.html = response.text
        # Plone's header has a title that is not ours.
        self.tree = lxml.html.fromstring(response.text)

    def texts(self, path: str) -> list[str]:
        return [" ".join(found.text_content().split()) for found in self.tree.xpath(path)]

    @property
    def total(self) -> int:
        [total] = self.texts('//*[@id="search-results-number"]')
        return int(total)

    @property
    def titles(self) -> list[str]:
        return self.texts('//*[@class="result-title h5 mb-1"]')

    @property
    def facets(self) -> dict[str, dict[str, int | None]]:
        """Index -> token -> count."""
        return {
            box.get("data-facet"): {
                choice.xpath(".//input")[0].get("value"): self._count(choice)
                for choice in box.xpath('.//div[@class="form-check"]')
            }
            for box in self.tree.xpath("//fieldset")
        }

    @property
    def has_side(self) -> bool:
        """Whether the column of the facets, and the button that opens it on a phone, are shown."""
        [side] = self.tree.xpath('//*[@id="search-side"]')
        return side.get("hidden") is None

    @staticmethod
    def _count(choice: Any) -> int | None:
        counts = choice.xpath('.//span[contains(@class, "ms-2")]')
        return int(counts[0].text_content()) if counts else None

    @property
    def labels(self) -> dict[str, str]:
        """Token -> title, of all facets."""
        return {
            choice.xpath(".//input")[0].get("value"): choice.xpath(".//label/span")[0].text_content()
            for choice in self.tree.xpath('//div[@class="form-check"]')
        }

    @property
    def checked(self) -> set[str]:
        return {field.get("value") for field in self.tree.xpath("//fieldset//input[@checked]")}

    @property
    def chips(self) -> dict[str, str]:
        """Value -> address of the search without it."""
        links = self.tree.xpath('//*[@id="search-chips"]//a[strong]')
        return {link.xpath("./strong")[0].text_content(): link.get("href") for link in links}


def search(web: Web, login: str | None = None, path: str = "/plone", /, **query: Any) -> Page:
    return Page(web.get(f"{path}/@@search", login, "text/html", **query))


def follow(web: Web, url: str, login: str | None = None) -> Page:
    address = urlsplit(unescape(url))
    pairs = parse_qsl(address.query, keep_blank_values=True)
    query = {name: [v for n, v in pairs if n == name] for name, _ in pairs}
    return Page(web.get(address.path, login, "text/html", **query))
