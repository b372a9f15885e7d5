"""503 Service Unavailable, with a time to come back, instead of 500 while PostgreSQL is away.

An exception view answers for what happens inside of a request, a WSGI filter for a request that cannot begin.
"""

from collections.abc import Callable
from collections.abc import Mapping
from Products.Five.browser import BrowserView
from typing import Any

import logging
import psycopg


logger = logging.getLogger(__name__)

STATUS = 503
HEADERS = {"Retry-After": "10", "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}
TEXT = "The database is not available at the moment. Please try again in a few seconds.\n"

Application = Callable[..., Any]


class UnavailableView(BrowserView):
    """What a browser, or a client of the REST API, gets for a psycopg.OperationalError; needs no database."""

    def __call__(self) -> str:
        response = self.request.response
        response.setStatus(STATUS, lock=1)
        for name, value in HEADERS.items():
            response.setHeader(name, value)
        return TEXT


def make_filter(global_conf: Mapping[str, str]) -> Callable[[Application], Application]:
    """Return a filter for a WSGI pipeline (PasteDeploy's ``paste.filter_factory``)."""
    return unavailable_filter


def unavailable_filter(application: Application) -> Application:
    """Return *application* with answers for the psycopg.OperationalError that leave it."""

    def call(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        try:
            return application(environ, start_response)
        except psycopg.OperationalError as error:
            logger.error("%s %s: %s", environ.get("REQUEST_METHOD"), environ.get("PATH_INFO"), error)
            start_response(f"{STATUS} Service Unavailable", list(HEADERS.items()))
            return [TEXT.encode()]

    return call
