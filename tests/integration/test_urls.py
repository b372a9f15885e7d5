"""The URLs of brains are those that the request makes of their paths."""

from plone.pgcatalog.request import with_request
from plone.pgcatalog.results.urls import URLs
from typing import Any

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


def check(urls: URLs, request: Any) -> None:
    for _ in range(2):
        for path in PATHS:
            for relative in (0, 1):
                assert urls.url(request, path, relative) == request.physicalPathToURL(path, relative), path


def test_in_every_virtual_root(request_: Any, app: Any) -> None:
    urls = URLs()
    check(urls, request_)
    request_.setServerURL("https", "www.example.org", "443")
    check(urls, request_)
    request_["PARENTS"] = [app.plone, app]
    request_.setVirtualRoot(["_vh_sub", "path"])
    check(urls, request_)
    request_["VirtualRootPhysicalPath"] = ("", "plone", "a b")
    check(urls, request_)


def test_another_request_is_another_context(app: Any) -> None:
    urls = URLs()
    for host in ("one.example.org", "two.example.org"):
        request = with_request(app).REQUEST
        request.setServerURL("http", host)
        check(urls, request)


def test_other_kinds_of_requests_answer_themselves() -> None:
    class Request:
        def physicalPathToURL(self, path: str, relative: Any = 0) -> str:
            return f"mine:{path}:{relative}"

    assert URLs().url(Request(), "/plone", 1) == "mine:/plone:1"
