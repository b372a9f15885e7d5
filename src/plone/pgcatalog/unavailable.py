"""Responses of 400 and 503 instead of 500: PostgreSQL is away, full, slow or read-only, or a query exceeds a limit.

An exception view handles errors inside of a request, a WSGI filter handles requests that cannot begin.
"""

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from plone.pgcatalog.database.errors import is_outage
from plone.pgcatalog.database.errors import is_shortage
from plone.pgcatalog.database.errors import SearchTimeout
from plone.pgcatalog.database.session import connection_of
from plone.pgcatalog.i18n import _
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.query.oids import NoOid
from plone.pgcatalog.storage import PackConflict
from plone.pgcatalog.storage import writer_url
from plone.rest.interfaces import IAPIRequest
from Products.Five.browser import BrowserView
from psycopg.errors import QueryCanceled
from psycopg.errors import ReadOnlySqlTransaction
from typing import Any
from urllib.parse import urlsplit
from zExceptions import BadRequest
from ZODB.POSException import ReadOnlyError
from zope.component import getSiteManager
from zope.i18n import translate
from zope.interface import implementedBy
from zope.interface import Interface
from zope.interface import providedBy
from zope.publisher.browser import BrowserLanguages

import logging
import psycopg


logger = logging.getLogger(__name__)

TEXT = _("The database is not available at the moment. Please try again in a few seconds.")
SEARCH_TIMED_OUT = _("The search took too long and was stopped. Please search for something more specific.")
TIMED_OUT = _("The database took too long to answer and was stopped. Please try again later.")
READ_ONLY = _("Saving is not possible at the moment, because this server is read-only. Please try again later.")
NO_ROOM = _("The database server has no disk space or memory left. Nothing was saved. Please try again later.")
NOT_PACKED = _(
    "The database was not packed, because other transactions changed the same objects. Please pack again"
    " at a quieter time."
)
#: Errors with which ZODB, and a standby of PostgreSQL, refuse to write.
REFUSALS = (ReadOnlyError, ReadOnlySqlTransaction)

Application = Callable[..., Any]


class ServiceUnavailable(Exception):
    """The error for clients of the REST API: plone.rest derives the status from the name of the class."""


@dataclass(frozen=True)
class ErrorResponse:
    """A response to a browser; clients of the REST API get *error* instead, unless it is None.

    *error* is None if the error page of the API may not be rendered, because it might need the database.  *text* is a
    translatable message.
    """

    status: str
    text: str
    error: type[Exception] | None = None

    @property
    def headers(self) -> dict[str, str]:
        headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}
        return headers if self.status.startswith("400") else {"Retry-After": "10"} | headers

    def message_for(self, environ: Mapping[str, Any]) -> str:
        """Return the text in the language of a request: the language that Plone has found, else the browser's first choice.

        Plone itself might read a site's languages from a database that is away.
        """
        languages = [environ.get("LANGUAGE"), *BrowserLanguages(environ).getPreferredLanguages()]
        language = next((language for language in languages if language), "en")
        return f"{translate(self.text, target_language=str(language).partition('-')[0])}\n"


def response_to(error: Exception) -> ErrorResponse | None:
    """Return the response to a request that *error* has ended; None for errors that this module does not handle."""
    if isinstance(error, LimitExceeded | NoOid):
        return ErrorResponse("400 Bad Request", str(error.args[0]), BadRequest)
    if isinstance(error, QueryCanceled):
        text = SEARCH_TIMED_OUT if isinstance(error, SearchTimeout) else TIMED_OUT
        return ErrorResponse("503 Service Unavailable", text, ServiceUnavailable)
    if isinstance(error, REFUSALS):
        return ErrorResponse("503 Service Unavailable", READ_ONLY, ServiceUnavailable)
    if isinstance(error, PackConflict):
        return ErrorResponse("503 Service Unavailable", NOT_PACKED, ServiceUnavailable)
    if isinstance(error, psycopg.OperationalError) and is_shortage(error):
        return ErrorResponse("503 Service Unavailable", NO_ROOM, ServiceUnavailable)
    if is_outage(error):
        return ErrorResponse("503 Service Unavailable", TEXT)
    return None


def writer_location(request: Any) -> str:
    """Return the URL of *request* at the Zope that saves; empty if none is configured."""
    jar = connection_of(next(reversed(request.get("PARENTS") or ()), None))
    base = "" if jar is None else writer_url(jar)
    if not base:
        return ""
    query = request.get("QUERY_STRING", "")
    return f"{base}{urlsplit(request['ACTUAL_URL']).path or '/'}{'?' if query else ''}{query}"


class ErrorView(BrowserView):
    """The error page for the errors of this module, for a browser or a client of the REST API.

    It needs no database if the database is not available.
    """

    def __call__(self) -> Any:
        location = writer_location(self.request) if isinstance(self.context, REFUSALS) else ""
        if location:
            # Status 307: the browser repeats the request with the same method and body.
            self.request.response.redirect(location, status=307, lock=True)
            return ""
        answer = response_to(self.context)
        if answer is None:
            return self._usual(self.context)
        if answer.error is not None and IAPIRequest.providedBy(self.request):
            return self._usual(answer.error(answer.message_for(self.request).strip()))
        response = self.request.response
        response.setStatus(int(answer.status[:3]), lock=1)
        for name, value in answer.headers.items():
            response.setHeader(name, value)
        return answer.message_for(self.request)

    def _usual(self, error: Exception) -> Any:
        """Return the usual page for *error*, from the view that any other exception gets."""
        wanted = implementedBy(Exception), providedBy(self.request)
        factory = getSiteManager().adapters.lookup(wanted, Interface, name="index.html")
        if factory is None:
            raise error
        view = factory(error, self.request)
        view.__parent__ = self.__parent__
        return view()


def make_filter(global_conf: Mapping[str, str]) -> Callable[[Application], Application]:
    """Return a filter for a WSGI pipeline (PasteDeploy's ``paste.filter_factory``)."""
    return unavailable_filter


def unavailable_filter(application: Application) -> Application:
    """Return *application* wrapped so that a psycopg.OperationalError that leaves it becomes a response, if there is one."""

    def call(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        try:
            return application(environ, start_response)
        except psycopg.OperationalError as error:
            answer = response_to(error)
            if answer is None:
                raise
            # str() of a template's error loads the template's variables, now from a connection that is closed.
            text = " ".join(map(str, error.args))
            logger.error("%s %s: %s", environ.get("REQUEST_METHOD"), environ.get("PATH_INFO"), text)
            start_response(answer.status, list(answer.headers.items()))
            return [answer.message_for(environ).encode()]

    return call
