"""A request, and all that comes with one, for code that runs outside one."""

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


#: Characters of an address that are kept.
LONGEST_PATH = 300
#: Digits of a number that is read: as many as numbers of eight bytes have.
MOST_DIGITS = 19

_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")


def asking_path() -> str:
    """Return the path of the address that the browser has asked for, without what was asked there; empty outside of requests."""
    request = getRequest()
    path = urlsplit(request.get("ACTUAL_URL", "") or "").path if request is not None else ""
    return path[:LONGEST_PATH].replace("\0", "").encode(errors="replace").decode()


def number_in(text: str) -> int | None:
    """Return the whole number that *text*, a parameter, says; None if it says none.

    One of more digits than MOST_DIGITS counts as the greatest of so many: it means nothing but "very many", and Python
    refuses to read thousands of digits.
    """
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal():
        return None
    number = int(digits) if len(digits) <= MOST_DIGITS else 10**MOST_DIGITS - 1
    return -number if text.startswith("-") else number


def without_addresses(text: str) -> str:
    """Return *text*, which a visitor is shown, without the addresses in memory that Python writes for some objects."""
    return _ADDRESS.sub("", text)


def with_request(root: Any) -> Any:
    """Return the application *root* with a request, as a published object has one.

    Not Testing.makerequest: importing Testing before Zope has started swaps the configured database for a
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
    """Yield the application of *database*, a ZODB.DB, with a request, on a connection of its own, of transactions of *manager*.

    Aborts what is not committed, and gives the thread back the site that it had.
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
    """Yield the object at *path* of *database*, a ZODB.DB, on a connection of its own, in its site, as the system user.

    Aborts what is not committed.
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
