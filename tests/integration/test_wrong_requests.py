"""Meaningless parameters are answered with 400 and a message, or as by ZCatalog; never by a server error.

Left out are:

* parameters that Zope cannot parse as a form (``b_start:int=x``): the request fails before it reaches Plone;
* services of Plone for which a stock Plone with its ZCatalog answers the same request by a server error: plone.restapi and
  Plone's pages do not catch the errors of parsers and indexes.  The stock site gets each request, too.

``WRONG_REQUESTS=1`` sends all of them, some 40,000 to each service; else each ``STRIDE``-th.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from tests.acceptance.browser import served
from tests.integration import site as sites
from tests.integration.fixtures import SiteWith
from tests.integration.web import Response
from tests.integration.web import Web
from tests.integration.wrong_requests import ANY
from tests.integration.wrong_requests import every_request
from tests.integration.wrong_requests import fill
from tests.integration.wrong_requests import Pairs
from tests.integration.wrong_requests import query_string
from tests.integration.wrong_requests import Service
from tests.integration.wrong_requests import SERVICES
from tests.integration.wrong_requests import TEXTS
from tests.integration.wrong_requests import wrong_bodies
from tests.integration.wrong_requests import zope_refuses
from urllib.parse import urlsplit

import json
import os
import pytest


#: Every n-th request is sent; primes, so that every parameter, index and kind of value has its turn.
STRIDE, PAGE_STRIDE = (1, 1) if os.environ.get("WRONG_REQUESTS") else (29, 307)
FEW = 2503


@dataclass(frozen=True)
class Both:
    """A site with our catalog, and the same with ZCatalog."""

    ours: Web
    stock: Web

    def wrong(self, service: Service, pairs: Pairs) -> str | None:
        """Return the fault of the answer to *pairs*, None if it is right."""
        response = service.request(self.ours, pairs)
        if response.status < 500:
            return None if response.status != 400 or has_message(response) else f"{pairs!r:.200}: 400 without a message"
        if zope_refuses(pairs) or (service.is_stock and service.request(self.stock, pairs).status >= 500):
            return None
        return f"{pairs!r:.200}: {response.status} {response.text[:300]}"


def has_message(response: Response) -> bool:
    return not response.headers["Content-Type"].startswith("application/json") or any(response.json.values())


@pytest.fixture(scope="module")
def both(site_with: SiteWith) -> Iterator[Both]:
    with sites.opened(site_with(fill)) as ours, sites.opened(site_with(fill, stock=True)) as stock:
        yield Both(Web(ours), Web(stock))


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize(
    ("stride", "page_stride"), [(FEW, FEW * 6), pytest.param(STRIDE, PAGE_STRIDE, marks=pytest.mark.slow)]
)
def test_wrong_request_is_answered_or_refused(both: Both, name: str, stride: int, page_stride: int) -> None:
    service = SERVICES[name]
    requests = every_request()[:: page_stride if service.accept == ANY else stride]
    assert not list(filter(None, (both.wrong(service, pairs) for pairs in requests)))


@pytest.mark.parametrize("stride", [503, pytest.param(STRIDE // 4 or 1, marks=pytest.mark.slow)])
def test_wrong_bodies_of_a_querystring_search_are_answered_or_refused(both: Both, stride: int) -> None:
    found = []
    for body in [*wrong_bodies()][::stride]:
        response = both.ours.send_body("POST", "/plone/@querystring-search", None, body.encode())
        if response.status >= 500:
            stock = both.stock.send_body("POST", "/plone/@querystring-search", None, body.encode())
            if stock.status < 500:
                found.append(f"{body:.200}: {response.status} {response.text[:300]}")
    assert not found


#: The examples of the issue, and more of their kind.
PROMISED: list[Pairs] = [
    *([("sort_on", "SearchableText")], [("sort_on", "aTopicIndex")], [("created", "9223372036854775808")]),
    *([("created:list:int", "9223372036854775808")], [("Date", "1000000000000")], [("effectiveRange", "0000-00-00")]),
    *([("start", "9223372036854775808")], [("getObjPositionInParent", "1")], [("rows", "9" * 5000)]),
    *([("start", "9" * 5000)], [("facet_limit", "9" * 5000), ("facets", "Subject")]),
    *([("facet_conditions", "W1tb" * 10_000 + "XV1d" * 10_000)], [("facet_ranges", "[" * 40_000 + "]" * 40_000)]),
]


@pytest.mark.parametrize("pairs", PROMISED, ids=lambda pairs: f"{pairs[0][0]}={pairs[0][1][:20]}")
def test_message_names_the_error(both: Both, pairs: Pairs) -> None:
    response = SERVICES["@pgsearch"].request(both.ours, pairs)
    assert response.status == 400
    assert len(response.json["message"]) > 15


def test_integer_with_too_many_digits_counts_as_very_large(both: Both) -> None:
    pairs = [(name, "9" * 5000) for name in ("b_start", "b_size", "rid", "page", "perPage")]
    for service in ("search page", "live search", "ZMI rows", "ZMI slow queries"):
        assert SERVICES[service].request(both.ours, [*pairs, ("SearchableText", "words")]).status == 200, service


def test_index_unknown_to_plone_restapi_is_queried_by_texts(both: Both) -> None:
    search = SERVICES["@pgsearch"]
    assert search.request(both.ours, [("aPathIndex", "/plone/folder")]).json["response"]["numFound"] == 4
    assert search.request(both.ours, [("aTopicIndex", "nothing")]).json["response"]["numFound"] == 0


def test_over_http(both: Both) -> None:
    with served(both.ours.db) as url:
        address = urlsplit(url)
        connection = HTTPConnection(address.hostname or "", address.port or 0, timeout=120)
        for name in ("@pgsearch", "@pgsuggest", "@solr", "live search"):
            service = SERVICES[name]
            for parameter in ("b_start", "rows", "created", "sort_on", "getObjPositionInParent"):
                for value in TEXTS[::14]:
                    query = query_string([(parameter, value), ("q", "words"), ("SearchableText", "words")])
                    connection.request("GET", f"{service.path}?{query}", headers={"Accept": service.accept})
                    response = connection.getresponse()
                    assert response.status < 500, (name, parameter, value[:50], response.read()[:300])
                    response.read()
        connection.close()


def test_the_query_of_a_querystring_search_may_be_an_address(both: Both) -> None:
    for body in [*wrong_bodies()][::997]:
        link = f"/plone/@querystring-search?{query_string([('query', body)])}"
        if both.ours.open(link, None, "application/json").status >= 500:
            assert both.stock.open(link, None, "application/json").status >= 500, json.dumps(body)[:200]
