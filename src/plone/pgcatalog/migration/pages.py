"""Pages of a site as visitors see them, timed with two catalogs in turns."""

from AccessControl.SecurityManagement import getSecurityManager
from AccessControl.SecurityManagement import setSecurityManager
from Acquisition import aq_base
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from plone.pgcatalog.migration.compare import visitor
from statistics import median
from time import perf_counter
from typing import Any
from zope.component.hooks import getSite
from zope.component.hooks import setSite
from zope.globalrequest import getRequest
from zope.globalrequest import setRequest
from zope.publisher.browser import setDefaultSkin
from ZPublisher.BaseRequest import RequestContainer
from ZPublisher.HTTPRequest import WSGIRequest
from ZPublisher.HTTPResponse import WSGIResponse
from ZPublisher.WSGIPublisher import publish

import logging
import transaction


logger = logging.getLogger(__name__)

#: Number of pages of each portal type that are visited.
PAGES_OF_A_TYPE = 5


@dataclass(frozen=True)
class PageTimes:
    """A page, and its median times in milliseconds, with the caches of a running process."""

    path: str
    before_ms: float
    after_ms: float


def pages_of(portal: Any) -> list[str]:
    """Return paths of pages that visitors of *portal* may see: the front page, and some of each portal type."""
    catalog = portal.portal_catalog
    paths = ["/".join(portal.getPhysicalPath())]
    with visitor():
        for name in catalog.uniqueValuesFor("portal_type"):
            paths += [brain.getPath() for brain in catalog.searchResults(portal_type=name)[:PAGES_OF_A_TYPE]]
    return [path for path in dict.fromkeys(paths) if is_page(portal, path)]


def is_page(portal: Any, path: str) -> bool:
    """Return whether a visitor gets a page at *path*: no login form, no redirect, no file, no error."""
    try:
        response = visit(portal, path)
    except Exception as error:  # noqa: BLE001  # any error of a page's code: the page is left out of the comparison
        logger.info("%s was not visited: %r", path, error)
        return False
    return response.getStatus() == 200 and (response.getHeader("Content-Type") or "").startswith("text/html")


def visit(portal: Any, path: str) -> Any:
    """Publish the page at *path* in the database of *portal* for a visitor; return the response.

    The theme is not applied.  Raises the errors of the page.
    """
    environ = {"SERVER_NAME": "localhost", "SERVER_PORT": "80", "REQUEST_METHOD": "GET", "PATH_INFO": path}
    response = WSGIResponse(stdout=BytesIO(), stderr=BytesIO())
    request = WSGIRequest(BytesIO(), environ | {"SCRIPT_NAME": "", "SERVER_PROTOCOL": "HTTP/1.1"}, response)
    setDefaultSkin(request)
    app = aq_base(portal.getPhysicalRoot()).__of__(RequestContainer(REQUEST=request))
    with own_request(request):
        publish(request, (app, "", False))
    return response


@contextmanager
def own_request(request: Any) -> Iterator[None]:
    """Make *request* the current request of the thread; restore request, site and user at the end."""
    former, site, manager = getRequest(), getSite(), getSecurityManager()
    setRequest(request)
    try:
        yield
    finally:
        request.close()
        # Changes by a page are not a part of the comparison.
        transaction.abort()
        setRequest(former)
        setSite(site)
        setSecurityManager(manager)


def times_in_turns(visits: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Return the median time of each of *visits* in milliseconds.

    Each function is called once before the measurement, then all take turns, in alternating order.
    """
    times: list[list[float]] = [[] for _ in visits]
    numbered = list(zip(visits, times, strict=True))
    for call in visits:
        call()
    for number in range(repeats):
        for call, found in numbered if number % 2 else reversed(numbered):
            started = perf_counter()
            call()
            found.append(1000 * (perf_counter() - started))
    return [median(found) for found in times]


def page_times(before: Any, after: Any, path: str, repeats: int) -> PageTimes:
    """Return the times of the page at *path* in two sites: *before* has Plone's own catalog, *after* plone.pgcatalog's."""
    visits = [lambda: visit(before, path), lambda: visit(after, path)]
    return PageTimes(path, *times_in_turns(visits, repeats))
