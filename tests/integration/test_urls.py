"""The URLs of brains are those that the request builds from their paths."""

from collections.abc import Callable
from collections.abc import Iterator
from io import BytesIO
from plone.pgcatalog.indexes.path import MOST_CONTAINERS
from plone.pgcatalog.request import with_request
from plone.pgcatalog.results.brain import CONTEXTS
from plone.pgcatalog.results.brain import contexts
from plone.pgcatalog.results.brain import URLs
from plone.pgcatalog.searchpage.request import LONGEST_PARAMETERS
from tests.integration import site as sites
from tests.integration.fixtures import SiteWith
from tests.integration.web import Response
from tests.integration.web import Web
from tests.integration.wrong_requests import base64
from tests.integration.wrong_requests import fill
from tests.integration.wrong_requests import Pairs
from tests.integration.wrong_requests import Service
from tests.integration.wrong_requests import SERVICES
from typing import Any
from ZPublisher.HTTPRequest import HTTPRequest
from ZPublisher.HTTPRequest import WSGIRequest
from ZPublisher.HTTPResponse import WSGIResponse

import itertools
import json
import pytest
import sys
import threading
import tracemalloc


PATHS = [
    *("", "/", "/plone", "/plone/a", "/plone/a b/ü", "/plone/a b/c+d@e", "/plone/a b", "/other/plone/a"),
    "relative/path",
]


def check(known: URLs, request: Any) -> None:
    for _ in range(2):
        for path in PATHS:
            for relative in (0, 1):
                assert known.url(request, path, relative) == request.physicalPathToURL(path, relative), path


def test_urls_are_right_in_every_virtual_root_and_request(app: Any) -> None:
    known = URLs()
    for host in ("one.example.org", "two.example.org"):
        request = with_request(app).REQUEST
        check(known, request)
        request.setServerURL("https", host, "443")
        check(known, request)
        request["PARENTS"] = [app.plone, app]
        request.setVirtualRoot(["_vh_sub", "path"])
        check(known, request)
        request["VirtualRootPhysicalPath"] = ("", "plone", "a b")
        check(known, request)


def served() -> Any:
    """Return a request as created by Zope's publisher."""
    environ = {"SERVER_NAME": "served.example.org", "SERVER_PORT": "80", "REQUEST_METHOD": "GET", "SCRIPT_NAME": ""}
    return WSGIRequest(BytesIO(), environ, WSGIResponse())


@pytest.mark.parametrize("kind", [HTTPRequest, WSGIRequest])
def test_requests_to_the_same_server_share_cached_urls(
    app: Any, monkeypatch: pytest.MonkeyPatch, kind: type[Any]
) -> None:
    request, other = (served() if kind is WSGIRequest else with_request(app).REQUEST for _ in range(2))
    assert type(other) is kind
    expected = URLs().url(request, "/plone/shared/page")
    monkeypatch.setattr(HTTPRequest, "physicalPathToURL", None)
    assert URLs().url(other, "/plone/shared/page") == expected
    assert URLs().url(other, "/plone/shared/second page") == expected.replace("page", "second%20page")


def test_number_of_cached_servers_is_limited(app: Any) -> None:
    request = with_request(app).REQUEST
    for number in range(2 * CONTEXTS):
        request.setServerURL("http", f"host{number}.example.org")
        assert URLs().url(request, "/plone/a") == request.physicalPathToURL("/plone/a")
    assert 0 < contexts() <= CONTEXTS + 2


def test_other_kinds_of_requests_build_their_urls_themselves() -> None:
    class Request:
        def physicalPathToURL(self, path: str, relative: Any = 0) -> str:
            return f"mine:{path}:{relative}"

    assert URLs().url(Request(), "/plone", 1) == "mine:/plone:1"


PAGE, LIVE, PGSEARCH, SOLR = (SERVICES[name] for name in ("search page", "live search", "@pgsearch", "@solr"))
SEARCH = SERVICES["@search"]
#: Code of our own, and the code that it calls, is counted.
COUNTED = ("/plone/pgcatalog/", "/Products/ZCatalog/", "/Products/PluginIndexes/")
#: Each search has new words, so that no search is answered from the cache of the one before.
NUMBERS = itertools.count()


def nothing() -> Pairs:
    """Return a search of words without a hit: the cost of hits does not depend on the query."""
    words = f"nothing{next(NUMBERS)}"
    return [("SearchableText", words), ("q", words)]


def way(parts: int) -> str:
    return "/plone" + "/a" * parts


#: Request parameters, *n* times as long for *n*.
LENGTHS: dict[str, tuple[Service, Callable[[int], Pairs]]] = {
    "a place of many parts": (PAGE, lambda n: [("path:list", way(500 * n))]),
    "places of many parts": (PAGE, lambda n: [("path:list", f"{way(100 * n)}/{i}") for i in range(10)]),
    "places, searched": (PGSEARCH, lambda n: [("path.query:list", f"{way(20)}/{i}") for i in range(100 * n)]),
    "a deep path": (PGSEARCH, lambda n: [("path.query", way(1000 * n)), ("path.depth", "1")]),
    "a path at any level": (SEARCH, lambda n: [("path.query", way(1000 * n)), ("path.level", "-1")]),
    "a prefix": (PGSEARCH, lambda n: [("path_prefix", "/a" * 2000 * n)]),
    "many values": (PGSEARCH, lambda n: [("Subject:list", f"tag{i}") for i in range(500 * n)]),
    "many values, live": (LIVE, lambda n: [("Subject:list", f"tag{i}") for i in range(500 * n)]),
    "many dates": (PGSEARCH, lambda n: [("created.query:list", f"2026-01-{1 + i % 28}") for i in range(100 * n)]),
    "other parameters": (PAGE, lambda n: [(f"x{i}", "y") for i in range(1000 * n)]),
    "dots": (PGSEARCH, lambda n: [(f"nobody{'.a' * 500 * n}", "y")]),
    "facets chosen": (
        PGSEARCH,
        lambda n: [
            ("facet_conditions", base64(json.dumps({"Subject": {"c": dict.fromkeys(map(str, range(300 * n)), 1)}})))
        ],
    ),
    "conditions": (
        SOLR,
        lambda n: [("extra_conditions", base64(json.dumps([["Subject", "string", {"in": ["a"]}]] * 100 * n)))],
    ),
    "types": (SOLR, lambda n: [("portal_type", ",".join(f"Type{i}" for i in range(500 * n)))]),
}


@pytest.fixture(scope="module")
def web(site_with: SiteWith) -> Iterator[Web]:
    with sites.opened(site_with(fill)) as db:
        yield Web(db)


def cost(action: Callable[[], Any]) -> tuple[int, int]:
    """Return (lines, bytes) of *action*, which runs in a thread of its own."""
    lines = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal lines
        if event == "call" and not any(part in frame.f_code.co_filename for part in COUNTED):
            return None
        lines += event == "line"
        return trace

    threading.settrace(trace)
    tracemalloc.start()
    try:
        action()
        return lines, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        threading.settrace(None)  # type: ignore[arg-type]


@pytest.mark.skipif(sys.gettrace() is not None, reason="somebody else traces")
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in LENGTHS])
def test_twice_as_long_costs_twice_as_much_at_most(web: Web, name: str) -> None:
    service, pairs = LENGTHS[name]

    def ask(n: int) -> None:
        assert service.request(web, [*pairs(n), *nothing()]).status in (200, 400)

    ask(1)
    # The least of three, of lines and of bytes: the work of other threads is counted, too.
    once, twice, base = (
        [min(of_each) for of_each in zip(*(cost(lambda n=n: ask(n)) for _ in range(3)), strict=True)] for n in (2, 4, 0)
    )
    for unit, most in ((0, 200), (1, 300_000)):
        assert twice[unit] - base[unit] <= 2.5 * max(once[unit] - base[unit], most), (once, twice, base)


def page(web: Web, pairs: Pairs) -> Response:
    return PAGE.request(web, [("SearchableText", "words"), *pairs])


def test_links_of_a_page_repeat_valid_parameters_and_few_others(web: Web) -> None:
    plain = len(page(web, []).body)
    for pairs in (
        [(f"x{i}", "y" * 10) for i in range(4000)],
        [("x", "y" * 60_000)],
        [(f"x{'y' * 60_000}", "")],
        [(f"x{i}", "y" * 1000) for i in range(60)],
    ):
        response = page(web, [("Subject:list", "a"), *pairs])
        assert response.status == 200
        # The feed has the address unchanged.
        assert len(response.body) < plain + sum(len(name) + len(value) + 5 for name, value in pairs) + 100_000
        assert "Subject%3Alist=a" in response.text


def test_valid_parameters_stay_among_thousands_of_others(web: Web) -> None:
    others = [(f"x{i}", "y") for i in range(3000)]
    text = page(web, [*others, ("created.query:record:date", "1980-01-01"), ("created.range:record", "min")]).text
    assert 'name="created.query:record:date"' in text
    assert 'name="x49"' in text
    assert 'name="x50"' not in text


def test_length_of_a_parameter_is_limited(web: Web) -> None:
    for name in ("SearchableText", "Subject:list", "path:list", "similar"):
        response = PAGE.request(web, [(name, "a" * (LONGEST_PARAMETERS + 1))])
        assert response.status == 400
        assert "16,000" in response.text


def test_navigation_tree_is_limited(web: Web) -> None:
    for parts, status in ((MOST_CONTAINERS - 1, 200), (MOST_CONTAINERS, 400)):
        for options in ([("path.depth", "0")], [("path.level", "-1"), ("path.depth", "0")], [("path.depth", "3")]):
            pairs = [("path.query", way(parts)), ("path.navtree", "1"), *options]
            assert SEARCH.request(web, pairs).status == status, options
