"""Helpers for requests: path and parameters of the current one, and requests for code that runs outside of one."""

from AccessControl.SecurityManagement import newSecurityManager
from AccessControl.SecurityManagement import noSecurityManager
from AccessControl.users import system
from Acquisition import aq_base
from Acquisition import aq_chain
from Acquisition import aq_inner
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit
from zope.component.hooks import getSite
from zope.component.hooks import setSite
from zope.component.interfaces import ISite
from zope.globalrequest import clearRequest
from zope.globalrequest import getRequest
from zope.globalrequest import setRequest
from zope.publisher.browser import setDefaultSkin
from ZPublisher.BaseRequest import RequestContainer
from ZPublisher.HTTPRequest import HTTPRequest
from ZPublisher.HTTPResponse import HTTPResponse

import re
import transaction


#: Longest path that is returned, in characters.
LONGEST_PATH = 300
#: Most digits of a number that is parsed: as many as numbers of eight bytes have.
MOST_DIGITS = 19

_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")


def request_path() -> str:
    """Return the path of the URL in the browser's request, without the query string; empty outside of requests."""
    request = getRequest()
    path = urlsplit(request.get("ACTUAL_URL", "") or "").path if request is not None else ""
    return path[:LONGEST_PATH].replace("\0", "").encode(errors="replace").decode()


def number_in(text: str) -> int | None:
    """Return the whole number in *text*, a parameter; None if *text* is no whole number.

    A number with more than MOST_DIGITS digits becomes the largest one with so many: it means nothing but "very many", and
    Python refuses to parse thousands of digits.
    """
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal():
        return None
    number = int(digits) if len(digits) <= MOST_DIGITS else 10**MOST_DIGITS - 1
    return -number if text.startswith("-") else number


def without_addresses(text: str) -> str:
    """Return *text*, which visitors see, without the memory addresses that Python writes for some objects."""
    return _ADDRESS.sub("", text)


def with_request(root: Any) -> Any:
    """Return the application *root* with a request, like a published object.

    Testing.makerequest is not used: importing Testing before Zope has started swaps the configured database for a
    DemoStorage.
    """
    environ = {"SERVER_NAME": "localhost", "SERVER_PORT": "80", "REQUEST_METHOD": "GET", "SCRIPT_NAME": ""}
    request = HTTPRequest(BytesIO(), environ, HTTPResponse(stdout=BytesIO()))
    app = aq_base(root).__of__(RequestContainer(REQUEST=request))
    request["PARENTS"] = [app]
    # Views are looked up by the layer of the request.
    setDefaultSkin(request)
    return app


@contextmanager
def application(database: Any, manager: Any) -> Iterator[Any]:
    """Yield the application of *database*, a ZODB.DB, with a request, on a new connection of the transaction *manager*.

    At the end, aborts what is not committed, and restores the site of the thread.
    """
    site = getSite()
    connection = database.open(manager)
    try:
        yield with_request(connection.root()["Application"])
    finally:
        manager.abort()
        connection.close()
        setSite(site)


@contextmanager
def opened_at(database: Any, path: str) -> Iterator[Any]:
    """Yield the object at *path* of *database*, a ZODB.DB, on a new connection, in its site, as the system user.

    At the end, aborts what is not committed.
    """
    transaction.begin()
    connection = database.open()
    try:
        app = with_request(connection.root()["Application"])
        setRequest(app.REQUEST)
        newSecurityManager(None, system)
        obj = app.unrestrictedTraverse(path)
        setSite(next(filter(ISite.providedBy, aq_chain(aq_inner(obj))), None))
        yield obj
    finally:
        transaction.abort()
        noSecurityManager()
        setSite(None)
        clearRequest()
        connection.close()
