"""The URLs of brains are those that the request makes of their paths."""

from io import BytesIO
from plone.pgcatalog.request import with_request
from plone.pgcatalog.results.urls import CONTEXTS
from plone.pgcatalog.results.urls import contexts
from plone.pgcatalog.results.urls import URLs
from typing import Any
from ZPublisher.HTTPRequest import HTTPRequest
from ZPublisher.HTTPRequest import WSGIRequest
from ZPublisher.HTTPResponse import WSGIResponse

import pytest


PATHS = [
    "",
    "/",
    "/plone",
    "/plone/a",
    "/plone/a b/ü",
    "/plone/a b/c+d@e",
    "/plone/a b",
    "/other/plone/a",
    "relative/path",
]


@pytest.fixture
def request_(app: Any) -> Any:
    return with_request(app).REQUEST


def check(known: URLs, request: Any) -> None:
    for _ in range(2):
        for path in PATHS:
            for relative in (0, 1):
                assert known.url(request, path, relative) == request.physicalPathToURL(path, relative), path


def test_in_every_virtual_root(request_: Any, app: Any) -> None:
    known = URLs()
    check(known, request_)
    request_.setServerURL("https", "www.example.org", "443")
    check(known, request_)
    request_["PARENTS"] = [app.plone, app]
    request_.setVirtualRoot(["_vh_sub", "path"])
    check(known, request_)
    request_["VirtualRootPhysicalPath"] = ("", "plone", "a b")
    check(known, request_)


def test_another_request_is_another_context(app: Any) -> None:
    known = URLs()
    for host in ("one.example.org", "two.example.org"):
        request = with_request(app).REQUEST
        request.setServerURL("http", host)
        check(known, request)


def served() -> Any:
    """Return a request as Zope's publisher makes one."""
    environ = {"SERVER_NAME": "served.example.org", "SERVER_PORT": "80", "REQUEST_METHOD": "GET", "SCRIPT_NAME": ""}
    return WSGIRequest(BytesIO(), environ, WSGIResponse())


@pytest.mark.parametrize("kind", [HTTPRequest, WSGIRequest])
def test_requests_to_the_same_server_share_what_is_known(
    app: Any, monkeypatch: pytest.MonkeyPatch, kind: type[Any]
) -> None:
    request, other = (served() if kind is WSGIRequest else with_request(app).REQUEST for _ in range(2))
    assert type(other) is kind
    expected = URLs().url(request, "/plone/shared/page")
    monkeypatch.setattr(HTTPRequest, "physicalPathToURL", None)
    assert URLs().url(other, "/plone/shared/page") == expected
    assert URLs().url(other, "/plone/shared/second page") == expected.replace("page", "second%20page")


def test_only_so_many_servers_are_remembered(app: Any) -> None:
    request = with_request(app).REQUEST
    for number in range(2 * CONTEXTS):
        request.setServerURL("http", f"host{number}.example.org")
        assert URLs().url(request, "/plone/a") == request.physicalPathToURL("/plone/a")
    assert 0 < contexts() <= CONTEXTS + 2


def test_other_kinds_of_requests_answer_themselves() -> None:
    class Request:
        def physicalPathToURL(self, path: str, relative: Any = 0) -> str:
            return f"mine:{path}:{relative}"

    assert URLs().url(Request(), "/plone", 1) == "mine:/plone:1"
