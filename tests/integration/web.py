"""HTTP requests to a database, through Zope's own WSGI publisher and without a socket."""

from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field
from io import BytesIO
from lxml import html
from tests.integration import site as sites
from typing import Any
from urllib.parse import quote
from urllib.parse import urlencode

import json
import transaction


MODULE = "plone.pgcatalog.tests"
MANAGER = "admin:secret"
#: Plone's statuses for users without permission.
REFUSED = (302, 401, 403, 404)
#: Threads that answer no request now.  As in a server they are used again: Plone compiles its theme once for each thread.
_idle: list[ThreadPoolExecutor] = []


@dataclass
class Response:
    """An HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Web:
    """Sends requests to the Zope of *db*, which answers each in another thread, with a transaction and a user of its own.

    *application* is that Zope, if it exists already.  A *login* is ``"name:password"``.  With the default *accept*, errors
    are JSON, not a rendered page.
    """

    def __init__(self, db: Any, application: Any = None) -> None:
        self.db = db
        self._application = application

    def get(self, path: str, login: str | None = None, /, accept: str = "*/*", **query: Any) -> Response:
        environ = self._environ("GET", path, login, accept)
        environ["QUERY_STRING"] = urlencode(query, doseq=True, quote_via=quote)
        return self._send(environ)

    def open(self, link: str, login: str | None = None, accept: str = "text/html") -> Response:
        """Return the answer to *link*, a path with a query string, as to a browser."""
        path, _, query = link.partition("?")
        environ = self._environ("GET", path, login, accept)
        environ["QUERY_STRING"] = query
        return self._send(environ)

    def post(self, path: str, login: str | None = None, /, **form: Any) -> Response:
        body = urlencode(form, doseq=True).encode()
        environ = self._environ("POST", path, login, "*/*") | {
            "CONTENT_TYPE": "application/x-www-form-urlencoded",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": BytesIO(body),
        }
        return self._send(environ)

    def patch(self, path: str, login: str | None, data: Any, /) -> Response:
        return self.send_json("PATCH", path, login, data)

    def send_json(self, method: str, path: str, login: str | None, data: Any, /) -> Response:
        return self.send_body(method, path, login, json.dumps(data).encode())

    def send_body(self, method: str, path: str, login: str | None, body: bytes, /) -> Response:
        environ = self._environ(method, path, login, "application/json") | {
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": BytesIO(body),
        }
        return self._send(environ)

    def _environ(self, method: str, path: str, login: str | None, accept: str) -> dict[str, Any]:
        environ = {
            "REQUEST_METHOD": method,
            "SERVER_NAME": "nohost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "PATH_INFO": path.encode().decode("latin-1"),
            "HTTP_ACCEPT": accept,
            "wsgi.input": BytesIO(),
            "wsgi.url_scheme": "http",
        }
        if login is not None:
            environ["HTTP_AUTHORIZATION"] = "Basic " + b64encode(login.encode()).decode()
        return environ

    def _send(self, environ: dict[str, Any]) -> Response:
        thread = _idle.pop() if _idle else ThreadPoolExecutor(1)
        try:
            return thread.submit(self._publish, environ).result()
        finally:
            _idle.append(thread)

    def _publish(self, environ: dict[str, Any]) -> Response:
        start: list[Any] = []
        try:
            body = (self._application or application(self.db))(environ, lambda *answer: start.extend(answer[:2]))
        except Exception as error:  # noqa: BLE001  what leaves an application is 500 for a server, whatever it is
            # For an unreadable request Zope renders an error page, which may fail as well.
            return Response(500, {}, repr(error).encode())
        return Response(int(start[0].split()[0]), dict(start[1]), b"".join(body))


def application(db: Any) -> Any:
    """Return the Zope of *db* as a WSGI application."""
    from App.ZApplication import ZApplicationWrapper
    from OFS.Application import Application
    from ZPublisher import WSGIPublisher
    from ZPublisher.httpexceptions import HTTPExceptionHandler

    wrapper = ZApplicationWrapper(db, "Application", Application)
    module = f"{MODULE}.{id(db)}"
    WSGIPublisher._MODULES[module] = (wrapper, "Zope", False)

    def publish(environ: Any, start_response: Any) -> Any:
        return WSGIPublisher.publish_module(environ, start_response, _module_name=module)

    return HTTPExceptionHandler(publish)


def token(text: str) -> str:
    """Return the token in the form of the page *text*."""
    return text.partition('name="_authenticator"')[2].partition('value="')[2].partition('"')[0]


@dataclass
class Site:
    """A site in a database of its own, accessed over HTTP and directly."""

    db: Any
    web: Web = field(init=False)

    def __post_init__(self) -> None:
        self.web = Web(self.db)

    @contextmanager
    def inside(self) -> Iterator[Any]:
        """Yield the portal, for a manager; commit at the end."""
        with sites.inside(self.db) as portal:
            yield portal
            transaction.commit()

    @property
    def dsn(self) -> str:
        return str(self.db.storage._dsn)

    @property
    def generation(self) -> int:
        with self.inside() as portal:
            return portal.portal_catalog.getCounter()

    def token(self) -> str:
        from plone.protect import createToken

        with self.inside():
            return createToken()

    def page(self, url: str, **query: Any) -> Any:
        """Return the page at *url*, parsed, as a manager sees it."""
        response = self.web.get(url, MANAGER, accept="text/html", **query)
        assert response.status == 200, response.text
        return html.fromstring(response.body)

    def post(self, url: str, **form: Any) -> Response:
        """Send a manager's form with its token."""
        return self.web.post(url, MANAGER, _authenticator=self.token(), **form)


def text(element: Any) -> str:
    """Return the text of an element as people read it."""
    return " ".join(element.text_content().split())


def location(response: Response) -> str:
    """Return the redirect target of *response*."""
    assert response.status == 302, response.text
    return {name.lower(): value for name, value in response.headers.items()}["location"]
